/**
 * Latency histogram: few enough numbers to store per day, key and model. Counts add up, unlike medians. Six buckets per
 * decade, so a quantile is within 50% of the true value and usually much closer.
 */

const perDecade = [1, 1.5, 2.2, 3.3, 4.7, 6.8] as const
const decades = [10, 100, 1_000, 10_000, 100_000] as const

/** Upper bounds in milliseconds, exclusive: from 10 ms to 11 min, longer than any request may take by default. */
export const durationBoundsMs: readonly number[] = decades.flatMap(decade =>
  perDecade.map(step => Math.round(step * decade)),
)

/** One count per bound, plus one for longer times. */
export const bucketCount = durationBoundsMs.length + 1

/** Returns the bucket of a time: the number of bounds that it has reached. */
export function getBucket(milliseconds: number): number {
  let bucket = 0
  while (bucket < durationBoundsMs.length && milliseconds >= (durationBoundsMs[bucket] ?? 0)) bucket++
  return bucket
}

/** Returns the time in whole milliseconds below which `share` (0–1) of the counts are; null if there are none. */
export function latencyQuantile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  const wanted = share * total
  let below = 0
  for (const [index, count] of counts.entries()) {
    if (count > 0 && below + count >= wanted) {
      const from = durationBoundsMs[index - 1] ?? 0
      // Nothing more is known about values above all bounds.
      const to = durationBoundsMs[index] ?? from
      return Math.round(from + ((to - from) * (wanted - below)) / count)
    }
    below += count
  }
  return null
}
