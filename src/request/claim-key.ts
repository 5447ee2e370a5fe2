/**
 * Keys of one request. A failed key is replaced at once by another key of the same provider: the failed call neither
 * counts as an attempt nor draws on the retry budget, within a bound. Without capacity anywhere the request waits briefly once.
 */

import type { AttemptSkip } from '../core/chat/attempts.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import { abortError, type RequestAbortSignal } from '../core/chat/request-abort.ts'
import { fullName } from '../core/models/models.ts'
import type { Clock } from '../core/ports.ts'
import type { HealthOutcome } from '../models/circuit-breaker.ts'
import type { KeyClaim, PoolKey } from '../providers/keys/key-pool.ts'
import { likelyInputTokens } from '../text/tokens/tokens.ts'
import type { FailedAttempt } from './attempt-errors.ts'
import type { CallRequest } from './attempt-run.ts'
import type { Progress } from './progress.ts'
import type { Candidate } from './routing/candidate.ts'
import { healthKey } from './routing/health-key.ts'

/** State of the search for keys. */
export type KeySearch = {
  /** Keys that failed this request. */
  readonly tried: Set<PoolKey>
  /** Their failures, in order. */
  readonly failed: FailedAttempt[]
  /** The candidate that is called once more: with its next key, or with a changed request. */
  again: Candidate | null
  /** Candidates without capacity since the last wait, and after how many milliseconds it returns. */
  limited: { readonly candidate: Candidate; readonly waitMs: number }[]
  /** Candidates to try again after a wait, in order. */
  waited: Candidate[]
  /** The shortest wait that a pool reported; null = none did. */
  atLimitMs: number | null
  /** Milliseconds that the request waited for capacity. */
  waitedMs: number
}

type ClaimDeps = {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  readonly health: { report(key: string, report: { readonly outcome: HealthOutcome }): void }
}

/** Keys that one request may lose before its candidate counts as failed. */
export const maximumKeyFailures = 8
/** A wait that an upstream does not state. */
const usualWaitMs = 5_000
/** Longest wait of a request for capacity, in total. */
export const maximumCapacityWaitMs = 2_000

/** Creates the state of a request that has claimed no key. */
export function createKeySearch(): KeySearch {
  return { tried: new Set(), failed: [], again: null, limited: [], waited: [], atLimitMs: null, waitedMs: 0 }
}

/** Claims a key of the candidate's provider. Without one, returns the reason for skipping the candidate. */
export function claimKey(
  { deps, request, keys }: { readonly deps: ClaimDeps; readonly request: CallRequest; readonly keys: KeySearch },
  candidate: Candidate,
  // `preferred`: the account that has the prompt cached; null = none.
  { outputCap, preferred }: { readonly outputCap: number; readonly preferred: string | null },
): KeyClaim | AttemptSkip {
  const { model, endpoint } = candidate
  const { ask } = request.prepared
  const tokens = tokensOf(ask, model, outputCap)
  const claim = endpoint.keys?.claim({ model: fullName(model), tokens, except: keys.tried, preferred })
  if (claim === undefined) return 'skipped_provider_disabled'
  if (claim.key !== null) return claim
  const waitMs = claim.reason === 'at_limit' ? claim.waitMs : retryAfterOf(keys, candidate)
  if (waitMs !== null) {
    keys.limited.push({ candidate, waitMs })
    keys.atLimitMs = Math.min(waitMs, keys.atLimitMs ?? waitMs)
    return 'skipped_rate_limit'
  }
  // The provider rejects all keys: routing learns it as it does for a provider with one key.
  if (claim.reason === 'refused') deps.health.report(healthKey(candidate), { outcome: 'switched_off' })
  return 'skipped_provider_disabled'
}

/** Claims a key outside `except` for an attempt that nothing waits for; null = none has capacity. */
export function claimOtherKey(
  { prepared: { ask } }: Pick<CallRequest, 'prepared'>,
  { model, endpoint }: Candidate,
  outputCap: number,
  except: ReadonlySet<PoolKey>,
): KeyClaim | null {
  const claim = endpoint.keys?.claim({ model: fullName(model), tokens: tokensOf(ask, model, outputCap), except })
  return claim === undefined || claim.key === null ? null : claim
}

/** Returns the tokens of an attempt at most: input and output cap, as providers count them. */
function tokensOf(ask: ChatRequest, model: Candidate['model'], outputCap: number): number {
  // A request for embeddings has several calls, of which the largest must fit.
  const embedded = ask.embedding?.tokens.reduce((sum, tokens) => sum + tokens, 0)
  if (embedded !== undefined) return Math.min(embedded, model.embedding?.batch.tokens ?? embedded)
  return likelyInputTokens(ask, model.provider) + Math.min(outputCap, model.maxOutputTokens) * ask.choices
}

/** Returns the shortest wait that the upstream stated for keys of this provider; null = none answered 429. */
function retryAfterOf({ failed }: KeySearch, { endpoint }: Candidate): number | null {
  const waits = failed.flatMap(({ candidate, failure }) =>
    candidate.endpoint === endpoint && failure.kind !== 'credential_refused'
      ? [failure.retryAfterMs ?? usualWaitMs]
      : [],
  )
  return waits.length === 0 ? null : Math.min(...waits)
}

/** Returns the key failures that explain the end of a request. Rejected keys are omitted if a busy one could still serve. */
export function explainingFailures({ failed, atLimitMs }: KeySearch): readonly FailedAttempt[] {
  const busy = failed.filter(({ failure }) => failure.kind !== 'credential_refused')
  return busy.length > 0 || atLimitMs !== null ? busy : failed
}

/** Notes a failure that another key of the same provider may not have. */
export function noteKeyFailure(keys: KeySearch, { key }: KeyClaim, failed: FailedAttempt): void {
  keys.tried.add(key)
  keys.failed.push(failed)
  if (keys.failed.length < maximumKeyFailures) keys.again = failed.candidate
}

/**
 * Waits until capacity returns and returns the first candidate to try again; null = not within the bound. Others with the
 * same capacity may be faster, so all are tried again. Throws if the request ends.
 */
export async function waitForCapacity({
  deps: { clock },
  request: { signal },
  progress,
  keys,
  deadlineAt,
}: {
  readonly deps: ClaimDeps
  readonly request: Pick<CallRequest, 'signal'>
  readonly progress: Pick<Progress, 'upstreamMs'>
  readonly keys: KeySearch
  readonly deadlineAt: number
}): Promise<Candidate | null> {
  const limited = keys.limited.toSorted((one, other) => one.waitMs - other.waitMs)
  keys.limited = []
  const waitMs = limited[0]?.waitMs ?? Number.POSITIVE_INFINITY
  if (keys.waitedMs + waitMs > maximumCapacityWaitMs || clock.monotonic() + waitMs >= deadlineAt) return null
  keys.waitedMs += waitMs
  await sleepUnlessAborted(clock, waitMs, signal)
  progress.upstreamMs += waitMs
  // Pauses of failed keys may have ended. The pool checks them.
  keys.tried.clear()
  if (signal.aborted) throw abortError(signal)
  keys.waited = limited.map(({ candidate }) => candidate)
  return keys.waited.shift() ?? null
}

/** Resolves after `milliseconds`, or when the request is aborted. */
export function sleepUnlessAborted(
  clock: Pick<Clock, 'after'>,
  milliseconds: number,
  signal: RequestAbortSignal,
): Promise<void> {
  // A listener that is added later is not called.
  if (signal.aborted) return Promise.resolve()
  return new Promise(resolve => {
    const end = () => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(milliseconds, end)
    signal.addEventListener('abort', end)
  })
}
