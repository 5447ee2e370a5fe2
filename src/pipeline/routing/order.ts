import type { SkipReason } from '../../core/routing/circuit-breaker.ts'
import type { Candidate } from './candidate.ts'
import { healthKey } from './health-key.ts'
import type { Route } from './route.ts'

export type CandidateOrderDeps = {
  /** Why not to call a model now; null = call it. A model that the client named is called for longer. */
  readonly health: { skipReason(key: string, isNamed: boolean): SkipReason | null }
}

/**
 * The plan's candidates in the order in which they are asked: those that are resting come last, since a failing model is probed
 * by one request at a time and the last resort is never taken away. A named model is asked unless its circuit is open.
 * `skipped` hears that another candidate takes the turn of the first one, and why.
 */
export function* inOrder(
  { health }: CandidateOrderDeps,
  plan: Pick<Route, 'mode' | 'first' | 'candidates'>,
  skipped: (candidate: Candidate, reason: SkipReason) => void,
): Generator<Candidate, void, void> {
  const { first } = plan
  const resting: Candidate[] = []
  let reason = health.skipReason(healthKey(first), plan.mode === 'manual')
  if (reason === null) yield first
  else resting.push(first)
  // Of a named model they are ranked only when they are needed.
  for (const candidate of plan.candidates) {
    if (candidate === first) continue
    if (health.skipReason(healthKey(candidate), false) !== null) {
      resting.push(candidate)
      continue
    }
    if (reason !== null) skipped(first, reason)
    reason = null
    yield candidate
  }
  yield* resting
}
