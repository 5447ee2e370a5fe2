/**
 * Undoes obfuscation that hides words from rules and classifiers: invisible characters, look-alike letters, leetspeak,
 * base64.
 */
import { filledTable, unitCount } from '../../core/text/unit-table.ts'
import { loadUnits, units } from '../code-units.ts'
import { getWindows } from '../pieces.ts'
import { replaceConfusables } from './confusables.ts'
import { normalizeLeetspeak } from './leetspeak.ts'
import { parted, unscrambled } from './scrambled.ts'

/**
 * Yields deobfuscated variants of a text; none if nothing looks obfuscated. A longer text is searched in windows, so that a
 * disguise counts the same at any place, and base64 as a whole, since its runs are long. Each variant is the work of one step.
 */
export function* deobfuscatedVariants(text: string): Generator<string, void, void> {
  let mayHoldRun = false
  for (const window of getWindows(text, longestWindow, text.length > longestWindow ? sharedByWindows : 0)) {
    const signs = signsIn(window)
    if ((signs & longRun) !== 0) mayHoldRun = true
    yield* unscrambled(window)
    if (signs !== 0) yield* plainVariants(window, signs)
  }
  const hidden = mayHoldRun ? textInBase64(text) : null
  if (hidden !== null) yield hidden
}

function* plainVariants(text: string, signs: number): Generator<string, void, void> {
  let seen = text
  if ((signs & hiding) !== 0) {
    seen = replaceConfusables(seen)
    yield seen
  }
  if ((signs & leet) === 0 && (seen === text || (signsIn(seen) & leet) === 0)) return
  const spelt = normalizeLeetspeak(seen)
  if (spelt === null) return
  yield spelt
  // A long word that is in the original text was not joined from spaced letters.
  const asWords = spelt.replace(longWords, run => (seen.includes(run) ? run : parted(run)))
  if (asWords !== spelt) yield asWords
}

const longestWindow = 1_000
const sharedByWindows = 250

/** Too long for one word: spaced-out words separated only by blanks, now joined. */
const longWords = /[a-z]{10,64}/gi

/** Invisible characters, stylistic letter variants, or Cyrillic or Greek beside Latin. */
const hiding = 1
/** Digits and marks in place of letters, or a row of spaced letters. */
const leet = 2
/** A long run of base64 characters. */
const longRun = 4
const shortestRun = 32

/** Returns the kinds of obfuscation that a text may contain. Most texts contain none and are not examined further. */
function signsIn(text: string): number {
  const traits = traitTable()
  let found = 0
  let mixed = 0
  let joins = 0
  let alone = 0
  let hasRun = false
  for (let from = 0; from < text.length; ) {
    const length = loadUnits(text, from)
    // Several short loops compile to faster code than one loop that does everything.
    let before = 0
    for (let at = 0; at < length; at++) {
      const trait = traits[units[at] ?? 0] ?? 0
      found |= trait
      mixed |= ((trait << 1) & before) | ((before << 1) & trait)
      joins += (before >>> joinShift) & (trait >>> leetShift) & 1
      before = trait
    }
    alone = Math.max(alone, lonelyIn(traits, length))
    hasRun ||= hasRunIn(traits, length)
    from += length
  }
  const isHiding = (found & hides) !== 0 || (mixed & looksLatin) !== 0
  const mayBeLeet = (joins >= fewestJoins && joins * charactersPerJoin >= text.length) || alone >= fewestSpaced
  return (isHiding ? hiding : 0) | (mayBeLeet && isLeet(text, traits) ? leet : 0) | (hasRun ? longRun : 0)
}

/** Returns the longest row of (possibly) spaced letters among the loaded units. */
function lonelyIn(traits: Uint16Array, length: number): number {
  const separator = 1 << separatorShift
  let most = 0
  let row = 0
  let before = separator
  let beforeLast = separator
  for (let at = 0; at < length; at++) {
    const trait = traits[units[at] ?? 0] ?? 0
    const ends = (beforeLast >>> separatorShift) & (before >>> joinShift) & (trait >>> separatorShift) & 1
    const begins = (before >>> separatorShift) & (trait >>> joinShift) & 1
    row = (row + ends) & -(ends | begins)
    most = Math.max(most, row)
    beforeLast = before
    before = trait
  }
  return most
}

/**
 * Returns true if the loaded units contain a long enough run of base64. Such a run covers one of every N positions, so
 * only those are tested.
 */
function hasRunIn(traits: Uint16Array, length: number): boolean {
  const isBase64 = (at: number) => at >= 0 && at < length && ((traits[units[at] ?? 0] ?? 0) & (1 << base64Shift)) !== 0
  for (let at = shortestRun - 1; at < length; at += shortestRun) {
    if (!isBase64(at)) continue
    let from = at
    while (at - from < shortestRun && isBase64(from - 1)) from--
    let to = at
    while (to - from < shortestRun && isBase64(to + 1)) to++
    if (to - from + 1 >= shortestRun) return true
  }
  return false
}

/** One pass without branches: in code, hashes and logs a branch would be mispredicted often. */
function isLeet(text: string, traits: Uint16Array): boolean {
  let state = 0
  let joins = 0
  for (let from = 0; from < text.length; ) {
    const length = loadUnits(text, from)
    for (let at = 0; at < length; at++) {
      const step = state | ((traits[units[at] ?? 0] ?? 0) & kindMask)
      joins += joinsAt[step] ?? 0
      state = steps[step] ?? 0
    }
    from += length
  }
  // Code has digits between letters too, but not in every other word.
  return state >= spelledOut || (joins >= fewestJoins && joins * charactersPerJoin >= text.length)
}

const fewestJoins = 2
const charactersPerJoin = 100

const kindSeparator = 0
const kindLetter = 1
const kindLeet = 2
const kindOther = 3
/** Not ASCII: ignored. */
const kindNone = 4

/**
 * Traits of a unit: its kind, whether it is a base64 character, whether it is disguised, and two bits for adjacent
 * units.
 */
const kindMask = 7
const base64Shift = 3
const hides = 0x10
const letter = 0x40
const looksLatin = letter << 1
/** Whether the unit can be a letter, a sign for a letter, or a separator. */
const joinShift = 8
const leetShift = 9
const separatorShift = 10

let traitsKept: Uint16Array | null = null

/** Returns `getTrait` for every UTF-16 unit, computed on first use. */
function traitTable(): Uint16Array {
  traitsKept ??= filledTable(new Uint16Array(unitCount), unit => {
    const trait = getTrait(unit)
    const kind = trait & kindMask
    const may = (value: number, shift: number) => (kind === value || kind === kindNone ? 1 << shift : 0)
    return trait | may(kindLetter, joinShift) | may(kindLeet, leetShift) | may(kindSeparator, separatorShift)
  })
  return traitsKept
}

function getTrait(unit: number): number {
  if (unit > 127) return kindNone | (isDisguise(unit) ? hides : 0) | (resemblesLatin(unit) ? looksLatin : 0)
  const character = String.fromCharCode(unit)
  const inBase64 = /[A-Za-z0-9+/]/.test(character) ? 1 << base64Shift : 0
  if (/[a-z]/i.test(character)) return kindLetter | letter | inBase64
  if (/[013457@$!]/.test(character)) return kindLeet | inBase64
  return (/[ .\-_]/.test(character) ? kindSeparator : kindOther) | inBase64
}

/**
 * Returns true for zero-width, bidi and tag characters, soft hyphens, and circled, full-width and mathematical letters.
 */
function isDisguise(unit: number): boolean {
  return (
    unit === 0xad ||
    unit === 0x34f ||
    unit === 0x180e ||
    (unit >= 0x200b && unit <= 0x200f) ||
    (unit >= 0x202a && unit <= 0x202e) ||
    (unit >= 0x2060 && unit <= 0x2064) ||
    (unit >= 0x24b6 && unit <= 0x24e9) ||
    unit === 0xd835 ||
    unit === 0xdb40 ||
    unit === 0xfeff ||
    (unit >= 0xff10 && unit <= 0xff5a)
  )
}

/** Returns true for Cyrillic and Greek letters, including those encoded elsewhere whose capital is in these blocks. */
function resemblesLatin(unit: number): boolean {
  return (
    (unit >= 0x370 && unit <= 0x4ff) ||
    unit === 0xb5 ||
    unit === 0x345 ||
    (unit >= 0x1c80 && unit <= 0x1c87) ||
    unit === 0x1fbe
  )
}

/** Minimum number of spaced letters in a row, as in `i g n o r e`. */
const fewestSpaced = 5

/**
 * State of the leet detector as one number: the count of spaced letters (up to `fewestSpaced`) and the kinds of the
 * last two characters, where a run of leet digits counts as one. The kind of the next character goes in the low bits.
 */
const spelledOut = getState(fewestSpaced, 0, 0)

function getState(alone: number, beforeLast: number, last: number): number {
  return (alone << 7) | (beforeLast << 5) | (last << 3)
}

/** State after the next character. */
const steps = Uint16Array.from({ length: getState(fewestSpaced + 1, 0, 0) }, (_, step) => {
  const [alone, beforeLast, last, kind] = getParts(step)
  if (kind >= kindNone) return step & ~kindMask
  const isSameRun = kind === kindLeet && last === kindLeet
  return getState(lettersAlone(alone, beforeLast, last, kind), isSameRun ? beforeLast : last, kind)
})

/** 1 if the next character joins letters with a sign for a letter. */
const joinsAt = Uint8Array.from(steps, (_, step) => {
  const [, beforeLast, last, kind] = getParts(step)
  return kind === kindLetter && last === kindLeet && beforeLast === kindLetter ? 1 : 0
})

function getParts(step: number) {
  return [step >> 7, (step >> 5) & 3, (step >> 3) & 3, step & kindMask] as const
}

function lettersAlone(alone: number, beforeLast: number, last: number, kind: number): number {
  if (alone === fewestSpaced) return alone
  if (kind === kindLetter) return last === kindLetter ? 0 : alone
  if (kind === kindSeparator && last === kindLetter && beforeLast === kindSeparator) return alone + 1
  return last === kindSeparator ? 0 : alone
}

/** Decodes words written in base64. */

const base64Run = /[A-Za-z0-9+/]{32,8192}={0,2}/g
const shareOfPrintable = 0.95

/** Returns the decoded text of all base64 runs that decode to words, one per line; null if there is none. */
function textInBase64(text: string): string | null {
  const decoded: string[] = []
  for (const [run] of text.matchAll(base64Run)) {
    const plain = decodedText(run)
    if (plain !== null) decoded.push(plain)
  }
  return decoded.length === 0 ? null : decoded.join('\n')
}

function decodedText(run: string): string | null {
  const bytes = Buffer.from(run, 'base64')
  if (!bytes.includes(space)) return null
  let printable = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if ((byte >= space && byte <= tilde) || byte === lineFeed) printable++
  }
  return printable >= bytes.length * shareOfPrintable ? bytes.toString('latin1') : null
}

const space = 32
const tilde = 126
const lineFeed = 10
