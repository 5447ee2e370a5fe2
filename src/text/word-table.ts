/**
 * A table of words by the hashes of their letters (FNV-1a). A reader follows it letter by letter and leaves a word at the
 * first beginning that no entry has, after some three letters for most.
 */
import { findPlace, type HashTable } from './hash-table.ts'

/** Hash of no letters, and what it is multiplied by for each. */
export const emptyWord = 0x811c9dc5 | 0
export const hashPrime = 0x01000193

const prefixBits = 17
const placeBits = 13

export type WordTable = {
  /** By the high bits of a hash: a bit for each beginning of an entry and one for each whole entry. */
  readonly prefixes: Int32Array
  readonly wholes: Int32Array
  readonly hashes: HashTable
  /** By the place of a hash. */
  readonly means: Int32Array
}

export function createWordTable(): WordTable {
  return {
    prefixes: new Int32Array(1 << (prefixBits - 5)),
    wholes: new Int32Array(1 << (prefixBits - 5)),
    hashes: new Int32Array(1 << placeBits),
    means: new Int32Array(1 << placeBits),
  }
}

/** Enters a word and returns its place, whose meaning the caller sets. */
export function enterWord({ prefixes, wholes, hashes }: WordTable, units: readonly number[]): number {
  let hash = emptyWord
  for (const unit of units) {
    hash = Math.imul(hash ^ unit, hashPrime)
    set(prefixes, hash >>> (32 - prefixBits))
  }
  set(wholes, hash >>> (32 - prefixBits))
  const place = findPlace(hashes, hash)
  hashes[place] = hash
  return place
}

function set(bits: Int32Array, bit: number): void {
  bits[bit >> 5] = (bits[bit >> 5] ?? 0) | (1 << (bit & 31))
}

/** How far letters were followed: their hash, and the position behind them. */
export const followed = { hash: emptyWord, at: 0 }

/** Follows letters on to where an entry ends, and returns its meaning; 0 = no entry goes on so. */
export function followLetters(table: WordTable, letters: Uint16Array, end: number): number {
  const { prefixes, wholes, hashes, means } = table
  let { hash, at } = followed
  while (at < end) {
    hash = Math.imul(hash ^ (letters[at++] ?? 0), hashPrime)
    const bit = hash >>> (32 - prefixBits)
    const mask = 1 << (bit & 31)
    if (((prefixes[bit >> 5] ?? 0) & mask) === 0) return 0
    if (((wholes[bit >> 5] ?? 0) & mask) === 0) continue
    const meaning = means[findPlace(hashes, hash)] ?? 0
    if (meaning === 0) continue
    followed.hash = hash
    followed.at = at
    return meaning
  }
  return 0
}

/** Returns the meaning of a hash; 0 = entries only begin so, −1 = none does. */
export function followWord({ prefixes, wholes, hashes, means }: WordTable, hash: number): number {
  const bit = hash >>> (32 - prefixBits)
  const row = bit >> 5
  const mask = 1 << (bit & 31)
  if (((prefixes[row] ?? 0) & mask) === 0) return -1
  return ((wholes[row] ?? 0) & mask) === 0 ? 0 : (means[findPlace(hashes, hash)] ?? 0)
}
