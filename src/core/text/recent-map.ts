/** The newest entries of a map: at least `most`, at most twice as many, each forgotten whole generations at a time. */
export type RecentMap<V> = {
  get(key: string): V | undefined
  has(key: string): boolean
  set(key: string, value: V): void
}

/**
 * Remembers what was set last. Two generations take turns because taking single entries off the front of a `Map` gets
 * slower with every entry taken: the engine walks over what was deleted.
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
