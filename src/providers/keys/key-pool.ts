/**
 * The port of key pools: which credential of a provider serves an attempt. A pool counts requests and tokens per
 * account, and pauses an account after a 429. It skips a rejected key until a reload, or for 60 s if no other key is
 * left. It sends nothing itself.
 */
import type { Access, ProviderFailure } from '../provider.ts'

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

/** A key that serves one attempt. Its capacity is drawn; `settle` ends the claim. */
export type KeyClaim = {
  readonly key: PoolKey
  /** Reads the rate-limit headers of the response. */
  answered(headers: Headers): void
  /** Pauses the account after a 429 or quota error, and the key after a rejected credential. */
  failed(failure: Pick<ProviderFailure, 'kind' | 'retryAfterMs'>, status: number | null): void
  /** Replaces the drawn tokens by the used ones; null = unknown, and the estimate stays. Only the first call counts. */
  settle(tokens: number | null): void
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

/** An amount per minute as upstreams reported it, and what remains now; null = not reported. */
type ReportedLimit = { readonly limit: number; readonly remaining: number } | null

export type KeyPoolStatus = {
  readonly keys: number
  /** Keys that the provider rejected, for a model or for all. */
  readonly rejectedKeys: number
  /** Per model, summed over the accounts of the pool. */
  readonly limits: readonly {
    readonly model: string
    readonly requests: ReportedLimit
    readonly tokens: ReportedLimit
  }[]
}

export type KeyPool = {
  /** Returns synchronously if the capacity is counted in this process. Never throws. */
  claim(need: KeyNeed): KeyClaim | NoKey | Promise<KeyClaim | NoKey>
  /** Returns what the pool knows of its keys, for the operator. Names no key. */
  status(): KeyPoolStatus
}
