/** What names have had. */
export type RateCounter = {
  /** Milliseconds until a name may have one more; 0 = it may. */
  waitMs(name: string, now: number): number
  count(name: string, now: number): void
}

/** Counts one of a name's. Returns 0, or where it has had its fill, and then uncounted, the milliseconds to wait. */
export function countIfAllowed(tally: RateCounter, name: string, now: number): number {
  const wait = tally.waitMs(name, now)
  if (wait === 0) tally.count(name, now)
  return wait
}
