/** Requests counted per key. */
export type RateCounter = {
  /** Returns the milliseconds until `name` may have one more request; 0 = now. */
  waitMs(name: string, now: number): number
  count(name: string, now: number): void
}

/**
 * Counts one request for `name` and returns 0. If the limit is reached, counts nothing and returns the milliseconds to
 * wait.
 */
export function countIfAllowed(counter: RateCounter, name: string, now: number): number {
  const wait = counter.waitMs(name, now)
  if (wait === 0) counter.count(name, now)
  return wait
}
