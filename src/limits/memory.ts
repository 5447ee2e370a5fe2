/**
 * The meter of a process without Redis. Decisions are synchronous, so no lock is needed to apply all limits atomically.
 * Day counters hold spent plus reserved usage and start from the ledger and the journal. Reservations end with the
 * process; the next start settles their requests from checkpoints.
 */

import { runOnce } from '../core/jobs/repeating.ts'
import { getCounterName, noScopes, type ScopeUsage } from '../core/limits/scopes.ts'
import type { Clock } from '../core/ports.ts'
import { maximumAccounts } from '../core/text/recent-map.ts'
import { formatDay } from '../core/text/utc-days.ts'
import { type DailyUsage, getSpent, nothing } from '../core/usage/usage-record.ts'
import { idleMs } from './constants.ts'
import {
  type AccountCounters,
  addUsage,
  getCounterState,
  getQuotaStatus,
  newAccount,
  newCounters,
  releaseReservation,
  reserve,
  toReservation,
} from './counters.ts'
import { allows, type Decision, decide } from './decide.ts'
import type { Admission, AdmissionRequest, Meter } from './meter.ts'
import { type CheckpointStore, OpenRequests, type RecordJournal } from './usage-records.ts'

export type MemoryMeterOptions = {
  readonly clock: Pick<Clock, 'now'>
  readonly journal: RecordJournal
  /**
   * Returns the usage of an account on a UTC day (since the epoch) from ledger and journal. Called once per account.
   */
  readonly seed: (accountId: string, day: number) => Promise<DailyUsage>
  /** The same for scopes of the account, each with the month of the day. Called once per scope. Absent = none was used. */
  readonly seedScopes?: (accountId: string, names: readonly string[], day: number) => Promise<readonly ScopeUsage[]>
  readonly checkpoints?: CheckpointStore
}

/** Maximum idle accounts checked per sweep. */
const maximumSweep = 1000

/**
 * Creates a meter in process. `close` stops only its timer, because journal, ledger and checkpoints belong to the
 * caller.
 */
export function createMemoryMeter(options: MemoryMeterOptions): Meter {
  const { clock, journal, seed, seedScopes = unused } = options
  const requests = new OpenRequests<AccountCounters>(journal, options.checkpoints)
  const { accounts } = requests
  const seeding = new Map<string, Promise<AccountCounters>>()

  const loadAccount = async (accountId: string): Promise<AccountCounters> => {
    const now = clock.now()
    const day = formatDay(now)
    const account = newAccount(day, await seed(accountId, day), now)
    if (accounts.size >= maximumAccounts) evictIdle(accounts, now)
    accounts.set(accountId, account)
    return account
  }
  const getAccount = (accountId: string) =>
    accounts.get(accountId) ?? runOnce(seeding, accountId, () => loadAccount(accountId))

  /** Loads the account and the scopes of a request that this process does not count yet. */
  const load = async ({ accountId, scopes }: AdmissionRequest): Promise<void> => {
    const account = await getAccount(accountId)
    const missing = scopes.filter(scope => !account.scopes.has(getCounterName(scope)))
    if (missing.length === 0) return
    const day = formatDay(clock.now())
    const names = missing.map(({ name }) => name)
    const seeded = new Map((await seedScopes(accountId, names, day)).map(({ name, ...used }) => [name, used]))
    for (const scope of missing) {
      const counters = getCounterName(scope)
      // Another request may have loaded it meanwhile, and counts in it.
      if (!account.scopes.has(counters))
        account.scopes.set(counters, newCounters(day, seeded.get(scope.name) ?? unusedScope))
    }
  }

  /** Decides without a reservation; null = the account or a scope is not loaded. */
  const decision = (
    request: AdmissionRequest,
    now: number,
  ): { readonly account: AccountCounters; readonly decided: Decision } | null => {
    const account = accounts.get(request.accountId)
    if (account === undefined) return null
    const state = getCounterState(account, request.scopes, now)
    if (state === null) return null
    requests.mustBeWritable()
    account.usedAt = now
    return requests.releaseAbandoned(account, now, open => releaseReservation(account, open, nothing))
      ? decision(request, now)
      : { account, decided: decide(state, request, now) }
  }

  /** Admits or rejects at once; null = the account or a scope is not loaded. */
  const admitNow = (request: AdmissionRequest): Admission | null => {
    const now = clock.now()
    const before = requests.find(request)
    if (before !== undefined) return { admitted: true, reservation: before }
    const made = decision(request, now)
    if (made === null) return null
    const { account, decided } = made
    if ('code' in decided) return { admitted: false, ...decided }
    const { reservation } = reserve(account, request, toReservation(account, request, decided, now), now)
    return { admitted: true, reservation }
  }

  return {
    async admit(request) {
      for (;;) {
        const admission = admitNow(request)
        if (admission !== null) return admission
        await load(request)
      }
    },

    async check(request) {
      for (;;) {
        const made = decision(request, clock.now())
        if (made !== null) return 'code' in made.decided ? made.decided : null
        await load(request)
      }
    },

    raise(reservation, reservedTokens, reservedMicrocents) {
      const account = accounts.get(reservation.accountId)
      const held = requests.getOpen(reservation)
      if (account === undefined || held === undefined || held.isLapsed) return Promise.resolve(null)
      const more = {
        tokens: Math.max(0, reservedTokens - held.reservation.reservedTokens),
        microcents: Math.max(0, reservedMicrocents - held.reservation.reservedMicrocents),
      }
      const state = getCounterState(account, held.scopes, clock.now())
      // After midnight its day admits no further usage, and the limits of the new day do not count it.
      const isOver = account.own.day !== held.reservation.day
      if (state === null || isOver || !allows(state, held.limits, more)) return Promise.resolve(null)
      addUsage(account, held, more)
      held.reservation = {
        ...held.reservation,
        reservedTokens: held.reservation.reservedTokens + more.tokens,
        reservedMicrocents: held.reservation.reservedMicrocents + more.microcents,
      }
      return Promise.resolve(held.reservation)
    },

    settle(settlement) {
      const account = accounts.get(settlement.reservation.accountId)
      return requests.settle(settlement, (open, spent) => {
        if (account !== undefined) releaseReservation(account, open, spent)
      })
    },

    async charge(record) {
      const account = await getAccount(record.account_id)
      addUsage(account, { reservation: { day: formatDay(record.at_ms) }, scopes: noScopes }, getSpent(record))
      await requests.write(record)
    },

    checkpoint: (reservation, progress) => requests.checkpoint(reservation, progress),

    loadStatus: async (accountId, limits) => getQuotaStatus(await getAccount(accountId), limits, clock.now()),

    quotaStatus(accountId, limits) {
      const account = accounts.get(accountId)
      return account === undefined ? null : getQuotaStatus(account, limits, clock.now())
    },

    async close() {
      requests.close()
    },
  }
}

const unusedScope = { tokens: 0, microcents: 0, monthMicrocents: 0 }
const unused: NonNullable<MemoryMeterOptions['seedScopes']> = async (_, names) =>
  names.map(name => ({ name, ...unusedScope }))

/** Evicts idle accounts. If they return, they are read from the ledger again. */
function evictIdle(accounts: Map<string, AccountCounters>, now: number): void {
  let swept = 0
  for (const [id, account] of accounts) {
    accounts.delete(id)
    // Moved to the end, so that the next sweep continues with unchecked accounts.
    if (account.reservations.size > 0 || account.usedAt >= now - idleMs) accounts.set(id, account)
    if (++swept === maximumSweep) return
  }
}
