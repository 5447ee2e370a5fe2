/**
 * What this gateway has of accounts, whichever of its two meters holds it: seats that are open, the last minute's admissions,
 * and requests that are settled and may not be in the ledger. Others hear of it: through claims in Postgres, or where counts in
 * Redis are made anew.
 */
import { countedUsage, mergedRecords } from '../../core/usage-truth.ts'
import type { Journal } from '../journal.ts'
import type { OpenSeat } from '../meter.ts'
import type { LocalMeter } from '../meter-local.ts'
import type { RedisMeter } from '../meter-redis.ts'
import type { HandedOut } from './claims.ts'
import { partitionOf } from './partitions.ts'
import type { RecentAdmissions } from './recent-admissions.ts'
import type { Registration } from './registration.ts'
import { type Spent, sumOf, type Waiting } from './spent.ts'

export type HoldingsOptions = {
  readonly shared: Pick<RedisMeter, 'accountsOf' | 'kept' | 'seats' | 'seatsOf'>
  readonly local: Pick<LocalMeter, 'accounts' | 'seatsOf' | 'used'>
  readonly recent: RecentAdmissions
  readonly journal: Pick<Journal, 'unshipped'>
}

export type Holdings = {
  /** Those of a partition of which there is anything. */
  accountsOf(partition: number): Set<string>
  /** Settled here, and perhaps not in the ledger yet. */
  waitingOf(accountId: string, day: number): Waiting[]
  /** As claims are told. */
  handedOut(accountIds: readonly string[], day: number): HandedOut[]
  /** As an epoch in the making is told, but for what was settled without Redis; with what waits of `day` and the one before. */
  registered(accountId: string, day: number): Omit<Registration, 'settled'>
}

export function createHoldings({ shared, local, recent, journal }: HoldingsOptions): Holdings {
  const waitingOf = (accountId: string, day: number): Waiting[] => {
    const records = [...journal.unshipped(accountId, day), ...shared.kept.of(accountId, day)]
    return mergedRecords(records).map(record => ({ requestId: record.request_id, ...countedUsage(record), day }))
  }

  return {
    waitingOf,

    accountsOf(partition) {
      const accounts = shared.accountsOf(partition)
      const isOurs = (accountId: string) => partitionOf(accountId) === partition
      for (const accountId of local.accounts()) if (isOurs(accountId)) accounts.add(accountId)
      for (const accountId of shared.kept.accounts()) if (isOurs(accountId)) accounts.add(accountId)
      for (const accountId of recent.accounts(isOurs)) accounts.add(accountId)
      return accounts
    },

    handedOut(accountIds, day) {
      const wanted = new Set(accountIds)
      const seats = new Map<string, OpenSeat[]>()
      for (const held of shared.seats())
        if (wanted.has(held.seat.accountId))
          seats.set(held.seat.accountId, [...(seats.get(held.seat.accountId) ?? []), held])
      return accountIds.map(accountId => {
        const open = [...(seats.get(accountId) ?? []), ...local.seatsOf(accountId)]
        const reserved = reservedOn(day, open)
        const requests = Math.max(recent.count(accountId), local.used(accountId)?.requests ?? 0)
        return {
          accountId,
          day,
          out: { ...reserved, seats: open.length, requests },
          waiting: waitingOf(accountId, day),
        }
      })
    },

    registered: (accountId, day) => ({
      seats: [...shared.seatsOf(accountId), ...local.seatsOf(accountId)].map(({ seat }) => seat),
      ages: recent.ages(accountId),
      waiting: [day - 1, day].flatMap(one => waitingOf(accountId, one)),
    }),
  }
}

/** What open requests have reserved of a day. */
export function reservedOn(day: number, open: readonly OpenSeat[]): Spent {
  const ofDay = open.filter(({ seat }) => seat.day === day)
  return sumOf(ofDay.map(({ seat }) => ({ tokens: seat.reservedTokens, microcents: seat.reservedMicrocents })))
}
