/** Schemas of native chat responses, as JSON and as a stream. */
import { type Static, Type } from '@sinclair/typebox'
import { outputCapLimits } from '../../core/chat/attempts.ts'
import { reasoningEfforts, strategies } from '../../core/chat/chat.ts'
import { omissionCodes } from '../../core/chat/web-sources.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import {
  count,
  enhancementShape,
  errorShape,
  id,
  modelName,
  namedSchema,
  orNull,
  queryType,
  share,
  shownCostFields,
  text,
  usd,
} from '../../http/schemas.ts'

const toolCall = {
  id: text('call_1'),
  type: Type.Literal('function'),
  function: strictObject({ name: text('weather'), arguments: text('{"city":"Oslo"}', 'JSON as the model wrote it') }),
  extra_content: Type.Optional(strictObject({ google: strictObject({ thought_signature: Type.String() }) })),
}
const toolCallShape = namedSchema('ToolCall', toolCall)

const chatUsageShape = namedSchema('ChatUsage', {
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  ...shownCostFields,
  cached_input_tokens: count,
  reasoning_tokens: count,
  estimated: Type.Boolean({ description: 'the gateway estimated the counts: the provider reported none' }),
  cost: strictObject({ model_usd: usd, search_usd: usd, fetch_usd: usd }),
})

const attempt = strictObject({
  model: modelName,
  outcome: text('served', '`served`, or the reason for the failure'),
})

const verdict = {
  layer: text('patterns', 'the moderation layer that ended the output'),
  category: text('malicious_url'),
}

const summary = {
  request_id: id('req'),
  model_used: { ...modelName, description: '`provider/model` that served the request' },
  finish_reason: oneOf(['stop', 'length', 'tool_calls', 'content_filter']),
  filtered: Type.Optional(strictObject(verdict, { description: 'present if moderation ended the output' })),
  output_cap: Type.Optional(
    strictObject(
      {
        tokens: Type.Integer({ minimum: 1, examples: [16_384] }),
        limited_by: oneOf(outputCapLimits),
      },
      {
        description:
          'present if the output ended at a cap that the client did not set. `model_limit`: the limit of the model. ' +
          '`default`: the gateway’s cap for requests without one. `account_remaining`: a share of the account’s remaining daily limit.',
      },
    ),
  ),
  tool_calls: Type.Array(toolCallShape),
  usage: chatUsageShape,
  routing: strictObject({
    mode: oneOf(['auto', 'manual']),
    requested_model: Type.Optional({
      ...modelName,
      description:
        'model that the request named; `gateway-ai` = automatic routing. A fallback served if `model_used` is another one',
    }),
    strategy: orNull(oneOf(strategies)),
    query_type: orNull(queryType),
    complexity: orNull(share),
    learned: Type.Boolean({ description: 'the learned bias of this account changed the choice' }),
    effort: { ...orNull(oneOf(reasoningEfforts)), description: 'reasoning effort of the model; null = its default' },
    attempts: Type.Array(attempt),
  }),
  enhancement: orNull(enhancementShape),
  web: strictObject({
    searched: Type.Boolean(),
    sources: Type.Array(strictObject({ url: text('https://example.com/'), title: text('Example Domain') })),
    left_out: Type.Array(
      strictObject({ url: orNull(text('https://example.com/', 'null = the search')), code: oneOf(omissionCodes) }),
      { description: 'sources that could not be read' },
    ),
  }),
}

/** `POST /api/v1/chat`, not streamed. */
export const chatReplyShape = namedSchema('ChatReply', {
  output: text('The sky scatters blue light most.'),
  ...summary,
})

/** The events of a stream, each one JSON object after `data: `. */
const deltaShape = namedSchema('ChatDelta', {
  type: Type.Literal('delta'),
  content: text('The sky'),
  reasoning: Type.Optional(Type.String()),
  tool_calls: Type.Optional(
    Type.Array(
      Type.Union([
        strictObject({ index: count, ...toolCall }),
        strictObject({ index: count, function: strictObject({ arguments: Type.String() }) }),
      ]),
    ),
  ),
})
const filteredShape = namedSchema('ChatFiltered', { type: Type.Literal('filtered'), ...verdict })
const doneShape = namedSchema('ChatDone', { type: Type.Literal('done'), ...summary })
const streamErrorShape = namedSchema('ChatFailed', { type: Type.Literal('error'), ...errorShape.properties })
export const chatEventShape = Type.Union([deltaShape, filteredShape, doneShape, streamErrorShape], {
  title: 'ChatEvent',
})

export type ChatReply = Static<typeof chatReplyShape>
export type ChatSummary = Omit<ChatReply, 'output'>
