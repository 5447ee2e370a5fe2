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

/** Maximum number of accounts whose latest status a process caches. */
export const maximumAccounts = 100_000

/** Sets an entry as the newest of its map, and evicts the oldest if there are more than `maximum`. */
export function setBounded<K, V>(map: Map<K, V>, key: K, value: V, maximum: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= maximum) return
  const oldest = map.keys().next()
  if (!oldest.done) map.delete(oldest.value)
}

/** Returns a function that remembers its results for as long as their key is in use. */
export function remembered<Key extends WeakKey, Value>(getValue: (key: Key) => Value): (key: Key) => Value {
  const values = new WeakMap<Key, Value>()
  return key => {
    let value = values.get(key)
    if (value === undefined) {
      value = getValue(key)
      values.set(key, value)
    }
    return value
  }
}
