/** Days of UTC, which is what limits and the ledger count by. */

export const dayMs = 86_400_000

/** The day of a time, in days since the epoch. */
export function dayOf(epochMs: number): number {
  return Math.floor(epochMs / dayMs)
}
