/**
 * A text as numbers: what every in-process classifier reads, made once a text. Words become hashes, in order; case, white
 * space, punctuation at the end and a polite opening leave no trace, so that they cannot change a decision. One pass,
 * driven by two tables over UTF-16 code units; the buffers are the reader's own and are overwritten by its next reading.
 */

export type Features = {
  /** Words, numbers and single CJK characters read. */
  readonly count: number
  /** Their hashes, in order; valid up to `count`. */
  readonly words: Uint32Array
  /** Hashes of their first five letters (of the whole word where it is shorter): inflections share them. */
  readonly stems: Uint32Array
  /** Hashes of their last three letters; 0 where the word has no more than three. */
  readonly endings: Uint32Array
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
}

export type FeatureReader = (text: string) => Features

/** What is read of a text: its first and last characters. A longer middle adds time and no evidence. */
const headCharacters = 12_288
const tailCharacters = 4_096
const maximumWords = 4_096

const stemLetters = 5
const endingLetters = 3

const other = 0
const letter = 1
const digit = 2
const symbol = 3
const ideograph = 4

/** A reader with its own tables and buffers; making one takes some milliseconds. */
export function createFeatureReader(): FeatureReader {
  const kinds = kindTable()
  const lower = lowerTable()
  const words = new Uint32Array(maximumWords)
  const stems = new Uint32Array(maximumWords)
  const endings = new Uint32Array(maximumWords)
  const symbols = new Uint16Array(128)
  const polite = new Set(politeWords.map(hashOf))
  // `Could you please` as a whole is courtesy; `could you` alone may be a question of its own.
  const asking = new Set(['could', 'can', 'would', 'will'].map(hashOf))
  const you = hashOf('you')
  let count = 0
  let digits = 0
  let numbers = 0
  let letters = 0
  // Within a polite opening, whose punctuation is part of it.
  let isCourtesy = false

  const read = (text: string, from: number, to: number) => {
    let at = from
    while (at < to && count < maximumWords) {
      const unit = text.charCodeAt(at)
      const kind = kinds[unit] ?? other
      if (kind === letter || kind === digit) {
        let hash = hashStart
        let stem = 0
        let last = 0
        const start = at
        let next = unit
        do {
          const folded = lower[next] ?? next
          hash = Math.imul(hash ^ folded, hashPrime)
          // The last three letters, ten bits of each: enough to tell endings apart.
          last = ((last << 10) | (folded & 0x3ff)) & 0x3fffffff
          at++
          if (at - start === stemLetters) stem = hash
          next = at < to ? text.charCodeAt(at) : 0
        } while (kinds[next] === kind)
        // Opening courtesies say nothing of what is asked.
        if ((count === 0 || count === 2) && polite.has(hash >>> 0)) {
          if (count === 2 && words[1] === you && asking.has(words[0] ?? 0)) {
            count = 0
            letters = 0
          }
          if (count === 0) {
            isCourtesy = true
            continue
          }
        }
        if (kind === digit) {
          digits += at - start
          numbers++
        } else letters += at - start
        words[count] = hash
        stems[count] = stem === 0 ? hash : stem ^ stemSalt
        endings[count] = at - start > endingLetters ? Math.imul(last ^ endingSalt, hashPrime) : 0
        count++
        continue
      }
      if (kind === ideograph) {
        const hash = Math.imul(hashStart ^ unit, hashPrime)
        words[count] = hash
        stems[count] = hash
        endings[count] = 0
        count++
        letters++
      } else if (kind === symbol && !(isCourtesy && count === 0 && finalMarks.has(unit)))
        symbols[unit] = Math.min(65_535, (symbols[unit] ?? 0) + 1)
      at++
    }
  }

  return text => {
    count = 0
    digits = 0
    numbers = 0
    letters = 0
    isCourtesy = false
    symbols.fill(0)
    const end = endOf(text, kinds)
    if (end <= headCharacters + tailCharacters) read(text, 0, end)
    else {
      read(text, 0, headCharacters)
      read(text, end - tailCharacters, end)
    }
    return { count, words, stems, endings, symbols, characters: end, digits, numbers, letters }
  }
}

/** FNV-1a's parameters over UTF-16 units, 32 bit (http://www.isthe.com/chongo/tech/comp/fnv/). */
const hashStart = 0x811c9dc5
const hashPrime = 0x01000193
const stemSalt = 0x5bd1e995
const endingSalt = 0x27d4eb2f

/** The hash that a reader gives a lower-case word. */
export function hashOf(word: string): number {
  let hash = hashStart
  for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), hashPrime)
  return hash >>> 0
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
function endOf(text: string, kinds: Uint8Array): number {
  let end = text.length
  while (end > 0) {
    const unit = text.charCodeAt(end - 1)
    const kind = kinds[unit] ?? other
    // A bracket or a quote at the end closes what is inside; a stop, a question mark or white space only ends it.
    if (kind !== other && unit !== lineFeed && !finalMarks.has(unit)) break
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

function kindTable(): Uint8Array {
  const kinds = new Uint8Array(65_536)
  const letters = /[\p{L}\p{M}]/u
  for (let unit = 0; unit < 65_536; unit++) {
    if (unit < 128) kinds[unit] = kindOfAscii(unit)
    else if (isIdeograph(unit)) kinds[unit] = ideograph
    // Halves of a surrogate pair: emoji and rare scripts, each read as letters.
    else if (unit >= 0xd800 && unit < 0xe000) kinds[unit] = letter
    else
      kinds[unit] = letters.test(String.fromCharCode(unit))
        ? letter
        : /\p{Nd}/u.test(String.fromCharCode(unit))
          ? digit
          : other
  }
  return kinds
}

function kindOfAscii(unit: number): number {
  if ((unit >= 97 && unit <= 122) || (unit >= 65 && unit <= 90)) return letter
  if (unit >= 48 && unit <= 57) return digit
  return unit === 10 || (unit > 32 && unit < 127) ? symbol : other
}

/** Kana, CJK ideographs, Thai: written without spaces between words. */
function isIdeograph(unit: number): boolean {
  return (unit >= 0x3040 && unit <= 0x30ff) || (unit >= 0x3400 && unit <= 0x9fff) || (unit >= 0x0e00 && unit <= 0x0e7f)
}

function lowerTable(): Uint16Array {
  const lower = new Uint16Array(65_536)
  for (let unit = 0; unit < 65_536; unit++) {
    const folded = String.fromCharCode(unit).toLowerCase()
    lower[unit] = folded.length === 1 ? folded.charCodeAt(0) : unit
  }
  return lower
}
