/** Wire format of OpenAI Chat Completions. */
import { estimateTokens } from '../text/tokens/tokens.ts'
import { openaiCompletion, openaiFrames } from './openai-answer.ts'
import { openaiKeyMissing, openaiProblem } from './openai-checks.ts'
import type { RawRequest } from './request.ts'
import {
  type Failure,
  isWireObject,
  jsonTokens,
  numberOr,
  objectsIn,
  type SimulatedFormat,
  type SimulatedRequest,
  textOr,
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
  completion: openaiCompletion,
  frames: openaiFrames,
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
  const problem = headers.authorization?.match(/^Bearer \S/) ? openaiProblem(body) : openaiKeyMissing
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
