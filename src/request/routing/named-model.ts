/** Checks the model that a request names: that it exists, is not retired, and supports the request. */
import type { EmbeddingCatalog } from '../../core/models/embedding-models.ts'
import {
  autoModel,
  type Catalog,
  fullName,
  getDeprecation,
  type Model,
  type Unmet,
  unmet,
} from '../../core/models/models.ts'
import type { Breach } from '../../core/policy/constraints.ts'
import { deniedBy, type Rule } from '../../core/policy/rules.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { disabledModel, isModelAllowed, modelNotAllowed } from '../../models/allowed-models.ts'
import type { RouteRequest } from './candidate.ts'

/** Finds the named model. Throws `model_not_found`, `forbidden`, `model_deprecated`, `unsupported_parameter` or `invalid_request`. */
export function findNamedModel(
  {
    catalog,
    embeddingCatalog,
  }: { readonly catalog: Catalog; readonly embeddingCatalog?: Pick<EmbeddingCatalog, 'resolve'> },
  { request, caller, needs, today }: RouteRequest,
  name: string,
): Model {
  const model = catalog.resolve(name)
  if (model === null)
    throw (
      (embeddingCatalog === undefined ? null : embeddingModelInChat(embeddingCatalog, name)) ??
      disabledModel(catalog, name) ??
      unknownModel(catalog, name)
    )
  if (caller.models !== undefined && !isModelAllowed(caller.models, fullName(model)))
    throw modelNotAllowed(caller.models)
  if (getDeprecation(model, today) === 'retired') {
    const advice = model.successor === null ? 'Choose another one' : `Use ${model.successor} instead`
    const message = `${fullName(model)} was retired on ${model.deprecationDate}. ${advice}.`
    throw new GatewayError('model_deprecated', message, { param: 'model' })
  }
  refuseUnmet(model, unmet(model, needs))
  // A less capable fallback is better than none, so only the named model itself is checked. Messages requires a cap, so
  // its clients send one that does not consider the model: it is lowered.
  if (request.dialect !== 'messages' && (request.maxOutputTokens ?? 0) > model.maxOutputTokens) {
    const message = `\`max_output_tokens\` must be at most ${model.maxOutputTokens} for ${fullName(model)}.`
    throw new GatewayError('invalid_request', message, { param: 'max_output_tokens' })
  }
  return model
}

/** Throws `unsupported_parameter` if the named model lacks a required capability. */
export function refuseUnmet(model: Model, lacking: Unmet | null): void {
  if (lacking === null) return
  const message = `${fullName(model)} does not support ${lacking.what}. Remove it or choose another model.`
  throw new GatewayError('unsupported_parameter', message, { param: lacking.param })
}

type RoutedModel = {
  readonly mode: 'auto' | 'manual'
  readonly first: { readonly model: Pick<Model, 'id' | 'provider'> }
}

/** Returns the model that a request named, or the name of automatic routing. */
export function requestedModel({ mode, first }: RoutedModel): string {
  return mode === 'manual' ? fullName(first.model) : autoModel
}

/** A dropped model with the filter, and the parameter if one is the cause. */
export type DroppedModel = { readonly model: string; readonly reason: string } & (
  | { readonly cause: 'key' | 'elsewhere' | 'window' | 'budget' }
  | { readonly cause: 'rule'; readonly rule: Rule }
  | { readonly cause: 'constraint'; readonly breach: Breach }
  | { readonly cause: 'unmet'; readonly param: string }
)

/** Builds the error for a request without an eligible model. Reports the last filter that removed candidates. */
export function noEligibleModelError(
  dropped: readonly DroppedModel[],
  { inputTokens, caller }: Pick<RouteRequest, 'inputTokens' | 'caller'>,
): GatewayError {
  if (dropped.some(({ cause }) => cause === 'window')) {
    const message = `The conversation (about ${inputTokens} tokens) exceeds the context window of every eligible model. Shorten it.`
    return new GatewayError('context_length_exceeded', message, { param: 'messages' })
  }
  const params = dropped.flatMap(loss => (loss.cause === 'unmet' ? [loss.param] : []))
  const [param] = params.toSorted((left, right) => getCount(params, right) - getCount(params, left))
  if (param !== undefined) {
    const message = `No configured model supports this value of \`${param}\`. Change or remove it.`
    return new GatewayError('unsupported_parameter', message, { param })
  }
  if (caller.models !== undefined && dropped.some(({ cause }) => cause === 'key')) return modelNotAllowed(caller.models)
  const denied = dropped.find(loss => loss.cause === 'rule')
  if (denied !== undefined) return deniedBy(denied.rule)
  return new GatewayError('no_model_available', 'No model is available. Retry later.', {
    retryAfterMs: 5000,
    detail: 'every model is unconfigured, close to retirement or excluded by test mode',
  })
}

function getCount(values: readonly string[], wanted: string): number {
  return values.filter(value => value === wanted).length
}

/** Builds the error for a named model that is not offered. */
export function notConfigured(model: Model): GatewayError {
  const message = `${fullName(model)} is not available: its provider is not configured. Choose a model from GET /api/v1/models.`
  return new GatewayError('model_not_found', message, { param: 'model' })
}

/** Returns the error for an embedding model in a chat request; null = the name is of no embedding model. */
function embeddingModelInChat(models: Pick<EmbeddingCatalog, 'resolve'>, name: string): GatewayError | null {
  const model = models.resolve(name)
  if (model === null) return null
  const message = `${fullName(model)} is an embedding model. Use POST /v1/embeddings, or choose a chat model from GET /v1/models.`
  return new GatewayError('model_not_found', message, { param: 'model' })
}

/** The message repeats nothing of the unknown name: it may be a key pasted into the wrong field. */
function unknownModel(catalog: Catalog, name: string): GatewayError {
  const near = nearNames(catalog, name)
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`
  const message = `Unknown model.${hint} List models with GET /v1/models, or use \`gateway-ai\` for automatic routing.`
  return new GatewayError('model_not_found', message, { param: 'model' })
}

const leastSimilar = 0.5
const maximumHints = 2

function nearNames({ list }: Catalog, name: string): string[] {
  const wanted = getPairs(name)
  return list
    .map(model => ({
      name: fullName(model),
      similarity: Math.max(
        ...[fullName(model), model.id, ...model.aliases].map(known => nameSimilarity(wanted, getPairs(known))),
      ),
    }))
    .filter(({ similarity }) => similarity >= leastSimilar)
    .sort((left, right) => right.similarity - left.similarity)
    .slice(0, maximumHints)
    .map(near => near.name)
}

const longestCompared = 64

/** Returns the pairs of adjacent characters in a name. */
function getPairs(name: string): Set<string> {
  const text = ` ${name.slice(0, longestCompared).toLowerCase()} `
  return new Set(Array.from({ length: text.length - 1 }, (_, at) => text.slice(at, at + 2)))
}

/** Returns Dice's coefficient of two names' pairs, 0–1. */
function nameSimilarity(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  let shared = 0
  for (const pair of left) if (right.has(pair)) shared++
  return (2 * shared) / (left.size + right.size)
}
