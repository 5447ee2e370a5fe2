/**
 * Embedding wire formats: OpenAI `/embeddings`, Gemini `:embedContent` and `:batchEmbedContents`. Equal texts have
 * equal vectors of length 1. Directives work as in the chat formats.
 */
import { estimateTokens } from '../text/tokens/tokens.ts'
import { withoutDirectives } from './directives.ts'
import { googleFormat, googleKeyMissing } from './google.ts'
import { openaiFormat, openaiKeyMissing } from './openai.ts'
import type { RawRequest } from './server.ts'
import {
  type Failure,
  isWireObject,
  joinText,
  mistake,
  numberOr,
  objectsIn,
  readAs,
  type SimulatedFormat,
  type SimulatedResponse,
  textOr,
  unknownField,
  type WireObject,
} from './wire-format.ts'

type Input = string | readonly number[]
type Call = { readonly model: string; readonly inputs: readonly Input[]; readonly dimensions: number | null }

const maximumTokens = 8_192
const nativeDimensions: ReadonlyMap<string, number> = new Map([
  ['text-embedding-3-small', 1_536],
  ['text-embedding-3-large', 3_072],
  ['text-embedding-ada-002', 1_536],
  ['gemini-embedding-001', 3_072],
  ['gemini-embedding-2', 3_072],
])

/** Returns the format of a path; null = not an embeddings path. A format object holds one request. */
export function findEmbeddingsFormat(path: string): SimulatedFormat | null {
  if (path.endsWith('/embeddings')) return openaiEmbeddingsFormat()
  return /\/models\/[^/]+:(embedContent|batchEmbedContents)$/.test(path) ? googleEmbeddingsFormat() : null
}

const openaiFields = new Set(['model', 'input', 'dimensions', 'encoding_format', 'user'])

function openaiEmbeddingsFormat(): SimulatedFormat {
  let call: Call | null = null
  let asBase64 = false
  return {
    ...openaiFormat,
    read({ headers }, body) {
      const input = body.input
      const list: readonly unknown[] = Array.isArray(input) && typeof input[0] !== 'number' ? input : [input]
      call = {
        model: textOr(body.model, ''),
        inputs: list.flatMap((input): Input[] => {
          if (typeof input === 'string') return [input]
          return Array.isArray(input) ? [input.filter(id => typeof id === 'number')] : []
        }),
        dimensions: numberOr(body.dimensions, null),
      }
      asBase64 = body.encoding_format === 'base64'
      const problem = headers.authorization?.match(/^Bearer \S/)
        ? openaiProblem(body, call, list.length)
        : openaiKeyMissing
      return problem === null ? readCall(call) : openaiFormat.failure(problem, noMint)
    },
    completion(turn) {
      const data = createVectors(call, true).map((vector, index) => ({
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

function openaiProblem(body: WireObject, { model, inputs, dimensions }: Call, sent: number): Failure | null {
  const unknown = unknownField(body, openaiFields)
  if (unknown !== undefined) return mistake(`Unrecognized request argument supplied: ${unknown}`)
  const native = nativeDimensions.get(model)
  if (native === undefined) return mistake('', null, 404, 'model_missing')
  if (sent === 0 || sent > 2_048 || inputs.length !== sent || inputs.some(input => input.length === 0))
    return mistake("'$.input' is invalid. Please check the API reference.", 'input')
  if (dimensions !== null && model.includes('ada'))
    return mistake('This model does not support specifying dimensions.', 'dimensions')
  if (dimensions !== null && (dimensions < 1 || dimensions > native))
    return mistake(`Invalid value for 'dimensions' = ${dimensions}. Must be less than or equal to ${native}.`)
  const counts = inputs.map(countInput)
  if (Math.max(...counts) > maximumTokens)
    return mistake(`This model's maximum context length is 8192 tokens, however you requested ${Math.max(...counts)}.`)
  const total = counts.reduce((sum, count) => sum + count, 0)
  return total > 300_000 ? mistake(`Requested ${total} tokens, max 300000 tokens per request`, 'input') : null
}

function googleEmbeddingsFormat(): SimulatedFormat {
  let call: Call | null = null
  let isBatch = false
  return {
    ...googleFormat,
    read({ path, headers }: RawRequest, body) {
      const [, model = '', method = ''] = /\/models\/([^/:?]+):(\w+)/.exec(path) ?? []
      isBatch = method === 'batchEmbedContents'
      const requests = isBatch ? objectsIn(body.requests) : [body]
      call = {
        model: decodeURIComponent(model),
        inputs: requests.map(readRequestText),
        dimensions: numberOr(requests[0]?.outputDimensionality, null),
      }
      const problem = headers['x-goog-api-key'] ? googleProblem(call, requests, isBatch) : googleKeyMissing
      return problem === null ? readCall(call) : googleFormat.failure(problem, noMint)
    },
    completion({ usage }: SimulatedResponse) {
      // Shorter vectors of the older model are truncated and not of length 1, and it reports no tokens.
      const isOld = call?.model === 'gemini-embedding-001'
      const embeddings = createVectors(call, !isOld).map(values => ({ values }))
      const counted = isOld || usage === null ? {} : { usageMetadata: { promptTokenCount: usage.input } }
      return isBatch ? { embeddings, ...counted } : { embedding: embeddings[0], ...counted }
    },
  }
}

function googleProblem({ model, inputs, dimensions }: Call, requests: readonly WireObject[], isBatch: boolean) {
  const native = nativeDimensions.get(model)
  if (native === undefined) return mistake('', null, 404, 'model_missing')
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

function readRequestText({ content }: WireObject): string {
  return joinText(isWireObject(content) ? objectsIn(content.parts) : [])
}

const noMint = () => ''

/** Returns the parts of a request that directives and token counts need. */
function readCall({ model, inputs }: Call): ReturnType<SimulatedFormat['read']> {
  return readAs({
    model,
    stream: false,
    userTexts: inputs.filter(input => typeof input === 'string'),
    inputTokens: inputs.reduce((sum, input) => sum + countInput(input), 0),
    outputCap: 1,
  })
}

function countInput(input: Input): number {
  return typeof input === 'string' ? estimateTokens(input) : input.length
}

function createVectors(call: Call | null, isNormalized: boolean): number[][] {
  if (call === null) return []
  const native = nativeDimensions.get(call.model) ?? 8
  return call.inputs.map(input => {
    const whole = unit(createValues(input, native))
    if (call.dimensions === null) return whole
    const short = whole.slice(0, call.dimensions)
    return isNormalized ? unit(short) : short
  })
}

/** Returns values from -1 to 1 derived from the input (xorshift of its hash). */
function createValues(input: Input, length: number): number[] {
  const text = typeof input === 'string' ? withoutDirectives(input) : input.join()
  let state = Bun.hash.xxHash32(text) || 1
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
