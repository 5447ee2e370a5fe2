/**
 * Inserts an entry into a sorted list: after all entries that `order` (as of `Array.sort`) does not place after it.
 * Faster than sorting if the list is short or entries arrive mostly in order.
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
