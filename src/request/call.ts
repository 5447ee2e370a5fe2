/**
 * The attempt loop: calls candidates in order until one answers. Fallback is possible until the first content was sent
 * to the client; a later failure is reported and never replaced by another output. A JSON client receives only complete
 * output, so every failure can still fall back.
 */

import type { ChatEvents } from '../core/chat/chat-events.ts'
import { affordable } from './affordable.ts'
import { decide, emptyAnswer, worthTrying } from './after-attempt.ts'
import type { CallRequest } from './attempt-run.ts'
import { attemptsOf, type CallDeps, type CallState, maximumAttempts, skip } from './call-state.ts'
import { createKeySearch, waitForCapacity } from './claim-key.ts'
import { hedgingOf, race, startHedging } from './hedge.ts'
import type { Progress } from './progress.ts'
import type { Candidate } from './routing/candidate.ts'
import { candidatesAtHosts } from './routing/hosts.ts'
import { inOrder } from './routing/order.ts'
import { cachePlaceOf, claimAndStart } from './start-attempt.ts'

export type { CallDeps } from './call-state.ts'

/**
 * Calls the plan's candidates and yields the response: `opened` and the first content in one batch, then content, then
 * the finish reasons of a complete output. `progress.response` is the response to be billed. Throws `GatewayError` if
 * no candidate answered, if the output ended early after its first content was sent, and when `signal` aborts.
 */
export async function* call(deps: CallDeps, request: CallRequest, progress: Progress): ChatEvents {
  const deadlineAt = deps.clock.monotonic() + deps.config.deadlines.totalMs
  const keys = createKeySearch()
  const found = { failed: [], keys, empty: null, isRepeated: false, bare: null }
  const state: CallState = { deps, request, progress, deadlineAt, ...found }
  progress.upstreamMs = request.prepared.waitedMs
  startHedging(state)
  const active = deps.health.beginRequest()
  try {
    const { ask } = request.prepared
    const candidates = inOrder(
      deps,
      request.plan,
      (one, reason) => skip(state, one, `skipped_${reason}`),
      one => candidatesAtHosts(deps.endpoints, one, ask, () => cachePlaceOf(state, one)?.host),
    )
    for (;;) {
      if (attemptsOf(state) >= maximumAttempts) break
      const next = nextCandidate(state, candidates)
      // Waiting without need would delay every request by a turn.
      const candidate = next instanceof Promise ? await next : next
      if (candidate === null) break
      if (!worthTrying(state, candidate)) continue
      const reservation = await affordable(deps.meter, request, candidate, progress)
      const started =
        reservation === null
          ? skip(state, candidate, 'skipped_over_budget')
          : claimAndStart(state, candidate, reservation)
      if (started === null) continue
      const hedge = hedgingOf(state, started)
      const run = hedge === null ? started : await race(state, hedge, started, candidates)
      if (run === 'stop') break
      if (run === 'next') continue
      try {
        const held = hedge === null ? null : run.show()
        if (held !== null) yield held
        while (!run.isOver()) {
          const parts = await run.attempt.next()
          if (parts === null) break
          const shown = run.take(parts)
          if (shown !== null) yield shown
        }
      } finally {
        run.close()
      }
      const step = decide(state, run)
      if (step === 'stop') break
      if (step === 'next') continue
      yield step
      return
    }
  } finally {
    active.end()
  }
  yield emptyAnswer(state)
}

/** Returns the same candidate for its next key, the next one, or one whose capacity has returned; null = none is left. */
function nextCandidate(
  state: CallState,
  candidates: Iterator<Candidate, void>,
): Candidate | null | Promise<Candidate | null> {
  const { keys } = state
  const again = keys.again
  keys.again = null
  const next = again ?? keys.waited.shift() ?? candidates.next().value
  return next ?? (keys.limited.length === 0 ? null : waitForCapacity(state))
}
