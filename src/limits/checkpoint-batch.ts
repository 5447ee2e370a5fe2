/**
 * Batches checkpoints of open requests and writes them to disk 250 ms after the first one. Most requests end before their
 * first checkpoint.
 */
import { whenNeeded } from '../core/jobs/repeating.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import type { InterimUsage, Reservation } from './meter.ts'
import { settledRecord } from './settled-record.ts'

/** Durable storage of checkpoints. */
export type NotesStore = {
  /** Writes the latest checkpoint of each open request, and the IDs of ended ones. Never throws. */
  write(progress: ReadonlyMap<string, UsageRecord>, over: readonly string[]): void
}

/** A request and its reported usage; null = it has ended, or never reported. */
export type PendingCheckpoint = { reservation: Reservation; progress: (() => InterimUsage) | null }

export type CheckpointBatch = {
  /** Marks a request of this meter as having new usage to report. */
  note(noted: PendingCheckpoint, progress: () => InterimUsage): void
  /** Marks a request as ended. */
  end(noted: PendingCheckpoint): void
  /** Writes everything that was marked since the last call. */
  flush(): void
  /** Stops the timer and writes the last batch. */
  close(): void
}

const flushAfterMs = 250

/** Creates a batch for these checkpoints; without a store nothing is written. */
export function createProgressLog(checkpoints: NotesStore | undefined): CheckpointBatch {
  /** Marked, and not on disk yet. */
  const noted = new Map<string, PendingCheckpoint>()
  const over: string[] = []

  const flush = () => {
    const records = new Map<string, UsageRecord>()
    for (const [requestId, { reservation, progress }] of noted)
      if (progress !== null) records.set(requestId, settledRecord(reservation, progress()))
    checkpoints?.write(records, over)
    noted.clear()
    over.length = 0
  }
  const flushing = whenNeeded(flushAfterMs, flush)

  return {
    flush,
    note(pendingCheckpoint, progress) {
      pendingCheckpoint.progress = progress
      noted.set(pendingCheckpoint.reservation.requestId, pendingCheckpoint)
      flushing.need()
    },
    end(pendingCheckpoint) {
      const { requestId } = pendingCheckpoint.reservation
      if (pendingCheckpoint.progress !== null) {
        over.push(requestId)
        flushing.need()
      }
      // A map keeps deleted values for a while (`core/chat/request-abort.ts`). This releases the request that the value
      // references.
      pendingCheckpoint.progress = null
      noted.delete(requestId)
    },
    close() {
      void flushing.close()
      flush()
    },
  }
}
