/**
 * What this gateway has settled without Redis, and Redis does not count yet: of each account the sum of a day, told when counts
 * are made anew. What is settled while they are being made, after the account was registered with its lease, waits for the new
 * epoch: it is settled there once that stands, or was settled alone should it never stand.
 */
import type { Settlement } from '../meter.ts'
import { maximumAccounts, remember } from '../remember.ts'
import { partitionOf } from './partitions.ts'
import { nothing, type Settled, sumOf } from './spent.ts'

export type SettledAlone = {
  note(settlement: Settlement): void
  /** Of the latest day that anything was settled on. */
  of(accountId: string): Settled | undefined
  /** Redis has spoken of the account, and counts it. */
  forget(accountId: string): void
  /** Waits for the epoch in the making. */
  postpone(settlement: Settlement): void
  /** What waits of a partition, and does so no longer. */
  takePostponed(partition: number): Settlement[]
}

export function createSettledAlone(): SettledAlone {
  const sums = new Map<string, Settled>()
  let postponed: Settlement[] = []
  return {
    note({ seat, tokens, microcents }) {
      const before = sums.get(seat.accountId)
      if (before !== undefined && before.day > seat.day) return
      const sum = sumOf([before?.day === seat.day ? before : nothing, { tokens, microcents }])
      remember(sums, seat.accountId, { ...sum, day: seat.day }, maximumAccounts)
    },
    of: accountId => sums.get(accountId),
    forget: accountId => void sums.delete(accountId),
    postpone: settlement => void postponed.push(settlement),
    takePostponed(partition) {
      const isOurs = ({ seat }: Settlement) => partitionOf(seat.accountId) === partition
      const taken = postponed.filter(isOurs)
      postponed = postponed.filter(one => !isOurs(one))
      return taken
    },
  }
}
