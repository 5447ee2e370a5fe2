import type { DailyUsage } from '../../core/limits/spent.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import type { UsageRecord } from '../../core/usage/usage-record.ts'
import type { InterimUsage, Reservation } from '../meter.ts'

/** The record as the ledger will hold it, of a request that has used so much. */
export function settledRecord(seat: Reservation, used: InterimUsage): UsageRecord {
  return recordOf(used.record, seat, spentBy(used, seat))
}

/**
 * What counts against the day: all tokens that were used, also those above the reservation, or a text that was reserved too
 * low would cost nothing. Money is never more than was reserved: what is above it the operator bears.
 */
export function spentBy(used: DailyUsage, seat: Reservation): DailyUsage {
  return {
    tokens: Math.max(0, used.tokens),
    microcents: Math.max(0, Math.min(used.microcents, seat.reservedMicrocents)),
  }
}

/** The record on the reservation's day, and billed what the meter counted. */
export function recordOf(record: UsageRecord, seat: Reservation, spent: DailyUsage): UsageRecord {
  const at_ms = Math.min(Math.max(record.at_ms, seat.day * dayMs), (seat.day + 1) * dayMs - 1)
  const { microcents: billed_microcents } = spent
  const { reservedMicrocents: reserved_microcents } = seat
  const isSo =
    record.at_ms === at_ms &&
    record.billed_microcents === billed_microcents &&
    record.reserved_microcents === reserved_microcents
  return isSo ? record : { ...record, at_ms, billed_microcents, reserved_microcents }
}
