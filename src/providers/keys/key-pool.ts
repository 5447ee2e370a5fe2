/**
 * The keys of a provider. A claim gives an attempt the key with the most remaining capacity, and equal keys take turns
 * by weight. An account pauses after a 429; a rejected key is skipped until a reload, or for 60 s if no other is left.
 * Counts in this process only: what another process used is seen in the upstream's rate headers and 429s.
 */
import type { Clock } from '../../core/ports.ts'
import type { Access, ProviderFailure } from '../provider.ts'
import {
  findReset,
  getShortage,
  noLimits,
  type Quota,
  RateLimits,
  type ReportedLimit,
  type ReportedQuotas,
  readRateHeaders,
  sumOfLimits,
} from './rate-limits.ts'

/** One credential of a provider. */
export type PoolKey = {
  /** Name in the configuration, for the operator. */
  readonly name: string
  readonly access: Access
  /** Keys of one account share its quota. A key without a configured account is its own. */
  readonly account: string
  readonly weight: number
  /** Full names of the models that it may call; null = all. */
  readonly models: ReadonlySet<string> | null
}

export type KeyPoolContents = {
  readonly keys: readonly PoolKey[]
  /** This process's share of the quota of each account that has a configured one. */
  readonly quotas: ReadonlyMap<string, Quota>
}

/** One attempt that needs a key. */
export type KeyNeed = {
  /** Full name of the model. */
  readonly model: string
  /** Estimated tokens: input and output cap. */
  readonly tokens: number
  /** Keys that already failed this request. */
  readonly except: ReadonlySet<PoolKey>
  /** Account that has the prompt in its cache: it serves while it has capacity. Absent or null = none. */
  readonly preferred?: string | null
}

/**
 * Why no key serves an attempt. `not_permitted`: no key may call the model, or all were tried. `refused`: the provider
 * rejects them. `at_limit`: they have no capacity for `waitMs`.
 */
export type NoKey = {
  readonly key: null
  readonly reason: 'not_permitted' | 'refused' | 'at_limit'
  readonly waitMs: number
}

/** `unused`: no call has ended with it yet. `rejected`: for a model or for all. */
type KeyState = 'unused' | 'working' | 'rejected' | 'rate_limited'

type KeyPoolStatus = {
  readonly keys: readonly { readonly name: string; readonly account: string; readonly state: KeyState }[]
  /** Per model, summed over the accounts of the pool. */
  readonly limits: readonly {
    readonly model: string
    readonly requests: ReportedLimit
    readonly tokens: ReportedLimit
  }[]
}

type KeyFailure = Pick<ProviderFailure, 'kind' | 'retryAfterMs'> & {
  /** HTTP status; null = none. */
  readonly status: number | null
}

/** Pause of an account whose upstream states no time. */
const usualPauseMs = 5_000
/** An exhausted budget is not refilled within a minute. */
const quotaPauseMs = 60_000
const maximumPauseMs = 3_600_000
/** A pool without another key tries a rejected one again after this time, as a provider with one key does. */
const lastKeyRetryMs = 60_000
/** Models come from the small catalog; this bounds the effect of a defect. */
const maximumModels = 10_000
/** Shares within one step count as equal. Otherwise a single request would decide instead of the weights. */
const shareSteps = 10

/** State of one account at the provider. Times are monotonic milliseconds. */
type Account = {
  configured: RateLimits
  /** By model, because limits of providers are per model. Reports only lower the capacity. */
  readonly reported: Map<string, RateLimits>
  /** When a pause ends, by model; null = all models. */
  readonly pauses: Map<string | null, number>
}

const isSame = (left: PoolKey, right: PoolKey) =>
  left.account === right.account && left.access.apiKey === right.access.apiKey

/** The keys of a provider, which a reload can replace. */
export class KeyPool {
  private keys: readonly PoolKey[] = []
  private readonly accounts = new Map<string, Account>()
  /** When a key was rejected, by model; null = for all models. */
  private readonly refused = new Map<PoolKey, Map<string | null, number>>()
  /** Keys with which a call has succeeded. */
  readonly worked = new WeakSet<PoolKey>()
  /** Turns of equal keys: smooth weighted round robin. */
  private readonly turns = new Map<PoolKey, number>()

  constructor(
    contents: KeyPoolContents,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {
    this.replace(contents)
  }

  /**
   * Replaces the keys. Accounts keep their counted use; rejected keys may be used again, and keys that worked and stay still
   * do. What the provider said about an account is forgotten when none of its keys stays: a rotated key may be one of
   * another account there.
   */
  replace({ keys, quotas }: KeyPoolContents): void {
    const pairs = keys.flatMap(key => this.keys.filter(old => isSame(old, key)).map(old => [key, old] as const))
    const staying = new Set(pairs.map(([{ account }]) => account))
    for (const [key, old] of pairs) if (this.worked.has(old)) this.worked.add(key)
    this.keys = keys
    this.refused.clear()
    this.turns.clear()
    for (const { account } of keys) {
      const state = this.getAccount(account)
      state.configured = RateLimits.ofQuota(quotas.get(account), state.configured)
      if (staying.has(account)) continue
      state.reported.clear()
      state.pauses.clear()
    }
  }

  /** Returns whether the pool has the credential under this account: a late response may be about a replaced one. */
  private has(key: PoolKey): boolean {
    return this.keys.some(known => isSame(known, key))
  }

  /** Draws the capacity of one attempt. Its claim ends with `settle`. */
  claim(need: KeyNeed): KeyClaim | NoKey {
    const { model, except, preferred } = need
    const now = this.clock.monotonic()
    const permitted = this.keys.filter(key => (key.models === null || key.models.has(model)) && !except.has(key))
    if (permitted.length === 0) return { key: null, reason: 'not_permitted', waitMs: 0 }
    const accepted = permitted.filter(key => this.refusedAt(key, model) === null)
    const usable = accepted.length > 0 ? accepted : permitted.filter(key => this.mayRetry(key, model, now))
    if (usable.length === 0) return { key: null, reason: 'refused', waitMs: 0 }
    const waits = usable.map(key => this.waitMs(key, need, now))
    const free = usable.filter((_, index) => waits[index] === 0)
    const cached = preferred == null ? undefined : free.find(({ account }) => account === preferred)
    const key = cached ?? this.findNext(free, model, now)
    if (key === null) return { key: null, reason: 'at_limit', waitMs: Math.min(...waits) }
    for (const limits of this.getLimits(key, model)) limits.draw(need.tokens, now)
    return new KeyClaim(key, need, this)
  }

  find(name: string): PoolKey | null {
    return this.keys.find(key => key.name === name) ?? null
  }

  /** Returns what the pool knows of its keys, for the operator. Contains no credential. */
  status(): KeyPoolStatus {
    const now = this.clock.monotonic()
    const reports = [...this.accounts.values()].flatMap(({ reported }) => [...reported])
    return {
      keys: this.keys.map(key => ({ name: key.name, account: key.account, state: this.getState(key, now) })),
      limits: [...Map.groupBy(reports, ([model]) => model)].map(([model, entries]) => {
        const limits = entries.map(([, limit]) => limit)
        return { model, requests: sumOfLimits(limits, 'requests', now), tokens: sumOfLimits(limits, 'tokens', now) }
      }),
    }
  }

  /** Notes what the upstream reported about the account and model of a claim. */
  note({ key, need }: KeyClaim, headers: Headers): ReportedQuotas | null {
    const reported = readRateHeaders(headers)
    if (reported === null || !this.has(key)) return null
    const { reported: byModel } = this.getAccount(key.account)
    if (byModel.size >= maximumModels) byModel.clear()
    byModel.set(need.model, RateLimits.ofReport(reported, this.clock.monotonic()))
    return reported
  }

  /** Gives tokens of a claim back to the configured quota; negative = it used more than it drew. */
  giveBack({ account }: PoolKey, tokens: number): void {
    this.getAccount(account).configured.tokens?.draw(-tokens, this.clock.monotonic())
  }

  /** Pauses the account, or the account for one model, or the key, by the failure. */
  coolDown({ key, need }: KeyClaim, failure: KeyFailure, reported: ReportedQuotas | null): void {
    const { model, tokens } = need
    const { kind, status, retryAfterMs } = failure
    const now = this.clock.monotonic()
    if (!this.has(key)) return
    if (kind === 'credential_refused') {
      const refusals = this.refused.get(key) ?? new Map<string | null, number>()
      // 403: the key is valid and lacks a permission, usually that for a model.
      this.refused.set(key, refusals.set(status === 403 ? model : null, now))
    } else if (kind === 'quota_exhausted')
      this.pause(key, null, now + Math.min(maximumPauseMs, Math.max(quotaPauseMs, retryAfterMs ?? 0)))
    else if (kind === 'rate_limited') {
      // A request above the whole limit is refused however much capacity there is.
      if (this.getLimits(key, model).some(limits => tokens > (limits.tokens?.limit ?? tokens))) return
      this.pause(key, model, now + Math.min(maximumPauseMs, retryAfterMs ?? findReset(reported) ?? usualPauseMs))
      // The upstream counts more than this pool knows. Otherwise each end of a pause would send a burst again.
      const { configured } = this.getAccount(key.account)
      const short = getShortage(reported, tokens)
      if (short.requests) configured.requests?.draw(configured.requests.limit, now)
      if (short.tokens) configured.tokens?.draw(configured.tokens.limit, now)
    }
  }

  private getState(key: PoolKey, now: number): KeyState {
    if (this.refused.has(key)) return 'rejected'
    const { pauses } = this.getAccount(key.account)
    if (pauses.values().some(until => until > now)) return 'rate_limited'
    return this.worked.has(key) ? 'working' : 'unused'
  }

  private getAccount(account: string): Account {
    let state = this.accounts.get(account)
    if (state === undefined) {
      state = { configured: noLimits, reported: new Map(), pauses: new Map() }
      this.accounts.set(account, state)
    }
    return state
  }

  private getLimits({ account }: PoolKey, model: string): readonly RateLimits[] {
    const { configured, reported } = this.getAccount(account)
    return [configured, reported.get(model) ?? noLimits]
  }

  /** Milliseconds until the key has capacity; 0 = now. */
  private waitMs(key: PoolKey, { model, tokens }: KeyNeed, now: number): number {
    const { pauses } = this.getAccount(key.account)
    const pausedUntil = Math.max(pauses.get(null) ?? 0, pauses.get(model) ?? 0)
    const waits = this.getLimits(key, model).map(limits => limits.waitMs(tokens, now))
    return Math.max(0, Math.ceil(pausedUntil - now), ...waits)
  }

  /** Returns the key whose turn it is among those with the most remaining capacity; null = the list is empty. */
  private findNext(keys: readonly PoolKey[], model: string, now: number): PoolKey | null {
    const steps = keys.map(key =>
      Math.ceil(Math.min(...this.getLimits(key, model).map(limits => limits.share(now))) * shareSteps),
    )
    const most = Math.max(...steps)
    const equals = keys.filter((_, index) => steps[index] === most)
    let chosen: PoolKey | null = null
    for (const key of equals) {
      this.turns.set(key, this.getTurn(key) + key.weight)
      if (chosen === null || this.getTurn(key) > this.getTurn(chosen)) chosen = key
    }
    const weights = equals.reduce((sum, { weight }) => sum + weight, 0)
    if (chosen !== null) this.turns.set(chosen, this.getTurn(chosen) - weights)
    return chosen
  }

  private getTurn(key: PoolKey): number {
    return this.turns.get(key) ?? 0
  }

  private pause({ account }: PoolKey, model: string | null, until: number): void {
    const { pauses } = this.getAccount(account)
    if (pauses.size >= maximumModels) pauses.clear()
    pauses.set(model, Math.max(until, pauses.get(model) ?? 0))
  }

  private refusedAt(key: PoolKey, model: string): number | null {
    const refusals = this.refused.get(key)
    return refusals?.get(null) ?? refusals?.get(model) ?? null
  }

  private mayRetry(key: PoolKey, model: string, now: number): boolean {
    const at = this.refusedAt(key, model)
    return at === null || now >= at + lastKeyRetryMs
  }
}

/** A key that serves one attempt. */
export class KeyClaim {
  private reported: ReportedQuotas | null = null
  private isAnswered = false
  private isSettled = false

  constructor(
    readonly key: PoolKey,
    readonly need: KeyNeed,
    private readonly pool: KeyPool,
  ) {}

  /** Reads the rate-limit headers of the response. */
  answered(headers: Headers): void {
    this.isAnswered = true
    this.reported = this.pool.note(this, headers)
  }

  /**
   * Replaces the drawn tokens by the used ones; null = unknown, and the estimate stays. Then cools down what a failure
   * of the key concerns: tokens given back after a 429 would be capacity that the upstream has just denied. Only the
   * first call counts.
   */
  settle(tokens: number | null, failure: KeyFailure | null = null): void {
    if (this.isSettled) return
    this.isSettled = true
    if (tokens !== null) this.pool.giveBack(this.key, this.need.tokens - tokens)
    if (failure !== null) this.pool.coolDown(this, failure, this.reported)
    else if (this.isAnswered) this.pool.worked.add(this.key)
  }
}
