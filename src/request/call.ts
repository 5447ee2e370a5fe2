/**
 * The attempt loop in three functions: `select` (`ways.ts`) returns the next way, `startAttempt` tries it, and `judge`
 * decides whether to go on. Fallback is possible until the first content was sent to the client; a later failure is
 * reported and never replaced by another output. A JSON client receives only complete output, so every failure can still
 * fall back.
 */
import type { ChatEvents } from '../core/chat/chat-events.ts'
import type { CallRequest } from './attempt-run.ts'
import { hedgingOf, race, startHedging } from './hedge.ts'
import { emptyAnswer, judge } from './judge.ts'
import type { Progress } from './progress.ts'
import { startAttempt } from './start-attempt.ts'
import { type CallDeps, createCallState, select } from './ways.ts'

/**
 * Calls the plan's candidates and yields the response: `opened` and the first content in one batch, then content, then
 * the finish reasons of a complete output. `progress.response` is the response to be billed. Throws `GatewayError` if
 * no candidate answered, if the output ended early after its first content was sent, and when `signal` aborts.
 */
export async function* call(deps: CallDeps, request: CallRequest, progress: Progress): ChatEvents {
  const state = createCallState(deps, request, progress)
  progress.upstreamMs = request.prepared.waitedMs
  startHedging(state)
  const active = deps.health.beginRequest()
  try {
    for (;;) {
      const way = await select(state)
      if (way === null) break
      const started = startAttempt(state, way)
      const hedge = hedgingOf(state, started)
      const run = hedge === null ? started : await race(state, hedge, started)
      if (run === 'stop') break
      if (run === 'next') continue
      try {
        for (;;) {
          const shown = run.show()
          if (shown !== null) yield shown
          if (run.isOver()) break
          const parts = await run.attempt.next()
          if (parts === null) break
          run.add(parts)
        }
      } finally {
        run.close()
      }
      const step = judge(state, run)
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
