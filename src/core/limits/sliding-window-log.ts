/**
 * A sliding window kept as a log of times. Unlike two-bucket counters it is exact, also about when it opens again.
 * Stored as a ring that grows as needed. Times are milliseconds; if the clock steps back, time counts as unchanged.
 */
export type SlidingWindowLog = {
  /** Returns how many added times lie in the window that ends at `now` (later than `now - windowMs`). */
  count(now: number): number
  add(now: number): void
  /** Removes the last added time if it is still in the window. */
  takeBack(): void
  /** Returns the milliseconds from `now` until fewer than `limit` times are in the window; 0 if that is already so. */
  waitUntilUnder(limit: number, now: number): number
  /** Returns the milliseconds from `now` until the window is empty. */
  waitUntilEmpty(now: number): number
  /** Returns the age in milliseconds of each time in the window, oldest first. */
  ages(now: number): number[]
}

/** Creates an empty log over a window of `windowMs`. */
export function createWindowLog(windowMs: number): SlidingWindowLog {
  let ring = new Float64Array(8)
  let first = 0
  let size = 0
  let newest = Number.NEGATIVE_INFINITY

  const at = (index: number) => ring[(first + index) % ring.length] ?? 0
  const settle = (now: number) => {
    newest = Math.max(newest, now)
    while (size > 0 && at(0) <= newest - windowMs) {
      first = (first + 1) % ring.length
      size--
    }
    return newest
  }
  const grow = () => {
    const larger = new Float64Array(ring.length * 2)
    for (let index = 0; index < size; index++) larger[index] = at(index)
    ring = larger
    first = 0
  }

  return {
    count(now) {
      settle(now)
      return size
    },
    add(now) {
      const time = settle(now)
      if (size === ring.length) grow()
      ring[(first + size) % ring.length] = time
      size++
    },
    takeBack() {
      if (size > 0) size--
    },
    waitUntilUnder(limit, now) {
      const time = settle(now)
      // A limit of 0 never has room. A whole window is the longest wait that can be reported.
      if (limit <= 0) return windowMs
      return size < limit ? 0 : at(size - limit) + windowMs - time
    },
    waitUntilEmpty(now) {
      const time = settle(now)
      return size === 0 ? 0 : at(size - 1) + windowMs - time
    },
    ages(now) {
      const time = settle(now)
      return Array.from({ length: size }, (_, index) => time - at(index))
    },
  }
}
