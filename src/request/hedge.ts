/**
 * Hedged attempts. If the first content of an attempt is later than the model's own p95, a second attempt begins at the
 * runner-up. Both are read until one has content that may be sent: that one serves, and the other is canceled. The reservation covers
 * both before the second one begins, and settlement bills both. A request hedges at most once.
 */
import { hedgeLost } from '../core/chat/attempts.ts'
import { fullName } from '../core/models/models.ts'
import type { Reservation } from '../limits/meter.ts'
import type { KeyClaim } from '../providers/keys/key-pool.ts'
import type { AnswerPart } from '../providers/provider.ts'
import { affordableHedge } from './affordable.ts'
import { decide, isSameModel, isServing, worthTrying } from './after-attempt.ts'
import type { AttemptRun } from './attempt-run.ts'
import { attemptsOf, type CallState, maximumAttempts } from './call-state.ts'
import { claimOtherKey } from './claim-key.ts'
import type { Hedge } from './progress.ts'
import { type Candidate, viaOf } from './routing/candidate.ts'
import { healthKey } from './routing/health-key.ts'
import { startAttempt } from './start-attempt.ts'
import { lacksForcedCall } from './upstream-response.ts'

/** Prepares hedging if the client or its account requests it. */
export function startHedging({ deps, request: { caller, ask }, progress }: CallState): void {
  if (!(ask.hedge ?? caller.hedges === true)) return
  progress.hedge = { result: 'unused', isRacing: false, other: null, tokens: 0, microcents: 0 }
  deps.hedges.earn(caller.accountId)
}

/** Returns the hedging of a request if this attempt may hedge: its upstream streams, and another attempt is left. */
export function hedgingOf(state: CallState, run: AttemptRun): Hedge | null {
  const { hedge } = state.progress
  if (hedge === null || hedge.result !== 'unused' || !run.stream) return null
  return attemptsOf(state) + 2 > maximumAttempts ? null : hedge
}

type Turn = { readonly run: AttemptRun; readonly parts: readonly AnswerPart[] | null }
type Contender = { readonly run: AttemptRun; turn: Promise<Turn> }

/**
 * Reads an attempt, and its hedge if its first content is late, until one serves. Returns that one, with its content
 * held back, or the step after both have failed. Closes all others, and all when it throws.
 */
export async function race(
  state: CallState,
  hedge: Hedge,
  first: AttemptRun,
  candidates: Iterator<Candidate, void>,
): Promise<AttemptRun | 'next' | 'stop'> {
  const { deps, progress } = state
  const { candidate, startedAt } = first.response
  const upstreamMs = progress.upstreamMs
  const open: Contender[] = [contender(first)]
  let cancelTimer = () => {}
  const late = new Promise<null>(resolve => {
    const lateMs = deps.health.lateAfterMs(healthKey(candidate), candidate.model.figures.firstTokenMs)
    cancelTimer = deps.clock.after(lateMs, () => resolve(null))
  })
  let isLate = false
  try {
    for (;;) {
      const turns = open.map(({ turn }) => turn)
      const turn = await Promise.race(isLate ? turns : [...turns, late])
      if (turn === null) {
        isLate = true
        const rival = await startRival(state, hedge, open, candidates)
        if (rival !== null) open.push(contender(rival))
        continue
      }
      const { run, parts } = turn
      if (parts !== null) run.take(parts)
      if (
        (run.hasServed() && !lacksForcedCall(run.response)) ||
        ((parts === null || run.isOver()) && isServing(state, run))
      ) {
        settleRace(state, hedge, { first, serving: run, open })
        progress.upstreamMs = upstreamMs + run.response.startedAt - startedAt
        return run
      }
      if (parts !== null && !run.isOver()) {
        const still = open.find(one => one.run === run)
        if (still !== undefined) still.turn = turnOf(run)
        continue
      }
      const step = fail(state, run, open)
      const [left] = open
      if (left !== undefined && (step !== 'stop' || run !== first)) {
        progress.response = left.run.response
        hedge.other = null
        continue
      }
      // The reason why the first attempt must not be repeated applies to its hedge too.
      for (const { run: other } of open.splice(0)) cancel(state, other)
      hedge.isRacing = false
      hedge.other = null
      progress.response = null
      progress.upstreamMs = upstreamMs + deps.clock.monotonic() - startedAt
      return step
    }
  } finally {
    cancelTimer()
    // Attempts that still run when the request ends.
    for (const { run } of open) run.close()
  }
}

function contender(run: AttemptRun): Contender {
  run.isRacing = true
  return { run, turn: turnOf(run) }
}

function turnOf(run: AttemptRun): Promise<Turn> {
  return run.attempt.next().then(parts => ({ run, parts }))
}

/** Ends the race: the other attempt is canceled, and its cost is noted. */
function settleRace(
  state: CallState,
  hedge: Hedge,
  { first, serving, open }: { readonly first: AttemptRun; readonly serving: AttemptRun; readonly open: Contender[] },
): void {
  const { progress } = state
  serving.isRacing = false
  hedge.isRacing = false
  if (serving !== first) hedge.result = 'won'
  for (const { run } of open.splice(0)) {
    if (run === serving) continue
    cancel(state, run)
    hedge.other = run.response
    // How long it would have taken is unknown. It took longer than its p95, which would otherwise sink with each hedge.
    if (run !== first) continue
    const { candidate, firstContentAt, startedAt } = run.response
    const firstMs = firstContentAt === null ? waitedMs(state, run) : firstContentAt - startedAt
    state.deps.health.waited(healthKey(candidate), firstMs)
  }
  progress.response = serving.response
}

function cancel(state: CallState, run: AttemptRun): void {
  const { candidate, startedAt } = run.response
  run.close()
  state.progress.attempts.push({
    model: fullName(candidate.model),
    outcome: hedgeLost,
    startedAt,
    durationMs: Math.round(waitedMs(state, run)),
    status: run.attempt.status(),
    ...viaOf(candidate, run.claim),
  })
}

function waitedMs({ deps }: CallState, run: AttemptRun): number {
  return deps.clock.monotonic() - run.response.startedAt
}

/** Removes a failed attempt from the race and returns the step after it. Throws if the request has ended. */
function fail(state: CallState, run: AttemptRun, open: Contender[]): 'next' | 'stop' {
  open.splice(
    open.findIndex(one => one.run === run),
    1,
  )
  run.close()
  return decide(state, run) === 'stop' ? 'stop' : 'next'
}

/** Starts the hedge after its cost is reserved; null = none may begin, or the first content arrived meanwhile. */
async function startRival(
  state: CallState,
  hedge: Hedge,
  [first]: readonly Contender[],
  candidates: Iterator<Candidate, void>,
): Promise<AttemptRun | null> {
  const { deps, request, progress } = state
  // Text that waits for a required call is no late content.
  if (first === undefined || first.run.response.hasContent) return null
  const options = runnersUp(state, first.run, candidates)
  if (options.length === 0 || !deps.hedges.draw(request.caller.accountId)) return null
  for (const candidate of options) {
    const claim = claimRival(state, first.run, candidate)
    if (claim === 'none') continue
    let rival: AttemptRun | null = null
    try {
      const reserved = await affordableHedge(deps.meter, request, candidate, progress)
      const isDecided = (await Promise.race([first.turn, undefined])) !== undefined
      if (reserved !== null && !isDecided && !request.signal.aborted) {
        rival = startReserved(state, { candidate, claim, reservation: progress.reservation })
        if (rival !== null) Object.assign(hedge, { result: 'lost', isRacing: true, other: rival.response, ...reserved })
      }
    } finally {
      if (rival === null) claim?.settle(0)
    }
    if (rival !== null && candidate === state.keys.waited[0]) state.keys.waited.shift()
    return rival
  }
  return null
}

function startReserved(
  state: CallState,
  parts: { readonly candidate: Candidate; readonly claim: KeyClaim | null; readonly reservation: Reservation },
): AttemptRun | null {
  const { progress } = state
  const { response } = progress
  const rival = startAttempt(state, parts.candidate, parts.reservation, parts.claim)
  // The first attempt is billed unless it fails or loses.
  progress.response = response
  return rival
}

/**
 * Returns the candidates of a hedge in order: another host of the same model, another key of the same host, and the next
 * model if the request allows fallback. None is removed from the order of attempts.
 */
function runnersUp(state: CallState, run: AttemptRun, candidates: Iterator<Candidate, void>): readonly Candidate[] {
  const { keys, request, deps } = state
  const { candidate: serving } = run.response
  const policy = request.prepared.ask.fallback
  if (policy === 'none') return []
  const next = keys.waited.shift() ?? candidates.next().value ?? null
  if (next !== null) keys.waited.unshift(next)
  const isHost = next !== null && isSameModel(next, serving)
  const options = [
    ...(isHost ? [next] : []),
    ...(run.claim === null ? [] : [serving]),
    ...(next !== null && !isHost && policy === 'any' ? [next] : []),
  ]
  return options.filter(
    one => one.model.capabilities.streaming && worthTrying(state, one) && deps.health.mayTry(healthKey(one)),
  )
}

/** Claims a key for the hedge, never that of the first attempt; null = the provider has one credential. */
function claimRival(state: CallState, run: AttemptRun, candidate: Candidate): KeyClaim | null | 'none' {
  if (candidate.endpoint.keys === undefined) return null
  const used = run.claim?.key
  const except = used === undefined ? state.keys.tried : new Set([...state.keys.tried, used])
  return claimOtherKey(state.request, candidate, state.progress.reservation.outputCap, except) ?? 'none'
}
