/** Reports of an instance to one partition, in calls that Redis can take without a pause of others. */
import { type OwnAccount, type OwnReservation, toAllowanceRows } from './allowance.ts'
import { accountsPerCall, requestsPerCall } from './constants.ts'

/** A request that ended; `detail` is in the form of the scripts. */
export type EndedRequest = { readonly requestId: string; readonly accountId: string; readonly detail: string }

/** The content of one call about an account. */
export type AccountPart = {
  readonly accountId: string
  readonly own: OwnAccount
  readonly open: readonly OwnReservation[]
  readonly ended: readonly EndedRequest[]
  readonly rows: ReturnType<typeof toAllowanceRows>
}

export class Report {
  private readonly left: (readonly [string, OwnAccount])[]
  private readonly ended = new Map<string, EndedRequest[]>()
  /** IDs of all requests that it has or had. */
  private readonly known = new Set<string>()
  private newest: EndedRequest | undefined

  /** `isEnding`: the instance returns its allowances of these accounts. */
  constructor(
    private readonly accounts: ReadonlyMap<string, OwnAccount>,
    private readonly isEnding: boolean,
  ) {
    this.left = [...accounts]
  }

  isWhole(): boolean {
    return this.left.length === 0
  }

  /** Adds ended requests of its accounts that it does not have. */
  addEnded(requests: readonly EndedRequest[]): void {
    for (const request of requests) {
      const { requestId, accountId } = request
      if (this.known.has(requestId) || !this.accounts.has(accountId)) continue
      this.known.add(requestId)
      const all = this.ended.get(accountId)
      if (all === undefined) this.ended.set(accountId, [request])
      else all.push(request)
    }
  }

  /** Adds what a list got at its end since the last call. */
  addNewest(requests: readonly EndedRequest[]): void {
    const first = this.newest === undefined ? 0 : requests.lastIndexOf(this.newest) + 1
    this.newest = requests.at(-1)
    this.addEnded(requests.slice(first))
  }

  /** Removes the next part, as it is now. The last part of an account has its allowances. */
  take(): AccountPart[] {
    const parts: AccountPart[] = []
    for (let room = requestsPerCall; room > 0 && parts.length < accountsPerCall; ) {
      const [next] = this.left
      if (next === undefined) break
      const [accountId, own] = next
      const waiting = [...own.counters.reservations.values()].filter(
        item => !this.known.has(item.reservation.requestId),
      )
      const open = waiting.slice(0, room)
      for (const { reservation } of open) this.known.add(reservation.requestId)
      const ended = this.ended.get(accountId)?.splice(0, room - open.length) ?? []
      room -= open.length + ended.length
      const isLast = open.length === waiting.length && !this.ended.get(accountId)?.length
      if (isLast) this.left.shift()
      parts.push({ accountId, own, open, ended, rows: isLast ? toAllowanceRows(own, this.isEnding) : [] })
    }
    return parts
  }
}
