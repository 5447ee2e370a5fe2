/**
 * When a hedge begins: a second attempt at the runner-up, because the first content of the first attempt is late. Its
 * input is billed besides, so that a share of an account's requests bounds it.
 */
import { setBounded } from '../core/text/recent-map.ts'

/** Share of the account's requests with hedging that may hedge, unless the operator sets another. */
export const defaultHedgeShare = 0.1

/** Fewer samples have no p95 of their own. */
const leastSamples = 20
const lateShare = 0.95
/** Without a p95, this many times the catalog's typical time is late, within these bounds in milliseconds. */
const typicalTimes = 3
const unmeasured = { least: 1_000, most: 10_000 }
/** Below it, jitter of the network decides; above it, the first content is late for every model. */
const measured = { least: 50, most: 30_000 }

/** Returns after how many milliseconds the first content of a model is late. `typicalMs`: of the catalog; 0 = unknown. */
export function lateAfterMs(times: FirstTokenTimes | null, typicalMs: number, now: number): number {
  const p95 = times === null || times.samples(now) < leastSamples ? null : times.quantile(lateShare)
  if (p95 !== null) return within(measured, p95)
  return within(unmeasured, typicalMs > 0 ? typicalTimes * typicalMs : unmeasured.most)
}

function within({ least, most }: { readonly least: number; readonly most: number }, value: number): number {
  return Math.max(least, Math.min(most, value))
}

/** Hedges that an account may save up, as requests with hedging: 100 of them earn this share of 100 hedges. */
const savedRequests = 100
const maximumAccounts = 10_000

/** Bounds the hedges of each account to a share of its requests with hedging. */
export class HedgeBudget {
  /** Hedges that an account may begin; fractions are earned by requests. */
  private readonly credits = new Map<string, number>()

  /** `share`: 0–1; 0 = no hedges. */
  constructor(private readonly share: number) {}

  /** Counts a request with hedging. */
  earn(accountId: string): void {
    if (this.share === 0) return
    // The first request may hedge, so that an account with few requests can.
    const credit = (this.credits.get(accountId) ?? 1 - this.share) + this.share
    this.store(accountId, Math.min(credit, Math.max(1, this.share * savedRequests)))
  }

  /** Draws one hedge; false = the share is used up. */
  draw(accountId: string): boolean {
    const credit = this.credits.get(accountId) ?? 0
    // A sum of tenths can be a little less than 1.
    if (credit < 1 - 1e-9) return false
    this.store(accountId, credit - 1)
    return true
  }

  private store(accountId: string, credit: number): void {
    setBounded(this.credits, accountId, credit, maximumAccounts)
  }
}

/**
 * Recent times to first token of one model, with hourly decay: enough to know its own p95. A histogram with steps of
 * 15%, because a normal distribution of logarithms hides a heavy tail.
 */

const halfLifeMs = 3_600_000
const step = Math.log(1.15)
/** From 1 ms to 10 min. */
const bucketCount = 96
/** Larger weights than 2^this lose precision. */
const maximumHalfLives = 30

/** Updated in place. Times are monotonic milliseconds. */
export class FirstTokenTimes {
  /** Newer samples weigh more, instead of all older ones less: a sample changes one bucket. */
  private readonly weights = new Float64Array(bucketCount)
  private total = 0
  private origin: number

  constructor(now: number) {
    this.origin = now
  }

  add(firstTokenMs: number, now: number): void {
    if (now - this.origin > maximumHalfLives * halfLifeMs) this.restart(now)
    const weight = this.weightAt(now)
    const index = Math.max(0, Math.min(bucketCount - 1, Math.floor(Math.log(Math.max(1, firstTokenMs)) / step)))
    this.weights[index] = (this.weights[index] ?? 0) + weight
    this.total += weight
  }

  /** Returns how many samples there are, older ones counted less. */
  samples(now: number): number {
    return this.total / this.weightAt(now)
  }

  /** Returns the milliseconds within which `share` (0–1) of the first tokens arrived; null = no sample. */
  quantile(share: number): number | null {
    if (this.total === 0) return null
    const wanted = share * this.total
    let below = 0
    for (const [index, weight] of this.weights.entries()) {
      if (weight > 0 && below + weight >= wanted) return Math.exp(step * (index + (wanted - below) / weight))
      below += weight
    }
    return Math.exp(step * bucketCount)
  }

  private weightAt(now: number): number {
    return 2 ** ((now - this.origin) / halfLifeMs)
  }

  private restart(now: number): void {
    const factor = 1 / this.weightAt(now)
    for (const [index, weight] of this.weights.entries()) this.weights[index] = weight * factor
    this.total *= factor
    this.origin = now
  }
}
