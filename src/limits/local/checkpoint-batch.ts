/**
 * What open requests have used, as they say themselves, between their saying so and its being on disk: a batch four times a
 * second. Of most requests nothing is ever noted, since they end before they have anything to say.
 */
import type { UsageRecord } from '../../core/usage/usage-record.ts'
import { settledRecord } from '../failover/settled-record.ts'
import type { InterimUsage, Reservation } from '../meter.ts'

/** Where checkpoints are durable. */
export type NotesStore = {
  /** Writes the latest of each open request, and the ids of those that have ended. Never throws. */
  write(progress: ReadonlyMap<string, UsageRecord>, over: readonly string[]): void
}

/** A request, and what it says it has used; null = it is over, or has never said. */
export type PendingCheckpoint = { seat: Reservation; progress: (() => InterimUsage) | null }

export type CheckpointBatch = {
  /** A request of this meter's has something new to say. */
  note(noted: PendingCheckpoint, progress: () => InterimUsage): void
  /** It is over. */
  end(noted: PendingCheckpoint): void
  /** Brings to disk what a request of another meter's has used, until `forget`. */
  keep(seat: Reservation, progress: () => InterimUsage): void
  /** That request is over, or its checkpoint is kept elsewhere. */
  forget(requestId: string): void
  /** Brings to disk what was noted since the last call. */
  flush(): void
  /** Ends the timer, and brings the last to disk. */
  close(): void
}

const flushEveryMs = 250

/** Notes for these checkpoints; without any nothing is brought anywhere. The timer does not keep the process alive. */
export function createProgressNotes(checkpoints: NotesStore | undefined): CheckpointBatch {
  /** Noted, and not on disk yet. */
  const noted = new Map<string, PendingCheckpoint>()
  /** Of another meter's requests, those on disk. */
  const keeping = new Set<string>()
  const over: string[] = []

  const flush = () => {
    const records = new Map<string, UsageRecord>()
    for (const [requestId, { seat, progress }] of noted)
      if (progress !== null) records.set(requestId, settledRecord(seat, progress()))
    checkpoints?.write(records, over)
    noted.clear()
    over.length = 0
  }
  const timer = checkpoints === undefined ? null : setInterval(flush, flushEveryMs)
  timer?.unref()

  return {
    flush,
    note(one, progress) {
      one.progress = progress
      noted.set(one.seat.requestId, one)
    },
    end(one) {
      const { requestId } = one.seat
      if (one.progress !== null) over.push(requestId)
      // A map keeps for a while what is deleted from it (`core/roster.ts`): let that not be the whole request.
      one.progress = null
      noted.delete(requestId)
    },
    keep(seat, progress) {
      keeping.add(seat.requestId)
      noted.set(seat.requestId, { seat, progress })
    },
    forget(requestId) {
      if (!keeping.delete(requestId)) return
      const one = noted.get(requestId)
      if (one !== undefined) one.progress = null
      noted.delete(requestId)
      over.push(requestId)
    },
    close() {
      if (timer !== null) clearInterval(timer)
      flush()
    },
  }
}
