/** Messages between workers and the process that owns their limits: one JSON text per line. */

import type { LimitRule } from '../../core/limits/rate-limits.ts'
import type { DailyUsage, UsageRecord } from '../../core/usage/usage-record.ts'
import type { Admission, AdmissionRequest, LimitReached, Reservation, Settlement } from '../meter.ts'
import type { CachedStatus } from '../quota-status-cache.ts'

/** Usage of an account without its limits; null = unknown to the owner. */
export type Counters = Omit<CachedStatus, 'at' | 'day'> | null

export type WithCounters<T> = { readonly value: T; readonly counters: Counters }

/** Calls that a worker waits for, with input and result. */
export type OwnerCalls = {
  admit: { readonly input: AdmissionRequest; readonly result: WithCounters<Admission> }
  check: { readonly input: AdmissionRequest; readonly result: WithCounters<LimitReached | null> }
  raise: {
    readonly input: { readonly reservation: Reservation; readonly tokens: number; readonly microcents: number }
    readonly result: WithCounters<Reservation | null>
  }
  loadStatus: { readonly input: { readonly accountId: string }; readonly result: WithCounters<null> }
  settle: { readonly input: Settlement; readonly result: WithCounters<null> }
  /** Counts one request for a name of a rate limiter. */
  take: {
    readonly input: { readonly title: string; readonly rule: LimitRule; readonly name: string }
    readonly result: number
  }
  spent: { readonly input: { readonly accountId: string; readonly day: number }; readonly result: DailyUsage }
}

/** One call of a worker. */
export type Call = {
  readonly [K in keyof OwnerCalls]: { readonly type: K; readonly id: number; readonly input: OwnerCalls[K]['input'] }
}[keyof OwnerCalls]

/** Messages of a worker without a reply. */
type Note =
  /** The first message on a connection. */
  | { readonly type: 'joined'; readonly worker: number }
  /** The worker no longer waits for this admission. */
  | { readonly type: 'cancelled'; readonly requestId: string }
  /** Usage of open requests so far. */
  | { readonly type: 'progress'; readonly records: readonly UsageRecord[] }
  /** Keys or accounts have changed. */
  | { readonly type: 'changed' }

export type WorkerMessage = Call | Note

/** An error of the owner, always a `service_unavailable`. */
export type SentError = {
  readonly message: string
  readonly retryAfterMs: number | null
  readonly detail: string | null
}

export type OwnerMessage =
  | { readonly type: 'result'; readonly id: number; readonly result: unknown }
  | { readonly type: 'failed'; readonly id: number; readonly error: SentError }
  /** Sent by another worker. */
  | { readonly type: 'changed' }
  /** Number of unshipped and of rejected records, and age of the oldest unshipped one. */
  | { readonly type: 'backlog'; readonly records: number; readonly aside: number; readonly lagMs: number }
