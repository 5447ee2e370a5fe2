/** Parses the tools of Messages requests. Tools of the client become functions; tools that run at Anthropic are only for Anthropic. */
import type { Tool, ToolChoice } from '../../core/chat/chat.ts'
import { isMessagesTool } from '../../core/chat/provider-features.ts'
import type { ReadValues } from '../../core/chat/request-texts.ts'
import { invalidField } from '../../core/validation/validate.ts'
import { type BlockFields, getMark, isBlockFields } from './blocks.ts'

type ToolFields = {
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice | null
  readonly parallelToolCalls: boolean | null
  /** Definitions that only Anthropic supports, by the name that reports them as dropped. */
  readonly serverTools: Readonly<Record<string, BlockFields>>
  /** Set if the choice requires one of `serverTools`: no other provider can serve the request. */
  readonly needs: string | null
}

type WireTool = BlockFields & { readonly name?: string; readonly type?: string | null }

/** Parses tools and choice. Throws `invalid_request` with the tool at fault. */
export function readMessagesTools(
  tools: readonly WireTool[],
  choice: BlockFields | null,
  values: ReadValues,
): ToolFields {
  const functions: Tool[] = []
  const serverTools: Record<string, BlockFields> = {}
  const serverNames = new Set<unknown>()
  for (const [index, tool] of tools.entries()) {
    const read = readTool(tool, `tools.${index}`, values)
    if (read === null) {
      serverTools[`tools.${String(tool.type).slice(0, 58)}`] = tool
      serverNames.add(tool.name)
    } else if (functions.some(other => other.name === read.name))
      throw invalidField(`tools.${index}.name`, 'must be unique among `tools`')
    else functions.push(read)
  }
  const parallelToolCalls = choice?.disable_parallel_tool_use === true ? false : null
  const common = { tools: functions, parallelToolCalls, serverTools }
  if (choice === null) return { ...common, toolChoice: null, needs: null }
  if (choice.type === 'tool' && serverNames.has(choice.name))
    return { ...common, toolChoice: null, needs: 'tool_choice' }
  return { ...common, toolChoice: readChoice(choice, functions, tools.length > 0), needs: null }
}

function readChoice(choice: BlockFields, tools: readonly Tool[], hasAny: boolean): ToolChoice | null {
  switch (choice.type) {
    case 'any':
      if (!hasAny) throw invalidField('tool_choice', 'requires at least one tool in `tools`')
      return tools.length === 0 ? null : 'required'
    case 'tool':
      if (!tools.some(tool => tool.name === choice.name))
        throw invalidField('tool_choice.name', 'must match the name of a tool in `tools`')
      return { name: String(choice.name) }
    case 'none':
      return tools.length === 0 ? null : 'none'
    default:
      return tools.length === 0 ? null : 'auto'
  }
}

const toolName = /^[A-Za-z0-9_-]{1,128}$/

/** Returns the function for any provider; null = the tool runs at Anthropic. */
function readTool(tool: WireTool, param: string, values: ReadValues): Tool | null {
  const { type, name, description, input_schema: schema, strict } = tool
  if (type != null && type !== 'custom') {
    if (!isMessagesTool(type))
      throw invalidField(
        `${param}.type`,
        'is the type of a tool whose cost the gateway cannot bound. Remove it',
        'unsupported_parameter',
      )
    return clientTool(tool, type)
  }
  if (typeof name !== 'string' || !toolName.test(name))
    throw invalidField(`${param}.name`, 'must be a name of 1 to 128 letters, digits, `_` or `-`')
  if (!isBlockFields(schema)) throw invalidField(`${param}.input_schema`, 'must be a JSON schema of an object')
  values.add(name, typeof description === 'string' ? description : null, schema)
  return {
    name,
    description: typeof description === 'string' ? description : null,
    parameters: schema,
    strict: typeof strict === 'boolean' ? strict : null,
    ...getMark(tool),
  }
}

const text = { type: 'string' } as const
const whole = { type: 'integer' } as const
const object = (properties: BlockFields, required: readonly string[] = []) => ({ type: 'object', properties, required })

const editorFields = {
  path: text,
  file_text: text,
  old_str: text,
  new_str: text,
  insert_line: whole,
  insert_text: text,
  view_range: { type: 'array', items: whole },
}

/** Tools that Anthropic defines and the client runs. Source: Anthropic's tool reference, "Client tools". */
const clientTools: readonly {
  readonly type: RegExp
  readonly name: string
  readonly description: string
  readonly parameters: BlockFields
}[] = [
  {
    type: /^bash_\d+$/,
    name: 'bash',
    description: 'Runs a command in a shell that lasts for the conversation. `restart` starts a new shell.',
    parameters: object({ command: text, restart: { type: 'boolean' } }),
  },
  {
    type: /^text_editor_\d+$/,
    name: 'str_replace_based_edit_tool',
    description: 'Views, creates and edits text files. `str_replace` replaces the only occurrence of `old_str`.',
    parameters: object(
      { command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert'] }, ...editorFields },
      ['command', 'path'],
    ),
  },
  {
    type: /^memory_\d+$/,
    name: 'memory',
    description: 'Reads and writes files under /memories, which remain after the conversation.',
    parameters: object(
      {
        command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'] },
        ...editorFields,
        old_path: text,
        new_path: text,
      },
      ['command'],
    ),
  },
]

function clientTool(tool: WireTool, type: string): Tool | null {
  const { name } = tool
  const known = clientTools.find(item => item.type.test(type))
  if (known === undefined) return null
  const { description, parameters } = known
  return {
    name: typeof name === 'string' && toolName.test(name) ? name : known.name,
    description,
    parameters,
    strict: null,
    ...getMark(tool),
  }
}
