/** Prepares a request for embeddings before admission: its model, its hosts, and its tokens. */
import { type EmbeddingsRequest, inputError, placeOf } from '../../core/embeddings/embeddings-request.ts'
import type { EmbeddingCatalog, EmbeddingModel } from '../../core/models/embedding-models.ts'
import { autoModel, type Catalog, fullName } from '../../core/models/models.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField } from '../../core/validation/validate.ts'
import type { ConfiguredProvider } from '../../providers/configured-provider.ts'
import { tokenIdLimit } from '../../text/tokens/decode-tokens.ts'
import { estimateInputTokens, estimateTokens } from '../../text/tokens/tokens.ts'

/** A host of the model, and the model with that host's name and price. */
export type EmbeddingHost = {
  readonly model: EmbeddingModel
  readonly endpoint: ConfiguredProvider
  readonly adapter: NonNullable<ConfiguredProvider['embeddings']>
}

export type PreparedEmbeddings = {
  readonly request: EmbeddingsRequest
  /** All hosts of the one model that the client named, that one first. */
  readonly hosts: readonly [EmbeddingHost, ...EmbeddingHost[]]
  /** The text of each input, token IDs decoded. */
  readonly texts: readonly string[]
  /** Probable tokens of each input. */
  readonly tokens: readonly number[]
  /** Tokens that all inputs can have at most. */
  readonly mostTokens: number
}

export type PrepareEmbeddingsDeps = {
  readonly embeddingCatalog: EmbeddingCatalog
  /** The chat models, for the error of a request that names one. */
  readonly catalogue: Pick<Catalog, 'resolve'>
  readonly endpoints: ReadonlyMap<string, ConfiguredProvider>
  readonly tokenizer: { decode(lists: readonly (readonly number[])[]): Promise<readonly string[]> }
}

/**
 * Above the estimate's usual error: rejects an input that is certainly too long; the upstream decides on one near the
 * limit.
 */
const estimateSlack = 1.05

/**
 * Resolves the model and checks the inputs against it. Throws `model_not_found`, `unsupported_parameter` or `invalid_request`
 * for `dimensions`, and `context_length_exceeded` for an input that is too long.
 */
export async function prepareEmbeddings(
  deps: PrepareEmbeddingsDeps,
  request: EmbeddingsRequest,
): Promise<PreparedEmbeddings> {
  const hosts = findHosts(deps, request.model)
  const [{ model }] = hosts
  checkDimensions(model, request.dimensions)
  checkIds(request)
  const texts = await decodeInputs(deps, request)
  const { tokens, mostTokens } = await countTokens(request, texts, hosts)
  for (const [index, count] of tokens.entries()) {
    const isExact = typeof request.inputs[index] !== 'string'
    if (count > model.maximumInputTokens * (isExact ? 1 : estimateSlack))
      throw tooLong(placeOf(request, index), model, count, isExact)
  }
  return { request, hosts, texts, tokens, mostTokens }
}

function findHosts(
  { embeddingCatalog, catalogue, endpoints }: PrepareEmbeddingsDeps,
  name: string,
): PreparedEmbeddings['hosts'] {
  const model = embeddingCatalog.resolve(name)
  if (model === null) throw chatModelInEmbeddings(catalogue, name) ?? unknownEmbeddingModel(embeddingCatalog, name)
  const [first, ...others] = embeddingCatalog.hostsOf(model).flatMap((host): EmbeddingHost[] => {
    const endpoint = endpoints.get(host.provider)
    return endpoint?.embeddings === undefined ? [] : [{ model: host, endpoint, adapter: endpoint.embeddings }]
  })
  if (first === undefined) throw unknownEmbeddingModel(embeddingCatalog, name)
  return [first, ...others]
}

function chatModelInEmbeddings(catalogue: Pick<Catalog, 'resolve'>, name: string): GatewayError | null {
  const model = catalogue.resolve(name)
  if (model === null) return null
  const message = `${fullName(model)} is a chat model. Use POST /v1/chat/completions, or choose an embedding model from GET /v1/models.`
  return new GatewayError('model_not_found', message, { param: 'model' })
}

/** The message repeats nothing of the unknown name: it may be a key pasted into the wrong field. */
function unknownEmbeddingModel({ list }: EmbeddingCatalog, name: string): GatewayError {
  const known = list.slice(0, 6).map(fullName)
  const reason =
    name.toLowerCase() === autoModel
      ? 'Embedding models are not chosen automatically, since vectors of two models do not mix.'
      : 'Unknown embedding model.'
  const action = known.length === 0 ? 'No provider here serves embeddings.' : `Use one of ${known.join(', ')}.`
  return new GatewayError('model_not_found', `${reason} ${action}`, { param: 'model' })
}

function checkDimensions({ id, dimensionRange }: EmbeddingModel, dimensions: number | null): void {
  if (dimensions === null) return
  if (dimensionRange === null) {
    const message = `\`dimensions\` is not supported by ${id}. Remove it.`
    throw new GatewayError('unsupported_parameter', message, { param: 'dimensions' })
  }
  const { minimum, maximum } = dimensionRange
  if (dimensions < minimum || dimensions > maximum)
    throw invalidField('dimensions', `must be an integer from ${minimum} to ${maximum} for ${id}`)
}

function checkIds(request: EmbeddingsRequest): void {
  for (const [index, input] of request.inputs.entries())
    if (typeof input !== 'string' && input.some(id => id >= tokenIdLimit))
      throw inputError(
        placeOf(request, index),
        `must hold token IDs of cl100k_base, below ${tokenIdLimit}. Use that tokenizer, or send text: in LangChain set check_embedding_ctx_length=False`,
      )
}

async function decodeInputs({ tokenizer }: PrepareEmbeddingsDeps, { inputs }: EmbeddingsRequest) {
  const lists = inputs.filter(input => typeof input !== 'string')
  if (lists.length === 0) return inputs.filter(input => typeof input === 'string')
  const decoded = (await tokenizer.decode(lists)).values()
  return inputs.map(input => (typeof input === 'string' ? input : (decoded.next().value ?? '')))
}

/** Characters counted per turn of the event loop: a corpus must not delay other requests. */
const charactersPerTurn = 131_072

const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/**
 * Returns the probable tokens of each input, and the maximum tokens of all. Token IDs are counted if every host accepts
 * them; a text may have more tokens for its model than for any tokenizer here.
 */
async function countTokens(
  { inputs }: EmbeddingsRequest,
  texts: readonly string[],
  hosts: PreparedEmbeddings['hosts'],
): Promise<Pick<PreparedEmbeddings, 'tokens' | 'mostTokens'>> {
  const [{ model }] = hosts
  const countsIds = hosts.every(host => host.model.tokenIds === 'as_is')
  const tokens: number[] = []
  let mostTokens = 0
  let slice: string[] = []
  let characters = 0
  for (const [index, text] of texts.entries()) {
    const input = inputs[index] ?? text
    const isCounted = typeof input !== 'string'
    tokens.push(isCounted ? input.length : estimateTokens(text, model.provider))
    if (isCounted && countsIds) mostTokens += input.length
    else slice.push(text)
    characters += text.length
    if (characters < charactersPerTurn) continue
    mostTokens += boundOf(slice)
    slice = []
    characters = 0
    await nextTurn()
  }
  return { tokens, mostTokens: mostTokens + boundOf(slice) }
}

function boundOf(texts: readonly string[]): number {
  if (texts.length === 0) return 0
  const messages = texts.map(text => ({ role: 'user', name: null, content: [{ type: 'text', text }] }) as const)
  return estimateInputTokens({ messages, tools: [], responseFormat: { type: 'text' } })
}

function tooLong(place: string, { id, maximumInputTokens }: EmbeddingModel, tokens: number, isExact: boolean) {
  const size = `${isExact ? '' : 'about '}${tokens} tokens`
  const text = `has ${size}. This model's maximum context length is ${maximumInputTokens} tokens per input (${id}). Split it into shorter inputs`
  return inputError(place, text, 'context_length_exceeded')
}
