import { dayMs } from '../core/text/utc-days.ts'
import type { DailyUsage, UsageRecord } from '../core/usage/usage-record.ts'
import { GatewayError } from '../core/validation/errors.ts'
import type { InterimUsage, Reservation } from './meter.ts'

/** Returns the record that the ledger will store for a request with this usage. */
export function settledRecord(reservation: Reservation, used: InterimUsage): UsageRecord {
  return getRecord(used.record, reservation, spentBy(used, reservation))
}

/**
 * Returns the usage that counts against the day: all used tokens, also beyond the reservation, since a text with a too
 * small reservation would otherwise be free. Money is at most the reserved amount unless it is owed in full; the operator bears
 * the rest.
 */
export function spentBy(used: DailyUsage & Pick<InterimUsage, 'isOwedInFull'>, reservation: Reservation): DailyUsage {
  const most = used.isOwedInFull ? Number.POSITIVE_INFINITY : reservation.reservedMicrocents
  return { tokens: Math.max(0, used.tokens), microcents: Math.max(0, Math.min(used.microcents, most)) }
}

/** Returns the record dated to the reservation's day, billed with the amount that the meter counted. */
export function getRecord(record: UsageRecord, reservation: Reservation, spent: DailyUsage): UsageRecord {
  const at_ms = Math.min(Math.max(record.at_ms, reservation.day * dayMs), (reservation.day + 1) * dayMs - 1)
  const { microcents: billed_microcents } = spent
  const { reservedMicrocents: reserved_microcents } = reservation
  const isSo =
    record.at_ms === at_ms &&
    record.billed_microcents === billed_microcents &&
    record.reserved_microcents === reserved_microcents
  return isSo ? record : { ...record, at_ms, billed_microcents, reserved_microcents }
}

/** The part of the usage journal that meters write to. */
export type RecordJournal = {
  /** Rejects if the disk write fails; the record then stays in memory. */
  appendTogether(record: UsageRecord): Promise<void>
  isWritable(): boolean
  untilDurable(requestId: string, deadlineMs: number): Promise<void>
}

const durableDeadlineMs = 2_000

/**
 * Writes a record and resolves when it is on disk or in Postgres. Throws `service_unavailable` if that takes longer
 * than 2 s.
 */
export async function writeDurably(journal: RecordJournal, record: UsageRecord): Promise<void> {
  await journal.appendTogether(record).catch(() => untilDurable(journal, record.request_id))
}

/** Resolves when the record of a request is durable. Throws like `writeDurably`. */
export async function untilDurable(journal: RecordJournal, requestId: string): Promise<void> {
  await journal.untilDurable(requestId, durableDeadlineMs).catch(() => {
    throw journalGone()
  })
}

/** Returns the error for a request whose usage could not be recorded. */
export function journalGone(): GatewayError {
  return new GatewayError('service_unavailable', 'Usage cannot be recorded. Retry.', {
    retryAfterMs: 1000,
    detail: 'the usage journal cannot be written',
  })
}
