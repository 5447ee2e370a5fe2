import type { AttemptRecord, UsageRecord } from '../core/usage/usage-record.ts'

/** A request as shown to its account. */
export type LoggedRequest = Required<
  Omit<
    UsageRecord,
    | 'account_id'
    | 'at_ms'
    | 'dialect'
    | 'requested_model'
    | 'upstream_id'
    | 'reserved_microcents'
    | 'shortfall_microcents'
    | 'tried'
    | 'trace'
    | 'truth'
  >
> & {
  /** Null = an older record. */
  readonly dialect: UsageRecord['dialect'] | null
  /** `provider/model` or `gateway-ai`; null = an older record. */
  readonly requested_model: string | null
  /** Null = the provider gave none, or an older record. */
  readonly upstream_id: string | null
  /** Null = an older record. */
  readonly tried: readonly AttemptRecord[] | null
  /** Epoch microseconds, the resolution of Postgres, which a cursor needs. */
  readonly at_micros: number
  readonly key_name: string | null
}
