/**
 * Restores words that were transformed by a rule: rot13, reversed, swapped letters, or joined without blanks. A variant
 * is returned only if it contains several known words and the original few.
 */
import list from '../analysis/lexicon/en.txt' with { type: 'text' }
import { loadUnits, units } from '../code-units.ts'
import { getWords, harmKinds } from '../harm/harm-slots.ts'

/** Only the beginning of a longer text is checked. */
const longestLook = 1_000
const fewestTurned = 3
const fewestSwapped = 2
const shortest = 3
const leastSwapped = 5

/** Returns restored variants of a text, usually none. One pass over its letters decides. */
export function unscrambled(text: string): readonly string[] {
  const { words, shapes, sieve } = vocabulary()
  /** Most hashes belong to no known word, and the sieve excludes nearly all of them. */
  const isWord = (hash: number) => sieve[hash & sieveMask] === 1 && words.has(hash)
  const length = Math.min(loadUnits(text), longestLook)
  let plain = 0
  let turned = 0
  let backwards = 0
  let swapped = 0
  let long = 0
  let word = 0
  let letters = 0
  for (let at = 0; at <= length; at++) {
    const unit = at < length ? (units[at] ?? 0) : 0
    const letter = (unit | 0x20) - firstLetter
    if (letter >= 0 && letter < alphabet && unit < 128) {
      word = (Math.imul(word, base) + letter + 1) | 0
      letters++
      continue
    }
    if (letters >= shortest) {
      const mayBeSwapped = letters >= leastSwapped
      if (isWord(word)) {
        plain++
        if (mayBeSwapped) long++
      } else {
        readOtherwise(at - letters, at)
        if (isWord(read.turned)) turned++
        if (isWord(read.backwards)) backwards++
        if (mayBeSwapped && sieve[read.shape & sieveMask] === 1 && shapes.has(read.shape)) swapped++
      }
    }
    word = 0
    letters = 0
  }
  const analyses: string[] = []
  if (turned >= fewestTurned && turned > plain) analyses.push(rot13(text))
  if (backwards >= fewestTurned && backwards > plain) analyses.push(eachWord(text, reverseText), reverseText(text))
  if (swapped >= fewestSwapped && swapped > long) analyses.push(eachWord(text, sortLetters))
  return analyses
}

const read = { turned: 0, backwards: 0, shape: 0 }

/** Stores in `read` the loaded letters in rot13, reversed, and in any order. */
function readOtherwise(from: number, to: number): void {
  let turned = 0
  let backwards = 0
  let inner = 0
  let last = 0
  let power = 1
  for (let at = from; at < to; at++) {
    const letter = ((units[at] ?? 0) | 0x20) - firstLetter
    turned = (Math.imul(turned, base) + (letter < half ? letter + half : letter - half) + 1) | 0
    backwards = (backwards + Math.imul(letter + 1, power)) | 0
    power = Math.imul(power, base)
    inner = (inner + (at === from ? (firstMixes[letter] ?? 0) : (mixes[letter] ?? 0))) | 0
    last = letter
  }
  read.turned = turned
  read.backwards = backwards
  read.shape = getShape(inner, last, to - from)
}

const alphabet = 26
const half = alphabet / 2
const firstLetter = 97
const base = 31

/** Makes sums of letters distinct. */
function mixLetter(letter: number): number {
  return Math.imul(letter + 1, 0x9e3779b1) ^ Math.imul(letter + 7, 0x85ebca6b)
}
const mixes = Int32Array.from({ length: alphabet }, (_, letter) => mixLetter(letter))
const firstMixes = mixes.map(mix => Math.imul(mix, 3))

/** Returns the shape of a word: first letter, last letter, and the others in any order. */
function getShape(inner: number, last: number, letters: number): number {
  return (inner + Math.imul(mixLetter(last), 4) + Math.imul(letters, 0x27d4eb2f)) | 0
}

function getHashes(word: string): { readonly word: number; readonly shape: number } {
  let hash = 0
  let inner = 0
  let last = 0
  for (let at = 0; at < word.length; at++) {
    const letter = word.charCodeAt(at) - firstLetter
    hash = (Math.imul(hash, base) + letter + 1) | 0
    inner = (inner + (at === 0 ? Math.imul(mixLetter(letter), 3) : mixLetter(letter))) | 0
    last = letter
  }
  return { word: hash, shape: getShape(inner, last, word.length) }
}

type Vocabulary = {
  readonly words: ReadonlySet<number>
  /** The word with a given shape. */
  readonly shapes: ReadonlyMap<number, string>
  readonly spelt: ReadonlySet<string>
  /** By the low bits of a hash or shape: 1 = such a word may exist. */
  readonly sieve: Uint8Array
}

const sieveMask = 0xffff

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
  const sieve = new Uint8Array(sieveMask + 1)
  for (const hash of [...words, ...shapes.keys()]) sieve[hash & sieveMask] = 1
  return { words, shapes, spelt, sieve }
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
  const { words, shapes } = vocabulary()
  const low = word.toLowerCase()
  const hashes = getHashes(low)
  if (words.has(hashes.word)) return word
  return shapes.get(hashes.shape) ?? `${low.charAt(0)}${low.charAt(2)}${low.charAt(1)}${low.slice(3)}`
}

/** Splits joined letters into known words as far as possible; unknown parts stay unchanged. */
export function parted(run: string): string {
  const { words: hashes, sieve, spelt } = vocabulary()
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
      hash = (Math.imul(hash, base) + low.charCodeAt(end - 1) - firstLetter + 1) | 0
      if (end - start < leastLetters || before + 1 >= (cost[end] ?? 0)) continue
      // The hash excludes nearly all strings without a copy of their letters.
      if (sieve[hash & sieveMask] !== 1 || !hashes.has(hash) || !spelt.has(low.slice(start, end))) continue
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
