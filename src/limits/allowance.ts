/**
 * Allowances: of each account and scope in use, an instance holds a small amount of tokens and cost that Redis counts as
 * spent. While Redis is away the instance admits from them, and requests per minute and concurrent requests at its share
 * of the limit. Tokens and cost are thus never over; a request is admitted whole or not at all.
 */
import type { Limits } from '../core/limits/plans.ts'
import { getCounterName, type Scope, type ScopeLimits } from '../core/limits/scopes.ts'
import { formatDay } from '../core/text/utc-days.ts'
import { type DailyUsage, nothing } from '../core/usage/usage-record.ts'
import { allowanceMarginMs, allowanceMs, renewMs, useMs } from './constants.ts'
import {
  type AccountCounters,
  type Grant,
  getCounterState,
  newAccount,
  newCounters,
  reserve,
  toReservation,
} from './counters.ts'
import { decide, unreached } from './decide.ts'
import type { AdmissionRequest, OpenReservation, Reservation } from './meter.ts'

type Amounts = Pick<ScopeLimits, 'dailyTokens' | 'dailyCostMicrocents' | 'monthlyCostMicrocents'>

/** What this instance holds of one account or scope, and its use since the last renewals, the newest first. */
type Allowance = {
  limits: Amounts
  /** What it can still admit. */
  amount: DailyUsage
  /** Used from it by ended requests that Redis has not counted yet. */
  unsettled: DailyUsage
  /** Redis counted a part of the limit as this allowance in its last reply: the account is reported until that ends. */
  isCounted: boolean
  readonly use: { tokens: number; microcents: number; requests: number }[]
}

/** What this instance has itself admitted of an account, and its allowances by counter name (empty = the account's own). */
export type OwnAccount = AccountCounters & {
  readonly allowances: Map<string, Allowance>
  /** When Redis last counted the allowances, in monotonic milliseconds. */
  countedAt: number
}

const buckets = useMs / renewMs

/** Creates an account of which this instance has admitted no request. */
export function newOwnAccount(now: number): OwnAccount {
  return {
    ...newAccount(formatDay(now), nothing, now),
    allowances: new Map(),
    countedAt: Number.NEGATIVE_INFINITY,
  }
}

/** Notes a request that Redis has admitted. */
export function noteAdmitted(own: OwnAccount, request: AdmissionRequest, reservation: Reservation, now: number): void {
  addScopes(own, request.scopes, now)
  reserve(own, request, reservation, now)
  for (const { use } of getAllowances(own, request)) {
    const [newest] = use
    if (newest === undefined) continue
    newest.tokens += reservation.reservedTokens
    newest.microcents += reservation.reservedMicrocents
    newest.requests++
  }
}

function addScopes({ scopes: counted }: OwnAccount, scopes: readonly Scope[], now: number): void {
  for (const scope of scopes) {
    const name = getCounterName(scope)
    if (!counted.has(name)) counted.set(name, newCounters(formatDay(now), nothing))
  }
}

/** Returns the allowances that a request uses: the account's, and those of scopes that limit amounts. */
export function getAllowances(own: OwnAccount, { limits, scopes }: Pick<AdmissionRequest, 'limits' | 'scopes'>) {
  const found = [getAllowance(own, '', { ...limits, monthlyCostMicrocents: null })]
  for (const scope of scopes) {
    const { dailyTokens, dailyCostMicrocents, monthlyCostMicrocents } = scope.limits
    if (dailyTokens !== null || dailyCostMicrocents !== null || monthlyCostMicrocents !== null)
      found.push(getAllowance(own, getCounterName(scope), scope.limits))
  }
  return found
}

function getAllowance(own: OwnAccount, name: string, limits: Amounts): Allowance {
  const known = own.allowances.get(name)
  if (known !== undefined) {
    known.limits = limits
    return known
  }
  const use = [{ tokens: 0, microcents: 0, requests: 0 }]
  const allowance = { limits, amount: nothing, unsettled: nothing, isCounted: false, use }
  own.allowances.set(name, allowance)
  return allowance
}

/** Decides from the allowances; null = they do not cover the request. `instances` share the limits. */
export function decideFromAllowance(
  own: OwnAccount,
  request: AdmissionRequest,
  { now, monotonic, instances }: { readonly now: number; readonly monotonic: number; readonly instances: number },
): Grant | null {
  if (monotonic - own.countedAt > allowanceMs - allowanceMarginMs) return null
  addScopes(own, request.scopes, now)
  const share = <T extends number | null>(limit: T) => (limit === null ? limit : Math.ceil(limit / instances))
  const getShares = <T extends Limits | ScopeLimits>(of: T) => ({
    ...of,
    requestsPerMinute: share(of.requestsPerMinute),
    concurrentRequests: share(of.concurrentRequests),
    dailyTokens: unreached,
    dailyCostMicrocents: unreached,
    monthlyCostMicrocents: null,
  })
  const limits = getShares(request.limits)
  const scopes = request.scopes.map(scope => ({ ...scope, limits: getShares(scope.limits) }))
  const state = getCounterState(own, scopes, now)
  if (state === null) return null
  const granted = decide(state, { ...request, limits, scopes, fairShare: false }, now)
  return 'code' in granted || !getAllowances(own, request).every(held => covers(held, granted)) ? null : granted
}

function covers({ limits, amount }: Allowance, { tokens, microcents }: Grant): boolean {
  const isCostLimited = limits.dailyCostMicrocents !== null || limits.monthlyCostMicrocents !== null
  return (limits.dailyTokens === null || tokens <= amount.tokens) && (!isCostLimited || microcents <= amount.microcents)
}

/** Reserves a granted request from the allowances. */
export function reserveFromAllowance(
  own: OwnAccount,
  request: AdmissionRequest,
  grant: Grant,
  now: number,
): Reservation {
  const open = reserve(own, request, toReservation(own, request, grant, now), now)
  open.isFromAllowance = true
  for (const allowance of getAllowances(own, request)) allowance.amount = sum(allowance.amount, grant, -1)
  return open.reservation
}

/** Returns what an ended request has not used to the allowances. `counted` reports its settlement in Redis. */
export function endFromAllowance(
  own: OwnAccount,
  held: OpenReservation,
  spent: DailyUsage,
): { readonly counted: () => void } {
  const { reservedTokens, reservedMicrocents } = held.reservation
  const allowances = getAllowances(own, held)
  for (const allowance of allowances) {
    // A report that is on its way has it as an open request beside the allowance.
    if (held.reportedIn === undefined)
      allowance.amount = sum(allowance.amount, {
        tokens: reservedTokens - spent.tokens,
        microcents: reservedMicrocents - spent.microcents,
      })
    allowance.unsettled = sum(allowance.unsettled, spent)
  }
  return {
    counted() {
      for (const allowance of allowances) allowance.unsettled = sum(allowance.unsettled, spent, -1)
    },
  }
}

function sum(usage: DailyUsage, more: DailyUsage, sign = 1): DailyUsage {
  return { tokens: usage.tokens + sign * more.tokens, microcents: usage.microcents + sign * more.microcents }
}

/**
 * Returns the allowances in the form of the report: name, limits, what the instance holds, what it uses in 10 s, and a
 * typical request. `isEnding`: it wants none.
 */
export function toAllowanceRows(own: OwnAccount, isEnding: boolean) {
  return [...own.allowances].map(([name, { limits, amount, unsettled, use }]) => {
    const used = { tokens: 0, microcents: 0, requests: 0 }
    for (const { tokens, microcents, requests } of isEnding ? [] : use) {
      used.tokens += tokens
      used.microcents += microcents
      used.requests += requests
    }
    const { tokens, microcents } = sum(amount, unsettled)
    const typical = (of: number) => Math.ceil(of / Math.max(1, used.requests))
    return {
      name,
      // `false`, since the JSON of scripts reads null as true.
      limits: [limits.dailyTokens ?? false, limits.dailyCostMicrocents ?? false, limits.monthlyCostMicrocents ?? false],
      has: [Math.max(0, tokens), Math.max(0, microcents)],
      wants: [used.tokens, used.microcents],
      typical: [typical(used.tokens), typical(used.microcents)],
    } as const
  })
}

/**
 * Takes what Redis replied to a report: amounts in the order of its rows. Amounts that were used since the report was
 * sent are not in it: a larger allowance grows by the difference only.
 */
export function takeGrants(
  own: OwnAccount,
  rows: ReturnType<typeof toAllowanceRows>,
  granted: readonly (readonly [tokens: number, microcents: number])[],
): void {
  for (const [index, { name, has }] of rows.entries()) {
    const allowance = own.allowances.get(name)
    const grant = granted[index]
    if (allowance === undefined || grant === undefined) continue
    const [tokens, microcents] = grant
    allowance.amount = sum(allowance.amount, { tokens: tokens - has[0], microcents: microcents - has[1] })
    allowance.isCounted = tokens + microcents + has[0] + has[1] > 0
    allowance.use.unshift({ tokens: 0, microcents: 0, requests: 0 })
    allowance.use.length = Math.min(allowance.use.length, buckets)
  }
}

/** Returns true if this instance has nothing of the account that another one would have to know. */
export function isIdle({ reservations, own, allowances }: OwnAccount, now: number): boolean {
  return (
    reservations.size === 0 &&
    own.requests.count(now) === 0 &&
    [...allowances.values()].every(
      ({ amount, unsettled, isCounted, use }) =>
        !isCounted &&
        amount.tokens + unsettled.tokens <= 0 &&
        amount.microcents + unsettled.microcents <= 0 &&
        use.every(({ requests }) => requests === 0),
    )
  )
}
