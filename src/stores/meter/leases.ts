/**
 * The seats that this gateway has open in Redis, each on a lease that ends unless it is renewed. What their requests say they
 * have used goes there with the renewals, to be settled by others should this gateway die.
 */
import type { Meter, OpenSeat, Progress, Seat } from '../meter.ts'
import { whole } from '../scripts/account.ts'
import { renewScript } from '../scripts/meter.ts'
import { partitionOf } from './partitions.ts'
import type { Noted, ProgressNotes } from './progress-notes.ts'
import { recordOf, spentBy } from './settled-record.ts'
import type { RunScript, UnderEpochOptions } from './under-epoch.ts'

export type LeasesOptions = Pick<UnderEpochOptions, 'epochOf'> & {
  readonly run: RunScript
  readonly gatewayId: string
  readonly leaseMs: number
  /** Where checkpoints are kept that Redis cannot be told, until it has been. */
  readonly elsewhere: Pick<ProgressNotes, 'keep' | 'forget'> | undefined
}

export type Lease = Omit<OpenSeat, keyof Noted> &
  Noted & {
    /** There is something new to say. */
    isDue: boolean
    /** What was said last Redis has not heard. */
    isUnheard: boolean
  }

export type Leases = Pick<Meter, 'checkpoint'> & {
  held(requestId: string): OpenSeat | null
  /** This gateway's open seats in Redis, of one account or of all. */
  seatsOf(accountId: string): OpenSeat[]
  seats(): Iterable<OpenSeat>
  /** Those of a partition that have any. */
  accountsOf(partition: number): Set<string>
  /** Makes a seat of another meter's this one's. It is in Redis already. */
  adopt(held: OpenSeat): void
  /** Gives a seat up to another meter. */
  drop(requestId: string): void
  /** Renews leases: all, or only those with something new to say. Never throws. */
  renew(all: boolean): Promise<void>
}

/** No leases yet; `open` is where those who admit and settle put and find them, by request id. Owns no timer. */
export function createLeases(options: LeasesOptions): Leases & { readonly open: Map<string, Lease> } {
  const { run, gatewayId, leaseMs, epochOf, elsewhere } = options
  const open = new Map<string, Lease>()

  const renewAccount = async (accountId: string, due: readonly Lease[]) => {
    const values = [String(leaseMs), accountId, gatewayId]
    const said: Lease[] = []
    for (const lease of due) {
      const isNew = lease.progress !== null && (lease.isDue || lease.isUnheard)
      values.push(lease.seat.requestId, isNew && lease.progress ? checkpointText(lease.seat, lease.progress()) : '')
      lease.isDue = false
      if (isNew) said.push(lease)
    }
    try {
      await run(renewScript, accountId, keys => [keys.checkpointed], values)
      for (const lease of said) {
        lease.isUnheard = false
        elsewhere?.forget(lease.seat.requestId)
      }
    } catch {
      for (const lease of said) lease.isUnheard = true
    }
  }

  return {
    open,
    checkpoint(seat, progress) {
      const lease = open.get(seat.requestId)
      if (lease === undefined) return
      lease.progress = progress
      lease.isDue = true
    },
    held: requestId => open.get(requestId) ?? null,
    seatsOf: accountId => [...open.values()].filter(lease => lease.seat.accountId === accountId),
    seats: () => open.values(),
    accountsOf(partition) {
      const accounts = new Set<string>()
      for (const { seat } of open.values()) if (partitionOf(seat.accountId) === partition) accounts.add(seat.accountId)
      return accounts
    },
    adopt(held) {
      const hasSaid = held.progress !== null
      open.set(held.seat.requestId, { ...held, isDue: hasSaid, isUnheard: hasSaid })
    },
    drop: requestId => void open.delete(requestId),

    async renew(all) {
      const due = new Map<string, Lease[]>()
      for (const lease of open.values()) {
        const { accountId } = lease.seat
        if (epochOf(partitionOf(accountId)) === null) {
          if (lease.isDue && lease.progress !== null) elsewhere?.keep(lease.seat, lease.progress)
          lease.isUnheard ||= lease.isDue
          lease.isDue = false
        } else if (all || lease.isDue || lease.isUnheard) {
          const ofAccount = due.get(accountId)
          if (ofAccount === undefined) due.set(accountId, [lease])
          else ofAccount.push(lease)
        }
      }
      // One tick, one write: the client sends them as one pipeline.
      await Promise.all([...due].map(([accountId, ofAccount]) => renewAccount(accountId, ofAccount)))
    },
  }
}

function checkpointText(seat: Seat, used: Progress): string {
  const spent = spentBy(used, seat)
  return `${whole(spent.tokens)}:${whole(spent.microcents)}:${JSON.stringify(recordOf(used.record, seat, spent))}`
}
