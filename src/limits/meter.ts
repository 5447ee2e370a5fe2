/**
 * The port behind which limits are kept: in process (`meter-local.ts`), in Redis (`meter-redis.ts`), in Redis while it
 * answers (`meter-failover.ts`). All four limits are taken or none, in one step, before any work is spent. A seat taken is
 * settled exactly once, by request id, however the request ended, and its usage record leaves in the same step, durable
 * before `settle` resolves.
 */
import type { Limits, QuotaStatus } from '../core/limits/plans.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'

export type { QuotaStatus } from '../core/limits/plans.ts'

export type AdmissionRequest = {
  readonly requestId: string
  readonly accountId: string
  readonly limits: Limits
  /** Estimated, on the high side. */
  readonly inputTokens: number
  /** Wanted output cap for one answer. */
  readonly outputTokens: number
  /** Answers asked for (`n`): output is reserved n-fold. */
  readonly choices: number
  /**
   * True where the caller gave no cap: the cap is then at most a fair share of what the account has left (what remains
   * divided by its free seats). False: clamped to what remains.
   */
  readonly fairShare: boolean
  /** Integers of 1e-8 USD per million tokens. */
  readonly inputPrice: number
  readonly outputPrice: number
  /** Integer of 1e-8 USD on top of tokens (web search, page fetches). */
  readonly extraMicrocents: number
}

export type Reservation = {
  readonly requestId: string
  readonly accountId: string
  /** Granted cap for each answer: at most what was wanted, at least 1. */
  readonly outputCap: number
  readonly reservedTokens: number
  readonly reservedMicrocents: number
  /** Days since the epoch (UTC) of the reservation; it settles there. */
  readonly day: number
}

export type LimitErrorCode =
  | 'requests_per_minute_exceeded'
  | 'concurrent_requests_exceeded'
  | 'daily_tokens_exceeded'
  | 'daily_cost_exceeded'

export type Admission =
  | { readonly admitted: true; readonly seat: Reservation; readonly standing: QuotaStatus }
  | {
      readonly admitted: false
      readonly code: LimitErrorCode
      readonly retryAfterMs: number
      readonly standing: QuotaStatus
    }

export type Settlement = {
  readonly seat: Reservation
  /** Input and output tokens that were used. All of them count against the day, also those above the reservation. */
  readonly tokens: number
  /** At most `seat.reservedMicrocents`; the meter clamps and the record with it. */
  readonly microcents: number
  readonly record: UsageRecord
}

/** What an open request has used so far, as it would be settled if it ended now. */
export type InterimUsage = Pick<Settlement, 'tokens' | 'microcents' | 'record'>

/** A seat that is taken, and what is needed to carry it from one meter to another. */
export type OpenReservation = {
  readonly seat: Reservation
  readonly limits: Limits
  readonly admittedAt: number
  /** Says what its request has used by then; null = nothing was ever noted. */
  readonly progress: (() => InterimUsage) | null
}

export type Meter = {
  /** A repeated request id is answered as before. A refusal writes nothing. */
  admit(request: AdmissionRequest): Promise<Admission>
  /** Enlarges a reservation for a dearer fallback, all or nothing; null = the account cannot pay it. */
  raise(seat: Reservation, reservedTokens: number, reservedMicrocents: number): Promise<Reservation | null>
  /** Once per request id; a second settling changes nothing. Resolves when the record is durable. */
  settle(settlement: Settlement): Promise<QuotaStatus>
  /**
   * Notes that a request has something new to say of what it has used so far, to be called at its beginning, and then each
   * second or 256 tokens; it is asked and kept in batches, a quarter of a second later at most. Should the process die, the
   * request is settled to its last checkpoint once its lease is over. Never throws.
   */
  checkpoint(seat: Reservation, progress: () => InterimUsage): void
  /** Last known standing, from memory; null = never seen. */
  standing(accountId: string, limits: Limits): QuotaStatus | null
  close(): Promise<void>
}
