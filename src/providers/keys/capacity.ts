/** Where a pool's capacity is counted: in this process, or in Redis for all gateway instances. */
import type { Quota, Shortage } from '../../models/minute-buckets.ts'

/** A key that may be claimed. */
export type KeyOption = {
  readonly account: string
  readonly quota: Quota
  readonly weight: number
  /** Remaining share that the upstream reported, 0–1. */
  readonly share: number
}

export type CapacityNeed = {
  /** Full name of the model. */
  readonly model: string
  readonly tokens: number
}

/** Index of the chosen option, whose capacity is drawn; -1 = no option has capacity within `waitMs`. */
export type CapacityChoice = { readonly index: number; readonly waitMs: number }

export type CapacityStore = {
  /** Never throws. `options` is not empty. */
  claim(options: readonly KeyOption[], need: CapacityNeed): CapacityChoice | Promise<CapacityChoice>
  /** Gives tokens of a claim back; negative = it used more than it drew. */
  correct(account: string, tokens: number): void
  /** Empties buckets of an account whose upstream rejected a request that they had room for. */
  exhaust(account: string, shortage: Shortage): void
  /** Pauses an account for one model, or for all if `model` is null. */
  pause(account: string, model: string | null, milliseconds: number): void
}
