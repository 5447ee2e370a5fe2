/** State of the attempt loop for one request, shared by the files of its steps. */

import type { AttemptOutcome } from '../core/chat/attempts.ts'
import type { AutomaticCacheMarks } from '../core/chat/cache-marks.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import { fullName } from '../core/models/models.ts'
import type { Meter } from '../limits/meter.ts'
import type { CacheAffinity } from '../models/cache-affinity.ts'
import type { HedgeBudget } from '../models/hedging.ts'
import type { FailedAttempt } from './attempt-errors.ts'
import type { AttemptRunDeps, CallRequest } from './attempt-run.ts'
import type { KeySearch } from './claim-key.ts'
import type { Progress } from './progress.ts'
import type { ReportDeps } from './report-attempt.ts'
import type { Candidate } from './routing/candidate.ts'
import type { Endpoints } from './routing/hosts.ts'
import type { CandidateOrderDeps } from './routing/order.ts'
import type { UpstreamResponse } from './upstream-response.ts'

export const maximumAttempts = 3

export type CallDeps = AttemptRunDeps &
  ReportDeps & {
    readonly meter: Pick<Meter, 'raise'>
    /** Cache marks for a request that has none; null = none. */
    readonly promptCacheKeyOf: (accountId: string, name: string) => string
    readonly cacheMarks: (accountId: string, ask: ChatRequest) => AutomaticCacheMarks | null
    readonly endpoints: Endpoints
    readonly ties: { of(accountId: string, ask: ChatRequest): CacheAffinity | null }
    readonly hedges: Pick<HedgeBudget, 'earn' | 'draw'>
    readonly health: CandidateOrderDeps['health'] & {
      mayTry(key: string): boolean
      /** Counts a request as active until its `end`. */
      beginRequest(): RetryTicket
      /** Returns true if the attempt is the probe of an open circuit: it then ends with `endProbe`. */
      beginAttempt(key: string): boolean
      endProbe(key: string): void
      /** Reserves a second or third attempt from the retry budget; null = the budget is used up. */
      beginRetry(key: string): RetryTicket | null
      /** Milliseconds after which a first content is late; `typicalMs` of the catalog. */
      lateAfterMs(key: string, typicalMs: number): number
      /** Notes an attempt that was canceled after this wait for its first content. Says nothing about health. */
      waited(key: string, waitedMs: number): void
    }
  }

export type RetryTicket = { end(): void }

/** State of the loop for one request. */
export type CallState = {
  readonly deps: CallDeps
  readonly request: CallRequest
  readonly progress: Progress
  /** Monotonic deadline of the whole request in milliseconds. */
  readonly deadlineAt: number
  /** Attempts that count, in order; failures of a single key are in `keys`. */
  readonly failed: FailedAttempt[]
  readonly keys: KeySearch
  /** A response without content: returned if no candidate has a better one. */
  empty: UpstreamResponse | null
  /** An attempt without the required tool call was repeated, which happens once. */
  isRepeated: boolean
  /** The request without reasoning of earlier turns, after a provider has rejected it; null = it was not rejected. */
  bare: ChatRequest | null
}

/** Returns the attempts so far; calls that failed because of a key are none. */
export function attemptsOf({ failed, empty, progress: { hedge } }: CallState): number {
  const isCanceled = hedge !== null && !hedge.isRacing && hedge.other !== null
  return failed.length + (empty === null ? 0 : 1) + (isCanceled ? 1 : 0)
}

/** Records that a candidate was skipped in its turn. */
export function skip({ deps, progress }: CallState, { model }: Candidate, outcome: AttemptOutcome): null {
  const last = progress.attempts.at(-1)
  // A candidate that waits for capacity is skipped repeatedly.
  if (outcome !== 'skipped_rate_limit' || last?.outcome !== outcome || last.model !== fullName(model))
    progress.attempts.push({ model: fullName(model), outcome, startedAt: deps.clock.monotonic(), durationMs: 0 })
  return null
}
