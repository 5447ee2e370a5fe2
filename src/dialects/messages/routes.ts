import { Type } from '@sinclair/typebox'
import type { QuotaStatus } from '../../core/limits/plans.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import type { ChatEndpoint, ChatRouteDeps } from '../../http/chat-handler.ts'
import { chatRoute } from '../../http/chat-route-docs.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import { count, errorFields, id, modelName, namedSchema, orNull, shownCostFields, text } from '../../http/schemas.ts'
import { anyObject } from '../foreign-objects.ts'
import { createTokenCounter, type TokenCounterDeps } from '../token-counter.ts'
import { getMessagesStatus, messagesErrorTypes, messagesRefusal } from './errors.ts'
import type { MessageStyle } from './reply.ts'
import { countSchema, messagesSchema, readCount, readMessages } from './request.ts'
import { MessageFrames, messageBody } from './writers.ts'

/** Writes the headers from which Anthropic's client libraries read the request ID and the limits of the account. */
function writeMessagesHeaders(headers: Headers, requestId: string, quota: QuotaStatus | null, nowMs: number): void {
  headers.set('request-id', requestId)
  if (quota === null) return
  const limits = { requests: quota.requests, tokens: quota.tokens }
  for (const [kind, { limit, remaining, resetMs }] of Object.entries(limits)) {
    headers.set(`anthropic-ratelimit-${kind}-limit`, String(limit))
    headers.set(`anthropic-ratelimit-${kind}-remaining`, String(remaining))
    // RFC 3339 with a precision of seconds, as in Anthropic's API.
    headers.set(`anthropic-ratelimit-${kind}-reset`, new Date(nowMs + resetMs).toISOString().replace(/\.\d+Z$/, 'Z'))
  }
}

type MessagesDeps = ChatRouteDeps &
  TokenCounterDeps & {
    /** Epoch milliseconds. */
    readonly now: () => number
  }

function getEndpoint({ reasoningSeal, now }: Pick<MessagesDeps, 'reasoningSeal' | 'now'>): ChatEndpoint {
  return {
    dialect: 'messages',
    parse(body, source) {
      const { request, spelling, wantsThinking } = readMessages(body, source, reasoningSeal)
      const style: MessageStyle = {
        wantsThinking,
        seal: item => reasoningSeal.seal(source.accountId, item),
      }
      return {
        request,
        spelling,
        stream: requestId => new MessageFrames(style, requestId),
        whole: () => messageBody(style),
      }
    },
    refusal: messagesRefusal,
    addHeaders: (headers, requestId, quota) => writeMessagesHeaders(headers, requestId, quota, now()),
  }
}

/** `POST /v1/messages` and its token count: the Anthropic wire format, for existing client libraries. */
export function messages(deps: MessagesDeps) {
  const count = createTokenCounter(deps, {
    read: (body, source) => readCount(body, source, deps.reasoningSeal),
    usualProvider: 'anthropic',
    body: tokens => ({ input_tokens: tokens }),
    addHeaders: (headers, requestId) => headers.set('request-id', requestId),
  })
  return chatRoute(deps, '/v1/messages', getEndpoint(deps), {
    summary: 'Messages',
    description:
      'The Anthropic Messages wire format, for existing client libraries: change only their base URL and the model. ' +
      'For an Anthropic model the body is forwarded unchanged, with unknown fields and beta headers; for other models it is translated. ' +
      'A stream ends with `message_stop` only after a success. Errors have the format of this API.',
    body: messagesSchema,
    examples,
    answer: messageShape,
    alsoAs: { 'text/event-stream': messageEventShape },
    refusals,
  }).post('/v1/messages/count_tokens', ({ request }) => count(request), {
    parse: 'none',
    ...withRouteDocs(policies.apiKey, {
      summary: 'Input tokens of a Messages request',
      description:
        'Free, with a rate limit per account. Anthropic counts for its own models. For other models, and after 2 s without a response, ' +
        'the count is an estimate and `x-gateway-estimated` is `true`.',
      body: countSchema,
      examples: {
        'a question': { model: 'claude-haiku-5-5', messages: [{ role: 'user', content: 'Why is the sky blue?' }] },
      },
      answer: countShape,
      errors: ['model_not_found', 'requests_per_minute_exceeded'],
      refusals,
    }),
  })
}

/** Complete requests that work without a change. */
const examples = {
  'the prompt chooses the model': {
    model: 'gateway-ai',
    max_tokens: 1024,
    messages: [{ role: 'user', content: 'Say hello in one sentence.' }],
  },
  'a stream': {
    model: 'claude-haiku-5-5',
    max_tokens: 1024,
    messages: [{ role: 'user', content: 'Why is the sky blue?' }],
    stream: true,
  },
  'a tool': {
    model: 'gateway-ai',
    max_tokens: 1024,
    messages: [{ role: 'user', content: 'How is the weather in Oslo?' }],
    tools: [{ name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }],
  },
}

/** Schemas of Messages responses, as JSON and as a stream. `usage` also has the cost. */

const stopReason = oneOf([
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'refusal',
  'pause_turn',
  'model_context_window_exceeded',
  'compaction',
])
const stopDetails = orNull(
  strictObject({
    type: Type.Literal('refusal'),
    category: orNull(Type.String()),
    explanation: orNull(Type.String()),
  }),
)
const ending = { stop_reason: stopReason, stop_sequence: orNull(Type.String()), stop_details: stopDetails }

const contentBlock = Type.Object(
  {
    type: text(
      'text',
      '`text`, `thinking`, `redacted_thinking`, `tool_use`, or a block of a tool that ran at Anthropic',
    ),
  },
  { additionalProperties: true },
)

const counts = {
  input_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count,
  cache_creation: strictObject({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }),
  output_tokens: count,
  service_tier: Type.Optional(text('standard', 'as Anthropic reports it, like the next ones')),
  inference_geo: Type.Optional(text('global')),
  speed: Type.Optional(text('standard')),
  server_tool_use: Type.Optional(Type.Record(Type.String(), count)),
  iterations: Type.Optional(Type.Array(anyObject)),
}

const usage = namedSchema('MessagesUsage', {
  ...counts,
  output_tokens_details: strictObject({ thinking_tokens: count }),
  ...shownCostFields,
})

const base = {
  id: text('msg_4f1'),
  type: Type.Literal('message'),
  role: Type.Literal('assistant'),
  model: modelName,
}

/** `POST /v1/messages`, not streamed. */
const messageShape = namedSchema('MessagesReply', {
  ...base,
  content: Type.Array(contentBlock),
  ...ending,
  usage,
  container: Type.Optional(orNull(anyObject)),
  context_management: Type.Optional(anyObject),
})

/** An error of this API. Errors of Anthropic about a request keep Anthropic's text. */
const messagesErrorShape = namedSchema('MessagesError', {
  type: Type.Literal('error'),
  error: namedSchema('MessagesErrorDetail', { ...errorFields, type: oneOf(messagesErrorTypes) }),
  request_id: id('req'),
})

const index = Type.Integer({ minimum: 0, examples: [0] })

/** One event of the stream; its `event:` line has the same name as `type`. */
const messageEventShape = Type.Union(
  [
    strictObject({
      type: Type.Literal('message_start'),
      message: strictObject({
        ...base,
        content: Type.Array(contentBlock),
        stop_reason: Type.Null(),
        stop_sequence: Type.Null(),
        stop_details: Type.Null(),
        usage: strictObject(counts),
      }),
    }),
    strictObject({ type: Type.Literal('ping') }),
    strictObject({ type: Type.Literal('content_block_start'), index, content_block: contentBlock }),
    strictObject({ type: Type.Literal('content_block_delta'), index, delta: anyObject }),
    strictObject({ type: Type.Literal('content_block_stop'), index }),
    strictObject({
      type: Type.Literal('message_delta'),
      delta: strictObject({ ...ending, container: orNull(anyObject) }),
      usage,
      context_management: Type.Optional(anyObject),
    }),
    strictObject({ type: Type.Literal('message_stop') }),
    messagesErrorShape,
  ],
  { title: 'MessagesEvent' },
)

/** `POST /v1/messages/count_tokens`. */
const countShape = namedSchema('TokenCount', { input_tokens: count })

const refusals = { shape: messagesErrorShape, getStatus: getMessagesStatus }
