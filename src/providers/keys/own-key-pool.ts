import type { Quota, Shortage } from '../../models/minute-buckets.ts'
import type { ProviderFailure } from '../provider.ts'
import type { CapacityChoice, CapacityStore, KeyOption } from './capacity.ts'
import type { KeyClaim, KeyNeed, KeyPool, KeyPoolStatus, NoKey, PoolKey } from './key-pool.ts'
import { type ReportedQuota, type ReportedQuotas, readRateHeaders } from './rate-headers.ts'

export type KeyPoolContents = {
  readonly keys: readonly PoolKey[]
  /** Quota of each account that has a configured one. */
  readonly quotas: ReadonlyMap<string, Quota>
}

type PoolDeps = {
  readonly clock: { monotonic(): number }
  readonly capacity: CapacityStore
}

/** A quota that an upstream reported, and when in monotonic milliseconds. */
type Report = ReportedQuota & { readonly at: number; readonly perUnitMs: number }
/** The failure of a key, with the response that it came with. */
type KeyFailure = Pick<ProviderFailure, 'kind' | 'retryAfterMs'> & {
  /** HTTP status; null = none. */
  readonly status: number | null
  /** Quotas of the same response. */
  readonly reported: ReportedQuotas | null
}

type Reports = { readonly requests: Report | null; readonly tokens: Report | null }

const noQuota: Quota = { requests: null, tokens: null }
/** Pause of an account whose upstream states no time. */
const usualPauseMs = 5_000
/** An exhausted budget is not refilled within a minute. */
const quotaPauseMs = 60_000
const maximumPauseMs = 3_600_000
/** A pool without another key tries a rejected one again after this time, as a provider with one key does. */
const lastKeyRetryMs = 60_000
const minuteMs = 60_000
/** Reports are as many as accounts and models; this bounds the effect of a defect. */
const maximumReports = 10_000

/** A key pool whose keys a reload can replace. */
export class OwnKeyPool implements KeyPool {
  private contents: KeyPoolContents
  private readonly deps: PoolDeps
  /** When a key was rejected for a model, or for all (null), in monotonic milliseconds. */
  private readonly refused = new Map<PoolKey, Map<string | null, number>>()
  /** By account and model: limits of providers are per model. */
  private readonly reports = new Map<string, Reports>()

  constructor(contents: KeyPoolContents, deps: PoolDeps) {
    this.contents = contents
    this.deps = deps
  }

  /** Replaces the keys. Accounts keep their counted use; rejected keys may be used again. */
  replace(contents: KeyPoolContents): void {
    this.contents = contents
    this.refused.clear()
  }

  claim(need: KeyNeed): KeyClaim | NoKey | Promise<KeyClaim | NoKey> {
    const permitted = this.contents.keys.filter(
      key => (key.models === null || key.models.has(need.model)) && !need.except.has(key),
    )
    if (permitted.length === 0) return { key: null, reason: 'not_permitted', waitMs: 0 }
    const accepted = permitted.filter(key => this.refusedAt(key, need.model) === null)
    const usable = accepted.length > 0 ? accepted : permitted.filter(key => this.mayRetry(key, need.model))
    if (usable.length === 0) return { key: null, reason: 'refused', waitMs: 0 }
    const { keys, options, waitMs } = this.optionsFor(usable, need)
    if (options.length === 0) return { key: null, reason: 'at_limit', waitMs }
    const toClaim = ({ index, waitMs: otherWaitMs }: { index: number; waitMs: number }): KeyClaim | NoKey => {
      const key = keys[index]
      if (key === undefined) return { key: null, reason: 'at_limit', waitMs: Math.min(waitMs, otherWaitMs) }
      this.drawReport(key, need)
      return new OwnClaim(key, need, this)
    }
    const choice = this.claimOne(keys, options, need)
    return choice instanceof Promise ? choice.then(toClaim) : toClaim(choice)
  }

  /** Claims a key of the preferred account; if it has no capacity, any. */
  private claimOne(
    keys: readonly PoolKey[],
    options: readonly KeyOption[],
    need: KeyNeed,
  ): CapacityChoice | Promise<CapacityChoice> {
    const { capacity } = this.deps
    const at = need.preferred == null ? -1 : keys.findIndex(({ account }) => account === need.preferred)
    const first = options[at]
    if (first === undefined || options.length === 1) return capacity.claim(options, need)
    const choice = capacity.claim([first], need)
    const orAny = ({ index }: CapacityChoice) =>
      index === 0 ? { index: at, waitMs: 0 } : capacity.claim(options, need)
    return choice instanceof Promise ? choice.then(orAny) : orAny(choice)
  }

  status(): KeyPoolStatus {
    const now = this.deps.clock.monotonic()
    const byModel = Map.groupBy(this.reports, ([name]) => name.slice(name.lastIndexOf(' ') + 1))
    return {
      keys: this.contents.keys.length,
      rejectedKeys: this.contents.keys.filter(key => this.refused.has(key)).length,
      limits: [...byModel].map(([model, reports]) => ({
        model,
        requests: summed(
          reports.map(([, { requests }]) => requests),
          now,
        ),
        tokens: summed(
          reports.map(([, { tokens }]) => tokens),
          now,
        ),
      })),
    }
  }

  /** Stores what the upstream reported about the key's account and model. */
  note({ account }: PoolKey, model: string, headers: Headers): ReportedQuotas | null {
    const reported = readRateHeaders(headers)
    if (reported === null) return null
    const at = this.deps.clock.monotonic()
    const stamped = (quota: ReportedQuota | null) =>
      quota === null ? null : { ...quota, at, perUnitMs: perUnitMsOf(quota) }
    if (this.reports.size >= maximumReports) this.reports.clear()
    this.reports.set(`${account} ${model}`, { requests: stamped(reported.requests), tokens: stamped(reported.tokens) })
    return reported
  }

  /** Pauses the account, or the account for one model, or the key, by the failure. */
  fail(key: PoolKey, { model, tokens }: KeyNeed, { kind, retryAfterMs, status, reported }: KeyFailure): void {
    const { clock, capacity } = this.deps
    // 403: the key is valid and lacks a permission, usually that for a model.
    if (kind === 'credential_refused') this.refuse(key, status === 403 ? model : null, clock.monotonic())
    else if (kind === 'quota_exhausted')
      capacity.pause(key.account, null, Math.min(maximumPauseMs, Math.max(quotaPauseMs, retryAfterMs ?? 0)))
    else if (kind === 'rate_limited') {
      // A request above the whole limit is refused however much capacity there is.
      if (tokens > this.tokenLimit(key, model)) return
      const pauseMs = Math.min(maximumPauseMs, retryAfterMs ?? resetOf(reported) ?? usualPauseMs)
      capacity.pause(key.account, model, pauseMs)
      // The upstream counts more than this pool knows. Otherwise each end of a pause would send a burst again.
      if (this.contents.quotas.has(key.account)) capacity.exhaust(key.account, shortageOf(reported, tokens))
    }
  }

  correct({ account }: PoolKey, tokens: number): void {
    if (this.contents.quotas.get(account)?.tokens != null) this.deps.capacity.correct(account, tokens)
  }

  private refuse(key: PoolKey, model: string | null, at: number): void {
    const refusals = this.refused.get(key) ?? new Map<string | null, number>()
    this.refused.set(key, refusals.set(model, at))
  }

  private refusedAt(key: PoolKey, model: string): number | null {
    const refusals = this.refused.get(key)
    return refusals?.get(null) ?? refusals?.get(model) ?? null
  }

  private mayRetry(key: PoolKey, model: string): boolean {
    const at = this.refusedAt(key, model)
    return at === null || this.deps.clock.monotonic() >= at + lastKeyRetryMs
  }

  /** Tokens per minute of the key's account, as configured and as reported. */
  private tokenLimit({ account }: PoolKey, model: string): number {
    const configured = this.contents.quotas.get(account)?.tokens ?? Number.POSITIVE_INFINITY
    return Math.min(configured, this.reports.get(`${account} ${model}`)?.tokens?.limit ?? Number.POSITIVE_INFINITY)
  }

  /** Leaves out keys without capacity by the upstream's own report; `waitMs` until the first of them has some. */
  private optionsFor(usable: readonly PoolKey[], { model, tokens }: KeyNeed) {
    const now = this.deps.clock.monotonic()
    const keys: PoolKey[] = []
    const options: KeyOption[] = []
    let waitMs = Number.POSITIVE_INFINITY
    for (const key of usable) {
      const { account, weight } = key
      const report = this.reports.get(`${account} ${model}`) ?? null
      const wait = Math.max(reportWaitMs(report?.requests, 1, now), reportWaitMs(report?.tokens, tokens, now))
      if (wait > 0) {
        waitMs = Math.min(waitMs, wait)
        continue
      }
      const share = Math.min(reportShare(report?.requests, now), reportShare(report?.tokens, now))
      keys.push(key)
      options.push({ account, weight, share, quota: this.contents.quotas.get(account) ?? noQuota })
    }
    return { keys, options, waitMs }
  }

  /** Draws a request from the last report, so that requests before the next report count too. */
  private drawReport({ account }: PoolKey, { model, tokens }: KeyNeed): void {
    const name = `${account} ${model}`
    const report = this.reports.get(name)
    if (report === undefined) return
    this.reports.set(name, {
      requests: report.requests && drawn(report.requests, 1),
      tokens: report.tokens && drawn(report.tokens, tokens),
    })
  }
}

class OwnClaim implements KeyClaim {
  readonly key: PoolKey
  private readonly need: KeyNeed
  private readonly pool: OwnKeyPool
  private reported: ReportedQuotas | null = null
  private isSettled = false

  constructor(key: PoolKey, need: KeyNeed, pool: OwnKeyPool) {
    this.key = key
    this.need = need
    this.pool = pool
  }

  answered(headers: Headers): void {
    this.reported = this.pool.note(this.key, this.need.model, headers)
  }

  failed({ kind, retryAfterMs }: Pick<ProviderFailure, 'kind' | 'retryAfterMs'>, status: number | null): void {
    this.pool.fail(this.key, this.need, { kind, retryAfterMs, status, reported: this.reported })
  }

  settle(tokens: number | null): void {
    if (this.isSettled) return
    this.isSettled = true
    const unused = tokens === null ? 0 : this.need.tokens - tokens
    if (unused !== 0) this.pool.correct(this.key, unused)
  }
}

/** Returns the quota after a request. It refills at the reported rate, so its reset is later. */
function drawn(quota: Report, amount: number): Report {
  const { remaining, resetMs, perUnitMs } = quota
  return { ...quota, remaining: remaining - amount, resetMs: Math.min(maximumPauseMs, resetMs + amount * perUnitMs) }
}

/** Returns the milliseconds in which one unit of a quota returns. */
function perUnitMsOf({ limit, remaining, resetMs }: ReportedQuota): number {
  return limit > remaining && resetMs > 0 ? resetMs / (limit - remaining) : minuteMs / Math.max(1, limit)
}

/** Returns the remaining amount at `now`. The quota refills linearly until the reset. */
function remainingOf({ limit, remaining, resetMs, at }: Report, now: number): number {
  const passed = resetMs === 0 ? 1 : Math.min(1, (now - at) / resetMs)
  return remaining + (limit - remaining) * passed
}

/** Returns the sum of the reported quotas at `now`; null = none is reported. */
function summed(reports: readonly (Report | null)[], now: number) {
  const known = reports.filter(report => report !== null)
  if (known.length === 0) return null
  return {
    limit: known.reduce((sum, { limit }) => sum + limit, 0),
    remaining: Math.max(0, Math.floor(known.reduce((sum, report) => sum + remainingOf(report, now), 0))),
  }
}

/** An amount above the whole limit waits only for the reset, because the estimate is an upper bound. */
function reportWaitMs(report: Report | null | undefined, amount: number, now: number): number {
  if (report == null) return 0
  const { limit, remaining, resetMs, at } = report
  const needed = Math.min(amount, limit)
  if (remainingOf(report, now) >= needed || limit <= remaining) return 0
  return Math.max(0, Math.ceil(at + resetMs * ((needed - remaining) / (limit - remaining)) - now))
}

function reportShare(report: Report | null | undefined, now: number): number {
  if (report == null || report.limit === 0) return 1
  return Math.max(0, Math.min(1, remainingOf(report, now) / report.limit))
}

/** Returns which quotas the upstream reports as too small for a request; both if it reports none. */
function shortageOf(reported: ReportedQuotas | null, tokens: number): Shortage {
  const isRequests = reported?.requests != null && reported.requests.remaining < 1
  const isTokens = reported?.tokens != null && reported.tokens.remaining < tokens
  return { requests: isRequests || !isTokens, tokens: isTokens || !isRequests }
}

/** Returns the milliseconds until an exhausted quota is available again; null = none is reported as exhausted. */
function resetOf(reported: ReportedQuotas | null): number | null {
  const resets = [reported?.requests, reported?.tokens].flatMap(quota =>
    quota != null && quota.remaining === 0 ? [quota.resetMs] : [],
  )
  return resets.length === 0 ? null : Math.max(...resets)
}
