/** Counts the price of a lost prompt cache in the order of fallbacks. */
import { hasAffinity, shouldKeepModel } from '../../models/cache-affinity.ts'
import { type Scored, type ScoringMode, weightsOf } from '../../models/scoring.ts'
import { likelyOutputTokens } from './expected-cost.ts'
import { routingHealthKey } from './health-key.ts'
import type { RankDeps } from './rank-candidates.ts'
import type { RouteRequest } from './route-request.ts'

/**
 * Returns the fallbacks with the one that has the conversation cached before the first of those that it beats at its
 * price with the cache, by the rule by which a conversation keeps its model. Unhealthy models stay in their place.
 */
export function withCachedEarlier(
  { ties, health, ...deps }: Pick<RankDeps, 'ties' | 'health' | 'foresight'>,
  request: RouteRequest,
  mode: ScoringMode,
  fallbacks: readonly Scored[],
): readonly Scored[] {
  const { cost: costWeight } = weightsOf(mode)
  const affinity = costWeight === 0 ? null : (ties?.of(request.caller.accountId, request.ask) ?? null)
  if (affinity === null) return fallbacks
  const from = fallbacks.findIndex(({ model }) => hasAffinity(model, affinity))
  const cached = fallbacks[from]
  if (cached === undefined || health.stateOf(routingHealthKey(health, cached.model)) !== 'healthy') return fallbacks
  const outputTokens = likelyOutputTokens(deps, request)(cached.model)
  const to = fallbacks
    .slice(0, from)
    .findIndex(other => shouldKeepModel(cached, other, affinity, { ...request, outputTokens, costWeight }))
  if (to === -1) return fallbacks
  return [
    ...fallbacks.slice(0, to),
    { ...cached, place: 'cached' },
    ...fallbacks.slice(to, from),
    ...fallbacks.slice(from + 1),
  ]
}
