/**
 * Requests that this instance has admitted: open ones with their leases, settled ones, and the admissions of the last
 * minute. From these, another store can count this instance's usage after an outage.
 */
import type { Limits } from '../../core/limits/plans.ts'
import { getScopeNames, type Scope } from '../../core/limits/scopes.ts'
import { formatDay } from '../../core/text/utc-days.ts'
import { getSpent, nothing, type UsageRecord } from '../../core/usage/usage-record.ts'
import type { InterimUsage, Reservation } from '../meter.ts'
import type { Registered } from '../postgres/store.ts'
import { createSettledReservations } from '../settled-reservations.ts'

export type Lease = {
  reservation: Reservation
  readonly limits: Limits
  readonly scopes: readonly Scope[]
  readonly admittedAt: number
  progress: (() => InterimUsage) | null
  /** True if it has a checkpoint that no store has. */
  isDue: boolean
}

const minuteMs = 60_000
const maximumRecent = 200_000

export class OpenRequests {
  private readonly open = new Map<string, Lease>()
  private readonly settled = createSettledReservations()
  /** Admissions of the last minute, oldest first. */
  private recent: RecentAdmission[] = []

  /** `waiting` returns records that may be missing in the ledger. */
  constructor(
    private readonly now: () => number,
    private readonly waiting: () => readonly UsageRecord[],
  ) {}

  lease(requestId: string): Lease | undefined {
    return this.open.get(requestId)
  }

  leases(): Iterable<Lease> {
    return this.open.values()
  }

  requestIds(): string[] {
    return [...this.open.keys()]
  }

  /** Returns the reservation and limits of a settled request; undefined = unknown. */
  settledReservation(requestId: string): ReturnType<typeof this.settled.get> {
    return this.settled.get(requestId)
  }

  /** Adds an admitted request, once. */
  add(reservation: Reservation, limits: Limits, scopes: readonly Scope[]): void {
    const { requestId, accountId } = reservation
    if (this.open.has(requestId)) return
    const now = this.now()
    this.open.set(requestId, { reservation, limits, scopes, admittedAt: now, progress: null, isDue: false })
    this.recent.push({ requestId, accountId, scopes, at: now })
  }

  /** Moves a request to the settled ones. */
  close(reservation: Reservation, limits: Limits): void {
    this.open.delete(reservation.requestId)
    this.settled.set(reservation.requestId, { reservation, limits })
  }

  /** Forgets admissions that are older than a minute. */
  forgetOld(): void {
    const now = this.now()
    const first = this.recent.findIndex(({ at }) => at > now - minuteMs)
    if (first === 0 && this.recent.length <= maximumRecent) return
    this.recent = first === -1 ? [] : this.recent.slice(Math.max(first, this.recent.length - maximumRecent))
  }

  /**
   * Returns the usage of this instance that is not in the ledger: open requests, unshipped records, and the last
   * minute's admissions.
   */
  registered(): Registered[] {
    const now = this.now()
    const rows = new Map<string, Registered>()
    const addEnded = (row: Omit<Registered, 'outputCap' | 'isOpen'>) =>
      void rows.set(row.requestId, { ...row, outputCap: 0, isOpen: false })
    this.forgetOld()
    for (const { requestId, accountId, scopes, at } of this.recent)
      addEnded({ requestId, accountId, day: formatDay(at), ...nothing, ageMs: now - at, scopes: getNames(scopes) })
    for (const record of this.waiting()) {
      const { request_id: requestId, account_id: accountId, at_ms } = record
      const ageMs = rows.get(requestId)?.ageMs ?? now - at_ms
      addEnded({
        requestId,
        accountId,
        day: formatDay(at_ms),
        ...getSpent(record),
        ageMs,
        scopes: getScopeNames(record),
      })
    }
    for (const { reservation, scopes, admittedAt } of this.open.values())
      rows.set(reservation.requestId, {
        requestId: reservation.requestId,
        accountId: reservation.accountId,
        day: reservation.day,
        tokens: reservation.reservedTokens,
        microcents: reservation.reservedMicrocents,
        outputCap: reservation.outputCap,
        isOpen: true,
        ageMs: now - admittedAt,
        scopes: getNames(scopes),
      })
    return [...rows.values()]
  }
}

type RecentAdmission = {
  readonly requestId: string
  readonly accountId: string
  readonly scopes: readonly Scope[]
  readonly at: number
}

const getNames = (scopes: readonly Scope[]) => scopes.map(({ name }) => name)
