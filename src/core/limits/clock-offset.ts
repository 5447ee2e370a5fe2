/** One question for the time. All in epoch milliseconds: when it was asked and answered by our own clock, and what was told. */
export type ClockSample = { readonly askedAt: number; readonly told: number; readonly answeredAt: number }

export type ClockOffset = {
  /** Milliseconds to add to our own clock for the other one's time; 0 before the first answer. */
  milliseconds(): number
  take(answer: ClockSample): void
}

/** What an answer says of the other clock: it is ahead by `ahead`, give or take `margin` (milliseconds both). */
type Estimate = { readonly ahead: number; readonly margin: number }

/** Clocks that are kept well differ by less, and should not be told apart. */
const ignoredMs = 1_000
const keptEstimates = 8

/**
 * How far another clock is from ours, by the quickest of the latest answers. It moves only where the answers contradict it,
 * by a second at least: time should not stir with every round trip.
 */
export function createClockOffset(): ClockOffset {
  let latest: readonly Estimate[] = []
  let offset = 0
  return {
    milliseconds: () => offset,
    take({ askedAt, told, answeredAt }) {
      // Our own clock was set back meanwhile.
      if (answeredAt < askedAt) return
      const estimate = { ahead: told - (askedAt + answeredAt) / 2, margin: (answeredAt - askedAt) / 2 }
      // Where two cannot both be true a clock was set in between, and what was told before is of no use.
      const agrees = latest.every(other => distance(other, estimate) <= other.margin + estimate.margin + ignoredMs)
      latest = [...(agrees ? latest.slice(1 - keptEstimates) : []), estimate]
      const best = latest.reduce((least, one) => (one.margin <= least.margin ? one : least))
      const error = Math.abs(best.ahead - offset)
      if (error < ignoredMs || error <= best.margin) return
      offset = Math.abs(best.ahead) < ignoredMs ? 0 : Math.round(best.ahead)
    },
  }
}

function distance(one: Estimate, other: Estimate): number {
  return Math.abs(one.ahead - other.ahead)
}
