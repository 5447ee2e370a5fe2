/**
 * Decides when a conversation keeps the model that answered before, because that model's provider has its beginning
 * cached.
 */
import { fullName, type Model } from '../core/models/models.ts'
import { type PriceTerms, ratesAt } from '../core/models/pricing.ts'
import { getCost } from '../core/usage/money.ts'
import { discountScore, type Scored } from './scoring.ts'

/** The model that recently answered a conversation with the same beginning. */
export type CacheAffinity = {
  /** `provider/model`. */
  readonly model: string
  /** Input tokens that its provider probably has cached. */
  readonly tokens: number
  /** Where it is cached; absent = unknown. */
  readonly place?: CachePlace
}

/** A cache belongs to one account at one host. */
export type CachePlace = {
  /** ID of the configured provider. */
  readonly host: string
  /** Account of the key that served; null = the provider has one credential. */
  readonly account: string | null
}

/** Score deficit (0–1) that counts as a tie. */
const margin = 0.05
/** Minimum saving as a share of the request's cost. */
const leastSaving = 0.15

/**
 * Returns true if the request should stay with `tied` instead of `leader`, which scores higher: at the price that `tied`
 * has with its cache they are a near tie, and it is the cheaper one for this request. `costWeight` is the weight of cost
 * in the scores (0–1).
 */
export function shouldKeepModel(
  tied: Scored,
  leader: Scored,
  { tokens }: CacheAffinity,
  request: CachedRequest & { readonly costWeight: number },
): boolean {
  const cached = Math.min(tokens, request.inputTokens)
  const fresh = cost(tied.model, request, 0)
  const kept = cost(tied.model, request, cached)
  if (kept > (1 - leastSaving) * fresh || kept > cost(leader.model, request, 0)) return false
  const deficit = leader.score - tied.score
  return deficit <= margin + request.costWeight * discountScore(kept / fresh)
}

type CachedRequest = { readonly inputTokens: number; readonly outputTokens: number; readonly terms: PriceTerms }

function cost(
  { pricing }: Model,
  { inputTokens, outputTokens, terms }: CachedRequest,
  cachedInputTokens: number,
): number {
  return getCost(ratesAt(pricing, terms), {
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens: 0,
    outputTokens,
    reasoningTokens: 0,
  })
}

/** Returns a description of cache affinity for the dry run. */
export function describeAffinity({ model, tokens }: CacheAffinity): string {
  return `kept: ${model} has about ${tokens} tokens of this conversation in its cache`
}

export function hasAffinity(model: Model, tie: CacheAffinity): boolean {
  return fullName(model) === tie.model
}
