/** Finds the definitions in a Responses body that reach OpenAI although they are not among the request's tools. */
import type { Tool } from '../../core/chat/chat.ts'
import { flatToolName, isTokenPricedTool } from '../../core/chat/tool-names.ts'
import { type Fields, isFields, textOrNull } from './check.ts'
import type { ToolList } from './tools.ts'

/** Fields that the request's tools contain, or that hold no text for a model. */
const readFields: ReadonlySet<string> = new Set(
  'type name description parameters strict defer_loading format tools execution headers authorization'.split(' '),
)

/**
 * Returns the tools and the fields of tools that `tools` does not contain: tools of OpenAI, deferred, replaced and excluded ones.
 * Moderation must see them, because OpenAI receives the lists as the client wrote them.
 */
export function unreadTools(lists: readonly ToolList[], tools: readonly Tool[]): readonly Fields[] {
  const kept = new Map(tools.map(tool => [tool.name, tool]))
  const found: Fields[] = []
  const visit = (tool: unknown, namespace: string | null) => {
    if (!isFields(tool) || (namespace === null && !isTokenPricedTool(tool))) return
    switch (tool.type) {
      case 'namespace': {
        const name = textOrNull(tool.name) ?? ''
        const members = Array.isArray(tool.tools) ? tool.tools : []
        const first = kept.get(flatName(members[0], name))
        if (!first?.description?.includes(textOrNull(tool.description) ?? ''))
          found.push({ name, about: tool.description })
        for (const member of members) visit(member, name)
        found.push(...besides(tool))
        break
      }
      case 'function':
      case 'custom':
      case 'tool_search':
        if (isContained(tool, kept.get(flatName(tool, namespace)))) found.push(...besides(tool))
        else found.push(tool)
        break
      default:
        found.push(withoutCredentials(tool))
    }
  }
  for (const list of lists) for (const tool of list.tools) visit(tool, null)
  return found
}

function flatName(tool: unknown, namespace: string | null): string {
  if (!isFields(tool)) return ''
  return tool.type === 'tool_search' ? 'tool_search' : flatToolName(namespace, textOrNull(tool.name) ?? '')
}

function isContained(written: Fields, tool: Tool | undefined): boolean {
  if (tool === undefined || /\s/.test(textOrNull(written.name) ?? '')) return false
  const texts = [written.description, isFields(written.format) ? written.format.definition : null]
  const isSame = written.type === 'custom' || tool.parameters === (written.parameters ?? null)
  return isSame && texts.every(text => typeof text !== 'string' || (tool.description ?? '').includes(text))
}

function besides(tool: Fields): readonly Fields[] {
  const rest = Object.entries(tool).filter(([name, value]) => !readFields.has(name) && isTextual(value))
  return rest.length === 0 ? [] : [Object.fromEntries(rest)]
}

function isTextual(value: unknown): boolean {
  return typeof value === 'string' || (typeof value === 'object' && value !== null)
}

/** The credentials of a server are for OpenAI, and no model reads them. */
function withoutCredentials({ headers, authorization, ...rest }: Fields): Fields {
  return rest
}
