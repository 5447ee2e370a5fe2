/**
 * Open requests of a meter and their usage records: what a request is billed with, its way to the journal, and checkpoints
 * before its end. A request settles once by its ID, whichever store counts it.
 */
import { whenNeeded } from '../core/jobs/repeating.ts'
import { createRecentMap, setBounded } from '../core/text/recent-map.ts'
import { dayMs } from '../core/text/utc-days.ts'
import { type DailyUsage, getSpent, type UsageRecord } from '../core/usage/usage-record.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { abandonedMs, checkpointAfterMs, durableMs } from './constants.ts'
import type { AccountCounters } from './counters.ts'
import type { InterimUsage, OpenReservation, Reservation, Settlement } from './meter.ts'

/**
 * Returns the usage that counts against the day: all used tokens, also beyond the reservation, since a text with a too
 * small reservation would otherwise be free. Money is at most the reserved amount unless it is owed in full; the operator bears
 * the rest.
 */
export function spentBy({ record, isOwedInFull }: InterimUsage, { reservedMicrocents }: Reservation): DailyUsage {
  const { tokens, microcents } = getSpent(record)
  return { tokens, microcents: isOwedInFull ? microcents : Math.min(microcents, reservedMicrocents) }
}

/**
 * Returns the record dated to the reservation's day, billed with the amount that the meter counted. If Redis has not admitted
 * its request, it says so: a successor of this process counts it there.
 */
function getRecord(
  record: UsageRecord,
  { reservation, isFromAllowance }: OpenReservation,
  { microcents: billed_microcents }: DailyUsage,
): UsageRecord {
  const { day, reservedMicrocents: reserved_microcents } = reservation
  const at_ms = Math.min(Math.max(record.at_ms, day * dayMs), (day + 1) * dayMs - 1)
  const isSo =
    record.at_ms === at_ms &&
    record.billed_microcents === billed_microcents &&
    record.reserved_microcents === reserved_microcents &&
    isFromAllowance !== true
  if (isSo) return record
  return { ...record, at_ms, billed_microcents, reserved_microcents, ...(isFromAllowance && { from_allowance: true }) }
}

/** Settled requests that a meter remembers at least, so that a repeated call returns the same result; and lapsed ones at most. */
const maximumSettled = 20_000

/** The part of the usage journal that meters write to. */
export type RecordJournal = {
  /** Rejects if the disk write fails; the record then stays in memory. */
  appendTogether(record: UsageRecord): Promise<void>
  isWritable(): boolean
  untilDurable(requestId: string, deadlineMs: number): Promise<void>
}

/** Returns the error for a request whose usage could not be recorded. */
function journalGone(): GatewayError {
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

/** The accounts of a meter, with their open requests. */
export class OpenRequests<Account extends Pick<AccountCounters, 'reservations'>> {
  readonly accounts = new Map<string, Account>()
  private readonly settled = createRecentMap<Reservation>(maximumSettled)
  private readonly lapsed = new Map<string, OpenReservation>()
  private readonly changed = new Map<string, OpenReservation>()
  private readonly ended: string[] = []
  private readonly writing = whenNeeded(checkpointAfterMs, () => this.flush())

  constructor(
    private readonly journal: RecordJournal,
    private readonly checkpoints: CheckpointStore | undefined,
  ) {}

  /** Throws `service_unavailable` if the usage of a new request could not be recorded. */
  mustBeWritable(): void {
    if (!this.journal.isWritable()) throw journalGone()
  }

  getOpen({ accountId, requestId }: Pick<Reservation, 'accountId' | 'requestId'>): OpenReservation | undefined {
    return this.accounts.get(accountId)?.reservations.get(requestId) ?? this.lapsed.get(requestId)
  }

  /** Returns the reservation of a request that was admitted before. */
  find(request: Pick<Reservation, 'accountId' | 'requestId'>): Reservation | undefined {
    return this.getOpen(request)?.reservation ?? this.settled.get(request.requestId)
  }

  /**
   * Ends a request, which `count` counts. Resolves when the record is durable and it is counted. A request that has ended changes
   * nothing.
   */
  async settle(
    settlement: Settlement,
    count: (open: OpenReservation, spent: DailyUsage) => Promise<void> | void,
  ): Promise<void> {
    const { accountId, requestId } = settlement.reservation
    const open = this.getOpen(settlement.reservation)
    if (open === undefined) return this.untilDurable(requestId)
    // Removed first, so that any later failure leaves it released and settled once. It is open or in the journal: nothing is
    // awaited between.
    this.accounts.get(accountId)?.reservations.delete(requestId)
    this.lapsed.delete(requestId)
    const { reservation } = open
    this.settled.set(requestId, reservation)
    const spent = spentBy(settlement, reservation)
    const counted = count(open, spent)
    const written = this.write(getRecord(settlement.record, open, spent))
    await (counted === undefined ? written : Promise.all([written, counted]))
    this.endCheckpoints(open)
  }

  /** Writes a record and resolves when it is on disk or in Postgres. Throws `service_unavailable` after `durableMs`. */
  write(record: UsageRecord): Promise<void> {
    return this.journal.appendTogether(record).catch(() => this.untilDurable(record.request_id))
  }

  private untilDurable(requestId: string): Promise<void> {
    return this.journal.untilDurable(requestId, durableMs).catch(() => {
      throw journalGone()
    })
  }

  /**
   * Releases requests that were never settled (a defect elsewhere). Returns true if there was one. If it is settled later,
   * its usage still counts; until then its account can become idle.
   */
  releaseAbandoned({ reservations }: Account, now: number, release: (open: OpenReservation) => void): boolean {
    let isReleased = false
    for (const [requestId, open] of reservations) {
      if (open.admittedAt > now - abandonedMs) break
      release(open)
      open.isLapsed = true
      reservations.delete(requestId)
      setBounded(this.lapsed, requestId, open, maximumSettled)
      isReleased = true
    }
    return isReleased
  }

  /** Notes that a request has new usage. Checkpoints are written together some time later: most requests end before that. */
  checkpoint(reservation: Reservation, progress: () => InterimUsage): void {
    const open = this.getOpen(reservation)
    if (open === undefined) return
    open.progress = progress
    this.changed.set(reservation.requestId, open)
    this.writing.need()
  }

  private endCheckpoints(open: OpenReservation): void {
    const { requestId } = open.reservation
    if (open.isDue === true) {
      this.ended.push(requestId)
      this.writing.need()
    }
    // A map keeps deleted values for some time (`core/chat/request-abort.ts`). This releases the request.
    open.progress = null
    this.changed.delete(requestId)
  }

  /** Writes the checkpoints that are due: those of a request from the second call on. */
  private flush(): void {
    const records = new Map<string, UsageRecord>()
    for (const [requestId, open] of this.changed) {
      const used = open.isDue === true ? open.progress?.() : undefined
      open.isDue = true
      if (used === undefined) continue
      this.changed.delete(requestId)
      records.set(requestId, getRecord(used.record, open, spentBy(used, open.reservation)))
    }
    this.checkpoints?.write(records, this.ended)
    this.ended.length = 0
    if (this.changed.size > 0) this.writing.need()
  }

  /** Writes the last checkpoints: the first call makes all due, the second writes those that were not. */
  close(): void {
    void this.writing.close()
    this.flush()
    this.flush()
  }
}
