/**
 * Embedding wire formats: OpenAI `/embeddings`, Gemini `:embedContent` and `:batchEmbedContents`. Equal texts have
 * equal vectors of length 1. Directives work as in the chat formats.
 */
import { estimateTokens } from '../text/tokens/tokens.ts'
import { withoutDirectives } from './directives.ts'
import { googleFormat } from './google.ts'
import { openaiFormat } from './openai.ts'
import type { RawRequest } from './request.ts'
import {
  type Failure,
  isWireObject,
  mistake,
  numberOr,
  objectsIn,
  type SimulatedFormat,
  type SimulatedRequest,
  type SimulatedResponse,
  textOr,
  unknownField,
  type WireObject,
} from './wire-format.ts'

type Input = string | readonly number[]
type Asked = { readonly model: string; readonly inputs: readonly Input[]; readonly dimensions: number | null }

const maximumTokens = 8_192
const nativeDimensions: ReadonlyMap<string, number> = new Map([
  ['text-embedding-3-small', 1_536],
  ['text-embedding-3-large', 3_072],
  ['text-embedding-ada-002', 1_536],
  ['gemini-embedding-001', 3_072],
  ['gemini-embedding-2', 3_072],
])

/** Returns the format of a path; null = not an embeddings path. A format object holds one request. */
export function embeddingFormatFor(path: string): SimulatedFormat | null {
  const [route = ''] = path.split('?')
  if (route.endsWith('/embeddings')) return openaiEmbeddingsFormat()
  return /\/models\/[^/]+:(embedContent|batchEmbedContents)$/.test(route) ? googleEmbeddingsFormat() : null
}

const openaiFields = new Set(['model', 'input', 'dimensions', 'encoding_format', 'user'])

function openaiEmbeddingsFormat(): SimulatedFormat {
  let asked: Asked | null = null
  let asBase64 = false
  return {
    ...openaiFormat,
    read({ headers }, body) {
      const input = body.input
      const list: readonly unknown[] = Array.isArray(input) && typeof input[0] !== 'number' ? input : [input]
      asked = {
        model: textOr(body.model, ''),
        inputs: list.flatMap((one): Input[] =>
          typeof one === 'string' ? [one] : Array.isArray(one) ? [one.filter(id => typeof id === 'number')] : [],
        ),
        dimensions: numberOr(body.dimensions, null),
      }
      asBase64 = body.encoding_format === 'base64'
      const problem = headers.authorization?.match(/^Bearer \S/)
        ? openaiProblem(body, asked, list.length)
        : keyMissing(401, "You didn't provide an API key.")
      return problem === null
        ? { kind: 'question', question: questionOf(asked) }
        : openaiFormat.failure(problem, noMint)
    },
    completion(turn) {
      const data = vectorsOf(asked, true).map((vector, index) => ({
        object: 'embedding',
        index,
        embedding: asBase64 ? Buffer.from(Float32Array.from(vector).buffer).toString('base64') : vector,
      }))
      const tokens = turn.usage?.input
      const usage = tokens === undefined ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } }
      return { object: 'list', data, model: turn.served, ...usage }
    },
  }
}

function openaiProblem(body: WireObject, { model, inputs, dimensions }: Asked, sent: number): Failure | null {
  const unknown = unknownField(body, openaiFields)
  if (unknown !== undefined) return mistake(`Unrecognized request argument supplied: ${unknown}`)
  const native = nativeDimensions.get(model)
  if (native === undefined) return { ...mistake('', null, 404), kind: 'model_missing' }
  if (sent === 0 || sent > 2_048 || inputs.length !== sent || inputs.some(input => input.length === 0))
    return mistake("'$.input' is invalid. Please check the API reference.", 'input')
  if (dimensions !== null && model.includes('ada'))
    return mistake('This model does not support specifying dimensions.', 'dimensions')
  if (dimensions !== null && (dimensions < 1 || dimensions > native))
    return mistake(`Invalid value for 'dimensions' = ${dimensions}. Must be less than or equal to ${native}.`)
  const counts = inputs.map(tokensOfInput)
  if (Math.max(...counts) > maximumTokens)
    return mistake(`This model's maximum context length is 8192 tokens, however you requested ${Math.max(...counts)}.`)
  const total = counts.reduce((sum, count) => sum + count, 0)
  return total > 300_000 ? mistake(`Requested ${total} tokens, max 300000 tokens per request`, 'input') : null
}

function googleEmbeddingsFormat(): SimulatedFormat {
  let asked: Asked | null = null
  let isBatch = false
  return {
    ...googleFormat,
    read({ path, headers }: RawRequest, body) {
      const [, model = '', method = ''] = /\/models\/([^/:?]+):(\w+)/.exec(path) ?? []
      isBatch = method === 'batchEmbedContents'
      const requests = isBatch ? objectsIn(body.requests) : [body]
      asked = {
        model: decodeURIComponent(model),
        inputs: requests.map(textOfRequest),
        dimensions: numberOr(requests[0]?.outputDimensionality, null),
      }
      const problem = headers['x-goog-api-key']
        ? googleProblem(asked, requests, isBatch)
        : keyMissing(403, "Method doesn't allow unregistered callers.")
      return problem === null
        ? { kind: 'question', question: questionOf(asked) }
        : googleFormat.failure(problem, noMint)
    },
    completion({ usage }: SimulatedResponse) {
      // Shorter vectors of the older model are truncated and not of length 1, and it reports no tokens.
      const isOld = asked?.model === 'gemini-embedding-001'
      const embeddings = vectorsOf(asked, !isOld).map(values => ({ values }))
      const counted = isOld || usage === null ? {} : { usageMetadata: { promptTokenCount: usage.input } }
      return isBatch ? { embeddings, ...counted } : { embedding: embeddings[0], ...counted }
    },
  }
}

function googleProblem({ model, inputs, dimensions }: Asked, requests: readonly WireObject[], isBatch: boolean) {
  const native = nativeDimensions.get(model)
  if (native === undefined) return { ...mistake('', null, 404), kind: 'model_missing' } satisfies Failure
  if (isBatch && requests.length > 100)
    return mistake('* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch')
  if (isBatch && requests.some(request => request.model !== `models/${model}`))
    return mistake("* BatchEmbedContentsRequest.requests: must have the same model as the batch's")
  if (inputs.length === 0 || inputs.includes(''))
    return mistake('* EmbedContentRequest.content: contents is not specified')
  return dimensions !== null && (dimensions < 1 || dimensions > native)
    ? mistake(`* EmbedContentRequest.output_dimensionality: must be in [1, ${native}]`)
    : null
}

function textOfRequest({ content }: WireObject): string {
  const parts = isWireObject(content) ? objectsIn(content.parts) : []
  return parts.map(({ text }) => textOr(text, '')).join('')
}

function keyMissing(status: number, message: string): Failure {
  return { ...mistake(message, null, status), kind: 'key_missing' }
}

const noMint = () => ''

/** Returns the parts of a request that directives and token counts need. */
function questionOf({ model, inputs }: Asked): SimulatedRequest {
  return {
    model,
    stream: false,
    userTexts: inputs.filter(input => typeof input === 'string'),
    instructions: '',
    inputTokens: inputs.reduce((sum, input) => sum + tokensOfInput(input), 0),
    images: 0,
    files: 0,
    toolResults: [],
    tools: [],
    toolChoice: 'none',
    parallelCalls: false,
    json: null,
    reasoningTokens: 0,
    reasoningShown: false,
    choices: 1,
    outputCap: 1,
    stops: [],
    logprobs: null,
    includeUsage: true,
    obfuscation: false,
    events: false,
  }
}

function tokensOfInput(input: Input): number {
  return typeof input === 'string' ? estimateTokens(input) : input.length
}

function vectorsOf(asked: Asked | null, isNormalized: boolean): number[][] {
  if (asked === null) return []
  const native = nativeDimensions.get(asked.model) ?? 8
  return asked.inputs.map(input => {
    const whole = unit(valuesOf(input, native))
    if (asked.dimensions === null) return whole
    const short = whole.slice(0, asked.dimensions)
    return isNormalized ? unit(short) : short
  })
}

/** Returns values from -1 to 1 derived from the input (FNV-1a, then xorshift). */
function valuesOf(input: Input, length: number): number[] {
  const text = typeof input === 'string' ? withoutDirectives(input) : input.join()
  let state = 0x811c9dc5
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193)
  state ||= 1
  return Array.from({ length }, () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state / 2 ** 31
  })
}

/** Returns the vector scaled to length 1 in float32 precision. */
function unit(values: readonly number[]): number[] {
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0))
  return values.map(value => Math.fround(value / length))
}
