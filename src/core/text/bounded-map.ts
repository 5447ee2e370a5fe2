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
