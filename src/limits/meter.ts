/**
 * The port of the meter, which counts limits: in process (`memory.ts`), or in Redis (`shared.ts`). Applies all limits of
 * the account and of the request's scopes, or none, in one step before any cost arises. A reservation is settled exactly
 * once by request ID. Its usage record is durable before `settle` resolves.
 */
import type { Limits, QuotaStatus } from '../core/limits/plans.ts'
import type { Scope } from '../core/limits/scopes.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'

export type { QuotaStatus } from '../core/limits/plans.ts'

export type AdmissionRequest = {
  readonly requestId: string
  readonly accountId: string
  readonly limits: Limits
  /** Its limited key and tags, at most `maximumScopes`. */
  readonly scopes: readonly Scope[]
  /** Upper estimate. */
  readonly inputTokens: number
  /** Requested output cap per choice. */
  readonly outputTokens: number
  /** Number of choices (`n`): output is reserved for each. */
  readonly choices: number
  /**
   * True if the client set no cap: the cap is then at most a fair share of what the account has remaining (divided by
   * its free concurrent requests). False: limited to what remains.
   */
  readonly fairShare: boolean
  /** Integers of 1e-8 USD per million tokens. */
  readonly inputPrice: number
  readonly outputPrice: number
  /** Integer of 1e-8 USD in addition to tokens (web search, page fetches). */
  readonly extraMicrocents: number
  /** Digest of a conversation whose note is asked for; null = none. */
  readonly conversation: string | null
}

/**
 * What gateway instances share of a conversation, without content. The store keeps one note for each beginning of a digest, so
 * that an account has a bounded number of them; a text begins with its digest.
 */
export type ConversationNote = { readonly name: string; readonly getText: () => string }

export type Reservation = {
  readonly requestId: string
  readonly accountId: string
  /** Granted cap per choice: at most the requested one, at least 1. */
  readonly outputCap: number
  readonly reservedTokens: number
  readonly reservedMicrocents: number
  /** UTC day of the reservation (since the epoch). It settles on this day. */
  readonly day: number
}

export type LimitErrorCode =
  | 'requests_per_minute_exceeded'
  | 'concurrent_requests_exceeded'
  | 'daily_tokens_exceeded'
  | 'daily_cost_exceeded'
  | 'monthly_cost_exceeded'

export type Admission =
  | {
      readonly admitted: true
      readonly reservation: Reservation
      /** The text of a note, perhaps of another conversation; absent = none. */
      readonly note?: string
    }
  | {
      readonly admitted: false
      readonly code: LimitErrorCode
      readonly retryAfterMs: number
      /** Name of the scope whose limit was reached; null = the account. */
      readonly scope: string | null
    }

/** Why a request is rejected. */
export type LimitReached = Pick<Admission & { readonly admitted: false }, 'code' | 'scope' | 'retryAfterMs'>

export type Settlement = {
  readonly reservation: Reservation
  /** True for accounts that pay for all usage, also beyond the reservation; absent = at most the reserved amount. */
  readonly isOwedInFull?: true
  /** What counts. The meter limits what it bills to the reservation, unless it is owed in full. */
  readonly record: UsageRecord
  /** The conversation after the request; null = there is nothing to note. */
  readonly note?: ConversationNote | null
}

/** Usage of an open request so far, as it would be settled if it ended now. */
export type InterimUsage = Pick<Settlement, 'isOwedInFull' | 'record'>

/** An open reservation, and what it is decided and settled by. */
export type OpenReservation = {
  reservation: Reservation
  readonly limits: Limits
  readonly scopes: readonly Scope[]
  readonly admittedAt: number
  /** Returns the current usage of its request; null = never reported. */
  progress: (() => InterimUsage) | null
  /** It was open at a write of checkpoints, so that the next one has its checkpoint; absent = it was not. */
  isDue?: true
  /** True if it was released because its request never ended. */
  isLapsed: boolean
  /** Admitted from allowances; absent = by the store that decides. */
  isFromAllowance?: true
  /** The last report to Redis that had it; absent = none. */
  reportedIn?: number
}

export type Meter = {
  /** Returns the same result for a repeated request ID. A rejection writes nothing. */
  admit(request: AdmissionRequest): Promise<Admission>
  /** Returns what `admit` would reject a request for now; null = it would be admitted. Reserves nothing. Rejects like `admit`. */
  check(request: AdmissionRequest): Promise<LimitReached | null>
  /** Increases a reservation for a more expensive fallback, all or nothing; null = the account cannot pay for it. */
  raise(reservation: Reservation, reservedTokens: number, reservedMicrocents: number): Promise<Reservation | null>
  /** Settles once per request ID; repeating it changes nothing. Resolves when the record is durable. */
  settle(settlement: Settlement): Promise<void>
  /**
   * Counts usage that no reservation of this meter covers, without a request or a place among the concurrent ones. Resolves when
   * the record is durable. Called once per request ID.
   */
  charge(record: UsageRecord): Promise<void>
  /**
   * Reports that a request has new usage. Called at its start, then every second or 256 tokens. `progress` is called in
   * batches every 250 ms, from the second batch after its start: a shorter request has no checkpoint. If the process dies,
   * the request is settled to its last checkpoint when its lease expires. Never throws.
   */
  checkpoint(reservation: Reservation, progress: () => InterimUsage): void
  /**
   * Reads an account's counters from the store that decides, and returns its quota status. Reserves nothing. Reservations whose
   * lease ran out count until the next admission releases them. Rejects like `admit` while Redis is away.
   */
  loadStatus(accountId: string, limits: Limits): Promise<QuotaStatus>
  /** Returns the last known quota status from memory; null = none. */
  quotaStatus(accountId: string, limits: Limits): QuotaStatus | null
  close(): Promise<void>
}
