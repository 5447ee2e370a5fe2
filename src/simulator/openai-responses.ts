/** The simulated OpenAI Responses API: reads requests and writes a response as one object. */
import { estimateTokens } from '../text/tokens/tokens.ts'
import { failure, findUnsupported, openaiFormat, openaiKeyMissing, reasoningTokens } from './openai.ts'
import { isOwnReasoning, writeItems, writeResponseFrames, writeResponseObject } from './openai-responses-output.ts'
import type { RawRequest } from './server.ts'
import {
  type Failure,
  isWireObject,
  joinText,
  jsonTokens,
  mistake,
  numberOr,
  objectsIn,
  readAs,
  type SimulatedFormat,
  type SimulatedRequest,
  textOr,
  unknownField,
  type WireObject,
} from './wire-format.ts'

const knownFields = new Set(
  `model input instructions tools tool_choice parallel_tool_calls max_output_tokens max_tool_calls temperature top_p top_logprobs
  reasoning text include store stream stream_options background metadata user safety_identifier prompt_cache_key
  prompt_cache_retention prompt_cache_options service_tier truncation context_management moderation client_metadata
  previous_response_id conversation prompt`.split(/\s+/),
)

export const openaiResponsesFormat: SimulatedFormat = {
  ...openaiFormat,
  read,
  completion: turn => writeResponseObject(turn, 'completed', writeItems(turn)),
  frames: writeResponseFrames,
  errorFrame: () => ({
    part: 'closing',
    name: 'error',
    data: '{"type":"error","code":"server_error","message":"The server had an error while processing your request.","param":null,"sequence_number":99}',
  }),
}

function read({ headers }: RawRequest, body: WireObject): ReturnType<SimulatedFormat['read']> {
  const problem = headers.authorization?.match(/^Bearer \S/) ? findProblem(body) : openaiKeyMissing
  if (problem !== null) return failure(problem)
  const items = readItems(body.input)
  const lists = [body.tools, ...items.filter(({ type }) => type === 'additional_tools').map(({ tools }) => tools)]
  const tools = lists.flatMap(objectsIn).flatMap(readTool)
  const messages = items.filter(({ type }) => type === undefined || type === 'message')
  const texts = messages.map(({ content }) => readText(content))
  const parts = messages.flatMap(({ content }) => objectsIn(content))
  const reasoning = isWireObject(body.reasoning) ? body.reasoning : {}
  const format = isWireObject(body.text) ? body.text.format : null
  const lastTurn = items.findLastIndex(({ type }) => !isOutput(type))
  return readAs({
    model: String(body.model),
    stream: body.stream === true,
    userTexts: messages.flatMap(({ role }, index) => (role === 'user' ? [texts[index] ?? ''] : [])),
    textBefore: texts.at(-2) ?? '',
    inputTokens: countInput(body, items, texts, tools),
    images: parts.filter(({ type }) => type === 'input_image').length,
    files: parts.filter(({ type }) => type === 'input_file').length,
    toolResults: items.slice(lastTurn + 1).map(({ output }) => readText(output)),
    tools: tools.map(({ flat, schema }) => ({ name: flat, schema })),
    declared: new Map(tools.map(({ flat, origin }) => [flat, origin])),
    encrypts: Array.isArray(body.include) && body.include.includes('reasoning.encrypted_content'),
    toolChoice: readToolChoice(body.tool_choice),
    parallelCalls: body.parallel_tool_calls !== false,
    json: isWireObject(format) && format.type !== 'text' ? { schema: format.schema ?? null } : null,
    reasoningTokens: reasoningTokens[String(reasoning.effort)] ?? 0,
    reasoningShown: reasoning.summary != null,
    outputCap: numberOr(body.max_output_tokens, null),
  })
}

function readItems(input: unknown): readonly WireObject[] {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : objectsIn(input)
}

function isOutput(type: unknown): boolean {
  return type === 'function_call_output' || type === 'custom_tool_call_output'
}

function isCall(type: unknown): boolean {
  return type === 'function_call' || type === 'custom_tool_call'
}

function readText(content: unknown): string {
  return typeof content === 'string' ? content : joinText(objectsIn(content))
}

/** Counted as the same conversation is on Chat Completions. */
function countInput(
  body: WireObject,
  items: readonly WireObject[],
  texts: readonly string[],
  tools: ReturnType<typeof readTool>,
): number {
  const outputs = items.filter(({ type }) => isOutput(type)).map(({ output }) => readText(output))
  const said = [...texts.filter(text => text !== ''), ...outputs]
  const instructions = textOr(body.instructions, '')
  const calls = items
    .filter(({ type }) => isCall(type))
    .map(({ call_id: id, name, arguments: args, input }) => ({
      id,
      type: 'function',
      function: { name, arguments: args ?? JSON.stringify({ input }) },
    }))
  const functions = tools.map(({ wire }) => ({ type: 'function', function: wire }))
  const format = isWireObject(body.text) && isWireObject(body.text.format) ? [body.text.format] : []
  return (
    [...said, ...(instructions === '' ? [] : [instructions])].reduce((sum, text) => sum + estimateTokens(text) + 2, 0) +
    // A turn that has only calls is a message too.
    (items.some(({ type }) => isCall(type)) && !items.some(({ role }) => role === 'assistant') ? 2 : 0) +
    jsonTokens([...calls, ...functions, ...format])
  )
}

function readTool(tool: WireObject): readonly {
  readonly flat: string
  readonly origin: { readonly type: string; readonly name: string; readonly namespace?: string }
  readonly schema: unknown
  readonly wire: WireObject
}[] {
  const name = String(tool.name)
  switch (tool.type) {
    case 'namespace':
      return objectsIn(tool.tools)
        .flatMap(readTool)
        .map(member => ({
          ...member,
          flat: `${name}.${member.flat}`,
          origin: { ...member.origin, namespace: name },
        }))
    case 'function': {
      const { type: _type, ...wire } = tool
      return [{ flat: name, origin: { type: 'function', name }, schema: tool.parameters ?? null, wire }]
    }
    case 'custom': {
      const schema = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] }
      return [{ flat: name, origin: { type: 'custom', name }, schema, wire: tool }]
    }
    default:
      return []
  }
}

function readToolChoice(choice: unknown): SimulatedRequest['toolChoice'] {
  if (choice === 'none' || choice === 'required') return choice
  return isWireObject(choice) && typeof choice.name === 'string' ? { name: choice.name } : 'auto'
}

function findProblem(body: WireObject): Failure | null {
  const unknown = unknownField(body, knownFields)
  if (unknown !== undefined) return mistake(`Unknown parameter: '${unknown}'.`, unknown)
  if (typeof body.model !== 'string' || body.model === '')
    return mistake("Missing required parameter: 'model'.", 'model')
  if (body.store !== false) return mistake('A simulated provider stores nothing: `store` must be false.', 'store')
  const items = readItems(body.input)
  if (items.length === 0) return mistake("Missing required parameter: 'input'.", 'input')
  const least = numberOr(body.max_output_tokens, 16)
  if (least < 16) return mistake("Invalid 'max_output_tokens': integer below minimum value.", 'max_output_tokens')
  const effort = isWireObject(body.reasoning) ? body.reasoning.effort : null
  const refused = findUnsupported(
    { temperature: body.temperature, top_p: body.top_p, reasoning_effort: effort },
    body.model,
  )
  if (refused !== undefined)
    return mistake(`Unsupported parameter: '${refused}' is not supported with this model.`, refused)
  return findItemProblem(items)
}

function findItemProblem(items: readonly WireObject[]): Failure | null {
  const open = new Set<unknown>()
  for (const [index, item] of items.entries()) {
    if (isCall(item.type)) open.add(item.call_id)
    if (isOutput(item.type) && !open.has(item.call_id))
      return mistake(`No tool call found for function call output with call_id ${String(item.call_id)}.`, 'input')
    if (item.type === 'item_reference') return mistake(`Item with id '${String(item.id)}' not found.`, 'input', 404)
    if (item.type !== 'reasoning') continue
    if (typeof item.encrypted_content !== 'string')
      return mistake(
        `Item with id '${String(item.id)}' not found. Items are not persisted when \`store\` is set to false.`,
        'input',
        404,
      )
    if (!isOwnReasoning(item.encrypted_content))
      return mistake(`The encrypted content for item ${String(item.id)} could not be verified.`, `input[${index}]`)
  }
  return null
}
