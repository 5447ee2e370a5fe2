import type { UsageRecord } from '../../core/usage/usage-record.ts'
import { GatewayError } from '../../core/validation/errors.ts'

/** The usage journal, as meters write to it. */
export type RecordJournal = {
  /** Rejects if the disk does not take the record, which then waits in memory. */
  appendTogether(record: UsageRecord): Promise<void>
  isWritable(): boolean
  untilDurable(requestId: string, deadlineMs: number): Promise<void>
}

const durableDeadlineMs = 2_000

/** Writes a record, and resolves when the disk or Postgres has it. Throws `service_unavailable` if neither takes it within 2 s. */
export async function writeDurably(journal: RecordJournal, record: UsageRecord): Promise<void> {
  await journal.appendTogether(record).catch(() => untilDurable(journal, record.request_id))
}

/** Resolves when the record of a request is durable. Throws as `writeDurably`. */
export async function untilDurable(journal: RecordJournal, requestId: string): Promise<void> {
  await journal.untilDurable(requestId, durableDeadlineMs).catch(() => {
    throw journalGone()
  })
}

/** Returns the error of a request whose usage could not be recorded. */
export function journalGone(): GatewayError {
  return new GatewayError('service_unavailable', 'The gateway cannot record usage right now. Send the request again.', {
    retryAfterMs: 1000,
    detail: 'the usage journal cannot be written',
  })
}
