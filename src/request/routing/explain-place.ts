/**
 * Explains the place of a candidate in a ranking. The reasons come from the ranking itself (`PlaceReason`), so the dry
 * run and the page of a request never contradict the order of calls.
 */

import type { HealthState, PlaceReason } from '../../core/chat/attempts.ts'

/** Why a model is not healthy. */
export type HealthDetail = {
  /** Cause of its last failure; null = unknown. */
  readonly cause: string | null
  /** Share of failures among its latest attempts, 0–1. */
  readonly failureRate: number
  /** Epoch milliseconds since when it has its state; null = unknown. */
  readonly since: number | null
}

/** Facts about one candidate at the time of its ranking. */
export type PlacedCandidate = { readonly place: PlaceReason; readonly health: HealthState }

const sentences: Readonly<Record<PlaceReason, string>> = {
  requested: 'named by the request',
  score: 'ranked by its score',
  price: 'ranked by its price, lowest first',
  other_provider:
    'ahead of a score at most 0.15 higher: a different provider for resilience, so that one outage does not affect both',
  cached: 'ahead of its score, because its provider has this conversation in its prompt cache',
  explored: 'first, because this request explores a near tie',
  output_limit: 'behind the models that allow the requested output length',
  unhealthy: 'behind the models that may be called now',
}

/** Returns the reasons of a candidate's place, in plain sentences. */
export function explainPlace({ place, health }: PlacedCandidate): readonly string[] {
  const effect = effectOf({ place, health })
  return effect === null ? [sentences[place]] : [sentences[place], effect]
}

/** Returns one sentence about a model that is not healthy: cause, rate and since when. */
export function explainHealth(health: HealthState, { cause, failureRate, since }: HealthDetail): string {
  const began = since === null ? '' : ` since ${new Date(since).toISOString().slice(0, 19)}Z`
  const last = cause === null ? '' : `, last cause: ${cause}`
  return `${health}${began}: ${Math.round(failureRate * 100)}% of the latest attempts failed${last}`
}

/** Returns the effect of the health on the place; null = none. */
function effectOf({ place, health }: PlacedCandidate): string | null {
  if (health === 'healthy' || place === 'unhealthy') return null
  if (place === 'requested') return `${health}: it stays first because the request names it`
  // No model may be called now, so the ranking ignores health.
  if (health === 'unhealthy') return 'unhealthy, as are all others: health does not change the order'
  if (place === 'price') return 'degraded: healthy models of nearly the same price come first'
  return 'degraded: its score is 0.1 lower'
}
