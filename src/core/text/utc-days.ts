/** Days of UTC, which is what limits and the ledger count by. */

export const dayMs = 86_400_000

/** The day of a time, in days since the epoch. */
export function formatDay(epochMs: number): number {
  return Math.floor(epochMs / dayMs)
}

/** Milliseconds from a time to the next day. */
export function untilMidnight(epochMs: number): number {
  return (formatDay(epochMs) + 1) * dayMs - epochMs
}

/** Epoch milliseconds of an ISO 8601 text; NaN also for a day that is in no calendar, which `Date.parse` takes for a later one. */
export function timeIn(text: string): number {
  const day = text.slice(0, 10)
  const midnight = Date.parse(day)
  const exists = Number.isFinite(midnight) && new Date(midnight).toISOString().startsWith(day)
  return exists ? Date.parse(text) : Number.NaN
}
