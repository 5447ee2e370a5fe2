/**
 * Puts an entry where it belongs in an ordered list: behind all that `order` (as of `Array.sort`) does not put behind it. Quicker
 * than to sort a list where it is short or mostly comes in order.
 */
export function insertSorted<T>(ordered: T[], entry: T, order: (before: T, entry: T) => number): void {
  let at = ordered.length
  for (; at > 0; at--) {
    const before = ordered[at - 1]
    if (before === undefined || order(before, entry) <= 0) break
    ordered[at] = before
  }
  ordered[at] = entry
}
