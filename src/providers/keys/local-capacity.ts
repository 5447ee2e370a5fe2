import { chooseKey } from '../../models/choose-key.ts'
import {
  completeShortage,
  correctQuota,
  dividedQuota,
  drawQuota,
  emptyQuota,
  type Quota,
  type QuotaUse,
  quotaWaitMs,
  remainingShare,
  type Shortage,
  unusedQuota,
} from '../../models/minute-buckets.ts'
import type { CapacityChoice, CapacityNeed, CapacityStore, KeyOption } from './capacity.ts'

type AccountUse = { quota: Quota; use: QuotaUse }

export type CapacityDeps = {
  readonly clock: { monotonic(): number }
  /** Returns a random number, 0 ≤ x < 1. */
  readonly random: () => number
}

type LocalOptions = {
  /** Processes that divide each quota, because they do not know each other's use. Default: 1. */
  readonly processes?: () => number
  /** An account starts with one request and an otherwise empty quota: others may just have used it. Default: full. */
  readonly startsEmpty?: boolean
}

/** Pauses are as many as accounts and models; this bounds the effect of a defect. */
const maximumPauses = 10_000

/** Counts the capacity of a pool's accounts in this process. */
export class LocalCapacity implements CapacityStore {
  private readonly accounts = new Map<string, AccountUse>()
  /** When the pause of an account, or of a model at an account, ends. */
  private readonly pauses = new Map<string, number>()
  private readonly deps: CapacityDeps
  private readonly processes: () => number
  private readonly startsEmpty: boolean

  constructor(deps: CapacityDeps, { processes = () => 1, startsEmpty = false }: LocalOptions = {}) {
    this.deps = deps
    this.processes = processes
    this.startsEmpty = startsEmpty
  }

  /** Forgets the counted use, and keeps the pauses. */
  reset(): void {
    this.accounts.clear()
  }

  claim(options: readonly KeyOption[], need: CapacityNeed): CapacityChoice {
    const now = this.deps.clock.monotonic()
    const free: { readonly index: number; readonly share: number; readonly weight: number }[] = []
    let waitMs = Number.POSITIVE_INFINITY
    const processes = this.processes()
    for (const [index, { account, quota: whole, weight, share }] of options.entries()) {
      const use = this.accounts.get(account)?.use ?? unusedQuota
      const quota = dividedQuota(whole, processes)
      const wait = Math.max(this.pauseMs(account, need.model, now), quotaWaitMs(quota, use, need.tokens, now))
      if (wait > 0) waitMs = Math.min(waitMs, wait)
      else free.push({ index, weight, share: Math.min(share, remainingShare(quota, use, now)) })
    }
    const index = free[chooseKey(free, this.deps.random())]?.index ?? -1
    const chosen = options[index]
    if (chosen === undefined) return { index: -1, waitMs }
    const { account } = chosen
    const quota = dividedQuota(chosen.quota, processes)
    const own = this.accounts.get(account)
    const use =
      own === undefined && this.startsEmpty
        ? emptyQuota(quota, unusedQuota, completeShortage, now)
        : drawQuota(quota, own?.use ?? unusedQuota, need.tokens, now)
    this.accounts.set(account, { quota, use })
    return { index, waitMs: 0 }
  }

  correct(account: string, tokens: number): void {
    const own = this.accounts.get(account)
    if (own !== undefined) own.use = correctQuota(own.quota, own.use, tokens, this.deps.clock.monotonic())
  }

  exhaust(account: string, shortage: Shortage): void {
    const own = this.accounts.get(account)
    if (own !== undefined) own.use = emptyQuota(own.quota, own.use, shortage, this.deps.clock.monotonic())
  }

  pause(account: string, model: string | null, milliseconds: number): void {
    const key = pauseKey(account, model)
    const until = this.deps.clock.monotonic() + milliseconds
    if (this.pauses.size >= maximumPauses) this.pauses.clear()
    this.pauses.set(key, Math.max(until, this.pauses.get(key) ?? 0))
  }

  private pauseMs(account: string, model: string, now: number): number {
    if (this.pauses.size === 0) return 0
    const until = Math.max(
      this.pauses.get(pauseKey(account, null)) ?? 0,
      this.pauses.get(pauseKey(account, model)) ?? 0,
    )
    return Math.max(0, Math.ceil(until - now))
  }
}

/** An account's name contains no blank. */
function pauseKey(account: string, model: string | null): string {
  return model === null ? account : `${account} ${model}`
}
