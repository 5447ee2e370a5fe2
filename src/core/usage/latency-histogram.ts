/**
 * How long things took, as counts: few enough numbers to keep for every day, key and model, and they add up, as medians do not.
 * Bounds are six a decade, so that a quantile read from them is within half of the true one, and mostly much nearer.
 */

const perDecade = [1, 1.5, 2.2, 3.3, 4.7, 6.8] as const
const decades = [10, 100, 1_000, 10_000, 100_000] as const

/** Upper bounds in milliseconds, each excluded: from 10 ms to 11 min, longer than any request may take unless told so. */
export const durationBoundsMs: readonly number[] = decades.flatMap(decade =>
  perDecade.map(step => Math.round(step * decade)),
)

/** One count a bound, and a last one for what took longer than all. */
export const bucketCount = durationBoundsMs.length + 1

/** Below which time `share` (0–1) of what was counted stayed, in whole milliseconds; null where nothing was. */
export function latencyQuantile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  const wanted = share * total
  let below = 0
  for (const [index, count] of counts.entries()) {
    if (count > 0 && below + count >= wanted) {
      const from = durationBoundsMs[index - 1] ?? 0
      // Of what took longer than all bounds no more is known.
      const to = durationBoundsMs[index] ?? from
      return Math.round(from + ((to - from) * (wanted - below)) / count)
    }
    below += count
  }
  return null
}
