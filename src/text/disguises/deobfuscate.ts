/**
 * Undoes obfuscation that hides words from rules and classifiers: invisible characters, look-alike letters, leetspeak,
 * base64.
 */
import { filledTable, unitCount } from '../../core/text/unit-table.ts'
import { loadUnits, units } from '../code-units.ts'
import { getWindows } from '../pieces.ts'
import { isInvisible, replaceConfusables } from './confusables.ts'
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

/** Code has digits between letters too, but not in every other word. */
const fewestJoins = 2
const charactersPerJoin = 100
/** Minimum number of spaced letters in a row, as in `i g n o r e`. Fewer are initials. */
const fewestSpaced = 5

/** Returns the kinds of obfuscation that a text may contain. Most texts contain none and are not examined further. */
function signsIn(text: string): number {
  const traits = traitTable()
  let found = 0
  let mixed = 0
  let joins = 0
  let spaced = 0
  let hasRun = false
  for (let from = 0; from < text.length; ) {
    const length = loadUnits(text, from)
    // Several short loops compile to faster code than one loop that does everything. No branches: in code, hashes and
    // logs they would be mispredicted often.
    let before = 0
    /** Signs for letters that a letter precedes. */
    let signs = 0
    for (let at = 0; at < length; at++) {
      const trait = traits[units[at] ?? 0] ?? 0
      found |= trait
      mixed |= ((trait << 1) & before) | ((before << 1) & trait)
      joins += (trait >>> letterShift) & signs & 1
      signs = (trait >>> signShift) & ((before >>> letterShift) | signs)
      before = trait
    }
    spaced = Math.max(spaced, mostSpaced(traits, length))
    hasRun ||= hasRunIn(traits, length)
    from += length
  }
  const isHiding = (found & hides) !== 0 || (mixed & looksLatin) !== 0
  const isLeet = (joins >= fewestJoins && joins * charactersPerJoin >= text.length) || spaced >= fewestSpaced
  return (isHiding ? hiding : 0) | (isLeet ? leet : 0) | (hasRun ? longRun : 0)
}

/** Returns the longest row of spaced letters among the loaded units. */
function mostSpaced(traits: Uint16Array, length: number): number {
  let most = 0
  let row = 0
  let before = separator
  let beforeLast = separator
  for (let at = 0; at < length; at++) {
    const trait = traits[units[at] ?? 0] ?? 0
    const ends = (beforeLast >>> separatorShift) & (before >>> letterShift) & (trait >>> separatorShift) & 1
    const begins = (before >>> separatorShift) & (trait >>> letterShift) & 1
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
  const isBase64 = (at: number) => at >= 0 && at < length && ((traits[units[at] ?? 0] ?? 0) & inBase64) !== 0
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

/** Traits of a unit as bits. `looksLatin` stands beside `letter`, for units that are next to each other. */
const letterShift = 0
const letter = 1 << letterShift
const looksLatin = letter << 1
const signShift = 2
const separatorShift = 3
const separator = 1 << separatorShift
const inBase64 = 1 << 4
const hides = 1 << 5

let traitsKept: Uint16Array | null = null

/** Returns `getTrait` for every UTF-16 unit, computed on first use. */
function traitTable(): Uint16Array {
  traitsKept ??= filledTable(new Uint16Array(unitCount), getTrait)
  return traitsKept
}

function getTrait(unit: number): number {
  if (unit > 127) return (isDisguise(unit) ? hides : 0) | (resemblesLatin(unit) ? looksLatin : 0)
  const character = String.fromCharCode(unit)
  const kind = /[a-z]/i.test(character)
    ? letter
    : character in signLetters
      ? 1 << signShift
      : /[ .\-_]/.test(character)
        ? separator
        : 0
  return kind | (/[A-Za-z0-9+/]/.test(character) ? inBase64 : 0)
}

/** Returns true for invisible and tag characters, and for circled, full-width and mathematical letters. */
function isDisguise(unit: number): boolean {
  return (
    isInvisible(unit) ||
    (unit >= 0x24b6 && unit <= 0x24e9) ||
    unit === 0xd835 ||
    unit === 0xdb40 ||
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

/** Letters of the same separator: `k.i.l.l t.h.e.m` is two words. */
const spacedLetters =
  /(^|[^a-z])((?:[a-z] ){4,63}[a-z]|(?:[a-z]\.){4,63}[a-z]|(?:[a-z]-){4,63}[a-z]|(?:[a-z]_){4,63}[a-z])(?![a-z])/gi
/** A word: letters and signs for letters. Longer runs are no words. */
const signedWord = /[a-z@$!013457]{2,}/gi
const longestWord = 64
const signLetters: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
}

/** Returns a text with leetspeak (`1gn0re`) and spaced words (`i g n o r e`) restored; null if it has none. Linear. */
export function normalizeLeetspeak(text: string): string | null {
  const spelt = text
    .replace(spacedLetters, (_, lead: string, row: string) => lead + row.replace(/[ .\-_]/g, ''))
    .replace(signedWord, word =>
      // An exclamation mark at the end closes a sentence.
      word.length <= longestWord && /[a-z]/i.test(word)
        ? word.replace(/[@$013457]|!(?!!*$)/g, sign => signLetters[sign] ?? sign)
        : word,
    )
  return spelt === text ? null : spelt
}

/** Decodes words written in base64. */

const base64Run = /[A-Za-z0-9+/]{32,8192}={0,2}/g
const shareOfOdd = 0.05

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
  const text = Buffer.from(run, 'base64').toString('latin1')
  const odd = text.match(/[^ -~\n]/g)?.length ?? 0
  return text.includes(' ') && odd <= text.length * shareOfOdd ? text : null
}
