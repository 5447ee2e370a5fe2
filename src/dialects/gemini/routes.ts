import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { GatewayError } from '../../core/validation/errors.ts'
import { type ChatEndpoint, type ChatRouteDeps, handleChat } from '../../http/chat-handler.ts'
import { chatErrors, chatHeaders } from '../../http/chat-route-docs.ts'
import { policies, type RouteDocs, withRouteDocs } from '../../http/route-docs.ts'
import { count, modelName, namedSchema, shownCostFields, text } from '../../http/schemas.ts'
import { type EmbeddingsDeps, embeddingsEndpoint } from '../embeddings/endpoint.ts'
import { anyObject } from '../foreign-objects.ts'
import { createTokenCounter, type TokenCounterDeps } from '../token-counter.ts'
import type { GeminiStyle } from './candidate.ts'
import { embedSchemas, readEmbedding } from './embeddings.ts'
import { geminiRefusal, refusals } from './errors.ts'
import { geminiArray, geminiBody, geminiStream } from './reply.ts'
import { geminiCountSchema, generateSchema, readGemini, readGeminiCount } from './request.ts'

/** Returns the model and the method of a call: IDs contain slashes, unchanged or as `%2F`, and may lack `models/`. */
function readCall(url: string): { readonly model: string; readonly method: string; readonly query: URLSearchParams } {
  const { pathname, searchParams: query } = new URL(url)
  const [, model = '', method = ''] = /^\/v1(?:beta)?\/(?:models\/)?(.+):(\w+)$/.exec(decoded(pathname)) ?? []
  return { model, method, query }
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return ''
  }
}

type GeminiDeps = ChatRouteDeps & TokenCounterDeps & EmbeddingsDeps

function chatEndpoint({ reasoningSeal: seal }: GeminiDeps): ChatEndpoint {
  return {
    dialect: 'gemini',
    parse(body, source, url) {
      const { model, method, query } = readCall(url)
      const isStreamed = method === 'streamGenerateContent'
      if (!isStreamed && method !== 'generateContent') throw new GatewayError('not_found', notServed)
      const { request, spelling, wantsThoughts } = readGemini(body, source, { model, isStreamed, seal })
      const style: GeminiStyle = { wantsThoughts, seal: item => seal.seal(source.accountId, item) }
      const stream = query.get('alt') === 'sse' ? geminiStream : geminiArray
      return {
        request,
        spelling,
        stream: requestId => stream(style, requestId),
        whole: () => geminiBody(style),
      }
    },
    refusal: geminiRefusal,
  }
}

/** `POST /v1beta/models/{model}:{method}`: Gemini's wire format, for existing client libraries. */
export function gemini(deps: GeminiDeps) {
  const chat = chatEndpoint(deps)
  const embeddings = embeddingsEndpoint(deps, {
    refusal: geminiRefusal,
    read(body, { headers }, url) {
      const { model, method } = readCall(url)
      return readEmbedding(body, headers, { model, isBatch: method === 'batchEmbedContents' })
    },
  })
  const countTokens = createTokenCounter(deps, {
    read: (body, { accountId }, url) => ({
      model: readCall(url).model,
      source: null,
      ...readGeminiCount(body, accountId, deps.reasoningSeal),
    }),
    usualProvider: 'google',
    body: totalTokens => ({ totalTokens }),
  })
  const answer = ({ request }: { readonly request: Request }) => {
    const { method } = readCall(request.url)
    switch (method) {
      case 'embedContent':
      case 'batchEmbedContents':
        return handleChat(deps, embeddings, request)
      case 'countTokens':
        return countTokens(request)
      default:
        return handleChat(deps, chat, request)
    }
  }
  return new Elysia({ name: 'gemini' })
    .post('/v1beta/*', answer, { parse: 'none', ...withRouteDocs(policies.apiKey, docs) })
    .post('/v1/models/*', answer, { parse: 'none', ...withRouteDocs(policies.apiKey, docs) })
}

const notServed =
  'Unknown path. The endpoints are POST /v1beta/models/{model}:generateContent, :streamGenerateContent, :countTokens, :embedContent and :batchEmbedContents, and GET /v1beta/models.'

/** Complete requests that work without a change. */
const examples = {
  'a question': { contents: [{ role: 'user', parts: [{ text: 'Why is the sky blue?' }] }] },
  'a tool': {
    contents: [{ role: 'user', parts: [{ text: 'How is the weather in Oslo?' }] }],
    tools: [
      {
        functionDeclarations: [
          { name: 'weather', parameters: { type: 'OBJECT', properties: { city: { type: 'STRING' } } } },
        ],
      },
    ],
  },
}

/** A response, or one frame of a stream. The last frame has the finish reasons and the usage. */
const responseShape = namedSchema('GenerateContentResponse', {
  candidates: Type.Optional(Type.Array(anyObject)),
  modelVersion: Type.Optional(modelName),
  responseId: Type.Optional(text('req_4f1')),
  usageMetadata: Type.Optional(
    namedSchema('GeminiUsage', {
      promptTokenCount: count,
      candidatesTokenCount: Type.Optional(count),
      totalTokenCount: count,
      cachedContentTokenCount: Type.Optional(count),
      thoughtsTokenCount: Type.Optional(count),
      ...Type.Partial(Type.Object(shownCostFields)).properties,
    }),
  ),
  totalTokens: Type.Optional({ ...count, description: 'of `countTokens`' }),
  embedding: Type.Optional({ ...anyObject, description: 'of `embedContent`' }),
  embeddings: Type.Optional(Type.Array(anyObject, { description: 'of `batchEmbedContents`' })),
})

const docs: RouteDocs = {
  summary: 'Gemini’s wire format',
  description:
    'For existing client libraries: change only their base URL, the address of this gateway. The path ends in ' +
    '`models/{model}:{method}`, with `generateContent`, `streamGenerateContent` (with `alt=sse`: server-sent events, else a JSON array), ' +
    '`countTokens`, `embedContent` or `batchEmbedContents`. The key is in `x-goog-api-key`, `Authorization` or the query (`key`). ' +
    'A stream has a `finishReason` only after a success. Errors have the format of this API.',
  body: Type.Union([generateSchema, geminiCountSchema, embedSchemas]),
  examples,
  requestHeaders: chatHeaders,
  answer: responseShape,
  alsoAs: { 'text/event-stream': responseShape },
  answerHeaders: ['served', 'cost', 'estimated', 'quotaStatus', 'deprecation'],
  errors: [...chatErrors, 'not_found'],
  refusals,
}
