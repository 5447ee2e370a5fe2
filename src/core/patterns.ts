/**
 * Word patterns: many rules looked for at once, in one pass, in time linear in the text whatever the text is.
 *
 * A pattern is written as slots: `ignore|disregard ~3 previous|prior instructions` is one of the first two words, at most
 * three others between, one of the next two, and right after it the last. A regular expression engine that backtracks
 * can be stalled by a caller; here each word costs one hash and one look-up, and a slot remembers only where it was last
 * reached, which is enough because the latest place is the one that leaves the most room for the next slot.
 * A space always begins the next slot; a hyphen joins the words of one choice (`stack-trace`).
 * Given up: anything below the word (endings are listed), and look-around.
 *
 * Case, accents, white space, punctuation and invisible characters do not count. Chinese, Japanese and Korean are read
 * one character a word, so `代码` is two adjacent slots.
 */

import { blockUnits, loadUnits, units } from './units.ts'

export type PatternSet = {
  readonly count: number
  /** By the low bits of a hash: the first of `words` with these bits; 0 = no slot has such a word, as with nearly all. */
  readonly sieve: Uint16Array
  /** Words, counted from 1: their hash, the next one with the same low bits, and where their slots begin in `slots`. */
  readonly words: { readonly hash: Int32Array; readonly next: Uint16Array; readonly from: Uint32Array }
  /** Slots that a word fills, a pattern's later slots first: one word must not fill two of them. */
  readonly slots: Uint16Array
  /** Slot → the one before it, −1 for a first slot. */
  readonly previous: Int16Array
  /** Slot → most words from the one before it; 1 = adjacent. */
  readonly reach: Uint8Array
  /** Slot → the pattern it completes, −1 for none. */
  readonly completes: Int16Array
  /** Hashes of all beginnings of the words that complete a pattern. */
  readonly lastPrefixes: ReadonlySet<number>
  /** A single word completes some pattern. */
  readonly hasSingle: boolean
  /** Where scans of whole texts note what they reached; each begins so far behind the last that nothing of it is near. */
  readonly scratch: { readonly reached: Int32Array; base: number }
}

const sieveSize = 8192

/** Compiles patterns, numbered as given. Throws a TypeError on one without a word. */
export function compilePatterns(sources: readonly string[]): PatternSet {
  const slots: { readonly previous: number; readonly reach: number; readonly completes: number }[] = []
  const slotsOf = new Map<number, number[]>()
  for (const [pattern, source] of sources.entries()) {
    const variants = variantsOf(source)
    if (!variants.some(variant => variant.length > 0)) throw new TypeError(`pattern without a word: ${source}`)
    for (const variant of variants) {
      let previous = -1
      for (const [index, { hashes, reach }] of variant.entries()) {
        const completes = index === variant.length - 1 ? pattern : -1
        const slot = slots.push({ previous, reach, completes }) - 1
        for (const hash of hashes) slotsOf.set(hash, [slot, ...(slotsOf.get(hash) ?? [])])
        previous = slot
      }
    }
  }
  const lastPrefixes = new Set(sources.flatMap(source => prefixHashes(source.trim().split(' ').at(-1) ?? '')))
  return {
    count: sources.length,
    ...wordTable(slotsOf),
    previous: Int16Array.from(slots, slot => slot.previous),
    reach: Uint8Array.from(slots, slot => slot.reach),
    completes: Int16Array.from(slots, slot => slot.completes),
    lastPrefixes,
    hasSingle: slots.some(({ previous, completes }) => completes >= 0 && previous === -1),
    scratch: { reached: new Int32Array(slots.length), base: beyondReach },
  }
}

function wordTable(slotsOf: ReadonlyMap<number, readonly number[]>): Pick<PatternSet, 'sieve' | 'words' | 'slots'> {
  const sieve = new Uint16Array(sieveSize)
  const words = {
    hash: new Int32Array(slotsOf.size + 1),
    next: new Uint16Array(slotsOf.size + 1),
    from: new Uint32Array(slotsOf.size + 2),
  }
  const slots = [...slotsOf.values()].flat()
  for (const [index, [hash, list]] of [...slotsOf].entries()) {
    const word = index + 1
    words.hash[word] = hash
    words.next[word] = sieve[hash & (sieveSize - 1)] ?? 0
    words.from[word + 1] = (words.from[word] ?? 0) + list.length
    sieve[hash & (sieveSize - 1)] = word
  }
  return { sieve, words, slots: Uint16Array.from(slots) }
}

type Slot = { readonly hashes: readonly number[]; readonly reach: number }

/** A choice of several words (`代码`, `step-by-step`) cannot share a slot with single words: it makes a variant of its own. */
function variantsOf(source: string): readonly (readonly Slot[])[] {
  let variants: (readonly Slot[])[] = [[]]
  let reach = 1
  for (const part of source.split(' ')) {
    if (part.startsWith('~')) {
      reach = Number(part.slice(1)) + 1
      continue
    }
    const choices = part.split('|').map(wordHashes)
    const single = choices.filter(hashes => hashes.length === 1).flat()
    const several = choices.filter(hashes => hashes.length > 1)
    const tails: (readonly Slot[])[] = several.map(hashes =>
      hashes.map((hash, at) => ({ hashes: [hash], reach: at === 0 ? reach : 1 })),
    )
    if (single.length > 0) tails.push([{ hashes: single, reach }])
    variants = variants.flatMap(head => tails.map(tail => [...head, ...tail]))
    reach = 1
  }
  return variants
}

/** Of every word of a slot's choices, each beginning of it. */
function prefixHashes(slot: string): number[] {
  return slot.split('|').flatMap(choice =>
    Array.from(choice, (_, end) => {
      const reading = startReading()
      readWords(reading, choice.slice(0, end + 1), everyWord, () => true)
      return reading.hash
    }),
  )
}

function wordHashes(text: string): number[] {
  const hashes: number[] = []
  const reading = startReading()
  const onWords: OnWords = count => {
    hashes.push(...found.hash.subarray(0, count))
    return true
  }
  readWords(reading, text, everyWord, onWords)
  endWord(reading, everyWord, onWords)
  return hashes
}

/**
 * Looks for all patterns at once. `onMatch` gets the pattern's number and the position of the word that completed it,
 * counted from 0; it returns false to stop.
 */
export function scan(set: PatternSet, text: string, onMatch: (pattern: number, position: number) => boolean): void {
  const { scratch } = set
  const reading = startReading()
  const onWords = matcher(set, scratch.reached, scratch.base, onMatch)
  if (readWords(reading, text, set.sieve, onWords)) endWord(reading, set.sieve, onWords)
  scratch.base += reading.words + beyondReach
  if (scratch.base < lastBase) return
  scratch.reached.fill(0)
  scratch.base = beyondReach
}

/** More words than any slot reaches back: `reach` is a byte. */
const beyondReach = 256
/** From here on a text of any length might carry a position past 31 bits. */
const lastBase = 2 ** 30

/** A scan that goes on from piece to piece, finding the same wherever the text was cut. */
export type RunningScan = {
  /** Reads a piece. `onMatch` as in `scan`. */
  push(text: string, onMatch: (pattern: number, position: number) => boolean): void
  /** The text is over: so is its last word. */
  end(onMatch: (pattern: number, position: number) => boolean): void
  /**
   * Where the word began that is being read, if it may yet complete a pattern; Infinity = it cannot. During `onMatch`: where
   * the word that completed it began. In UTF-16 units from the start of the text.
   */
  mayCompleteAt(): number
}

/** Starts a running scan. */
export function startScan(set: PatternSet): RunningScan {
  const { previous, reach, completes, lastPrefixes, hasSingle } = set
  const reading = startReading()
  /** Up to which word some pattern waits for its last slot. */
  let waitsUntil = hasSingle ? Number.POSITIVE_INFINITY : -1
  /** Where the word began that is being reported, −1 while none is. */
  let reported = -1
  let report: (pattern: number, position: number) => boolean = () => true
  const onMatch: OnMatch = (pattern, position, start) => {
    reported = start
    const goesOn = report(pattern, position)
    reported = -1
    return goesOn
  }
  const step = matcher(set, new Int32Array(previous.length), beyondReach, onMatch, (slot, position) => {
    if ((completes[slot + 1] ?? -1) >= 0) waitsUntil = Math.max(waitsUntil, position + (reach[slot + 1] ?? 0))
  })
  return {
    push(text, onFound) {
      report = onFound
      readWords(reading, text, set.sieve, step)
    },
    end(onFound) {
      report = onFound
      endWord(reading, set.sieve, step)
    },
    mayCompleteAt() {
      if (reported !== -1) return reported
      const isOpen = reading.hash !== offset && reading.words <= waitsUntil && lastPrefixes.has(reading.hash)
      return isOpen ? reading.start : Number.POSITIVE_INFINITY
    },
  }
}

/**
 * Moves the slots on by a word. Slots of a pattern follow each other by number. `reached` holds, by slot, the position at which
 * it was last reached, counted from `base`; what was never reached, or before this text, is out of every slot's reach.
 */
function matcher(
  { sieve, words, slots, previous, reach, completes }: PatternSet,
  reached: Int32Array,
  base: number,
  onMatch: OnMatch,
  onSlot?: (slot: number, position: number) => void,
): OnWords {
  return count => {
    for (let at = 0; at < count; at++) {
      const hash = found.hash[at] ?? 0
      let word = sieve[hash & (sieveSize - 1)] ?? 0
      while (word !== 0 && words.hash[word] !== hash) word = words.next[word] ?? 0
      if (word === 0) continue
      const position = found.position[at] ?? 0
      const place = base + position
      const end = words.from[word + 1] ?? 0
      for (let index = words.from[word] ?? 0; index < end; index++) {
        const slot = slots[index] ?? 0
        const before = previous[slot] ?? -1
        if (before >= 0 && place - (reached[before] ?? 0) > (reach[slot] ?? 0)) continue
        reached[slot] = place
        const pattern = completes[slot] ?? -1
        if (pattern >= 0) {
          if (!onMatch(pattern, position, found.start[at] ?? 0)) return false
        } else onSlot?.(slot, position)
      }
    }
    return true
  }
}

// FNV-1a, as a signed 32-bit number: `Math.imul` gives no other, and the loop compares with it.
const offset = 0x811c9dc5 | 0
const prime = 0x01000193

const everyWord = new Uint16Array(sieveSize).fill(1)

/** Is told how many words are in `found`; returns false to stop. */
type OnWords = (count: number) => boolean
/** `start` is where the word begins that completed the pattern, in UTF-16 units. */
type OnMatch = (pattern: number, position: number, start: number) => boolean

/** How far a text has been read. */
type Reading = {
  /** Of the word that is open, `offset` where none is. */
  hash: number
  words: number
  /** UTF-16 units read, and where among them the open word began. */
  read: number
  start: number
}

function startReading(): Reading {
  return { hash: offset, words: 0, read: 0, start: 0 }
}

/** Of a block, the words that the sieve lets through: their hash, their position, and where they begin. */
const found = {
  hash: new Int32Array(blockUnits + 1),
  position: new Int32Array(blockUnits + 1),
  start: new Int32Array(blockUnits + 1),
}

/**
 * Calls `onWords` with the words that end in the text and that the sieve lets through, a block at a time, until it returns
 * false; false then. Linear, nothing allocated per word.
 */
function readWords(reading: Reading, text: string, sieve: Uint16Array, onWords: OnWords): boolean {
  for (let from = 0; from < text.length; ) {
    const length = loadUnits(text, from)
    if (!onWords(wordsOfBlock(reading, length, sieve))) return false
    from += length
  }
  return true
}

/** Notes the words of the loaded block in `found`; returns how many. A word that is open at its end is not one yet. */
function wordsOfBlock(reading: Reading, length: number, sieve: Uint16Array): number {
  const folds = foldTable()
  const { read } = reading
  let { words, hash, start } = reading
  let count = 0
  units[length] = softHyphen
  for (let at = 0; at < length; at++) {
    let folded = folds[units[at] ?? 0] ?? separator
    if (folded > sharp) {
      if (hash === offset) start = read + at
      do {
        hash = Math.imul(hash ^ folded, prime)
        at++
        folded = folds[units[at] ?? 0] ?? separator
      } while (folded > sharp)
    }
    if (folded === invisible) continue
    if (hash !== offset) {
      if (folded === sharp) {
        hash = Math.imul(hash ^ (units[at] ?? 0), prime)
        continue
      }
      if (sieve[hash & (sieveSize - 1)] !== 0) {
        found.hash[count] = hash
        found.position[count] = words
        found.start[count] = start
        count++
      }
      words++
      hash = offset
    }
    if (folded !== alone) continue
    const character = Math.imul(offset ^ (units[at] ?? 0), prime)
    if (sieve[character & (sieveSize - 1)] !== 0) {
      found.hash[count] = character
      found.position[count] = words
      found.start[count] = read + at
      count++
    }
    words++
  }
  reading.words = words
  reading.hash = hash
  reading.start = start
  reading.read = read + length
  return count
}

/** Ends no word, and is none. */
const softHyphen = 0xad

/** The word that is open ends here. */
function endWord(reading: Reading, sieve: Uint16Array, onWords: OnWords): void {
  const { hash, words, start } = reading
  if (hash === offset) return
  reading.hash = offset
  reading.words += 1
  if (sieve[hash & (sieveSize - 1)] === 0) return
  found.hash[0] = hash
  found.position[0] = words
  found.start[0] = start
  onWords(1)
}

/** What a UTF-16 unit is where it is no letter: those are above these, as the lower-case one without its accent. */
const separator = 0
const invisible = 1
/** A word of its own. */
const alone = 2
/** C++, C#, F#: part of a word they end, a separator elsewhere. */
const sharp = 3

let foldsKept: Uint16Array | null = null

/** `foldOf` of every UTF-16 unit: one load a character, made when first needed. */
function foldTable(): Uint16Array {
  foldsKept ??= Uint16Array.from({ length: 65_536 }, (_, code) => foldOf(code))
  return foldsKept
}

/** U+00C0 to U+00FF without case and accents; × and ÷ separate. */
const latin = 'aaaaaaaceeeeiiiidnooooo ouuuuytsaaaaaaaceeeeiiiidnooooo ouuuuyty'

function foldOf(code: number): number {
  if (code < 0x80) return foldOfAscii(code)
  if (code < 0xc0) return code === 0xad ? invisible : separator
  if (code < 0x100) {
    const letter = latin.charCodeAt(code - 0xc0)
    return letter === 32 ? separator : letter
  }
  if (code < 0x180) return code | 1
  if (code < 0x300) return code
  if (code < 0x370) return invisible
  if (code >= 0x391 && code <= 0x3a9) return code + 32
  if (code >= 0x400 && code <= 0x40f) return code + 80
  if (code >= 0x410 && code <= 0x42f) return code + 32
  if (code < 0x2000) return code
  if (code < 0x3040) return (code >= 0x200b && code <= 0x200f) || code === 0x2060 ? invisible : separator
  if (code <= 0x9fff || (code >= 0xac00 && code <= 0xd7af)) return alone
  if (code === 0xfeff) return invisible
  // Full-width letters and digits are ASCII in another coat.
  if (code >= 0xff10 && code <= 0xff5a) return foldOfAscii(code - 0xfee0)
  return code >= 0xff00 ? separator : code
}

function foldOfAscii(code: number): number {
  if (code === 35 || code === 43) return sharp
  const character = String.fromCharCode(code)
  return /[a-z0-9_]/i.test(character) ? character.toLowerCase().charCodeAt(0) : separator
}
