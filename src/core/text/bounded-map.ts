/** Of how many accounts a process remembers what was said of them last. */
export const maximumAccounts = 100_000

/** Sets an entry as the newest of its map; the oldest is forgotten once there are more than `maximum`. */
export function setBounded<K, V>(map: Map<K, V>, key: K, value: V, maximum: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= maximum) return
  const oldest = map.keys().next()
  if (!oldest.done) map.delete(oldest.value)
}
