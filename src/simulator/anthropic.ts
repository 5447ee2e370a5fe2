/** Wire format of Anthropic Messages. */
import { estimateTokens } from '../text/tokens/tokens.ts'
import { findAnthropicProblem, readContent, refusesBudgets } from './anthropic-checks.ts'
import { writeAnthropicFrames, writeAnthropicMessage } from './anthropic-output.ts'
import type { RawRequest } from './server.ts'
import {
  eventWriter,
  type Failure,
  isWireObject,
  joinText,
  jsonTokens,
  type Mint,
  numberOr,
  objectsIn,
  readAs,
  readStops,
  type SimulatedError,
  type SimulatedFormat,
  type SimulatedRequest,
  textOr,
  type WireObject,
} from './wire-format.ts'

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

export const anthropicFormat: SimulatedFormat = {
  provider: 'anthropic',
  streamType: 'text/event-stream; charset=utf-8',
  jsonType: 'application/json',
  chunkCharacters: 20,
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
  encode: eventWriter('\n'),
  completion: writeAnthropicMessage,
  frames: writeAnthropicFrames,
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

/** `POST /v1/messages/count_tokens`: the same body without an output cap. The response has only the count. */
export const anthropicCount: SimulatedFormat = {
  ...anthropicFormat,
  read: (request, body, mint) => read(request, { ...body, max_tokens: 1, stream: false }, mint),
  completion: ({ question }) => ({ input_tokens: question.inputTokens }),
}

function read({ headers }: RawRequest, body: WireObject, mint: Mint): ReturnType<SimulatedFormat['read']> {
  const problem = findAnthropicProblem(headers, body)
  if (problem !== null) return failure(problem, mint)

  const messages = objectsIn(body.messages)
  const blocks = messages.map(message => readContent(message.content))
  const instructions = joinText(readContent(body.system))
  const tools = objectsIn(body.tools)
  const config = isWireObject(body.output_config) ? body.output_config : {}
  const thinking = isWireObject(body.thinking) ? body.thinking : {}
  const results =
    messages.at(-1)?.role === 'user' ? (blocks.at(-1) ?? []).filter(block => block.type === 'tool_result') : []
  return readAs({
    model: String(body.model),
    stream: body.stream === true,
    userTexts: blocks.flatMap((list, index) => {
      const text = joinText(list)
      return messages[index]?.role === 'user' && text !== '' ? [text] : []
    }),
    textBefore: joinText(blocks.at(-2)),
    inputTokens:
      estimateTokens(instructions) +
      blocks.flat().reduce((sum, block) => sum + countBlock(block), 2 * messages.length) +
      jsonTokens(tools),
    images: blocks.flat().filter(block => block.type === 'image').length,
    files: blocks.flat().filter(block => block.type === 'document').length,
    toolResults: results.map(result => joinText(readContent(result.content))),
    tools: tools.map(tool => ({ name: String(tool.name), schema: tool.input_schema })),
    toolChoice: readToldChoice(instructions) ?? readToolChoice(body.tool_choice),
    parallelCalls: !(isWireObject(body.tool_choice) && body.tool_choice.disable_parallel_tool_use === true),
    json: isWireObject(config.format) ? { schema: config.format.schema ?? null } : readToldJson(instructions),
    reasoningTokens: countThinking(thinking, config.effort),
    reasoningShown: thinking.display === 'summarized' || !refusesBudgets.test(String(body.model)),
    outputCap: numberOr(body.max_tokens, null),
    stops: readStops(body.stop_sequences),
  })
}

/**
 * Returns the JSON request in the system prompt, which the model follows: this API has no parameter for JSON without a
 * schema.
 */
function readToldJson(instructions: string): SimulatedRequest['json'] {
  const told = instructions.match(/^Answer with one JSON (?:object|value)\b.*?(?: schema: (\{.*\}))?$/m)
  if (told === null) return null
  try {
    return { schema: JSON.parse(told[1] ?? 'null') }
  } catch {
    return { schema: null }
  }
}

/** Returns the tool call requested in the system prompt: reasoning models do not support forced calls. */
function readToldChoice(instructions: string): SimulatedRequest['toolChoice'] | null {
  const told = instructions.match(/^Answer by calling (?:one of the tools|the tool `(.+)`)\.$/m)
  if (told === null) return null
  return told[1] === undefined ? 'required' : { name: told[1] }
}

function countBlock(block: WireObject): number {
  if (block.type === 'image' || block.type === 'document') return 0
  return block.type === 'text' ? estimateTokens(textOr(block.text, '')) : jsonTokens([block])
}

function readToolChoice(choice: unknown): SimulatedRequest['toolChoice'] {
  if (!isWireObject(choice)) return 'auto'
  if (choice.type === 'tool') return { name: String(choice.name) }
  return choice.type === 'any' ? 'required' : choice.type === 'none' ? 'none' : 'auto'
}

function countThinking(thinking: WireObject, effort: unknown): number {
  if (thinking.type === 'enabled') return Math.min(numberOr(thinking.budget_tokens, 0), 96)
  return thinking.type === 'adaptive' ? (reasoningTokens[String(effort)] ?? 96) : 0
}

function failure({ kind, status, message, retryAfterSeconds }: Failure, mint: Mint): SimulatedError {
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
