/** Plans a request for embeddings before admission: its model, the hosts of that model, and its tokens. It has no routing. */

import type { ChatRequest, EmbeddingInputs } from '../core/chat/chat.ts'
import { inputError, inputPlace } from '../core/chat/embeddings.ts'
import type { Caller } from '../core/limits/plans.ts'
import type { EmbeddingCatalog, EmbeddingModel } from '../core/models/embedding-models.ts'
import { autoModel, type Catalog, fullName, type Model } from '../core/models/models.ts'
import { findDenial } from '../core/policy/rules.ts'
import type { Clock } from '../core/ports.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { invalidField } from '../core/validation/validate.ts'
import { disabledModel, isModelAllowed, modelNotAllowed } from '../models/allowed-models.ts'
import type { HealthTracker } from '../models/health-tracker.ts'
import type { Endpoints } from '../providers/configured-provider.ts'
import type { PromptAnalyzer } from '../text/analysis/prompt-analysis.ts'
import { nextTurn } from '../text/moderation/text-moderator.ts'
import { tokenIdLimit } from '../text/tokens/tokenizer.ts'
import { estimateInputTokens, estimateTokens } from '../text/tokens/tokens.ts'
import { noWeb } from '../web/web-plan.ts'
import { checkPaid } from './admit.ts'
import type { Candidate } from './routing/candidate.ts'
import { modelBreach, noPlaceError } from './routing/constrained.ts'
import type { Route } from './routing/route.ts'
import { RankedCandidate } from './routing/score-candidates.ts'

export type PlanEmbeddingsDeps = {
  readonly embeddingCatalog: EmbeddingCatalog
  /** The chat models, for the error of a request that names one. */
  readonly catalog: Pick<Catalog, 'resolve'>
  readonly endpoints: Endpoints
  readonly health: Pick<HealthTracker, 'getStanding'>
  readonly clock: Pick<Clock, 'now'>
  readonly read: PromptAnalyzer
  readonly tokenizer: { decode(lists: readonly (readonly number[])[]): Promise<readonly string[]> }
}

/** A request with its plan; the request has the texts and the tokens of its inputs. */
type PlannedEmbeddings = {
  readonly request: ChatRequest
  readonly plan: Route
  readonly promptDigest: string
  readonly enhancement: null
}

/**
 * Above the estimate's usual error: rejects an input that is certainly too long; the upstream decides on one near the
 * limit.
 */
const estimateSlack = 1.05

/**
 * Resolves the model and checks the inputs against it. Throws `model_not_found`, `forbidden`, `unsupported_parameter` or
 * `invalid_request` for `dimensions`, `payment_required` or `account_paused`, and `context_length_exceeded` for an input
 * that is too long.
 */
export async function planEmbeddings(
  deps: PlanEmbeddingsDeps,
  caller: Caller,
  asked: ChatRequest,
  embedding: EmbeddingInputs,
): Promise<PlannedEmbeddings> {
  const hosts = findHosts(deps, asked, caller)
  const [model] = hosts
  if (caller.models !== undefined && !isModelAllowed(caller.models, fullName(model)))
    throw modelNotAllowed(caller.models)
  checkDimensions(model, embedding.dimensions)
  checkIds(embedding)
  // As `admit` does, before the work on a large body.
  checkPaid(deps, caller)
  const texts = await decodeInputs(deps, embedding)
  const { tokens, mostTokens } = await countTokens(embedding, texts, hosts)
  for (const [index, count] of tokens.entries()) {
    const isExact = typeof embedding.inputs[index] !== 'string'
    if (count > model.contextWindow * (isExact ? 1 : estimateSlack))
      throw tooLong(inputPlace(embedding, index), model, count, isExact)
  }
  const request: ChatRequest = {
    ...asked,
    embedding: { ...embedding, texts, tokens },
    // The candidates are hosts of one model.
    fallback: asked.fallback === 'none' ? 'none' : 'any',
  }
  // Nothing of it is learned or enhanced.
  return { request, plan: planFor(deps, hosts, mostTokens), promptDigest: '', enhancement: null }
}

/** Returns the model and its other hosts, the named one first. */
function findHosts(
  deps: PlanEmbeddingsDeps,
  { model: written, demands, rules }: ChatRequest,
  caller: Caller,
): readonly [EmbeddingModel, ...EmbeddingModel[]] {
  const { embeddingCatalog, catalog, endpoints } = deps
  const name = written ?? autoModel
  const model = embeddingCatalog.resolve(name)
  if (model === null)
    throw (
      chatModelInEmbeddings(catalog, name) ??
      disabledModel(embeddingCatalog, name) ??
      unknownEmbeddingModel(embeddingCatalog, name)
    )
  const isDenied = (other: EmbeddingModel) =>
    rules !== undefined && findDenial(rules.denials, fullName(other), embeddingCatalog.resolve) !== null
  const same = embeddingCatalog.list.filter(other => other !== model && isSameModel(other, model) && !isDenied(other))
  if (demands === undefined) return [model, ...same]
  const allowed = [model, ...same].filter(other => modelBreach(endpoints, other, demands) === null)
  const [first, ...others] = allowed
  const breach = first === undefined ? modelBreach(endpoints, model, demands) : null
  if (first === undefined && breach !== null)
    throw noPlaceError({ endpoints, catalog: embeddingCatalog }, { breach, demands, model, caller })
  return first === undefined ? [model, ...same] : [first, ...others]
}

function isSameModel({ embedding: item }: EmbeddingModel, { embedding: other }: EmbeddingModel): boolean {
  return item.space.toLowerCase() === other.space.toLowerCase() && item.dimensions === other.dimensions
}

/** Plans the hosts of one model without routing. */
export function planFor(
  {
    endpoints,
    health,
    clock,
    read,
  }: Pick<PlanEmbeddingsDeps, 'health' | 'clock' | 'read'> & {
    readonly endpoints: Pick<Endpoints, 'get'>
  },
  hosts: readonly [Model, ...Model[]],
  mostTokens: number,
): Route {
  const candidates = hosts.flatMap((model): Candidate[] => {
    const endpoint = endpoints.get(model.provider)
    if (endpoint === undefined) return []
    const { state } = health.getStanding(fullName(model))
    return [new RankedCandidate({ model, score: 1, place: 'requested', health: state }, endpoint, 'requested model')]
  })
  const [first] = candidates
  if (first === undefined) throw new GatewayError('no_model_available', 'The provider of this model was removed.')
  const plan: Route = {
    mode: 'manual',
    strategy: null,
    analysis: read([]),
    level: 'light',
    inputTokens: mostTokens,
    web: noWeb,
    choices: 1,
    terms: { at: clock.now(), tier: null },
    first,
    candidates,
    ranked: candidates,
    learning: { epoch: null, influenced: false, probability: 1 },
    turn: null,
    isKept: false,
    dropped: [],
    withoutWeb: () => plan,
  }
  return plan
}

function chatModelInEmbeddings(catalog: Pick<Catalog, 'resolve'>, name: string): GatewayError | null {
  const model = catalog.resolve(name)
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

function checkDimensions({ id, embedding: { dimensionRange } }: EmbeddingModel, dimensions: number | null): void {
  if (dimensions === null) return
  if (dimensionRange === null) {
    const message = `\`dimensions\` is not supported by ${id}. Remove it.`
    throw new GatewayError('unsupported_parameter', message, { param: 'dimensions' })
  }
  const { minimum, maximum } = dimensionRange
  if (dimensions < minimum || dimensions > maximum)
    throw invalidField('dimensions', `must be an integer from ${minimum} to ${maximum} for ${id}`)
}

function checkIds(embedding: EmbeddingInputs): void {
  for (const [index, input] of embedding.inputs.entries())
    if (typeof input !== 'string' && input.some(id => id >= tokenIdLimit))
      throw inputError(
        inputPlace(embedding, index),
        `must hold token IDs of cl100k_base, below ${tokenIdLimit}. Use that tokenizer, or send text: in LangChain set check_embedding_ctx_length=False`,
      )
}

async function decodeInputs({ tokenizer }: Pick<PlanEmbeddingsDeps, 'tokenizer'>, { inputs }: EmbeddingInputs) {
  const lists = inputs.filter(input => typeof input !== 'string')
  if (lists.length === 0) return inputs.filter(input => typeof input === 'string')
  const decoded = (await tokenizer.decode(lists)).values()
  return inputs.map(input => (typeof input === 'string' ? input : (decoded.next().value ?? '')))
}

/** Characters counted per turn of the event loop: a corpus must not delay other requests. */
const charactersPerTurn = 131_072

/**
 * Returns the probable tokens of each input, and the maximum tokens of all. Token IDs are counted if every host accepts
 * them; a text may have more tokens for its model than for any tokenizer here.
 */
async function countTokens(
  { inputs }: EmbeddingInputs,
  texts: readonly string[],
  hosts: readonly [EmbeddingModel, ...EmbeddingModel[]],
): Promise<{ readonly tokens: readonly number[]; readonly mostTokens: number }> {
  const [model] = hosts
  const countsIds = hosts.every(({ embedding }) => embedding.tokenIds === 'as_is')
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
    mostTokens += highestTokens(slice)
    slice = []
    characters = 0
    await nextTurn()
  }
  return { tokens, mostTokens: mostTokens + highestTokens(slice) }
}

function highestTokens(texts: readonly string[]): number {
  if (texts.length === 0) return 0
  const messages = texts.map(text => ({ role: 'user', name: null, content: [{ type: 'text', text }] }) as const)
  return estimateInputTokens({ messages, tools: [], responseFormat: { type: 'text' } })
}

function tooLong(place: string, { id, contextWindow }: EmbeddingModel, tokens: number, isExact: boolean) {
  const size = `${isExact ? '' : 'about '}${tokens} tokens`
  const text = `has ${size}. This model's maximum context length is ${contextWindow} tokens per input (${id}). Split it into shorter inputs`
  return inputError(place, text, 'context_length_exceeded')
}
