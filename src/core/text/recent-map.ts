/** Keeps the newest entries of a map: at least `most`, at most twice as many. Evicts whole generations. */
export type RecentMap<V> = {
  get(key: string): V | undefined
  has(key: string): boolean
  set(key: string, value: V): void
}

/**
 * Creates a recent map with two generations. Deleting single entries from the front of a `Map` becomes slower with each
 * one, because the engine walks over deleted entries.
 */
export function createRecentMap<V>(most: number): RecentMap<V> {
  let young = new Map<string, V>()
  let old = new Map<string, V>()
  return {
    get: key => young.get(key) ?? old.get(key),
    has: key => young.has(key) || old.has(key),
    set(key, value) {
      young.set(key, value)
      if (young.size < most) return
      old = young
      young = new Map()
    },
  }
}
