/**
 * Word hashes of a text for patterns. Ignores case, accents and invisible characters; Chinese, Japanese and Korean are
 * read one character per word. One pass without allocation per word.
 */

import { blockUnits, filledTable, loadUnits, unitCount, units } from './code-units.ts'
import { separator as blank, foldTable as foldLetters, isSyllable, skipped } from './letters.ts'

/** Size of a sieve. Words whose hashes share their low bits share an entry; a non-zero entry lets them pass. */
export const sieveSize = 8192

// FNV-1a as a signed 32-bit number, which `Math.imul` returns and the loop compares.

/** Hash of an empty word. */
export const noWord = 0x811c9dc5 | 0
const prime = 0x01000193

/** A sieve that lets all words pass. */
export const everyWord = new Uint16Array(sieveSize).fill(1)

/** Receives the number of words in `found`; returns false to stop. */
export type OnWords = (count: number) => boolean

/** State of a scan that is fed in blocks. */
type WordScanState = {
  /** Hash of the current word; `noWord` = none. */
  hash: number
  words: number
  /** UTF-16 units read, and where among them the current word began. */
  read: number
  start: number
}

/** Creates the state before the first character. */
export function createWordScan(): WordScanState {
  return { hash: noWord, words: 0, read: 0, start: 0 }
}

/** Words of a block that the sieve lets pass: hash, index and start of each. */
export const wordMatches = {
  hash: new Int32Array(blockUnits + 1),
  position: new Int32Array(blockUnits + 1),
  start: new Int32Array(blockUnits + 1),
}

/**
 * Calls `onWords` per block with the words that end in the text and pass the sieve. Returns false if `onWords` stopped
 * the scan. Linear, without allocation per word.
 */
export function scanWords(scan: WordScanState, text: string, sieve: Uint16Array, onWords: OnWords): boolean {
  for (let from = 0; from < text.length; ) {
    const length = loadUnits(text, from)
    if (!onWords(wordsOfBlock(scan, length, sieve))) return false
    from += length
  }
  return true
}

/**
 * Stores the words of the loaded block in `found` and returns their number. A word still open at the end is not
 * included.
 */
function wordsOfBlock(scan: WordScanState, length: number, sieve: Uint16Array): number {
  const folds = foldTable()
  const { read } = scan
  let { words, hash, start } = scan
  let count = 0
  units[length] = softHyphen
  for (let at = 0; at < length; at++) {
    let folded = folds[units[at] ?? 0] ?? separator
    if (folded > sharp) {
      if (hash === noWord) start = read + at
      do {
        hash = Math.imul(hash ^ folded, prime)
        at++
        folded = folds[units[at] ?? 0] ?? separator
      } while (folded > sharp)
    }
    if (folded === invisible) continue
    if (hash !== noWord) {
      if (folded === sharp) {
        hash = Math.imul(hash ^ (units[at] ?? 0), prime)
        continue
      }
      if (sieve[hash & (sieveSize - 1)] !== 0) {
        wordMatches.hash[count] = hash
        wordMatches.position[count] = words
        wordMatches.start[count] = start
        count++
      }
      words++
      hash = noWord
    }
    if (folded !== alone) continue
    const character = Math.imul(noWord ^ (units[at] ?? 0), prime)
    if (sieve[character & (sieveSize - 1)] !== 0) {
      wordMatches.hash[count] = character
      wordMatches.position[count] = words
      wordMatches.start[count] = read + at
      count++
    }
    words++
  }
  scan.words = words
  scan.hash = hash
  scan.start = start
  scan.read = read + length
  return count
}

/** Neither ends a word nor belongs to one. */
const softHyphen = 0xad

/** Ends the current word. Returns false if `onWords` stopped the scan. */
export function endWord(scan: WordScanState, sieve: Uint16Array, onWords: OnWords): boolean {
  const { hash, words, start } = scan
  if (hash === noWord) return true
  scan.hash = noWord
  scan.words += 1
  if (sieve[hash & (sieveSize - 1)] === 0) return true
  wordMatches.hash[0] = hash
  wordMatches.position[0] = words
  wordMatches.start[0] = start
  return onWords(1)
}

/** A word of a text: its hash (`noWord` = none) and the position after it. */
type Word = { readonly hash: number; readonly end: number }

/** Returns the first word from a position to `to` at most. Unlike in patterns, an underscore separates words. */
export function wordFrom(text: string, from: number, to = text.length): Word {
  const folds = foldTable()
  let hash = noWord
  const end = Math.min(to, text.length)
  for (let at = from; at < end; at++) {
    const unit = text.charCodeAt(at)
    const folded = unit === underscore ? separator : (folds[unit] ?? separator)
    if (folded > sharp) hash = Math.imul(hash ^ folded, prime)
    else if (folded === invisible) continue
    else if (hash === noWord) {
      if (folded === alone) return { hash: Math.imul(noWord ^ unit, prime), end: at + 1 }
    } else if (folded === sharp) hash = Math.imul(hash ^ unit, prime)
    else return { hash, end: at }
  }
  return { hash, end }
}

const underscore = 95

/** Class of a UTF-16 unit that is not a letter. Letters map to larger values: their lower case without accent (`letters.ts`). */
const separator = 0
const invisible = 1
/** The character is a word of its own. */
const alone = 2
/** C++, C#, F#: part of the word it ends, a separator elsewhere. */
const sharp = 3

let foldsKept: Uint16Array | null = null

/** Returns `getFold` for every UTF-16 unit as a table, computed on first use. */
function foldTable(): Uint16Array {
  foldsKept ??= filledTable(new Uint16Array(unitCount), getFold)
  return foldsKept
}

function getFold(code: number): number {
  if (code === 35 || code === 43) return sharp
  // Private units are letters: a pattern names the end of a clause by one.
  if (code === underscore || (code >= 0xe000 && code < 0xf900)) return code
  if ((code >= 0x3040 && code <= 0x9fff) || isSyllable(code)) return alone
  const letter = foldLetters()[code] ?? blank
  return letter === blank ? separator : letter === skipped ? invisible : letter
}
