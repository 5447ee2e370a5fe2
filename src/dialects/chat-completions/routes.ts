import { Type } from '@sinclair/typebox'
import type { ReasoningItem } from '../../core/chat/chat.ts'
import { collectedBody } from '../../core/chat/response-collector.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import type { ChatEndpoint, ChatRouteDeps } from '../../http/chat-handler.ts'
import { chatRoute } from '../../http/chat-route-docs.ts'
import { count, errorShape, id, modelName, namedSchema, orNull, shownCostFields, text } from '../../http/schemas.ts'
import { detailReader, type ReasoningSeal } from '../reasoning-seal.ts'
import { ChunkWriter, completionBody } from './reply.ts'
import { compatibleSchema, readCompatible } from './request.ts'

/** Schemas of chat-completions responses, as JSON and as a stream. `usage` also has the cost. */

const call = {
  id: text('call_1'),
  type: Type.Literal('function'),
  function: strictObject({ name: text('weather'), arguments: text('{"city":"Oslo"}', 'JSON as the model wrote it') }),
  extra_content: Type.Optional(strictObject({ google: strictObject({ thought_signature: Type.String() }) })),
}
const reasoningDetails = Type.Optional(
  Type.Array(
    strictObject({
      type: Type.Literal('reasoning.encrypted'),
      data: Type.String({ description: 'sealed: send it back with the message' }),
      format: Type.Literal('gateway-ai-v1'),
      index: Type.Integer({ minimum: 0 }),
    }),
  ),
)
const { function: _, ...others } = call
const customCall = {
  ...others,
  type: Type.Literal('custom'),
  custom: strictObject({ name: text('patch'), input: text('*** Begin Patch') }),
}
const legacyCall = strictObject({ name: Type.String(), arguments: Type.String() })

const characters = Type.Integer({ minimum: 0, description: 'in characters of the text', examples: [12] })
/** If the text does not cite the source, both indices are the length of the text. */
const annotation = namedSchema('UrlCitation', {
  type: Type.Literal('url_citation'),
  url_citation: strictObject({
    start_index: characters,
    end_index: characters,
    title: text('Example Domain'),
    url: text('https://example.com/'),
    content: Type.Optional(text('Example domains are for documents.', 'the cited passage, as the provider reports it')),
  }),
})

const tokenLogprob = {
  token: Type.String(),
  logprob: Type.Number(),
  bytes: orNull(Type.Array(Type.Integer({ minimum: 0, maximum: 255 }))),
}
const logprobs = orNull(
  strictObject({
    content: Type.Array(strictObject({ ...tokenLogprob, top_logprobs: Type.Array(strictObject(tokenLogprob)) })),
    refusal: Type.Null(),
  }),
)
const finishReason = oneOf(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'])
const created = Type.Integer({ minimum: 0, description: 'Unix seconds', examples: [1_777_982_400] })

const ownFields = {
  service_tier: Type.Optional(text('default', 'as the provider reports it')),
  system_fingerprint: Type.Optional(text('fp_1', 'as the provider reports it')),
}

const compatibleUsageShape = namedSchema('CompatibleUsage', {
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: strictObject({ cached_tokens: count, cache_write_tokens: count, audio_tokens: count }),
  completion_tokens_details: strictObject({
    reasoning_tokens: count,
    audio_tokens: count,
    accepted_prediction_tokens: count,
    rejected_prediction_tokens: count,
  }),
  ...shownCostFields,
})

/** `POST /v1/chat/completions`, not streamed. */
const completionShape = namedSchema('Completion', {
  id: id('req'),
  object: Type.Literal('chat.completion'),
  created,
  model: modelName,
  ...ownFields,
  choices: Type.Array(
    strictObject({
      index: Type.Integer({ minimum: 0, examples: [0] }),
      message: strictObject({
        role: Type.Literal('assistant'),
        content: orNull(text('The sky scatters blue light most.')),
        refusal: orNull(Type.String({ examples: [null] })),
        annotations: Type.Array(annotation, {
          description: 'sources that the model received from the gateway, or that its provider cites',
        }),
        reasoning_content: Type.Optional(Type.String()),
        reasoning_details: reasoningDetails,
        tool_calls: Type.Optional(Type.Array(Type.Union([strictObject(call), strictObject(customCall)]))),
        function_call: Type.Optional(legacyCall),
      }),
      logprobs,
      finish_reason: finishReason,
    }),
  ),
  usage: compatibleUsageShape,
})

/** A chunk of a stream, which ends with `data: [DONE]`. */
const completionChunkShape = namedSchema('CompletionChunk', {
  id: id('req'),
  object: Type.Literal('chat.completion.chunk'),
  created,
  model: modelName,
  ...ownFields,
  choices: Type.Array(
    strictObject({
      index: Type.Integer({ minimum: 0, examples: [0] }),
      delta: strictObject({
        role: Type.Optional(Type.Literal('assistant')),
        content: Type.Optional(orNull(text('The sky'))),
        refusal: Type.Optional(orNull(Type.String())),
        reasoning_content: Type.Optional(Type.String()),
        reasoning_details: reasoningDetails,
        annotations: Type.Optional(Type.Array(annotation)),
        tool_calls: Type.Optional(
          Type.Array(
            Type.Union([
              strictObject({ index: count, ...call }),
              strictObject({ index: count, ...customCall }),
              strictObject({ index: count, custom: strictObject({ input: Type.String() }) }),
              strictObject({ index: count, function: strictObject({ arguments: Type.String() }) }),
            ]),
          ),
        ),
        function_call: Type.Optional(Type.Union([legacyCall, strictObject({ arguments: Type.String() })])),
      }),
      logprobs,
      finish_reason: orNull(finishReason),
    }),
  ),
  usage: Type.Optional(orNull(compatibleUsageShape)),
})

/** JSON after `data: ` in a stream, except for the final `[DONE]`. */
const completionEventShape = Type.Union([completionChunkShape, errorShape], { title: 'CompletionEvent' })

type CompatibleDeps = ChatRouteDeps & { readonly reasoningSeal: ReasoningSeal }

function getEndpoint({ reasoningSeal }: Pick<CompatibleDeps, 'reasoningSeal'>): ChatEndpoint {
  return {
    dialect: 'chat_completions',
    parse(body, { headers, text, accountId }) {
      const parsed = readCompatible(body, headers, text.length, detailReader(reasoningSeal, accountId))
      const style = { ...parsed, seal: (item: ReasoningItem) => reasoningSeal.seal(accountId, item) }
      return {
        request: parsed.request,
        spelling: parsed.spelling,
        stream: requestId => new ChunkWriter(style, requestId),
        whole: collectedBody((answer, opening, receipt) => completionBody(answer, receipt, opening, style)),
      }
    },
  }
}

/** `POST /v1/chat/completions`: the chat-completions wire format, for existing client libraries. */
export function compatible(deps: CompatibleDeps) {
  return chatRoute(deps, '/v1/chat/completions', getEndpoint(deps), {
    summary: 'Chat completions',
    description:
      'The chat-completions wire format, for existing client libraries: change only their base URL and the model. ' +
      'A stream ends with `data: [DONE]` only after a success.',
    body: compatibleSchema,
    examples: completionExamples,
    answer: completionShape,
    alsoAs: { 'text/event-stream': completionEventShape },
    streamEnd: '[DONE]',
  })
}

/** Complete requests that work without a change. */
const completionExamples = {
  'the prompt chooses the model': {
    model: 'gateway-ai',
    messages: [{ role: 'user', content: 'Say hello in one sentence.' }],
  },
  'a stream, with its usage': {
    model: 'anthropic/claude-sonnet-5-5',
    messages: [{ role: 'user', content: 'Why is the sky blue?' }],
    stream: true,
    stream_options: { include_usage: true },
  },
  'a tool': {
    model: 'gateway-ai',
    strategy: 'cost',
    messages: [{ role: 'user', content: 'How is the weather in Oslo?' }],
    tools: [
      {
        type: 'function',
        function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
      },
    ],
  },
}
