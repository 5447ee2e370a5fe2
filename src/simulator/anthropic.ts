/** Wire format of Anthropic Messages. */
import { estimateTokens } from '../core/tokens/tokens.ts'
import { problemInThinkingBlocks, redactedBlock, searchBlocks, signed } from './anthropic-blocks.ts'
import type { RawRequest } from './request.ts'
import {
  type Answer,
  type Failure,
  type Frame,
  isWireObject,
  jsonTokens,
  mistake,
  numberOr,
  objectsIn,
  type SimulatedFormat,
  type SimulatedRequest,
  type SimulatedResponse,
  type SimulatedUsage,
  slices,
  textOr,
  unknownField,
  type WireObject,
} from './wire-format.ts'

const knownFields = new Set(
  `model messages max_tokens system temperature top_p top_k stop_sequences stream tools tool_choice output_config thinking
  metadata service_tier container inference_geo cache_control`.split(/\s+/),
)

/** Fields that are refused without the header of their beta. */
const betaFields: readonly (readonly [field: string, beta: RegExp])[] = [
  ['context_management', /context-management-/],
  ['mcp_servers', /mcp-client-/],
  ['output_format', /structured-outputs-/],
  ['speed', /fast-mode-/],
]
const takesSystemTurns = /mid-conversation-system-/

const refusesSampling = /^claude-(opus-4-[7-9]|opus-[5-9]|sonnet-[5-9]|haiku-5-5|fable)/
const refusesForcedTools = /^claude-(opus-5-5|sonnet-5-5|fable-5)/
const refusesBudgets = /^claude-(opus-4-[7-9]|opus-[5-9]|haiku-5-5|sonnet-5-5|fable)/
const cannotSwitchThinkingOff = /^claude-(opus-5-5|sonnet-5-5|fable)/

const reasoningTokens: Readonly<Record<string, number>> = { low: 16, medium: 48, high: 96, xhigh: 160, max: 256 }

const errorTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/** `POST /v1/messages/count_tokens`: the same body without an output cap. The response has only the count. */
export const anthropicCount = (): SimulatedFormat => ({
  ...anthropicFormat,
  read: (request, body, mint) => read(request, { ...body, max_tokens: 1, stream: false }, mint),
  completion: ({ question }) => ({ input_tokens: question.inputTokens }),
})

export const anthropicFormat: SimulatedFormat = {
  provider: 'anthropic',
  lineEnd: '\n',
  streamType: 'text/event-stream; charset=utf-8',
  jsonType: 'application/json',
  chunkCharacters: 20,
  ping: { part: 'opening', name: 'ping', data: '{"type": "ping"}' },
  unknownFrame: { part: 'opening', name: 'content_progress', data: '{"type":"content_progress","percent":1}' },
  read,
  headers: ({ mint, createdAt }) => ({
    'request-id': mint('req_01', 22),
    'anthropic-organization-id': 'simulated',
    ...Object.fromEntries(
      ['requests', 'tokens', 'input-tokens', 'output-tokens'].flatMap(kind => [
        [`anthropic-ratelimit-${kind}-limit`, '1000000'],
        [`anthropic-ratelimit-${kind}-remaining`, '999000'],
        [`anthropic-ratelimit-${kind}-reset`, new Date(createdAt * 1_000).toISOString().replace('.000', '')],
      ]),
    ),
  }),
  completion,
  frames,
  failure,
  errorFrame: mint => ({
    part: 'closing',
    name: 'error',
    data: JSON.stringify({
      type: 'error',
      error: { type: 'overloaded_error', message: 'Overloaded', details: null },
      request_id: mint('req_01', 22),
    }),
  }),
}

function read(
  { headers }: RawRequest,
  body: WireObject,
  mint: SimulatedResponse['mint'],
): ReturnType<SimulatedFormat['read']> {
  const hasKey = Boolean(headers['x-api-key']) || /^Bearer \S/.test(headers.authorization ?? '')
  const betas = headers['anthropic-beta'] ?? ''
  const problem = !hasKey
    ? keyMissing
    : headers['anthropic-version'] === undefined
      ? versionMissing
      : problemIn(body, betas)
  if (problem !== null) return failure(problem, mint)

  const messages = objectsIn(body.messages)
  const blocks = messages.map(message => blocksOf(message.content))
  const instructions = blocksOf(body.system)
  const tools = objectsIn(body.tools)
  const config = isWireObject(body.output_config) ? body.output_config : {}
  const thinking = isWireObject(body.thinking) ? body.thinking : {}
  const results =
    messages.at(-1)?.role === 'user' ? (blocks.at(-1) ?? []).filter(block => block.type === 'tool_result') : []
  const question: SimulatedRequest = {
    model: String(body.model),
    stream: body.stream === true,
    userTexts: blocks.flatMap((list, index) => {
      const text = textOf(list)
      return messages[index]?.role === 'user' && text !== '' ? [text] : []
    }),
    instructions: textOf(instructions),
    inputTokens:
      estimateTokens(textOf(instructions)) +
      blocks.flat().reduce((sum, block) => sum + tokensIn(block), 2 * messages.length) +
      jsonTokens(tools),
    images: blocks.flat().filter(block => block.type === 'image').length,
    files: blocks.flat().filter(block => block.type === 'document').length,
    toolResults: results.map(result => textOf(blocksOf(result.content))),
    tools: tools.map(tool => ({ name: String(tool.name), schema: tool.input_schema })),
    toolChoice: toldChoice(textOf(instructions)) ?? toolChoiceOf(body.tool_choice),
    parallelCalls: !(isWireObject(body.tool_choice) && body.tool_choice.disable_parallel_tool_use === true),
    json: isWireObject(config.format) ? { schema: config.format.schema ?? null } : toldJson(textOf(instructions)),
    reasoningTokens: thinkingTokens(thinking, config.effort),
    reasoningShown: thinking.display === 'summarized' || !refusesBudgets.test(String(body.model)),
    choices: 1,
    outputCap: numberOr(body.max_tokens, null),
    stops: [body.stop_sequences].flat().filter(stop => typeof stop === 'string'),
    logprobs: null,
    includeUsage: true,
    obfuscation: false,
    events: true,
  }
  return { kind: 'question', question }
}

/**
 * Returns the JSON request in the system prompt, which the model follows: this API has no parameter for JSON without a
 * schema.
 */
function toldJson(instructions: string): SimulatedRequest['json'] {
  const told = instructions.match(/^Answer with one JSON (?:object|value)\b.*?(?: schema: (\{.*\}))?$/m)
  if (told === null) return null
  try {
    return { schema: JSON.parse(told[1] ?? 'null') }
  } catch {
    return { schema: null }
  }
}

/** Returns the tool call requested in the system prompt: reasoning models do not support forced calls. */
function toldChoice(instructions: string): SimulatedRequest['toolChoice'] | null {
  const told = instructions.match(/^Answer by calling (?:one of the tools|the tool `(.+)`)\.$/m)
  if (told === null) return null
  return told[1] === undefined ? 'required' : { name: told[1] }
}

const keyMissing: Failure = {
  kind: 'key_missing',
  status: 401,
  message: 'x-api-key header is required',
  param: null,
  retryAfterSeconds: null,
}
const versionMissing = mistake('anthropic-version: header is required')

function problemIn(body: WireObject, betas: string): Failure | null {
  const { model, messages, max_tokens: cap, temperature, tools, thinking, tool_choice: choice } = body
  for (const name of ['model', 'messages', 'max_tokens']) {
    if (body[name] == null) return mistake(`${name}: Field required`)
  }
  const inBeta = betaFields.filter(([, beta]) => beta.test(betas)).map(([field]) => field)
  const unknown = unknownField(body, new Set([...knownFields, ...inBeta]))
  if (unknown !== undefined) return mistake(`${unknown}: Extra inputs are not permitted`)
  if (typeof model !== 'string' || model === '') return mistake('model: String should have at least 1 character')
  if (typeof cap !== 'number' || cap < 1) return mistake('max_tokens: Input should be greater than or equal to 1')
  if (!Array.isArray(messages) || messages.length === 0) return mistake('messages: at least one message is required')
  if (temperature != null && !(typeof temperature === 'number' && temperature >= 0 && temperature <= 1)) {
    return mistake('temperature: range: 0..1')
  }
  if (refusesSampling.test(model)) {
    const refused = ['temperature', 'top_p', 'top_k'].find(name => body[name] != null)
    if (refused !== undefined) return mistake(`${refused}: this parameter is not supported with this model`)
  }
  if (isWireObject(choice) && (choice.type === 'any' || choice.type === 'tool') && refusesForcedTools.test(model)) {
    return mistake(`tool_choice: type "${String(choice.type)}" is not supported with this model`)
  }
  if (isWireObject(choice) && objectsIn(tools).length === 0)
    return mistake('tool_choice may only be specified while providing tools')
  for (const [index, tool] of objectsIn(tools).entries()) {
    const schema = tool.input_schema
    if (tool.type === undefined && !(isWireObject(schema) && schema.type === 'object')) {
      return mistake(`tools.${index}.custom.input_schema.type: Input should be 'object'`)
    }
  }
  if (isWireObject(thinking)) {
    const problem = problemInThinking(thinking, model, cap)
    if (problem !== null) return problem
  }
  const turns = objectsIn(messages)
  const isSystemTaken = takesSystemTurns.test(betas) || refusesBudgets.test(model)
  const refused = isSystemTaken ? -1 : turns.findIndex(({ role }) => role === 'system')
  if (refused !== -1) return mistake(`messages.${refused}.role: Input should be 'user' or 'assistant'`)
  const spoken = turns.filter(({ role }) => role !== 'system')
  return problemInMessages(spoken, objectsIn(tools).length > 0) ?? problemInThinkingBlocks(turns, thinking)
}

function problemInThinking(thinking: WireObject, model: string, cap: number): Failure | null {
  if (thinking.type === 'disabled' && cannotSwitchThinkingOff.test(model)) {
    return mistake('thinking.type: "disabled" is not supported with this model')
  }
  if (thinking.type !== 'enabled') return null
  if (refusesBudgets.test(model))
    return mistake('thinking.type: "enabled" is not supported with this model; use "adaptive"')
  const budget = numberOr(thinking.budget_tokens, 0)
  if (budget < 1_024) return mistake('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024')
  return budget < cap ? null : mistake('`max_tokens` must be greater than `thinking.budget_tokens`')
}

function problemInMessages(messages: readonly WireObject[], hasTools: boolean): Failure | null {
  if (messages[0]?.role !== 'user') return mistake('messages: first message must use the "user" role')
  let open: readonly unknown[] = []
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== 'user' && role !== 'assistant')
      return mistake(`messages.${index}.role: Input should be 'user' or 'assistant'`)
    const blocks = blocksOf(content)
    if (blocks.length === 0) return mistake(`messages.${index}: all messages must have non-empty content`)
    if (blocks.some(block => block.type === 'text' && !textOr(block.text, '').trim())) {
      return mistake('messages: text content blocks must be non-empty')
    }
    const answered = blocks.filter(block => block.type === 'tool_result').map(block => block.tool_use_id)
    const missing = open.find(id => !answered.includes(id))
    if (missing !== undefined) {
      return mistake(
        `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${String(missing)}.`,
      )
    }
    const stray = answered.find(id => !open.includes(id))
    if (stray !== undefined) {
      return mistake(`messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${String(stray)}.`)
    }
    open = blocks.filter(block => block.type === 'tool_use').map(block => block.id)
    if (open.length > 0 && !hasTools)
      return mistake('Requests which include `tool_use` or `tool_result` blocks must define tools.')
  }
  return null
}

function blocksOf(content: unknown): readonly WireObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content)
}

function textOf(blocks: readonly WireObject[]): string {
  return blocks.map(block => textOr(block.text, '')).join('')
}

function tokensIn(block: WireObject): number {
  if (block.type === 'image' || block.type === 'document') return 0
  return block.type === 'text' ? estimateTokens(textOr(block.text, '')) : jsonTokens([block])
}

function toolChoiceOf(choice: unknown): SimulatedRequest['toolChoice'] {
  if (!isWireObject(choice)) return 'auto'
  if (choice.type === 'tool') return { name: String(choice.name) }
  return choice.type === 'any' ? 'required' : choice.type === 'none' ? 'none' : 'auto'
}

function thinkingTokens(thinking: WireObject, effort: unknown): number {
  if (thinking.type === 'enabled') return Math.min(numberOr(thinking.budget_tokens, 0), 96)
  return thinking.type === 'adaptive' ? (reasoningTokens[String(effort)] ?? 96) : 0
}

function completion(turn: SimulatedResponse): unknown {
  const { answers, usage, mint, served } = turn
  const [answer] = answers
  if (answer === undefined) return null
  return {
    id: mint('msg_01', 22),
    type: 'message',
    role: 'assistant',
    model: served,
    content: blocksSaid(answer, turn).map(({ block }) => block),
    ...ending(answer),
    ...(usage === null ? {} : { usage: { ...usageBody(usage), ...searchUsage(turn) } }),
  }
}

type Said = { readonly block: WireObject; readonly start: WireObject; readonly deltas: Iterable<WireObject> }

/** Returns each block in its JSON form, its opening in a stream, and its deltas. */
function blocksSaid(
  { reasoning, text, calls }: Answer,
  { question, directives, mint, chunkCharacters }: SimulatedResponse,
): readonly Said[] {
  const said: Said[] = []
  const whole = (block: WireObject): Said => ({ block, start: block, deltas: [] })
  const search = directives.server_tool ? searchBlocks(mint, question.userTexts.at(-1) ?? '') : null
  if (reasoning !== '' && directives.redacted) said.push(whole(redactedBlock(mint)))
  else if (reasoning !== '') {
    const thinking = question.reasoningShown ? reasoning : ''
    const signature = signed(mint, thinking)
    said.push({
      block: { type: 'thinking', thinking, signature },
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: [
        ...[...slices(thinking, chunkCharacters)].map(piece => ({ type: 'thinking_delta', thinking: piece })),
        { type: 'signature_delta', signature },
      ],
    })
  }
  if (search !== null) {
    const input = JSON.stringify(search.use.input)
    const deltas = [{ type: 'input_json_delta', partial_json: input }]
    said.push({ block: search.use, start: { ...search.use, input: {} }, deltas }, whole(search.result))
  }
  if (text !== '') {
    const pieces = [...slices(text, chunkCharacters)].map(piece => ({ type: 'text_delta', text: piece }))
    said.push({
      block: search === null ? { type: 'text', text } : { type: 'text', text, citations: [search.citation] },
      start: { type: 'text', text: '' },
      deltas: search === null ? pieces : [...pieces, { type: 'citations_delta', citation: search.citation }],
    })
  }
  for (const call of calls) {
    const opening = { type: 'tool_use', id: mint('toolu_01', 22), name: call.name }
    const pieces = ['', ...slices(JSON.stringify(call.arguments), chunkCharacters)]
    said.push({
      block: { ...opening, input: call.arguments },
      start: { ...opening, input: {} },
      deltas: pieces.map(partial_json => ({ type: 'input_json_delta', partial_json })),
    })
  }
  return said
}

function ending({ finish, refusal, stopSequence }: Answer) {
  const refused = refusal !== null || finish === 'content_filter'
  const reasons = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' } as const
  return {
    stop_reason: refused ? 'refusal' : finish === 'stop' && stopSequence !== null ? 'stop_sequence' : reasons[finish],
    stop_sequence: stopSequence,
    stop_details: refused ? { type: 'refusal', category: 'simulated', explanation: refusal } : null,
  }
}

function usageBody({ input, cached, cacheWrite, hourCacheWrite = 0, output, reasoning }: SimulatedUsage) {
  const countsAreNumbers = typeof input === 'number' && typeof cached === 'number' && typeof cacheWrite === 'number'
  return {
    input_tokens: countsAreNumbers ? input - cached - cacheWrite : input,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cached,
    cache_creation: {
      ephemeral_5m_input_tokens: typeof cacheWrite === 'number' ? cacheWrite - hourCacheWrite : cacheWrite,
      ephemeral_1h_input_tokens: hourCacheWrite,
    },
    output_tokens: output,
    ...(reasoning === 0 ? {} : { output_tokens_details: { thinking_tokens: reasoning } }),
    service_tier: 'standard',
    inference_geo: 'not_available',
  }
}

function searchUsage({ directives }: SimulatedResponse) {
  return directives.server_tool ? { server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 } } : {}
}

function* frames(turn: SimulatedResponse): Generator<Frame> {
  const { answers, usage, mint, served } = turn
  const [answer] = answers
  if (answer === undefined) return
  const opened =
    usage === null ? {} : { usage: usageBody({ ...usage, output: usage.output === 0 ? 0 : 1, reasoning: 0 }) }
  yield frame('opening', 'message_start', {
    message: {
      model: served,
      id: mint('msg_01', 22),
      type: 'message',
      role: 'assistant',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      ...opened,
    },
  })
  for (const [index, { start, deltas }] of blocksSaid(answer, turn).entries()) {
    yield frame(index === 0 ? 'opening' : 'content', 'content_block_start', { index, content_block: start })
    if (index === 0) yield { part: 'opening', name: 'ping', data: '{"type": "ping"}' }
    for (const delta of deltas) yield frame('content', 'content_block_delta', { index, delta })
    yield frame('content', 'content_block_stop', { index })
  }
  const counts = usage === null ? {} : { usage: { ...usageBody(usage), ...searchUsage(turn) } }
  yield frame('closing', 'message_delta', { delta: ending(answer), ...counts })
  yield frame('closing', 'message_stop', {})
}

/** The real API pads its events with spaces before the last brace. */
function frame(part: Frame['part'], type: string, fields: WireObject): Frame {
  const data = JSON.stringify({ type, ...fields })
  return { part, name: type, data: `${data.slice(0, -1)}${' '.repeat(data.length % 16)}}` }
}

function failure(
  { kind, status, message, retryAfterSeconds }: Failure,
  mint: SimulatedResponse['mint'],
): ReturnType<SimulatedFormat['failure']> {
  const requestId = mint('req_01', 22)
  const type = errorTypes[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
  const retries = status === 408 || status === 409 || status === 429 || status >= 500
  return {
    kind: 'refusal',
    status,
    headers: {
      'request-id': requestId,
      'x-should-retry': String(retries),
      ...(retryAfterSeconds === null ? {} : { 'retry-after': String(retryAfterSeconds) }),
    },
    body: { type: 'error', error: { type, message: wording[kind] ?? message, details: null }, request_id: requestId },
  }
}

const wording: Partial<Record<Failure['kind'], string>> = {
  quota: 'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade.',
  context_overflow: 'prompt is too long: 200123 tokens > 200000 maximum',
  content_block: 'Output blocked by content filtering policy',
  model_missing: 'model: simulated-missing',
}
