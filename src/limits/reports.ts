/**
 * Reports of an instance to the partitions of Redis: they renew its leases and allowances, and tell a Redis that has lost its
 * counters what the instance has. A report has calls that Redis can take without a pause of others.
 */
import { runOnce } from '../core/jobs/repeating.ts'
import { getCounterName, getScopeNames, monthDays } from '../core/limits/scopes.ts'
import { dayMs, formatDay } from '../core/text/utc-days.ts'
import { type DailyUsage, getSpent, type UsageRecord } from '../core/usage/usage-record.ts'
import { getAllowances, type OwnAccount, takeGrants, toAllowanceRows } from './allowance.ts'
import { accountsPerCall, leaseMs, minuteMs, requestsPerCall } from './constants.ts'
import type { AdmissionRequest, OpenReservation } from './meter.ts'
import {
  type AccountPart,
  type EndedRequest,
  isOfRedis,
  type RedisStore,
  type RedisStoreOptions,
  toDetail,
} from './redis.ts'
import type { RecordJournal } from './usage-records.ts'

export type ReportOptions = Pick<RedisStoreOptions, 'clock' | 'keys'> & {
  /** Unique among the instances on one Redis, and never reused. */
  readonly gatewayId: string
  readonly journal: RecordJournal & {
    /** Returns records that may be missing in the ledger. */
    waiting(): readonly UsageRecord[]
  }
}

type Report = {
  /** Absent = all accounts of the partition. */
  readonly accounts?: readonly (readonly [string, OwnAccount])[]
  /** Redis has lost their counters. */
  readonly isLost?: boolean
  /** The instance returns its allowances. */
  readonly isEnding?: boolean
  readonly isLeaving?: boolean
}

const maximumRecent = 200_000

export class Reports {
  /** Instances on Redis. One that is missing for less than a lease still counts: a new generation knows none at first. */
  instances = { count: 1, at: 0 }
  /** Requests that ended in the last minute, or since one before Redis went away, oldest first. */
  private recent = new Map<string, EndedRequest & { readonly at: number }>()
  /** Ended requests that the ledger may not have. */
  private waiting: { readonly at: number; readonly requests: readonly EndedRequest[] } | null = null
  private count = 0
  /** By partition, one after the other: a grant is relative to what its report stated. */
  private readonly sending = new Map<number, Promise<unknown>>()
  private readonly givingBack = new Map<string, Promise<unknown>>()

  /** `onFailure` gets errors of single accounts, which fail no other one. */
  constructor(
    private readonly options: ReportOptions,
    private readonly accounts: ReadonlyMap<string, OwnAccount>,
    private readonly store: Pick<RedisStore, 'report'>,
    private readonly onFailure: (cause: unknown, partition: number) => void,
  ) {}

  noteEnded(request: EndedRequest): void {
    // One that lapsed and is settled now stands with what it used.
    this.recent.delete(request.requestId)
    this.recent.set(request.requestId, { ...request, at: this.options.clock.now() })
  }

  /** Forgets requests that ended before the last minute. While Redis is away, it may lose their counters: they are kept. */
  forgetEnded(isHere: (request: EndedRequest) => boolean): void {
    const since = this.options.clock.now() - minuteMs
    const kept = [...this.recent].filter(([, request]) => request.at > since || !isHere(request))
    this.recent = new Map(kept.slice(-maximumRecent))
  }

  /** Reads the journal again for the next report that needs it. */
  forgetJournal(): void {
    this.waiting = null
  }

  /** Sends a report. Returns false if it is too late for the generation of the counters. */
  send(partition: number, report: Report = {}): Promise<boolean> {
    const sent = (this.sending.get(partition) ?? Promise.resolve()).then(() => this.sendCalls(partition, report))
    this.sending.set(
      partition,
      sent.catch(() => {}),
    )
    return sent
  }

  /** Gives the allowances of an account back, because they are in the way of a request. */
  giveBack(own: OwnAccount, request: AdmissionRequest): Promise<unknown> {
    const { accountId } = request
    // Also without allowances of its own: its report ends those of dead instances, which no other one may do.
    getAllowances(own, request)
    const send = () =>
      this.send(this.options.keys.partition(accountId), { isEnding: true, accounts: [[accountId, own]] })
    // The first report learns that Redis wants them back, the second one returns them.
    return runOnce(this.givingBack, accountId, () => send().then(send))
  }

  private async sendCalls(partition: number, report: Report): Promise<boolean> {
    const { isLost = false, isLeaving = false } = report
    const calls = this.split(partition, report)
    for (;;) {
      const { value: parts, done = false } = calls.next()
      if (!(await this.call(partition, parts, { isMore: isLost && !done, isLeaving }))) return false
      if (done) return true
    }
  }

  /** Yields the calls of a report, each as it is at that moment, and returns the last one. */
  private *split(
    partition: number,
    { accounts, isLost, isEnding = false }: Report,
  ): Generator<AccountPart[], AccountPart[]> {
    const number = ++this.count
    const isIn = (accountId: string) => this.options.keys.partition(accountId) === partition
    let parts: AccountPart[] = []
    let room = requestsPerCall
    const isFullWith = (part: AccountPart) => {
      parts.push(part)
      room -= part.open.length + part.ended.length
      return room === 0 || parts.length === accountsPerCall
    }
    const empty = () => {
      const full = parts
      parts = []
      room = requestsPerCall
      return full
    }
    for (const [accountId, own] of accounts ?? [...this.accounts].filter(([id]) => isIn(id)))
      for (let isWhole = false; !isWhole; ) {
        const left = [...own.reservations.values()].filter(open => open.reportedIn !== number)
        const open = left.slice(0, room)
        for (const reported of open) reported.reportedIn = number
        isWhole = open.length === left.length
        // The last part of an account has its allowances.
        if (isFullWith({ accountId, own, open, ended: [], rows: isWhole ? toAllowanceRows(own, isEnding) : [] }))
          yield empty()
      }
    // After all open requests, so that each one is reported as open or as ended.
    const ended = isLost ? this.getEnded().filter(({ accountId }) => isIn(accountId)) : []
    for (const [accountId, all] of Map.groupBy(ended, request => request.accountId))
      for (let at = 0; at < all.length; ) {
        const some = all.slice(at, at + room)
        at += some.length
        if (isFullWith({ accountId, own: null, open: [], ended: some, rows: [] })) yield empty()
      }
    return parts
  }

  /** Sends one call of a report. Returns false if it is too late for its generation. */
  private async call(
    partition: number,
    parts: readonly AccountPart[],
    more: { readonly isMore: boolean; readonly isLeaving: boolean },
  ): Promise<boolean> {
    const { clock, gatewayId: instance } = this.options
    const sentAt = clock.monotonic()
    let reply: Awaited<ReturnType<RedisStore['report']>>
    try {
      reply = await this.store.report(partition, { instance, parts, ...more })
    } catch (cause) {
      if (parts.length === 0 || isOfRedis(cause)) throw cause
      if (parts.length === 1) this.onFailure(cause, partition)
      // One of them fails: the others go on.
      else for (const part of parts) if (!(await this.call(partition, [part], more))) return false
      return true
    }
    if (reply === null) return false
    const now = clock.now()
    if (reply.instances >= this.instances.count || Math.abs(now - this.instances.at) > leaseMs)
      this.instances = { count: reply.instances, at: now }
    for (const [index, { own, rows }] of parts.entries()) {
      if (own === null) continue
      own.countedAt = sentAt
      takeGrants(own, rows, reply.grants[index] ?? [])
    }
    return true
  }

  /** Returns ended requests that the ledger may not have and new counters need. Repeated reports read the journal once. */
  private getEnded(): readonly EndedRequest[] {
    const { clock, journal } = this.options
    if (this.waiting === null || clock.monotonic() - this.waiting.at >= minuteMs / 2) {
      const [firstDay] = monthDays(formatDay(clock.now()))
      // A day more, since the clocks may differ.
      const records = journal.waiting().filter(({ at_ms }) => at_ms >= (firstDay - 1) * dayMs)
      const requests = records.map(record => ({
        requestId: record.request_id,
        accountId: record.account_id,
        detail: getRecordDetail(record),
      }))
      this.waiting = { at: clock.monotonic(), requests }
    }
    // What ended since is in `recent`.
    const { recent } = this
    return [...recent.values(), ...this.waiting.requests.filter(({ requestId }) => !recent.has(requestId))]
  }
}

/** Returns an ended request in the form that the scripts store. */
export function getDetail({ reservation, admittedAt, scopes }: OpenReservation, usage: DailyUsage): string {
  return toDetail(reservation, usage, admittedAt, scopes.map(getCounterName))
}

/** Returns the request of a record in the form that the scripts store. */
export function getRecordDetail(record: UsageRecord): string {
  const { at_ms } = record
  return toDetail({ day: formatDay(at_ms), outputCap: 0 }, getSpent(record), at_ms, getScopeNames(record))
}
