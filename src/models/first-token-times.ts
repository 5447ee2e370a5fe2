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
