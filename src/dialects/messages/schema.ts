/** Schemas of Messages responses, as JSON and as a stream. `usage` also has the cost. */
import { Type } from '@sinclair/typebox'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import { count, errorFields, id, modelName, namedSchema, orNull, shownCostFields, text } from '../../http/schemas.ts'
import { messagesErrorTypes } from './errors.ts'

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
  iterations: Type.Optional(Type.Array(Type.Object({}, { additionalProperties: true }))),
}

const usage = namedSchema('MessagesUsage', {
  ...counts,
  output_tokens_details: strictObject({ thinking_tokens: count }),
  ...shownCostFields,
})

/** Anthropic's own fields, which pass unchanged. */
const ownFields = Type.Object({}, { additionalProperties: true })

const base = {
  id: text('msg_4f1'),
  type: Type.Literal('message'),
  role: Type.Literal('assistant'),
  model: modelName,
}

/** `POST /v1/messages`, not streamed. */
export const messageShape = namedSchema('MessagesReply', {
  ...base,
  content: Type.Array(contentBlock),
  ...ending,
  usage,
  container: Type.Optional(orNull(ownFields)),
  context_management: Type.Optional(ownFields),
})

/** An error of this API. Errors of Anthropic about a request keep Anthropic's text. */
export const messagesErrorShape = namedSchema('MessagesError', {
  type: Type.Literal('error'),
  error: namedSchema('MessagesErrorDetail', { ...errorFields, type: oneOf(messagesErrorTypes) }),
  request_id: id('req'),
})

const index = Type.Integer({ minimum: 0, examples: [0] })
const anyObject = Type.Object({}, { additionalProperties: true })

/** One event of the stream; its `event:` line has the same name as `type`. */
export const messageEventShape = Type.Union(
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
      delta: strictObject({ ...ending, container: orNull(ownFields) }),
      usage,
      context_management: Type.Optional(ownFields),
    }),
    strictObject({ type: Type.Literal('message_stop') }),
    messagesErrorShape,
  ],
  { title: 'MessagesEvent' },
)

/** `POST /v1/messages/count_tokens`. */
export const countShape = namedSchema('TokenCount', { input_tokens: count })
