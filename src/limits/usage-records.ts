/** The usage record of a request: what it is billed with, its way to the journal, and checkpoints before its end. */
import { whenNeeded } from '../core/jobs/repeating.ts'
import { dayMs } from '../core/text/utc-days.ts'
import type { DailyUsage, UsageRecord } from '../core/usage/usage-record.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { checkpointAfterMs, durableMs } from './constants.ts'
import type { InterimUsage, OpenReservation, Reservation } from './meter.ts'

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

/** Settled requests that a meter remembers at least, so that a repeated call returns the same result. */
export const maximumSettled = 20_000

/** The part of the usage journal that meters write to. */
export type RecordJournal = {
  /** Rejects if the disk write fails; the record then stays in memory. */
  appendTogether(record: UsageRecord): Promise<void>
  isWritable(): boolean
  untilDurable(requestId: string, deadlineMs: number): Promise<void>
}

/** Writes a record and resolves when it is on disk or in Postgres. Throws `service_unavailable` after `durableMs`. */
export async function writeDurably(journal: RecordJournal, record: UsageRecord): Promise<void> {
  await journal.appendTogether(record).catch(() => untilDurable(journal, record.request_id))
}

/** Resolves when the record of a request is durable. Throws like `writeDurably`. */
export async function untilDurable(journal: RecordJournal, requestId: string): Promise<void> {
  await journal.untilDurable(requestId, durableMs).catch(() => {
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

/** Durable storage of checkpoints. */
export type CheckpointStore = {
  /** Writes the latest checkpoint of each open request, and the IDs of ended ones. Never throws. */
  write(progress: ReadonlyMap<string, UsageRecord>, ended: readonly string[]): void
}

/** The request of a checkpoint. Without `progress` it has ended, or never reported usage. */
export type Checkpointed = Pick<OpenReservation, 'reservation' | 'progress'>

/** Checkpoints of open requests, written together some time after the first one. Most requests end before that. */
export class CheckpointBatch {
  private readonly changed = new Map<string, Checkpointed>()
  private readonly ended: string[] = []
  private readonly writing = whenNeeded(checkpointAfterMs, () => this.flush())

  constructor(private readonly store: CheckpointStore | undefined) {}

  /** Notes that a request has new usage, which `progress` returns. */
  note(request: Checkpointed, progress: () => InterimUsage): void {
    request.progress = progress
    this.changed.set(request.reservation.requestId, request)
    this.writing.need()
  }

  /** Notes that a request has ended. */
  end(request: Checkpointed): void {
    const { requestId } = request.reservation
    if (request.progress !== null) {
      this.ended.push(requestId)
      this.writing.need()
    }
    // A map keeps deleted values for some time (`core/chat/request-abort.ts`). This releases the request.
    request.progress = null
    this.changed.delete(requestId)
  }

  /** Writes all that was noted since the last call. */
  flush(): void {
    const records = new Map<string, UsageRecord>()
    for (const [requestId, { reservation, progress }] of this.changed) {
      if (progress === null) continue
      const used = progress()
      records.set(requestId, getRecord(used.record, reservation, spentBy(used, reservation)))
    }
    this.store?.write(records, this.ended)
    this.changed.clear()
    this.ended.length = 0
  }

  /** Writes the last ones. */
  close(): void {
    void this.writing.close()
    this.flush()
  }
}
