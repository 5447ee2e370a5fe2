import type { SkipReason } from '../../models/circuit-breaker.ts'
import type { Candidate } from './candidate.ts'
import { healthKey } from './health-key.ts'
import type { Route } from './route.ts'

export type CandidateOrderDeps = {
  /**
   * Returns why a model must not be called now; null = it may be called. A model that the client named is called for
   * longer.
   */
  readonly health: { skipReason(key: string, isNamed: boolean): SkipReason | null }
  /** Called for each candidate that comes last because it must not be called now, with the reason. */
  readonly rests?: (candidate: Candidate, reason: SkipReason) => void
}

/**
 * Yields the plan's candidates in the order of calls: those with an open circuit come last, since one request at a time
 * probes a failing model and the last resort is never removed. A named model is called unless its circuit is open.
 * `skipped` is called with the reason when another candidate replaces the first one.
 */
export function* inOrder(
  { health, rests }: CandidateOrderDeps,
  plan: Pick<Route, 'mode' | 'first' | 'candidates'>,
  skipped: (candidate: Candidate, reason: SkipReason) => void,
  /** The candidate at each host of its model; absent = only at its first host. */
  atHosts: (candidate: Candidate) => readonly Candidate[] = candidate => [candidate],
): Generator<Candidate, void, void> {
  const { first } = plan
  const resting: Candidate[] = []
  let reason: SkipReason | null = null
  let isCalled = false
  for (const candidate of atHosts(first)) {
    const own = health.skipReason(healthKey(candidate), plan.mode === 'manual')
    if (own === null) {
      isCalled = true
      yield candidate
      continue
    }
    reason ??= own
    rests?.(candidate, own)
    resting.push(candidate)
  }
  // Fallbacks of a named model are ranked only when they are needed.
  for (const fallback of plan.candidates) {
    if (fallback === first) continue
    for (const candidate of atHosts(fallback)) {
      const own = health.skipReason(healthKey(candidate), false)
      if (own !== null) {
        rests?.(candidate, own)
        resting.push(candidate)
        continue
      }
      if (reason !== null && !isCalled) skipped(first, reason)
      reason = null
      yield candidate
    }
  }
  yield* resting
}
