/**
 * Hedging, a combinator around an attempt: if its first content is later than the p95 of its host, an attempt on the next
 * way starts too. The first content that may be sent wins, and the other attempt is canceled. The reservation covers
 * both before the second one begins, and settlement bills both. A request hedges at most once.
 */
import { hedgeLost } from '../core/chat/attempts.ts'
import type { AttemptRun } from './attempt-run.ts'
import { isServing, judge } from './judge.ts'
import type { Hedge } from './progress.ts'
import { healthKey } from './routing/hosts.ts'
import { startAttempt } from './start-attempt.ts'
import { lacksForcedCall } from './upstream-response.ts'
import { type CallState, getAttempts, maximumAttempts, release, selectBeside } from './ways.ts'

/** Prepares hedging if the client or its account requests it. */
export function startHedging({ deps, request: { caller, request }, progress }: CallState): void {
  if (!(request.hedge ?? caller.hedges === true)) return
  progress.hedge = { result: 'unused', other: null, tokens: 0, microcents: 0 }
  deps.hedges.earn(caller.accountId)
}

/** Returns the hedging of a request if this attempt may hedge: its upstream streams, and another attempt is left. */
export function findHedging(state: CallState, { stream }: AttemptRun): Hedge | null {
  const { hedge } = state.progress
  if (state.cut !== null) return null
  return hedge?.result === 'unused' && stream && getAttempts(state) + 2 <= maximumAttempts ? hedge : null
}

type Turn = { readonly run: AttemptRun; readonly goesOn: boolean }

/**
 * Reads an attempt, and its hedge if its first content is late, until one serves. Returns that one, with its content
 * held back, or the step after both have failed. Closes all others, and all when it throws.
 */
export async function race(state: CallState, hedge: Hedge, first: AttemptRun): Promise<AttemptRun | 'next' | 'stop'> {
  const { deps, progress } = state
  const { candidate, startedAt } = first.response
  const upstreamMs = progress.upstreamMs
  const turns = new Map<AttemptRun, Promise<Turn>>()
  const read = (run: AttemptRun) =>
    turns.set(
      run,
      run.attempt.next().then(goesOn => ({ run, goesOn })),
    )
  let cancelTimer = () => {}
  let late: Promise<null> | null = new Promise(resolve => {
    const lateMs = deps.health.lateAfterMs(healthKey(candidate), candidate.model.figures.firstTokenMs)
    cancelTimer = deps.clock.after(lateMs, () => resolve(null))
  })
  read(first)
  try {
    for (;;) {
      const turn = await Promise.race(late === null ? turns.values() : [...turns.values(), late])
      if (turn === null) {
        late = null
        const rival = await startRival(state, hedge, first, turns.get(first))
        if (rival !== null) read(rival)
        continue
      }
      const { run, goesOn } = turn
      if (goesOn) run.add()
      const isOver = !goesOn || run.response.isOver()
      if ((run.hasServed() && !lacksForcedCall(run.response)) || (isOver && isServing(state, run))) {
        turns.delete(run)
        if (run !== first) hedge.result = 'won'
        for (const other of turns.keys()) {
          cancel(other)
          hedge.other = other.response
          // It took longer than its p95, which would otherwise sink with each hedge.
          if (other === first) deps.health.waited(healthKey(candidate), waitedMs(other))
        }
        progress.response = run.response
        progress.upstreamMs = upstreamMs + run.response.startedAt - startedAt
        return run
      }
      if (!isOver) {
        read(run)
        continue
      }
      turns.delete(run)
      run.close()
      const step = judge(state, run) === 'stop' ? 'stop' : 'next'
      hedge.other = null
      const [left] = turns.keys()
      if (left !== undefined && (step === 'next' || run !== first)) {
        progress.response = left.response
        continue
      }
      // The reason why the first attempt must not be repeated applies to its hedge too.
      if (left !== undefined) cancel(left)
      progress.upstreamMs = upstreamMs + deps.clock.monotonic() - startedAt
      return step
    }
  } finally {
    cancelTimer()
    // Attempts that still run when the request ends.
    for (const run of turns.keys()) run.close()
  }
}

function cancel(run: AttemptRun): void {
  run.close()
  run.response.isCanceled = true
  run.note(hedgeLost)
}

/** How long the first content would have taken is unknown, unless it has arrived without being sent. */
function waitedMs(run: AttemptRun): number {
  const { firstContentAt, startedAt } = run.response
  return firstContentAt === null ? run.lastedMs() : firstContentAt - startedAt
}

/** Starts the hedge after its cost is reserved; null = none may begin, or the first content arrived meanwhile. */
async function startRival(
  state: CallState,
  hedge: Hedge,
  first: AttemptRun,
  turn: Promise<Turn> | undefined,
): Promise<AttemptRun | null> {
  // Text that waits for a required call is no late content.
  const way = first.response.hasContent ? null : await selectBeside(state, first)
  if (way === null) return null
  const isDecided = (await Promise.race([turn, undefined])) !== undefined
  if (isDecided || state.request.signal.aborted) {
    release(way)
    return null
  }
  if (way.candidate === state.waiting[0]) state.waiting.shift()
  const rival = startAttempt(state, way)
  // The first attempt is billed unless it fails or loses.
  state.progress.response = first.response
  Object.assign(hedge, { result: 'lost', other: rival.response })
  return rival
}
