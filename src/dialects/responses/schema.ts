/** Schemas of Responses API responses, as JSON and as a stream. `usage` also has the cost. */
import { Type } from '@sinclair/typebox'
import { oneOf } from '../../core/validation/validate.ts'
import {
  cacheSavedUsd,
  count,
  hedgeCostUsd,
  modelName,
  namedSchema,
  orNull,
  strictObject,
  text,
  usd,
} from '../../http/schemas.ts'

const anything = Type.Object({}, { additionalProperties: true })
const responseId = Type.String({ examples: ['resp_5f0c1b7ae94d42d8'] })
const itemId = Type.String({ examples: ['msg_5f0c1b7ae94d42d80000'] })
const status = oneOf(['in_progress', 'completed', 'incomplete'])

const responseUsageShape = namedSchema('ResponseUsage', {
  input_tokens: count,
  input_tokens_details: strictObject({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: count,
  output_tokens_details: strictObject({ reasoning_tokens: count }),
  total_tokens: count,
  cost_usd: usd,
  hedge_cost_usd: hedgeCostUsd,
  cache_saved_usd: cacheSavedUsd,
})

const part = Type.Union([
  strictObject({
    type: Type.Literal('output_text'),
    text: text('The sky scatters blue light most.'),
    annotations: Type.Array(anything, {
      description: 'sources that the model received from the gateway, or that its provider cites',
    }),
    logprobs: Type.Array(anything),
  }),
  strictObject({ type: Type.Literal('refusal'), refusal: Type.String() }),
])
const called = {
  id: itemId,
  status,
  call_id: text('call_1'),
  name: text('weather'),
  namespace: Type.Optional(Type.String()),
}

/** Items of OpenAI's own tools are forwarded unchanged. */
const outputItemShape = Type.Union(
  [
    strictObject({
      id: itemId,
      type: Type.Literal('message'),
      status,
      role: Type.Literal('assistant'),
      content: Type.Array(part),
    }),
    strictObject({
      id: itemId,
      type: Type.Literal('reasoning'),
      summary: Type.Array(strictObject({ type: Type.Literal('summary_text'), text: Type.String() })),
      encrypted_content: Type.Optional(Type.String({ description: 'send it unchanged with the next turn' })),
    }),
    strictObject({ ...called, type: Type.Literal('function_call'), arguments: text('{"city":"Oslo"}') }),
    strictObject({ ...called, type: Type.Literal('custom_tool_call'), input: Type.String() }),
    anything,
  ],
  { title: 'OutputItem' },
)

/** `POST /v1/responses`, not streamed. */
export const responseShape = namedSchema('Response', {
  id: responseId,
  object: Type.Literal('response'),
  created_at: Type.Integer({ minimum: 0, description: 'Unix seconds', examples: [1_777_982_400] }),
  status: oneOf(['in_progress', 'completed', 'incomplete', 'failed']),
  background: Type.Literal(false),
  error: orNull(strictObject({ code: text('server_error'), message: Type.String() })),
  incomplete_details: orNull(strictObject({ reason: oneOf(['max_output_tokens', 'content_filter']) })),
  model: modelName,
  output: Type.Array(outputItemShape),
  usage: orNull(responseUsageShape),
  instructions: orNull(Type.Union([Type.String(), Type.Array(anything)])),
  max_output_tokens: orNull(count),
  max_tool_calls: orNull(count),
  parallel_tool_calls: Type.Boolean(),
  previous_response_id: Type.Null(),
  prompt_cache_key: orNull(Type.String()),
  reasoning: strictObject({ effort: orNull(Type.String()), summary: orNull(Type.String()) }),
  safety_identifier: orNull(Type.String()),
  service_tier: text('default', 'as OpenAI reports it, `default` for other providers'),
  store: Type.Literal(false),
  temperature: Type.Number(),
  text: anything,
  tool_choice: Type.Union([Type.String(), anything]),
  tools: Type.Array(anything),
  top_logprobs: count,
  top_p: Type.Number(),
  truncation: Type.Literal('disabled'),
  user: orNull(Type.String()),
  metadata: Type.Record(Type.String(), Type.String()),
})

const event = { sequence_number: count }
const withResponse = { ...event, response: responseShape }

/** JSON after `data: ` in a stream; the `event:` line repeats `type`. */
export const responseEventShape = Type.Union(
  [
    strictObject({
      type: oneOf([
        'response.created',
        'response.in_progress',
        'response.completed',
        'response.incomplete',
        'response.failed',
      ]),
      ...withResponse,
    }),
    strictObject({
      type: oneOf(['response.output_item.added', 'response.output_item.done']),
      ...event,
      output_index: count,
      item: outputItemShape,
    }),
    Type.Object(
      {
        type: text('response.output_text.delta', 'an event of an item, as in OpenAI’s Responses API'),
        ...event,
        item_id: itemId,
        output_index: count,
      },
      { additionalProperties: true },
    ),
  ],
  { title: 'ResponseEvent' },
)
