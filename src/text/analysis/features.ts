/**
 * A text as numbers, computed once for all in-process classifiers. Words become hashes in order. Case, white space,
 * final punctuation and a polite opening are removed, so that they cannot change a decision. One table-driven pass over
 * the UTF-16 code units and one over the words. The buffers belong to the reader and are overwritten by its next
 * reading.
 */

import { findLists } from '../hash-table.ts'
import vocabulary from './lexicon/cues.json'

export type Features = {
  /** Number of words, numbers and single CJK characters read. */
  readonly count: number
  /**
   * Their hashes in order; valid up to `count`. Signed, since the engine stores larger numbers as doubles, which are
   * slow to look up.
   */
  readonly words: Int32Array
  /** The lists that have each word (`enterWordList`), one bit each. */
  readonly lists: Uint16Array
  /** Hashes of the first five letters (or the whole shorter word), which inflected forms share. */
  readonly stems: Int32Array
  /** Count of each ASCII punctuation character and line feed, by code. */
  readonly symbols: Uint16Array
  /** Number of digits read. */
  readonly digits: number
  /** Number of runs of digits. */
  readonly numbers: number
  /** Number of letters read. */
  readonly letters: number
  /** Words before which a sentence, line or quotation ends, ascending; valid up to `breakCount`. */
  readonly breaks: Uint16Array
  readonly breakCount: number
  /** Start of each word in `units`. */
  readonly offsets: Uint16Array
  /** The text that was read, in UTF-16 units; valid up to `unitCount`. */
  readonly units: Uint16Array
  readonly unitCount: number
}

export type FeatureReader = (text: string) => Features

/** Only the first and last characters of a text are read: a long middle costs time and adds no evidence. */
const headCharacters = 12_288
const tailCharacters = 4_096
/** Maximum number of words read. */
export const maximumWords = 4_096

const stemLetters = 5

// Traits of a unit, one bit each.
const other = 0
const letter = 1
const digit = 2
/** Part of a word. Without another bit: a word of its own. */
const word = 4
const symbol = 8
/** Ends a sentence, line or quotation. */
const stop = 16
/** Ends one if white space follows. */
const halfStop = 32

/**
 * Creates a reader with its own buffers; the first one takes some milliseconds. Repeating the last text, as moderation
 * does after routing, returns the previous result.
 */
export function createFeatureReader(): FeatureReader {
  const words = new Int32Array(maximumWords)
  const lists = new Uint16Array(maximumWords)
  const stems = new Int32Array(maximumWords)
  const symbols = new Uint16Array(128)
  const breaks = new Uint16Array(maximumWords + 1)
  const offsets = new Uint16Array(maximumWords)
  // The text as numbers, which are faster to read than a string: head and tail of a long text with a gap between.
  const units = new Uint16Array(headCharacters + tailCharacters + 1)
  const bytes = Buffer.from(units.buffer)
  // Hash of the run of letters or digits up to each unit, and the start of each run. Every other unit is its own run.
  const hashes = new Int32Array(units.length)
  const starts = new Uint16Array(units.length + 1)
  let lastText: string | null = null
  let last: Features | null = null

  /** Fills `units` and returns their number. */
  const load = (text: string, end: number): number => {
    const head = end <= headCharacters + tailCharacters ? end : headCharacters
    bytes.write(head === text.length ? text : text.slice(0, head), 0, 'utf16le')
    if (head === end) return head
    units[head] = 0
    bytes.write(text.slice(end - tailCharacters, end), 2 * (head + 1), 'utf16le')
    return head + 1 + tailCharacters
  }

  /** Fills `hashes` and `starts` and returns the number of runs. Branchless: word lengths are unpredictable. */
  const scan = (to: number, traits: Int32Array): number => {
    let runs = 0
    let hash = 0
    let before = other
    for (let at = 0; at < to; at++) {
      const trait = traits[units[at] ?? 0] ?? other
      // All bits set if the unit continues the previous run, else 0.
      const goesOn = -(trait & before & (letter | digit)) >> 31
      hash = Math.imul((hash & goesOn) ^ (hashStart & ~goesOn) ^ (trait >>> foldedShift), hashPrime)
      hashes[at] = hash
      starts[runs] = at
      runs += 1 + goesOn
      before = trait
    }
    starts[runs] = to
    return runs
  }

  const read = (text: string): Features => {
    symbols.fill(0)
    const traits = traitTable()
    const unitCount = load(text, getEnd(text, traits))
    const runs = scan(unitCount, traits)
    let count = 0
    let digits = 0
    let numbers = 0
    let letters = 0
    let breakCount = 0
    // Inside a polite opening, including its punctuation.
    let isPolite = false
    for (let run = 0; run < runs && count < maximumWords; run++) {
      const start = starts[run] ?? 0
      const unit = units[start] ?? 0
      const trait = traits[unit] ?? other
      if ((trait & word) === 0) {
        if ((trait & symbol) !== 0 && !(isPolite && count === 0 && finalMarks.has(unit)))
          symbols[unit] = (symbols[unit] ?? 0) + 1
        // No break before the first word, and at most one between two words.
        if ((trait & (stop | halfStop)) !== 0 && count > 0 && breaks[breakCount - 1] !== count)
          if ((trait & stop) !== 0 || endsAt(start + 1, runs > run + 1)) breaks[breakCount++] = count
        continue
      }
      const end = starts[run + 1] ?? 0
      const hash = hashes[end - 1] ?? 0
      // Polite openings carry no information about the request.
      if ((count === 0 || count === 2) && polite.has(hash)) {
        if (count === 2 && words[1] === you && asking.has(words[0] ?? 0)) {
          count = 0
          letters = 0
        }
        if (count === 0) {
          isPolite = true
          continue
        }
      }
      const length = end - start
      if ((trait & digit) !== 0) {
        digits += length
        numbers++
      } else letters += length
      // Sentences may lack a full stop: a capital after lower case also begins one if the word is a typical first word.
      if (count > 0 && unit >= 65 && unit <= 90 && opensSentence(hash, words[count - 1] ?? 0) && isBehindWord(start))
        if (breaks[breakCount - 1] !== count) breaks[breakCount++] = count
      words[count] = hash
      offsets[count] = start
      // Shifts instead of branches: all bits of the salt if the word has so many letters, none if it has fewer.
      const lengthSalt = stemSalt & ((stemLetters - 1 - length) >> 31)
      stems[count] = (hashes[Math.min(end, start + stemLetters) - 1] ?? 0) ^ lengthSalt
      count++
    }
    findLists(words, count, lists)
    return {
      count,
      words,
      lists,
      stems,
      symbols,
      digits,
      numbers,
      letters,
      breaks,
      breakCount,
      offsets,
      units,
      unitCount,
    }
  }

  /** Returns true if a lower-case word and a blank precede a position. */
  const isBehindWord = (at: number): boolean => {
    const last = units[at - 2] ?? 0
    return at > 1 && (units[at - 1] ?? 0) <= 32 && ((last >= 97 && last <= 122) || (last >= 48 && last <= 57))
  }

  /** Returns true at white space or the end of the text. */
  const endsAt = (at: number, hasMore: boolean): boolean => !hasMore || (units[at] ?? 0) <= 32

  return text => {
    if (last !== null && text === lastText) return last
    last = read(text)
    lastText = text
    return last
  }
}

/** Returns the first of some words behind the courtesies that they open with, as a reader leaves them out where a text begins so. */
export function behindCourtesy(words: Int32Array, from: number, to: number): number {
  let first = from
  for (;;) {
    const asks = first + 2 < to && words[first + 1] === you && asking.has(words[first] ?? 0)
    if (first < to && polite.has(words[first] ?? 0)) first++
    else if (asks && polite.has(words[first + 2] ?? 0)) first += 3
    else return first
  }
}

/** FNV-1a parameters, 32 bit, over UTF-16 units (http://www.isthe.com/chongo/tech/comp/fnv/). */
const hashStart = 0x811c9dc5
const hashPrime = 0x01000193
const stemSalt = 0x5bd1e995

/** Returns the hash that a reader computes for a lower-case word, as a signed number. */
export function getHash(word: string): number {
  let hash = hashStart | 0
  for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), hashPrime)
  return hash
}

/** Returns the slot of a feature in a table of 2^`bits` weights; `salt` separates the kinds of features. */
export function getSlot(hash: number, salt: number, bits: number): number {
  let mixed = Math.imul(hash ^ salt, 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> (32 - bits)
}

/** Replaces hashes that their salts are part of by their slots: `getSlot` for all of them in one loop. */
export function mixHashes(keys: Int32Array, from: number, to: number, bits: number): void {
  for (let at = from; at < to; at++) {
    let mixed = Math.imul(keys[at] ?? 0, 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    keys[at] = (mixed ^ (mixed >>> 16)) >>> (32 - bits)
  }
}

/** Returns the end of a text without trailing white space and punctuation. */
function getEnd(text: string, traits: Int32Array): number {
  let end = text.length
  while (end > 0) {
    const unit = text.charCodeAt(end - 1)
    const kind = (traits[unit] ?? other) & kindMask
    // A final bracket or quote belongs to the text; a full stop, question mark or white space does not.
    if ((kind & ~(stop | halfStop)) !== other && unit !== lineFeed && !finalMarks.has(unit)) break
    end--
  }
  return end
}

const lineFeed = 10
const finalMarks = new Set(Array.from('.!?,;:', mark => mark.charCodeAt(0)))

const getHashes = (list: readonly string[]) => new Set(list.join(' ').split(' ').map(getHash))
const polite = getHashes(vocabulary.polite)
// `Could you please` as a whole is polite; `could you` may start a real question.
const asking = getHashes(vocabulary.courtesy)
const you = getHash('you')

/** Words that begin a sentence rather than a name. `I` is always a capital and needs other words before it. */
const openers = getHashes(vocabulary.openers)
const beforeI = getHashes(vocabulary.beforeI)
const i = getHash('i')

function opensSentence(word: number, before: number): boolean {
  return word === i ? !beforeI.has(before) : openers.has(word)
}

/** Table entry: the low bits are the kind, the rest the lower case. */
const kindMask = 63
const foldedShift = 6

let traitsKept: Int32Array | null = null

/** Returns kind and lower case of every UTF-16 unit. Shared by all readers and computed on first use. */
function traitTable(): Int32Array {
  traitsKept ??= madeTable()
  return traitsKept
}

function madeTable(): Int32Array {
  const traits = new Int32Array(65_536)
  for (let unit = 0; unit < 65_536; unit++) traits[unit] = (toLowerUnit(unit) << foldedShift) | getKind(unit)
  return traits
}

function getKind(unit: number): number {
  if (unit < 128) return kindOfAscii(unit)
  if (isIdeograph(unit)) return word
  // Surrogate halves: emoji and rare scripts, read as letters.
  if (unit >= 0xd800 && unit < 0xe000) return letter | word
  const character = String.fromCharCode(unit)
  if (letters.test(character)) return letter | word
  if (decimals.test(character)) return digit | word
  return fullStops.has(character) ? stop : other
}

/** Full stops of Chinese, Japanese, Hindi and Arabic, and quotation marks. */
const fullStops = new Set('。！？；：।॥؟؛…“”«»„「」『』')

const halfStops = new Set(Array.from('.!?:;', mark => mark.charCodeAt(0)))
const letters = /[\p{L}\p{M}]/u
const decimals = /\p{Nd}/u

function kindOfAscii(unit: number): number {
  if ((unit >= 97 && unit <= 122) || (unit >= 65 && unit <= 90)) return letter | word
  if (unit >= 48 && unit <= 57) return digit | word
  // A line feed or quotation mark; below, other ends of sentences.
  if (unit === 10 || unit === 34) return symbol | stop
  if (halfStops.has(unit)) return symbol | halfStop
  return unit > 32 && unit < 127 ? symbol : other
}

/** Kana, CJK ideographs, Thai: scripts without spaces between words. */
function isIdeograph(unit: number): boolean {
  return (unit >= 0x3040 && unit <= 0x30ff) || (unit >= 0x3400 && unit <= 0x9fff) || (unit >= 0x0e00 && unit <= 0x0e7f)
}

function toLowerUnit(unit: number): number {
  const folded = String.fromCharCode(unit).toLowerCase()
  return folded.length === 1 ? folded.charCodeAt(0) : unit
}
