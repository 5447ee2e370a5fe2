/** Why nobody can take a request, and what to do about it. */

import { type Catalog, fullName, type Model } from '../../core/models/models.ts'
import { GatewayError } from '../../core/validation/errors.ts'

/** A model that was passed over: for what, and by which parameter where one is at fault. */
export type DroppedModel = { readonly model: string; readonly reason: string } & (
  | { readonly cause: 'elsewhere' | 'window' | 'budget' }
  | { readonly cause: 'unmet'; readonly param: string }
)

/** Nobody can take it. The nearest miss is named: what all others were lost to before the last filter. */
export function noEligibleModelError(dropped: readonly DroppedModel[], inputTokens: number): GatewayError {
  if (dropped.some(({ cause }) => cause === 'window')) {
    const message = `The conversation (about ${inputTokens} tokens) exceeds the context window of every eligible model. Shorten it.`
    return new GatewayError('context_length_exceeded', message, { param: 'messages' })
  }
  const params = dropped.flatMap(loss => (loss.cause === 'unmet' ? [loss.param] : []))
  const [param] = params.toSorted((left, right) => countOf(params, right) - countOf(params, left))
  if (param !== undefined) {
    const message = `No model here supports \`${param}\` as this request uses it. Change it or leave it out.`
    return new GatewayError('unsupported_parameter', message, { param })
  }
  return new GatewayError('no_model_available', 'No model can take this request right now. Try again later.', {
    retryAfterMs: 5000,
    detail: 'no model is left once those not configured, retiring, or out of test mode are taken out',
  })
}

function countOf(values: readonly string[], wanted: string): number {
  return values.filter(value => value === wanted).length
}

/** The refusal of a model that is named and that nobody here offers. */
export function notConfigured(model: Model): GatewayError {
  const message = `${fullName(model)} is known, but its provider is not configured here. Choose one of GET /api/v1/models.`
  return new GatewayError('model_not_found', message, { param: 'model' })
}

/** The message repeats nothing of the unknown name: it may be a key pasted into the wrong field. */
export function unknownModel(catalogue: Catalog, name: string): GatewayError {
  const near = nearNames(catalogue, name)
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`
  const message = `There is no model of that name.${hint} GET /v1/models lists them; \`gateway-ai\` has one chosen.`
  return new GatewayError('model_not_found', message, { param: 'model' })
}

const leastSimilar = 0.5
const maximumHints = 2

function nearNames({ list }: Catalog, name: string): string[] {
  const wanted = pairsOf(name)
  return list
    .map(model => ({
      name: fullName(model),
      similarity: Math.max(
        ...[fullName(model), model.id, ...model.aliases].map(known => nameSimilarity(wanted, pairsOf(known))),
      ),
    }))
    .filter(({ similarity }) => similarity >= leastSimilar)
    .sort((left, right) => right.similarity - left.similarity)
    .slice(0, maximumHints)
    .map(near => near.name)
}

const longestCompared = 64

/** The pairs of neighbouring characters in a name. */
function pairsOf(name: string): Set<string> {
  const text = ` ${name.slice(0, longestCompared).toLowerCase()} `
  return new Set(Array.from({ length: text.length - 1 }, (_, at) => text.slice(at, at + 2)))
}

/** Dice's coefficient of two names' pairs, 0–1. */
function nameSimilarity(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  let shared = 0
  for (const pair of left) if (right.has(pair)) shared++
  return (2 * shared) / (left.size + right.size)
}
