/**
 * Restores words that were transformed by a rule: rot13, reversed, swapped letters, or joined without blanks. A variant
 * is returned only if it contains several known words and the original few.
 */
import list from '../analysis/lexicon/en.txt' with { type: 'text' }
import { loadUnits, units } from '../code-units.ts'
import { getWords, harmKinds } from '../harm/harm-slots.ts'
import { createHashTable, findPlace, type HashTable } from '../hash-table.ts'

/** Only the beginning of a longer text is checked. */
const longestLook = 1_000
const fewestTurned = 3
const fewestSwapped = 2
const shortest = 3
const leastSwapped = 5

/** Returns restored variants of a text, usually none. One pass over its letters decides for nearly all. */
export function unscrambled(text: string): readonly string[] {
  const { words, shapes } = vocabulary()
  const length = Math.min(loadUnits(text), longestLook)
  let plain = 0
  let unknown = 0
  let swapped = 0
  let long = 0
  let from = 0
  let word = 0
  let inner = 0
  let last = 0
  for (let at = 0; at <= length; at++) {
    const unit = at < length ? (units[at] ?? 0) : 0
    const letter = unit < 128 ? (letterNumbers[unit] ?? 0) : 0
    if (letter > 0) {
      word = (Math.imul(word, base) + letter) | 0
      inner = (inner + (mixes[letter] ?? 0)) | 0
      last = letter
      continue
    }
    const letters = at - from
    if (letters >= shortest) {
      const isLong = letters >= leastSwapped
      if (words[findPlace(words, word)] !== 0) {
        plain++
        if (isLong) long++
      } else {
        unknownFrom[unknown] = from
        unknownTo[unknown++] = at
        if (
          isLong &&
          shapes[findPlace(shapes, getShape(inner, letterNumbers[units[from] ?? 0] ?? 0, last, letters))] !== 0
        )
          swapped++
      }
    }
    from = at + 1
    word = 0
    inner = 0
  }
  const found = unknown >= fewestTurned && unknown > plain ? turnedVariants(text, unknown, plain) : []
  return swapped >= fewestSwapped && swapped > long ? [...found, eachWord(text, sortLetters)] : found
}

/** Where the unknown words of the loaded text are. */
const unknownFrom = new Uint16Array(longestLook)
const unknownTo = new Uint16Array(longestLook)

/** Returns the text with its letters in rot13 or reversed, if more of the unknown words are known ones then than words were before. */
function turnedVariants(text: string, unknown: number, plain: number): readonly string[] {
  const { words } = vocabulary()
  let turned = 0
  let backwards = 0
  for (let index = 0; index < unknown; index++) {
    let ahead = 0
    let back = 0
    let power = 1
    for (let at = unknownFrom[index] ?? 0; at < (unknownTo[index] ?? 0); at++) {
      const letter = letterNumbers[units[at] ?? 0] ?? 0
      ahead = (Math.imul(ahead, base) + (letter > half ? letter - half : letter + half)) | 0
      back = (back + Math.imul(letter, power)) | 0
      power = Math.imul(power, base)
    }
    if (words[findPlace(words, ahead)] !== 0) turned++
    if (words[findPlace(words, back)] !== 0) backwards++
  }
  const found: string[] = []
  if (turned >= fewestTurned && turned > plain) found.push(rot13(text))
  if (backwards >= fewestTurned && backwards > plain) found.push(eachWord(text, reverseText), reverseText(text))
  return found
}

const alphabet = 26
const half = alphabet / 2
const firstLetter = 97
const base = 31

/** Number of an ASCII letter in the alphabet, from 1; 0 = no letter. */
const letterNumbers = Uint8Array.from({ length: 128 }, (_, unit) =>
  /[a-z]/i.test(String.fromCharCode(unit)) ? (unit | 0x20) - firstLetter + 1 : 0,
)

/** Makes sums of letters distinct; by the number of a letter. */
const mixes = Int32Array.from(
  { length: alphabet + 1 },
  (_, letter) => Math.imul(letter, 0x9e3779b1) ^ Math.imul(letter + 6, 0x85ebca6b),
)

/** Returns the shape of a word by the sum of its mixed letters: first letter, last letter, and the others in any order. */
function getShape(sum: number, first: number, last: number, letters: number): number {
  return (sum + Math.imul(mixes[first] ?? 0, 2) + Math.imul(mixes[last] ?? 0, 4) + Math.imul(letters, 0x27d4eb2f)) | 0
}

function getHashes(word: string): { readonly word: number; readonly shape: number } {
  let hash = 0
  let sum = 0
  for (let at = 0; at < word.length; at++) {
    const letter = letterNumbers[word.charCodeAt(at)] ?? 0
    hash = (Math.imul(hash, base) + letter) | 0
    sum = (sum + (mixes[letter] ?? 0)) | 0
  }
  const first = letterNumbers[word.charCodeAt(0)] ?? 0
  const last = letterNumbers[word.charCodeAt(word.length - 1)] ?? 0
  return { word: hash, shape: getShape(sum, first, last, word.length) }
}

type Vocabulary = {
  readonly words: HashTable
  readonly shapes: HashTable
  /** The word with a given shape. */
  readonly wordOfShape: ReadonlyMap<number, string>
  readonly spelt: ReadonlySet<string>
}

let kept: Vocabulary | null = null

/** Returns typical words of requests and the most common words. */
function vocabulary(): Vocabulary {
  kept ??= madeVocabulary()
  return kept
}

const everywhere =
  'about after again also another around because before being between both cannot could different does doing down during each easily effective even every explain first following from give given good great have having help here home into just know large like little long look made make many more most much must need never new next not note number only other ours over part people place please possible provide public really right same several should show small some someone something step steps such sure take tell than that the their them then there these they thing things this those through time together under until using used very want was way ways well were what when where which while who whose why will with within without work world would write year you your information computer system systems program network develop detailed design software online website company government personal private social media person individual individuals people group groups using including ensure users data file files security account accounts device devices letter article story script email message messages tutorial manual guide instructions strategy method methods process plan list outline create creating generate produce build'

function madeVocabulary(): Vocabulary {
  const spelt = new Set([
    ...everywhere.split(' '),
    ...harmKinds.flatMap(kind => [...getWords(kind)]),
    ...list.split(/[\s_]+/).map(word => word.replace('*', '')),
  ])
  const words = new Set<number>()
  const shapes = new Map<number, string>()
  for (const word of spelt) {
    if (word.length < shortest || !/^[a-z]+$/.test(word)) continue
    const hashes = getHashes(word)
    words.add(hashes.word)
    if (word.length >= leastSwapped && !shapes.has(hashes.shape)) shapes.set(hashes.shape, word)
  }
  return { words: createHashTable(words), shapes: createHashTable(shapes.keys()), wordOfShape: shapes, spelt }
}

function rot13(text: string): string {
  return text.replace(/[a-z]/gi, letter => {
    const code = letter.charCodeAt(0)
    const first = code < firstLetter ? 65 : firstLetter
    return String.fromCharCode(((code - first + 13) % alphabet) + first)
  })
}

function eachWord(text: string, changed: (word: string) => string): string {
  return text.replace(/[a-z]+/gi, changed)
}

function reverseText(text: string): string {
  return Array.from(text).reverse().join('')
}

/** Returns the listed word with the same letters; otherwise swaps the second and third letter. */
function sortLetters(word: string): string {
  if (word.length < leastSwapped) return word
  const { words, wordOfShape } = vocabulary()
  const low = word.toLowerCase()
  const hashes = getHashes(low)
  if (words[findPlace(words, hashes.word)] !== 0) return word
  return wordOfShape.get(hashes.shape) ?? `${low.charAt(0)}${low.charAt(2)}${low.charAt(1)}${low.slice(3)}`
}

/** Splits joined letters into known words as far as possible; unknown parts stay unchanged. */
export function parted(run: string): string {
  const { words: hashes, spelt } = vocabulary()
  const low = run.toLowerCase()
  /** By position: number of letters outside of words plus number of words, and start of the last word. */
  const cost = new Float64Array(low.length + 1).fill(Number.POSITIVE_INFINITY)
  const from = new Int32Array(low.length + 1)
  cost[0] = 0
  for (let start = 0; start < low.length; start++) {
    const before = cost[start] ?? 0
    if (before + lonely <= (cost[start + 1] ?? 0)) {
      cost[start + 1] = before + lonely
      from[start + 1] = start
    }
    let hash = 0
    for (let end = start + 1; end <= Math.min(low.length, start + mostLetters); end++) {
      hash = (Math.imul(hash, base) + (letterNumbers[low.charCodeAt(end - 1)] ?? 0)) | 0
      if (end - start < leastLetters || before + 1 >= (cost[end] ?? 0)) continue
      // The hash excludes nearly all strings without a copy of their letters.
      if (hashes[findPlace(hashes, hash)] === 0 || !spelt.has(low.slice(start, end))) continue
      cost[end] = before + 1
      from[end] = start
    }
  }
  const words: string[] = []
  let end = low.length
  let rest = ''
  while (end > 0) {
    const start = from[end] ?? 0
    const word = low.slice(start, end)
    if (word.length === 1) rest = word + rest
    else {
      if (rest !== '') words.unshift(rest)
      rest = ''
      words.unshift(word)
    }
    end = start
  }
  if (rest !== '') words.unshift(rest)
  return words.join(' ')
}

/** Cost of a letter outside of words, in words. */
const lonely = 2
const leastLetters = 4
const mostLetters = 16
