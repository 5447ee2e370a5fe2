/** The native answer, whole and streamed. */
import { type Static, Type } from '@sinclair/typebox'
import { strategies } from '../../core/chat/chat.ts'
import { outputCapLimits } from '../../core/chat/output-cap.ts'
import { oneOf } from '../../core/validation/validate.ts'
import { leftOutCodes } from '../../core/chat/web-sources.ts'
import {
  count,
  enhancementShape,
  errorShape,
  id,
  modelName,
  named,
  orNull,
  queryType,
  shape,
  share,
  text,
  usd,
} from '../../http/schemas.ts'

const toolCall = {
  id: text('call_1'),
  type: Type.Literal('function'),
  function: shape({ name: text('weather'), arguments: text('{"city":"Oslo"}', 'JSON as the model wrote it') }),
  extra_content: Type.Optional(shape({ google: shape({ thought_signature: Type.String() }) })),
}
export const toolCallShape = named('ToolCall', toolCall)

export const chatUsageShape = named('ChatUsage', {
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  cost_usd: usd,
  cached_input_tokens: count,
  reasoning_tokens: count,
  estimated: Type.Boolean({ description: 'the counts are ours: the provider gave none' }),
  cost: shape({ model_usd: usd, search_usd: usd, fetch_usd: usd }),
})

const attempt = shape({
  model: modelName,
  outcome: text('served', '`served`, or why not'),
})

const verdict = {
  layer: text('patterns', 'what ended the answer'),
  category: text('malicious_url'),
}

const summary = {
  request_id: id('req'),
  model_used: { ...modelName, description: '`provider/model` that really served' },
  finish_reason: oneOf(['stop', 'length', 'tool_calls', 'content_filter']),
  filtered: Type.Optional(shape(verdict, { description: 'of an answer that moderation ended' })),
  output_cap: Type.Optional(
    shape(
      {
        tokens: Type.Integer({ minimum: 1, examples: [16_384] }),
        limited_by: oneOf(outputCapLimits),
      },
      {
        description:
          'of an answer that ended at a cap which the client did not set. `model_limit`: the limit of the model; ' +
          '`default`: the gateway’s cap for requests without one; `account_remaining`: a share of what the account has left today',
      },
    ),
  ),
  tool_calls: Type.Array(toolCallShape),
  usage: chatUsageShape,
  routing: shape({
    mode: oneOf(['auto', 'manual']),
    strategy: orNull(oneOf(strategies)),
    query_type: orNull(queryType),
    complexity: orNull(share),
    learned: Type.Boolean({ description: 'what this account’s history says changed the choice' }),
    attempts: Type.Array(attempt),
  }),
  enhancement: orNull(enhancementShape),
  web: shape({
    searched: Type.Boolean(),
    sources: Type.Array(shape({ url: text('https://example.com/'), title: text('Example Domain') })),
    left_out: Type.Array(
      shape({ url: orNull(text('https://example.com/', 'null = the search')), code: oneOf(leftOutCodes) }),
      { description: 'what could not be read' },
    ),
  }),
}

/** `POST /api/v1/chat`, not streamed. */
export const chatReplyShape = named('ChatReply', {
  output: text('The sky scatters blue light most.'),
  ...summary,
})

/** The events of a stream, each one JSON object after `data: `. */
export const deltaShape = named('ChatDelta', {
  type: Type.Literal('delta'),
  content: text('The sky'),
  reasoning: Type.Optional(Type.String()),
  tool_calls: Type.Optional(
    Type.Array(
      Type.Union([
        shape({ index: count, ...toolCall }),
        shape({ index: count, function: shape({ arguments: Type.String() }) }),
      ]),
    ),
  ),
})
export const filteredShape = named('ChatFiltered', { type: Type.Literal('filtered'), ...verdict })
export const doneShape = named('ChatDone', { type: Type.Literal('done'), ...summary })
export const streamErrorShape = named('ChatFailed', { type: Type.Literal('error'), ...errorShape.properties })
export const chatEventShape = Type.Union([deltaShape, filteredShape, doneShape, streamErrorShape], {
  title: 'ChatEvent',
})

export type ChatReply = Static<typeof chatReplyShape>
export type ChatSummary = Omit<ChatReply, 'output'>
