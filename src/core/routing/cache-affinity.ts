/** When a conversation stays with the model that answered it before: where that model holds its beginning in a cache. */
import { fullName, type Model } from '../models/models.ts'
import { costOf } from '../usage/money.ts'
import type { Scored } from './scoring.ts'

/** Who answered what begins alike, a moment ago. */
export type CacheAffinity = {
  /** `provider/model`. */
  readonly model: string
  /** Input tokens that its provider has likely kept. */
  readonly tokens: number
}

/** A model this far behind, of scores 0–1, is as good as the first. */
const margin = 0.05
/** Of the request's cost: less is not worth a second best. */
const leastSaving = 0.15

/**
 * Whether to stay with `tied` and not go to `leader`, who scores higher: they are near-equals, and what the cache saves makes
 * it the cheaper of the two for this request.
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

/** Anthropic caches only what a request marks for it, and the gateway marks nothing, since marking costs. */
export function hasAutomaticCache({ provider, pricing }: Pick<Model, 'provider' | 'pricing'>): boolean {
  return provider !== 'anthropic' && pricing.cachedInput !== null && pricing.cachedInput < pricing.input
}

/** Why a kept model is the first, in words for whoever asks. */
export function describeAffinity({ model, tokens }: CacheAffinity): string {
  return `kept: ${model} has about ${tokens} tokens of this conversation in its cache`
}

export function hasAffinity(model: Model, tie: CacheAffinity): boolean {
  return fullName(model) === tie.model
}
