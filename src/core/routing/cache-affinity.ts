/**
 * Decides when a conversation keeps the model that answered before, because that model's provider has its beginning
 * cached.
 */
import { fullName, type Model } from '../models/models.ts'
import { costOf } from '../usage/money.ts'
import type { Scored } from './scoring.ts'

/** The model that recently answered a conversation with the same beginning. */
export type CacheAffinity = {
  /** `provider/model`. */
  readonly model: string
  /** Input tokens that its provider probably has cached. */
  readonly tokens: number
}

/** Maximum score deficit (0–1) of the kept model. */
const margin = 0.05
/** Minimum saving as a share of the request's cost. */
const leastSaving = 0.15

/**
 * Returns true if the request should stay with `tied` instead of `leader`, which scores higher: they are a near tie,
 * and the cache makes `tied` cheaper for this request.
 */
export function shouldKeepModel(
  tied: Scored,
  leader: Scored,
  { tokens }: CacheAffinity,
  request: { readonly inputTokens: number; readonly outputTokens: number },
): boolean {
  if (leader.score - tied.score > margin || !hasAutomaticCache(tied.model)) return false
  const cached = Math.min(tokens, request.inputTokens)
  const fresh = cost(tied.model, request, 0)
  const kept = cost(tied.model, request, cached)
  return kept <= (1 - leastSaving) * fresh && kept <= cost(leader.model, request, 0)
}

function cost(
  model: Model,
  { inputTokens, outputTokens }: { readonly inputTokens: number; readonly outputTokens: number },
  cachedInputTokens: number,
): number {
  return costOf(model, { inputTokens, cachedInputTokens, cacheWriteTokens: 0, outputTokens, reasoningTokens: 0 })
}

/**
 * Returns true if the provider caches without explicit marks. Anthropic caches only marked input, and the gateway sets
 * no marks because cache writes cost extra.
 */
export function hasAutomaticCache({ provider, pricing }: Pick<Model, 'provider' | 'pricing'>): boolean {
  return provider !== 'anthropic' && pricing.cachedInput !== null && pricing.cachedInput < pricing.input
}

/** Returns a description of cache affinity for the dry run. */
export function describeAffinity({ model, tokens }: CacheAffinity): string {
  return `kept: ${model} has about ${tokens} tokens of this conversation in its cache`
}

export function hasAffinity(model: Model, tie: CacheAffinity): boolean {
  return fullName(model) === tie.model
}
