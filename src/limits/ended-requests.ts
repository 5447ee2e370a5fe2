/** Ended requests of a partition whose counters are lost, in parts that Redis can take without a pause of others. */
import type { OwnAccount } from './allowance.ts'
import type { AccountReport } from './redis.ts'

/** A request that ended in the last minute. */
export type Ended = {
  readonly requestId: string
  readonly accountId: string
  readonly at: number
  readonly detail: string
}
type Part = {
  readonly accounts: (readonly [string, OwnAccount])[]
  readonly ended: Map<string, AccountReport['ended']>
}

/** Redis is blocked for about 5 ms by as many accounts. */
export const accountsAtOnce = 100
/** And for about 20 ms by as many requests. */
export const itemsAtOnce = 1_000

export class EndedRequests {
  readonly known = new Set<string>()
  readonly accounts = new Map<string, AccountReport['ended'][number][]>()
  private last: Ended | undefined

  constructor(private readonly isInPartition: (accountId: string) => boolean) {}

  add(accountId: string, requestId: string, detail: string): void {
    this.known.add(requestId)
    const all = this.accounts.get(accountId) ?? []
    this.accounts.set(accountId, all)
    all.push({ requestId, detail })
  }

  /** Adds what `recent` got since the last call. */
  addRecent(recent: readonly Ended[]): void {
    const first = this.last === undefined ? 0 : recent.lastIndexOf(this.last) + 1
    this.last = recent.at(-1)
    for (const { accountId, requestId, detail } of recent.slice(first))
      if (this.isInPartition(accountId) && !this.known.has(requestId)) this.add(accountId, requestId, detail)
  }

  /** Removes the next part of the accounts. One with many ended requests is in several parts. */
  take(left: (readonly [string, OwnAccount])[]): Part {
    const part: Part = { accounts: [], ended: new Map() }
    for (let items = 0; part.accounts.length < accountsAtOnce && items < itemsAtOnce; ) {
      const [first] = left
      if (first === undefined) break
      const [accountId, { counters }] = first
      items += counters.reservations.size
      const all = this.accounts.get(accountId) ?? []
      const taken = all.splice(0, Math.max(1, itemsAtOnce - items))
      items += taken.length
      part.accounts.push(first)
      part.ended.set(accountId, taken)
      if (all.length === 0) left.shift()
    }
    return part
  }
}
