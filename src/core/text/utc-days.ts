/** UTC days, by which limits and the ledger count. */

export const dayMs = 86_400_000

/** Returns the UTC day of a time, in days since the epoch. */
export function formatDay(epochMs: number): number {
  return Math.floor(epochMs / dayMs)
}

/** Returns the milliseconds from a time to the next UTC midnight. */
export function untilMidnight(epochMs: number): number {
  return (formatDay(epochMs) + 1) * dayMs - epochMs
}

/**
 * Returns the epoch milliseconds of an ISO 8601 text; NaN if invalid. Also NaN for nonexistent dates such as February
 * 30, which `Date.parse` rolls over.
 */
export function timeIn(text: string): number {
  const day = text.slice(0, 10)
  const midnight = Date.parse(day)
  const exists = Number.isFinite(midnight) && new Date(midnight).toISOString().startsWith(day)
  return exists ? Date.parse(text) : Number.NaN
}
