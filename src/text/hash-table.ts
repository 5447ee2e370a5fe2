/** Hashes of words, each at its low bits or in one of the next places; 0 = free. A look-up in a `Set` takes five times as long. */
export type HashTable = Int32Array

/** As many places as let nearly all hashes find theirs free. */
const placesPerHash = 4

/** Creates the table of some hashes other than 0. */
export function createHashTable(hashes: Iterable<number>): HashTable {
  const all = [...hashes]
  const table = new Int32Array(2 ** Math.ceil(Math.log2(placesPerHash * all.length + 1)))
  for (const hash of all) table[findPlace(table, hash)] = hash
  return table
}

/** Returns the place of a hash, or the free one where it would be. */
export function findPlace(table: HashTable, hash: number): number {
  const last = table.length - 1
  for (let place = hash & last; ; place = (place + 1) & last) {
    const there = table[place] ?? 0
    if (there === hash || there === 0) return place
  }
}

export function holds(table: HashTable, hash: number): boolean {
  return table[findPlace(table, hash)] !== 0
}
