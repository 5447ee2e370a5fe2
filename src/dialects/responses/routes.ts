/**
 * `POST /v1/responses`: the Responses API without stored state. Every request has the complete conversation. Reasoning that a later
 * turn needs goes to the client, sealed.
 */
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type GatewayError, withParam } from '../../core/validation/errors.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import type { ChatEndpoint, ChatRouteDeps } from '../../http/chat-handler.ts'
import { chatErrors, chatRoute } from '../../http/chat-route-docs.ts'
import { errorResponse } from '../../http/error-response.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import { count, modelName, namedSchema, orNull, shownCostFields, text } from '../../http/schemas.ts'
import { anyObject } from '../foreign-objects.ts'
import type { ReasoningSeal } from '../reasoning-seal.ts'
import { createTokenCounter, type TokenCounterDeps } from '../token-counter.ts'
import { responseBody } from './reply.ts'
import { readResponses, responsesSchema, spelling } from './request.ts'
import { ResponseStream } from './stream.ts'

/** Schemas of Responses API responses, as JSON and as a stream. `usage` also has the cost. */

const responseId = Type.String({ examples: ['resp_5f0c1b7ae94d42d8'] })
const itemId = Type.String({ examples: ['msg_5f0c1b7ae94d42d80000'] })
const status = oneOf(['in_progress', 'completed', 'incomplete'])

export const responseUsageShape = namedSchema('ResponseUsage', {
  input_tokens: count,
  input_tokens_details: strictObject({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: count,
  output_tokens_details: strictObject({ reasoning_tokens: count }),
  total_tokens: count,
  ...shownCostFields,
})

const part = Type.Union([
  strictObject({
    type: Type.Literal('output_text'),
    text: text('The sky scatters blue light most.'),
    annotations: Type.Array(anyObject, {
      description: 'sources that the model received from the gateway, or that its provider cites',
    }),
    logprobs: Type.Array(anyObject),
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
    anyObject,
  ],
  { title: 'OutputItem' },
)

/** `POST /v1/responses`, not streamed. */
const responseShape = namedSchema('Response', {
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
  instructions: orNull(Type.Union([Type.String(), Type.Array(anyObject)])),
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
  text: anyObject,
  tool_choice: Type.Union([Type.String(), anyObject]),
  tools: Type.Array(anyObject),
  top_logprobs: count,
  top_p: Type.Number(),
  truncation: Type.Literal('disabled'),
  user: orNull(Type.String()),
  metadata: Type.Record(Type.String(), Type.String()),
})

const event = { sequence_number: count }
const withResponse = { ...event, response: responseShape }

/** JSON after `data: ` in a stream; the `event:` line repeats `type`. */
const responseEventShape = Type.Union(
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

type ResponsesRouteDeps = ChatRouteDeps & {
  readonly reasoningSeal: ReasoningSeal
  /** Unix seconds. */
  readonly unixTime: () => number
}

/** Returns the parser and the writers of this endpoint. */
function responsesEndpoint({
  reasoningSeal,
  unixTime,
}: Pick<ResponsesRouteDeps, 'reasoningSeal' | 'unixTime'>): ChatEndpoint {
  return {
    dialect: 'responses',
    parse(body, { headers, text, accountId }) {
      const read = readResponses(body, { headers, text }, { seal: reasoningSeal, accountId })
      const context = {
        ...read,
        seal: (item: Parameters<ReasoningSeal['seal']>[1]) => reasoningSeal.seal(accountId, item),
      }
      return {
        request: read.request,
        spelling,
        stream: requestId => new ResponseStream(context, requestId, unixTime),
        whole: requestId => responseBody(context, requestId),
      }
    },
    refusal: (error, requestId) => errorResponse(inBrackets(error), requestId),
  }
}

/** Returns the error with indices as OpenAI writes them: `input[3].type`. */
function inBrackets(error: GatewayError): GatewayError {
  const { param } = error
  return param === null || !/\.\d/.test(param) ? error : withParam(error, param.replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]'))
}

/** Returns the routes of the Responses API. */
export function responses(deps: ResponsesRouteDeps) {
  return chatRoute(deps, '/v1/responses', responsesEndpoint(deps), {
    summary: 'Responses',
    description:
      'The Responses API, for existing client libraries: change only their base URL and the model. Responses are not stored: send `store: false` and the complete conversation in `input`. A stream ends with `response.completed` or `response.incomplete` only after a success.',
    body: responsesSchema,
    examples: responsesExamples,
    answer: responseShape,
    alsoAs: { 'text/event-stream': responseEventShape },
    errors: [...chatErrors, 'previous_response_not_found', 'not_found'],
  })
}

/** Complete requests that work without a change. */
const responsesExamples = {
  'the prompt chooses the model': { model: 'gateway-ai', input: 'Say hello in one sentence.', store: false },
  'a stream with a system text': {
    model: 'anthropic/claude-sonnet-5-5',
    instructions: 'Be brief.',
    input: [{ role: 'user', content: 'Why is the sky blue?' }],
    stream: true,
    store: false,
  },
  'a tool': {
    model: 'gateway-ai',
    strategy: 'cost',
    input: 'How is the weather in Oslo?',
    tools: [
      { type: 'function', name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
    ],
    store: false,
  },
}

/** `POST /v1/responses/input_tokens`: estimates the input tokens of a request. No upstream is called, nothing is billed or logged. */
export function inputTokens(deps: TokenCounterDeps) {
  const countTokens = createTokenCounter(deps, {
    read: (body, source) =>
      readResponses(body, source, { seal: deps.reasoningSeal, accountId: source.accountId }).request,
    usualProvider: '',
    body: input_tokens => ({ object: 'response.input_tokens', input_tokens }),
  })
  return new Elysia({ name: 'input-tokens' }).post(
    '/v1/responses/input_tokens',
    ({ request }) => countTokens(request),
    {
      parse: 'none',
      ...withRouteDocs(policies.apiKey, {
        summary: 'Input tokens of a response',
        description: 'An estimate by the gateway, for any model. Free, with a rate limit per account.',
        body: responsesSchema,
        examples: { 'a text': { model: 'gateway-ai', input: 'How many tokens are these?' } },
        answer: namedSchema('InputTokens', { object: Type.Literal('response.input_tokens'), input_tokens: count }),
        answerHeaders: ['estimated'],
        errors: [
          'unsupported_parameter',
          'requests_per_minute_exceeded',
          'model_not_found',
          'previous_response_not_found',
          'not_found',
        ],
      }),
    },
  )
}
