import type { UsageRecord } from '../core/usage/usage-record.ts'
import { GatewayError } from '../core/validation/errors.ts'

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
