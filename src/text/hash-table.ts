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

/** The words of all lists: each hash, and behind it a bit for each list that has the word. A text is looked up once for all. */
const listed = new Int32Array(2 ** 16)
const listNames = [
  'concept',
  'conceptPair',
  'conceptStem',
  'cue',
  'spoken',
  'common',
  'harm',
  'deed',
  'deedObject',
] as const

/** Enters the words of a list and returns its bit, which readings from then on tell. */
export function enterWordList(name: (typeof listNames)[number], hashes: Iterable<number>): number {
  const words = Int32Array.from(hashes)
  const bit = 1 << listNames.indexOf(name)
  findLists(words, words.length, new Uint16Array(words.length), bit)
  return bit
}

/** Stores the bits of the lists that have each word, and enters the words in the list of `bit`. */
export function findLists(words: Int32Array, count: number, found: Uint16Array, bit = 0): void {
  const last = listed.length - 1
  for (let at = 0; at < count; at++) {
    const hash = words[at] ?? 0
    let place = (hash << 1) & last
    while (listed[place] !== hash && listed[place] !== 0) place = (place + 2) & last
    const lists = (listed[place + 1] ?? 0) | bit
    found[at] = lists
    if (bit === 0) continue
    listed[place] = hash
    listed[place + 1] = lists
  }
}
