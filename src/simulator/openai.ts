/** Wire format of OpenAI Chat Completions. */
import { estimateTokens } from '../core/tokens/tokens.ts'
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
  total,
  unknownField,
  type WireObject,
} from './wire-format.ts'

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

/** Parameters that models reject; `unlessEffortNone` if they are allowed with reasoning turned off. */
const parameterRules: readonly { models: RegExp; fields: readonly string[]; unlessEffortNone: boolean }[] = [
  { models: /^(o\d|gpt-[5-9])/, fields: ['max_tokens'], unlessEffortNone: false },
  {
    models: /^(o\d|gpt-[5-9])/,
    fields: ['presence_penalty', 'frequency_penalty', 'logit_bias', 'top_logprobs'],
    unlessEffortNone: false,
  },
  {
    models: /^(o\d|gpt-5(-|$)|gpt-6-astra|gpt-6\.1-sol)/,
    fields: ['temperature', 'top_p', 'logprobs'],
    unlessEffortNone: false,
  },
  {
    models: /^(gpt-5\.|gpt-6-sol|gpt-6-luna|gpt-6\.1-terra)/,
    fields: ['temperature', 'top_p', 'logprobs'],
    unlessEffortNone: true,
  },
]

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
  lineEnd: '\n',
  streamType: 'text/event-stream; charset=utf-8',
  jsonType: 'application/json',
  chunkCharacters: 5,
  ping: null,
  unknownFrame: { part: 'opening', name: null, data: '{"object":"chat.completion.progress","choices":[],"percent":1}' },
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
  completion,
  frames,
  failure,
  errorFrame: () => ({
    part: 'closing',
    name: null,
    data: JSON.stringify({
      error: {
        message: 'The server had an error while processing your request.',
        type: 'server_error',
        param: null,
        code: null,
      },
    }),
  }),
}

function read({ headers }: RawRequest, body: WireObject): ReturnType<SimulatedFormat['read']> {
  const problem = headers.authorization?.match(/^Bearer \S/) ? problemIn(body) : keyMissing
  if (problem !== null) return failure(problem)

  const messages = objectsIn(body.messages)
  const parts = messages.map(message => partsOf(message.content))
  const options = isWireObject(body.stream_options) ? body.stream_options : {}
  const lastTurn = messages.findLastIndex(message => message.role !== 'tool')
  const toolCalls = messages.flatMap(message => objectsIn(message.tool_calls))
  const tools = objectsIn(body.tools)
  const question: SimulatedRequest = {
    model: String(body.model),
    stream: body.stream === true,
    userTexts: messages.flatMap((message, index) => (message.role === 'user' ? [textOf(parts[index])] : [])),
    instructions: messages
      .map((message, index) => (message.role === 'system' || message.role === 'developer' ? textOf(parts[index]) : ''))
      .join('\n'),
    inputTokens:
      parts.reduce((sum, list) => sum + estimateTokens(textOf(list)) + 2, 0) +
      jsonTokens([...toolCalls, ...tools, ...(isWireObject(body.response_format) ? [body.response_format] : [])]),
    images: parts.flat().filter(part => part.type === 'image_url').length,
    files: parts.flat().filter(part => part.type === 'file').length,
    toolResults: parts.slice(lastTurn + 1).map(textOf),
    tools: tools.flatMap(({ function: offered }) =>
      isWireObject(offered) ? [{ name: String(offered.name), schema: offered.parameters ?? null }] : [],
    ),
    toolChoice: toolChoiceOf(body.tool_choice),
    parallelCalls: body.parallel_tool_calls !== false,
    json: jsonOf(body.response_format),
    reasoningTokens: reasoningTokens[String(body.reasoning_effort)] ?? 0,
    reasoningShown: false,
    choices: numberOr(body.n, 1),
    outputCap: numberOr(body.max_completion_tokens ?? body.max_tokens, null),
    stops: [body.stop].flat().filter(stop => typeof stop === 'string'),
    logprobs: body.logprobs === true ? numberOr(body.top_logprobs, 0) : null,
    includeUsage: options.include_usage === true,
    obfuscation: options.include_obfuscation !== false,
    events: true,
  }
  return { kind: 'question', question }
}

export const keyMissing: Failure = {
  kind: 'key_missing',
  status: 401,
  message:
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.",
  param: null,
  retryAfterSeconds: null,
}

function problemIn(body: WireObject): Failure | null {
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
  const refused = refusedParameter(body, body.model)
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
  return problemInMessages(objectsIn(body.messages), body)
}

export function refusedParameter(body: WireObject, model: string): string | undefined {
  const applying = parameterRules.filter(
    rule => rule.models.test(model) && !(rule.unlessEffortNone && body.reasoning_effort === 'none'),
  )
  const isDefault = (name: string) =>
    body[name] == null || ((name === 'temperature' || name === 'top_p') && body[name] === 1)
  return applying.flatMap(rule => rule.fields).find(name => !isDefault(name))
}

function problemInMessages(messages: readonly WireObject[], body: WireObject): Failure | null {
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

function partsOf(content: unknown): readonly WireObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content)
}

function textOf(parts: readonly WireObject[] = []): string {
  return parts.map(part => textOr(part.text, '')).join('')
}

function toolChoiceOf(choice: unknown): SimulatedRequest['toolChoice'] {
  if (choice === 'none' || choice === 'required') return choice
  const named = isWireObject(choice) ? choice.function : null
  return isWireObject(named) ? { name: String(named.name) } : 'auto'
}

function jsonOf(format: unknown): SimulatedRequest['json'] {
  if (!isWireObject(format) || format.type === 'text') return null
  const named = format.json_schema
  return { schema: isWireObject(named) ? (named.schema ?? null) : null }
}

function completion(turn: SimulatedResponse): unknown {
  const { question, answers, usage } = turn
  return {
    ...envelope(turn, 'chat.completion'),
    choices: answers.map((answer, index) => ({
      index,
      message: {
        role: 'assistant',
        content: answer.text === '' && (answer.calls.length > 0 || answer.refusal !== null) ? null : answer.text,
        ...(answer.calls.length === 0 ? {} : { tool_calls: answer.calls.map(call => toolCall(call, turn)) }),
        refusal: answer.refusal,
        annotations: [],
      },
      logprobs: logprobsOf(answer.text, question.logprobs),
      finish_reason: answer.finish,
    })),
    ...(usage === null ? {} : { usage: usageBody(usage) }),
  }
}

function envelope({ mint, createdAt, served }: SimulatedResponse, object: string) {
  return {
    id: mint('chatcmpl-', 29),
    object,
    created: createdAt,
    model: served,
    service_tier: 'default',
    system_fingerprint: 'fp_simulated',
  }
}

function toolCall(call: Answer['calls'][number], { mint }: SimulatedResponse) {
  return {
    id: mint('call_', 24),
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }
}

function usageBody({ input, cached, cacheWrite, output, reasoning }: SimulatedUsage) {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: total(input, output),
    prompt_tokens_details: {
      cached_tokens: cached,
      ...(cacheWrite === 0 ? {} : { cache_write_tokens: cacheWrite }),
      audio_tokens: 0,
    },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

function logprobsOf(text: string, alternatives: number | null): unknown {
  if (alternatives === null) return null
  const entry = (token: string, logprob: number) => ({ token, logprob, bytes: [...Buffer.from(token)] })
  const content = [...slices(text, 4)].map(token => ({
    ...entry(token, -0.01),
    top_logprobs: Array.from({ length: alternatives }, (_, rank) =>
      entry(rank === 0 ? token : `${token}${rank}`, -0.01 - rank),
    ),
  }))
  return { content, refusal: null }
}

function* frames(turn: SimulatedResponse): Generator<Frame> {
  const { question, answers, usage, chunkCharacters, mint } = turn
  const shared = envelope(turn, 'chat.completion.chunk')
  const noUsage = question.includeUsage && usage !== null ? { usage: null } : {}
  let chunks = 0
  const frame = (part: Frame['part'], choices: readonly unknown[], extra: object = noUsage): Frame => ({
    part,
    name: null,
    data: JSON.stringify({
      ...shared,
      choices,
      ...extra,
      ...(question.obfuscation ? { obfuscation: 'simulatedpadding'.slice(++chunks % 12) } : {}),
    }),
  })
  const choiceFrame = (
    part: Frame['part'],
    index: number,
    delta: object,
    finish: string | null = null,
    logprobs: unknown = null,
  ) => frame(part, [{ index, delta, logprobs, finish_reason: finish }])

  for (const [index, { text, calls }] of answers.entries()) {
    // A single call opens its turn itself; several follow a chunk with only the role.
    if (text !== '' || calls.length !== 1) {
      const content = calls.length > 0 && text === '' ? null : ''
      yield choiceFrame('opening', index, { role: 'assistant', content, refusal: null })
    }
  }
  const writers = answers.map((answer, index) =>
    deltasOf(answer, chunkCharacters, mint).map(delta => ({ index, delta })),
  )
  for (const { index, delta } of interleaved(writers)) {
    const text = 'content' in delta && typeof delta.content === 'string' ? delta.content : ''
    yield choiceFrame('content', index, delta, null, text === '' ? null : logprobsOf(text, question.logprobs))
  }
  for (const [index, { finish }] of answers.entries()) yield choiceFrame('closing', index, {}, finish)
  if (question.includeUsage && usage !== null) yield frame('closing', [], { usage: usageBody(usage) })
  yield { part: 'closing', name: null, data: '[DONE]' }
}

function* deltasOf(
  { text, refusal, calls }: Answer,
  characters: number,
  mint: SimulatedResponse['mint'],
): Generator<WireObject> {
  for (const content of slices(text, characters)) yield { content }
  for (const piece of slices(refusal ?? '', characters)) yield { refusal: piece }
  for (const [index, call] of calls.entries()) {
    const opening = { index, id: mint('call_', 24), type: 'function', function: { name: call.name, arguments: '' } }
    const alone = calls.length === 1 && text === ''
    yield {
      ...(alone ? { role: 'assistant', content: null } : {}),
      tool_calls: [opening],
      ...(alone ? { refusal: null } : {}),
    }
    for (const piece of slices(JSON.stringify(call.arguments), characters)) {
      yield { tool_calls: [{ index, function: { arguments: piece } }] }
    }
  }
}

/** Alternates between sources, as chunks of several choices arrive. */
function* interleaved<Item>(sources: readonly Iterator<Item>[]): Generator<Item> {
  for (let running = sources; running.length > 0; ) {
    const still: Iterator<Item>[] = []
    for (const source of running) {
      const next = source.next()
      if (next.done) continue
      still.push(source)
      yield next.value
    }
    running = still
  }
}

export function failure({
  kind,
  status,
  message,
  param,
  retryAfterSeconds,
}: Failure): ReturnType<SimulatedFormat['failure']> {
  const [type, code] = typeAndCode(kind, status)
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

function typeAndCode(kind: Failure['kind'], status: number): readonly [type: string, code: string | null] {
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
