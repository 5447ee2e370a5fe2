/** Wire format of OpenAI Chat Completions. */
import { estimateTokens } from '../text/tokens/tokens.ts'
import { openaiCompletion, openaiFrames } from './openai-output.ts'
import type { RawRequest } from './server.ts'
import {
  eventWriter,
  type Failure,
  isWireObject,
  joinText,
  jsonTokens,
  mistake,
  numberOr,
  objectsIn,
  readAs,
  readStops,
  type SimulatedError,
  type SimulatedFormat,
  type SimulatedRequest,
  unknownField,
  type WireObject,
} from './wire-format.ts'

export const reasoningTokens: Readonly<Record<string, number>> = {
  minimal: 8,
  low: 16,
  medium: 48,
  high: 96,
  xhigh: 160,
  max: 256,
}

export const openaiFormat: SimulatedFormat = {
  provider: 'openai',
  streamType: 'text/event-stream; charset=utf-8',
  jsonType: 'application/json',
  chunkCharacters: 5,
  read,
  headers: ({ mint }) => ({
    'x-request-id': mint('req_', 32),
    'openai-version': '2020-10-01',
    'openai-organization': 'simulated',
    'openai-processing-ms': '42',
    'x-ratelimit-limit-requests': '10000',
    'x-ratelimit-limit-tokens': '2000000',
    'x-ratelimit-remaining-requests': '9999',
    'x-ratelimit-remaining-tokens': '1999000',
    'x-ratelimit-reset-requests': '6ms',
    'x-ratelimit-reset-tokens': '1s',
  }),
  encode: eventWriter('\n'),
  completion: openaiCompletion,
  frames: openaiFrames,
  failure,
  errorFrame: () => ({
    part: 'closing',
    name: null,
    data: '{"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}',
  }),
}

function read({ headers }: RawRequest, body: WireObject): ReturnType<SimulatedFormat['read']> {
  const problem = headers.authorization?.match(/^Bearer \S/) ? findProblem(body) : openaiKeyMissing
  if (problem !== null) return failure(problem)

  const messages = objectsIn(body.messages)
  const parts = messages.map(message => readParts(message.content))
  const options = isWireObject(body.stream_options) ? body.stream_options : {}
  const lastTurn = messages.findLastIndex(message => message.role !== 'tool')
  const toolCalls = messages.flatMap(message => objectsIn(message.tool_calls))
  const tools = objectsIn(body.tools)
  return readAs({
    model: String(body.model),
    stream: body.stream === true,
    userTexts: messages.flatMap((message, index) => (message.role === 'user' ? [joinText(parts[index])] : [])),
    textBefore: joinText(parts.at(-2)),
    inputTokens:
      parts.reduce((sum, list) => sum + estimateTokens(joinText(list)) + 2, 0) +
      jsonTokens([...toolCalls, ...tools, ...(isWireObject(body.response_format) ? [body.response_format] : [])]),
    images: parts.flat().filter(part => part.type === 'image_url').length,
    files: parts.flat().filter(part => part.type === 'file').length,
    toolResults: parts.slice(lastTurn + 1).map(joinText),
    tools: tools.flatMap(({ function: offered }) =>
      isWireObject(offered) ? [{ name: String(offered.name), schema: offered.parameters ?? null }] : [],
    ),
    toolChoice: readToolChoice(body.tool_choice),
    parallelCalls: body.parallel_tool_calls !== false,
    json: readJsonFormat(body.response_format),
    reasoningTokens: reasoningTokens[String(body.reasoning_effort)] ?? 0,
    choices: numberOr(body.n, 1),
    outputCap: numberOr(body.max_completion_tokens ?? body.max_tokens, null),
    stops: readStops(body.stop),
    logprobs: body.logprobs === true ? numberOr(body.top_logprobs, 0) : null,
    includeUsage: options.include_usage === true,
  })
}

function readParts(content: unknown): readonly WireObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content)
}

function readToolChoice(choice: unknown): SimulatedRequest['toolChoice'] {
  if (choice === 'none' || choice === 'required') return choice
  const named = isWireObject(choice) ? choice.function : null
  return isWireObject(named) ? { name: String(named.name) } : 'auto'
}

function readJsonFormat(format: unknown): SimulatedRequest['json'] {
  if (!isWireObject(format) || format.type === 'text') return null
  const named = format.json_schema
  return { schema: isWireObject(named) ? (named.schema ?? null) : null }
}

export function failure({ kind, status, message, param, retryAfterSeconds }: Failure): SimulatedError {
  const [type, code] = findCode(kind, status)
  return {
    kind: 'refusal',
    status,
    headers:
      retryAfterSeconds === null
        ? {}
        : { 'retry-after': String(retryAfterSeconds), 'retry-after-ms': String(retryAfterSeconds * 1_000) },
    body: {
      error: { message: wording[kind] ?? message, type, param: kind === 'context_overflow' ? 'messages' : param, code },
    },
  }
}

const wording: Partial<Record<Failure['kind'], string>> = {
  quota: 'You exceeded your current quota, please check your plan and billing details.',
  context_overflow:
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
  content_block: 'Your request was rejected as a result of our safety system.',
  model_missing: 'The model does not exist or you do not have access to it.',
}

function findCode(kind: Failure['kind'], status: number): readonly [type: string, code: string | null] {
  switch (kind) {
    case 'quota':
      return ['insufficient_quota', 'insufficient_quota']
    case 'context_overflow':
      return ['invalid_request_error', 'context_length_exceeded']
    case 'content_block':
      return ['invalid_request_error', 'content_policy_violation']
    case 'model_missing':
      return ['invalid_request_error', 'model_not_found']
    case 'bad_request':
    case 'key_missing':
      return ['invalid_request_error', null]
    case 'by_status':
      if (status === 401) return ['invalid_request_error', 'invalid_api_key']
      if (status === 429) return ['requests', 'rate_limit_exceeded']
      return [status >= 500 ? 'server_error' : 'invalid_request_error', null]
  }
}

const knownFields = new Set(
  `model messages stream stream_options max_completion_tokens max_tokens temperature top_p n stop presence_penalty
  frequency_penalty logit_bias logprobs top_logprobs seed response_format tools tool_choice parallel_tool_calls functions
  function_call reasoning_effort verbosity modalities audio prediction web_search_options service_tier store metadata user
  safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options moderation`.split(/\s+/),
)

/** Lowest and highest value of each numeric field. */
const ranges: Readonly<Record<string, readonly [number, number]>> = {
  temperature: [0, 2],
  top_p: [0, 1],
  n: [1, 128],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
  top_logprobs: [0, 20],
  max_tokens: [1, Number.MAX_SAFE_INTEGER],
  max_completion_tokens: [1, Number.MAX_SAFE_INTEGER],
}

/** Parameters that models reject; `unlessEffortNone`: they are allowed with reasoning turned off. */
const parameterRules: readonly (readonly [models: RegExp, fields: readonly string[], unlessEffortNone?: true])[] = [
  [/^(o\d|gpt-[5-9])/, ['max_tokens', 'presence_penalty', 'frequency_penalty', 'logit_bias', 'top_logprobs']],
  [/^(o\d|gpt-5(-|$)|gpt-6-astra|gpt-6\.1-sol)/, ['temperature', 'top_p', 'logprobs']],
  [/^(gpt-5\.|gpt-6-sol|gpt-6-luna|gpt-6\.1-terra)/, ['temperature', 'top_p', 'logprobs'], true],
]

export const openaiKeyMissing = mistake(
  "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.",
  null,
  401,
  'key_missing',
)

/** Returns the failure of a body that the API rejects; null = accepted. */
function findProblem(body: WireObject): Failure | null {
  const unknown = unknownField(body, knownFields)
  if (unknown !== undefined) return mistake(`Unrecognized request argument supplied: ${unknown}`)
  if (typeof body.model !== 'string' || body.model === '') return mistake('you must provide a model parameter')
  if (!Array.isArray(body.messages)) return mistake("Missing required parameter: 'messages'.", 'messages')
  if (body.messages.length === 0) {
    return mistake("Invalid 'messages': empty array. Expected an array with minimum length 1.", 'messages')
  }
  for (const [name, [least, most]] of Object.entries(ranges)) {
    const value = body[name] ?? least
    if (typeof value !== 'number' || value < least || value > most) {
      return mistake(`Invalid '${name}': expected a value between ${least} and ${most}.`, name)
    }
  }
  const refused = findUnsupported(body, body.model)
  if (refused !== undefined) {
    return mistake(`Unsupported parameter: '${refused}' is not supported with this model.`, refused)
  }
  const hasTools = Array.isArray(body.tools) && body.tools.length > 0
  if (Array.isArray(body.tools) && !hasTools) return mistake("Invalid 'tools': empty array.", 'tools')
  if (body.tool_choice != null && !hasTools)
    return mistake("'tool_choice' is only allowed when 'tools' are specified.", 'tool_choice')
  if (body.stream_options != null && body.stream !== true) {
    return mistake("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options')
  }
  if (Array.isArray(body.stop) && body.stop.length > 4) return mistake("Invalid 'stop': array too long.", 'stop')
  if (body.top_logprobs != null && body.logprobs !== true) {
    return mistake("'top_logprobs' is only allowed when 'logprobs' is true.", 'top_logprobs')
  }
  return findMessageProblem(objectsIn(body.messages), body)
}

export function findUnsupported(body: WireObject, model: string): string | undefined {
  const applying = parameterRules.filter(
    ([models, , unlessEffortNone]) => models.test(model) && !(unlessEffortNone && body.reasoning_effort === 'none'),
  )
  const isDefault = (name: string) =>
    body[name] == null || ((name === 'temperature' || name === 'top_p') && body[name] === 1)
  return applying.flatMap(([, fields]) => fields).find(name => !isDefault(name))
}

function findMessageProblem(messages: readonly WireObject[], body: WireObject): Failure | null {
  let open = new Set<unknown>()
  for (const [index, message] of messages.entries()) {
    const role = message.role
    if (!['system', 'developer', 'user', 'assistant', 'tool', 'function'].includes(String(role))) {
      return mistake(`Invalid value: '${String(role)}'.`, `messages[${index}].role`)
    }
    if (role === 'tool') {
      if (!open.has(message.tool_call_id)) {
        return mistake(
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          `messages[${index}].role`,
        )
      }
    } else {
      open = new Set(objectsIn(message.tool_calls).map(call => call.id))
    }
  }
  const format = body.response_format
  if (isWireObject(format) && format.type === 'json_object' && !/json/i.test(JSON.stringify(messages))) {
    return mistake(
      "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
      'messages',
    )
  }
  return null
}
