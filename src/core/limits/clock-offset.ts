/**
 * One time query to another clock. All values are epoch milliseconds: when our clock sent and received it, and the time
 * that the other clock reported.
 */
type ClockSample = { readonly askedAt: number; readonly told: number; readonly answeredAt: number }

type ClockOffset = {
  /** Milliseconds to add to our own clock to get the other clock's time; 0 before the first sample. */
  milliseconds(): number
  take(answer: ClockSample): void
}

/** The other clock is ahead by `ahead` ± `margin`, both in milliseconds. */
type Estimate = { readonly ahead: number; readonly margin: number }

/** Smaller differences between synchronized clocks are ignored. */
const ignoredMs = 1_000
const keptEstimates = 8

/**
 * Creates an estimate of another clock's offset from ours, based on the fastest of the latest samples. The estimate
 * changes only if samples contradict it by at least 1 s, so that time does not jitter with each round trip.
 */
export function createClockOffset(): ClockOffset {
  let latest: readonly Estimate[] = []
  let offset = 0
  return {
    milliseconds: () => offset,
    take({ askedAt, told, answeredAt }) {
      // Our own clock was set back during the query.
      if (answeredAt < askedAt) return
      const estimate = { ahead: told - (askedAt + answeredAt) / 2, margin: (answeredAt - askedAt) / 2 }
      // If two samples cannot both be true, a clock was set in between, and the older samples are useless.
      const agrees = latest.every(other => distance(other, estimate) <= other.margin + estimate.margin + ignoredMs)
      latest = [...(agrees ? latest.slice(1 - keptEstimates) : []), estimate]
      const best = latest.reduce((least, item) => (item.margin <= least.margin ? item : least))
      const error = Math.abs(best.ahead - offset)
      if (error < ignoredMs || error <= best.margin) return
      offset = Math.abs(best.ahead) < ignoredMs ? 0 : Math.round(best.ahead)
    },
  }
}

function distance(estimate: Estimate, other: Estimate): number {
  return Math.abs(estimate.ahead - other.ahead)
}
