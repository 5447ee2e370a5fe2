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

import { endWord, everyWord, found, noWord, type OnWords, readWords, sieveSize, startReading } from './words.ts'

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

/** Compiles patterns, numbered as given. Throws a TypeError on one that does not say what it means. */
export function compilePatterns(sources: readonly string[]): PatternSet {
  const slots: { readonly previous: number; readonly reach: number; readonly completes: number }[] = []
  const slotsOf = new Map<number, number[]>()
  for (const [pattern, source] of sources.entries()) {
    const problem = problemOf(source)
    if (problem !== null) throw new TypeError(`the pattern "${source}" ${problem}`)
    const variants = variantsOf(source)
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

/** What is wrong with a pattern; null = nothing. */
function problemOf(source: string): string | null {
  let hasWord = false
  for (const part of source.split(' ')) {
    if (part.startsWith('~')) {
      if (!/^~\d{1,3}$/.test(part) || Number(part.slice(1)) > mostBetween)
        return `has "${part}" in it: at most ~${mostBetween} words stand between two`
      if (!hasWord) return `has "${part}" with no word before it`
      hasWord = false
      continue
    }
    if (part.split('|').some(choice => wordHashes(choice).length === 0))
      return 'has a place or a choice without a word: one blank stands between places, one | between choices'
    hasWord = true
  }
  return hasWord ? null : 'ends without a word'
}

/** `reach` is a byte, and one more. */
const mostBetween = 254

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
      const isOpen = reading.hash !== noWord && reading.words <= waitsUntil && lastPrefixes.has(reading.hash)
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

/** `start` is where the word begins that completed the pattern, in UTF-16 units. */
type OnMatch = (pattern: number, position: number, start: number) => boolean
