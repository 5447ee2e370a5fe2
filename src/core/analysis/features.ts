/**
 * A text as numbers: what every in-process classifier reads, made once a text. Words become hashes, in order; case, white
 * space, punctuation at the end and a polite opening leave no trace, so that they cannot change a decision. One pass over
 * UTF-16 code units, driven by one table, and one over the words found; the buffers are the reader's own and are overwritten
 * by its next reading.
 */

export type Features = {
  /** Words, numbers and single CJK characters read. */
  readonly count: number
  /** Their hashes, in order; valid up to `count`. Signed: the engine takes larger numbers for fractions, and is slow to look those up. */
  readonly words: Int32Array
  /** Hashes of their first five letters (of the whole word where it is shorter): inflections share them. */
  readonly stems: Int32Array
  /** Hashes of the last three letters of the first `endingWords`; 0 where the word has no more than three. */
  readonly endings: Int32Array
  /** How often each ASCII punctuation character and the line feed stands there, by its code. */
  readonly symbols: Uint16Array
  /** UTF-16 units of the whole text, also of what was not read. */
  readonly characters: number
  /** Digits among what was read. */
  readonly digits: number
  /** Numbers among the words: runs of digits. */
  readonly numbers: number
  /** Letters in what was read. */
  readonly letters: number
  /** It opens with a courtesy, whose words were left out. */
  readonly isPolite: boolean
  /** Before which words a sentence, a line or a quotation ends, ascending; valid up to `breakCount`. */
  readonly breaks: Uint16Array
  readonly breakCount: number
  /** Where each word begins in `units`. */
  readonly offsets: Uint16Array
  /** What was read, in UTF-16 units; valid up to `unitCount`. */
  readonly units: Uint16Array
  readonly unitCount: number
}

export type FeatureReader = (text: string) => Features

/** What is read of a text: its first and last characters. A longer middle adds time and no evidence. */
const headCharacters = 12_288
const tailCharacters = 4_096
/** More words than these are not read. */
export const maximumWords = 4_096

/** Endings tell questions about the world, which are short. */
export const endingWords = 64

const stemLetters = 5
const endingLetters = 3

// What a unit is, a bit each.
const other = 0
const letter = 1
const digit = 2
/** Part of a word; alone: a word by itself. */
const word = 4
const symbol = 8
/** Ends a sentence, a line or a quotation. */
const stop = 16
/** Ends one where white space follows. */
const halfStop = 32

/**
 * A reader with buffers of its own; the first one takes some milliseconds to make. The same text again, as moderation brings
 * after routing, is not read again.
 */
export function createFeatureReader(): FeatureReader {
  const words = new Int32Array(maximumWords)
  const stems = new Int32Array(maximumWords)
  const endings = new Int32Array(endingWords)
  const symbols = new Uint16Array(128)
  const breaks = new Uint16Array(maximumWords + 1)
  const offsets = new Uint16Array(maximumWords)
  // The text as numbers: quicker to go through than a string. Head and tail of a long one, and a gap between them.
  const units = new Uint16Array(headCharacters + tailCharacters + 1)
  const bytes = Buffer.from(units.buffer)
  // The hash of a run of letters or digits up to each unit, and where each run begins; other units are runs of their own.
  const hashes = new Int32Array(units.length)
  const starts = new Uint16Array(units.length + 1)
  let lastText: string | null = null
  let last: Features | null = null

  /** Fills `units`; returns how many. */
  const load = (text: string, end: number): number => {
    const head = end <= headCharacters + tailCharacters ? end : headCharacters
    bytes.write(head === text.length ? text : text.slice(0, head), 0, 'utf16le')
    if (head === end) return head
    units[head] = 0
    bytes.write(text.slice(end - tailCharacters, end), 2 * (head + 1), 'utf16le')
    return head + 1 + tailCharacters
  }

  /** Fills `hashes` and `starts`; returns how many runs. Without a branch: nobody could guess how long a word is. */
  const scan = (to: number, traits: Int32Array): number => {
    let runs = 0
    let hash = 0
    let before = other
    for (let at = 0; at < to; at++) {
      const trait = traits[units[at] ?? 0] ?? other
      // All bits where the unit goes on with the run before it, none where it begins one.
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
    const characters = endOf(text, traits)
    const unitCount = load(text, characters)
    const runs = scan(unitCount, traits)
    let count = 0
    let digits = 0
    let numbers = 0
    let letters = 0
    let breakCount = 0
    // Within a polite opening, whose punctuation is part of it.
    let isPolite = false
    for (let run = 0; run < runs && count < maximumWords; run++) {
      const start = starts[run] ?? 0
      const unit = units[start] ?? 0
      const trait = traits[unit] ?? other
      if ((trait & word) === 0) {
        if ((trait & symbol) !== 0 && !(isPolite && count === 0 && finalMarks.has(unit)))
          symbols[unit] = (symbols[unit] ?? 0) + 1
        // Before the first word nothing ends, and between two words there is one end at most.
        if ((trait & (stop | halfStop)) !== 0 && count > 0 && breaks[breakCount - 1] !== count)
          if ((trait & stop) !== 0 || endsAt(start + 1, runs > run + 1)) breaks[breakCount++] = count
        continue
      }
      const end = starts[run + 1] ?? 0
      const hash = hashes[end - 1] ?? 0
      // Opening courtesies say nothing of what is asked.
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
      // Nobody puts a stop behind every sentence: a capital behind a small letter begins one too, where such a word does.
      if (count > 0 && unit >= 65 && unit <= 90 && opensSentence(hash, words[count - 1] ?? 0) && isBehindWord(start))
        if (breaks[breakCount - 1] !== count) breaks[breakCount++] = count
      words[count] = hash
      offsets[count] = start
      stems[count] = (hashes[Math.min(end, start + stemLetters) - 1] ?? 0) ^ (stemSalt & atLeast(length, stemLetters))
      if (count < endingWords) endings[count] = endingBefore(end, traits) & atLeast(length, endingLetters + 1)
      count++
    }
    return {
      count,
      words,
      stems,
      endings,
      symbols,
      characters,
      digits,
      numbers,
      letters,
      isPolite,
      breaks,
      breakCount,
      offsets,
      units,
      unitCount,
    }
  }

  /** Whether a word of small letters stands before a place, a blank between. */
  const isBehindWord = (at: number): boolean => {
    const last = units[at - 2] ?? 0
    return at > 1 && (units[at - 1] ?? 0) <= 32 && ((last >= 97 && last <= 122) || (last >= 48 && last <= 57))
  }

  /** Whether white space, or nothing, stands at a place. */
  const endsAt = (at: number, hasMore: boolean): boolean => !hasMore || (units[at] ?? 0) <= 32

  /** The hash of the three letters before a place, ten bits of each: enough to tell endings apart. */
  const endingBefore = (end: number, traits: Int32Array): number => {
    const third = (traits[units[Math.max(0, end - 3)] ?? 0] ?? other) >>> foldedShift
    const second = (traits[units[Math.max(0, end - 2)] ?? 0] ?? other) >>> foldedShift
    const last = (traits[units[end - 1] ?? 0] ?? other) >>> foldedShift
    const letters = ((third & 0x3ff) << 20) | ((second & 0x3ff) << 10) | (last & 0x3ff)
    return Math.imul(letters ^ endingSalt, hashPrime)
  }

  return text => {
    if (last !== null && text === lastText) return last
    last = read(text)
    lastText = text
    return last
  }
}

/** Whether a courtesy may be left out at the beginning of a text of these words. */
export function opensPolitely(words: Int32Array, count: number): boolean {
  return (count > 0 && polite.has(words[0] ?? 0)) || (count > 2 && polite.has(words[2] ?? 0))
}

/** The first of some words behind the courtesies that they open with, as a reader leaves them out where a text begins so. */
export function behindCourtesy(words: Int32Array, from: number, to: number): number {
  let first = from
  for (;;) {
    if (first < to && polite.has(words[first] ?? 0)) first++
    else if (
      first + 2 < to &&
      words[first + 1] === you &&
      asking.has(words[first] ?? 0) &&
      polite.has(words[first + 2] ?? 0)
    )
      first += 3
    else return first
  }
}

/** All bits where a length is so much, none where it is less. */
function atLeast(length: number, least: number): number {
  return (least - 1 - length) >> 31
}

/** FNV-1a's parameters over UTF-16 units, 32 bit (http://www.isthe.com/chongo/tech/comp/fnv/). */
const hashStart = 0x811c9dc5
const hashPrime = 0x01000193
const stemSalt = 0x5bd1e995
const endingSalt = 0x27d4eb2f

/** The hash that a reader gives a lower-case word: a signed number. */
export function hashOf(word: string): number {
  let hash = hashStart | 0
  for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), hashPrime)
  return hash
}

export const sieveSize = 8_192

/** Spares nearly all words a look-up in a table of few: by the low bits of a hash, 0 = the table has no such word. */
export function sieveOf(hashes: Iterable<number>): Uint8Array {
  const sieve = new Uint8Array(sieveSize)
  for (const hash of hashes) sieve[hash & (sieveSize - 1)] = 1
  return sieve
}

/** A place in a table of 2^`bits` weights for a feature; `salt` keeps the kinds of features apart. */
export function slotOf(hash: number, salt: number, bits: number): number {
  let mixed = Math.imul(hash ^ salt, 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> (32 - bits)
}

/** Where a text ends without white space and punctuation after its last word. */
function endOf(text: string, traits: Int32Array): number {
  let end = text.length
  while (end > 0) {
    const unit = text.charCodeAt(end - 1)
    const kind = (traits[unit] ?? other) & kindMask
    // A bracket or a quote at the end closes what is inside; a stop, a question mark or white space only ends it.
    if ((kind & ~(stop | halfStop)) !== other && unit !== lineFeed && !finalMarks.has(unit)) break
    end--
  }
  return end
}

const lineFeed = 10
const finalMarks = new Set(Array.from('.!?,;:', mark => mark.charCodeAt(0)))

const politeWords =
  'please|pls|plz|kindly|hi|hello|hey|dear|thanks|greetings|bitte|hallo|por|favor|hola|bonjour|пожалуйста|привет'.split(
    '|',
  )

const polite = new Set(politeWords.map(hashOf))
// `Could you please` as a whole is courtesy; `could you` alone may be a question of its own.
const asking = new Set(['could', 'can', 'would', 'will'].map(hashOf))
const you = hashOf('you')

/** Words that begin a sentence rather than a name. `I` is written large within one too: there, other words stand before it. */
const openers = new Set(
  'the we my our it its there they he she this that these those last is are was what how why when where who which thank thanks many please also finally yesterday today in on at a an you your if write tell give explain describe can could should'
    .split(' ')
    .map(hashOf),
)
const beforeI = new Set(
  'do can should could would will may might must did am was have had if that when what how why where who which and or but because as than then so since before after while until though although whether unless think know what whatever all everything thing things way ways say said says believe hope wish guess feel like is are not time day place reason'
    .split(' ')
    .map(hashOf),
)
const i = hashOf('i')

function opensSentence(word: number, before: number): boolean {
  return word === i ? !beforeI.has(before) : openers.has(word)
}

/** Of an entry of the table below: its kind, and above that its lower case. */
const kindMask = 63
const foldedShift = 6

let traitsKept: Int32Array | null = null

/** Kind and lower case of every UTF-16 unit: one load a character. The same for every reader, made when first needed. */
function traitTable(): Int32Array {
  traitsKept ??= madeTable()
  return traitsKept
}

function madeTable(): Int32Array {
  const traits = new Int32Array(65_536)
  for (let unit = 0; unit < 65_536; unit++) traits[unit] = (lowerOf(unit) << foldedShift) | kindOf(unit)
  return traits
}

function kindOf(unit: number): number {
  if (unit < 128) return kindOfAscii(unit)
  if (isIdeograph(unit)) return word
  // Halves of a surrogate pair: emoji and rare scripts, each read as letters.
  if (unit >= 0xd800 && unit < 0xe000) return letter | word
  const character = String.fromCharCode(unit)
  if (letters.test(character)) return letter | word
  if (decimals.test(character)) return digit | word
  return fullStops.has(character) ? stop : other
}

/** Of Chinese and Japanese, Hindi, Arabic, and quotation marks. */
const fullStops = new Set('。！？；：।॥؟؛…“”«»„「」『』')

const halfStops = new Set(Array.from('.!?:;', mark => mark.charCodeAt(0)))
const letters = /[\p{L}\p{M}]/u
const decimals = /\p{Nd}/u

function kindOfAscii(unit: number): number {
  if ((unit >= 97 && unit <= 122) || (unit >= 65 && unit <= 90)) return letter | word
  if (unit >= 48 && unit <= 57) return digit | word
  // A line feed, or a quotation mark; and what else may end a sentence.
  if (unit === 10 || unit === 34) return symbol | stop
  if (halfStops.has(unit)) return symbol | halfStop
  return unit > 32 && unit < 127 ? symbol : other
}

/** Kana, CJK ideographs, Thai: written without spaces between words. */
function isIdeograph(unit: number): boolean {
  return (unit >= 0x3040 && unit <= 0x30ff) || (unit >= 0x3400 && unit <= 0x9fff) || (unit >= 0x0e00 && unit <= 0x0e7f)
}

function lowerOf(unit: number): number {
  const folded = String.fromCharCode(unit).toLowerCase()
  return folded.length === 1 ? folded.charCodeAt(0) : unit
}
