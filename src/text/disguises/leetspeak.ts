/** Restores words in leetspeak (`1gn0re`) and spaced words (`i g n o r e`). */

/** Returns a text with such words restored; null if it has none. Linear. */
export function normalizeLeetspeak(text: string): string | null {
  // A gap on both sides keeps look-ups of neighbors inside the array.
  const units = new Uint16Array(text.length + 2 * gap)
  const bytes = Buffer.from(units.buffer)
  bytes.write(text, 2 * gap, 'utf16le')
  const end = joinLetters(units, gap + text.length)
  units.fill(0, end)
  const hasSigns = replaceSigns(units, end)
  return end < gap + text.length || hasSigns ? bytes.toString('utf16le', 2 * gap, 2 * end) : null
}

const gap = 2

const signs: Readonly<Record<string, string>> = {
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
const exclamation = 33

/** Minimum number of spaced letters in a row. Fewer are initials. */
const fewestSpaced = 5
const mostSpaced = 64

/** Joins spaced letters and returns the new end of the text. */
function joinLetters(units: Uint16Array, end: number): number {
  let to = gap
  let before = other
  for (let at = gap; at < end; ) {
    const kind = kindAt(units, at)
    const isAlone = (kind & ~before & letter) !== 0 && kindAt(units, at + 1) === separator
    const letters = isAlone ? lettersAlone(units, at) : 0
    before = kind
    if (letters < fewestSpaced) units[to++] = units[at++] ?? 0
    else {
      for (let index = 0; index < letters; index++) units[to++] = units[at + 2 * index] ?? 0
      at += 2 * letters - 1
    }
  }
  return to
}

/** Returns how many spaced letters follow. The first letter of a word does not count. */
function lettersAlone(units: Uint16Array, from: number): number {
  let last = from
  let letters = 1
  // All letters must have the same separator: `k.i.l.l t.h.e.m` is two words.
  const mark = units[from + 1]
  while (letters < mostSpaced && units[last + 1] === mark && kindAt(units, last + 2) === letter) {
    last += 2
    letters++
  }
  return kindAt(units, last + 1) === letter ? letters - 1 : letters
}

/** A word: letters, a sign for a letter, and more of both. Longer runs are not words. */
const mostBefore = 24
const mostBehind = 40

/** Replaces signs by the letters that they stand for; returns true if there were any. */
function replaceSigns(units: Uint16Array, end: number): boolean {
  let hasChanged = false
  /**
   * End of the last word, and whether it was truncated there: letters that continue a truncated word are not a word.
   */
  let last = gap
  let isCut = false
  for (let at = gap; at < end; at++) {
    if (kindAt(units, at) !== sign || units[at] === exclamation) continue
    const from = wordStart(units, at, last)
    if (at - from > mostBefore || (from === last && isCut)) continue
    const to = wordEnd(units, at + 1)
    if (to === at + 1) continue
    isCut = kindAt(units, to - 1) === letter
    last = to
    if (replaceWithin(units, from, to)) hasChanged = true
    at = to - 1
  }
  return hasChanged
}

function wordStart(units: Uint16Array, at: number, least: number): number {
  let from = at
  while (from > least && at - from <= mostBefore && kindAt(units, from - 1) === letter) from--
  return from
}

function wordEnd(units: Uint16Array, from: number): number {
  let end = from
  while (end < from + mostBehind && (kindAt(units, end) & (letter | sign)) !== 0) end++
  return end
}

/** A sign stands for a letter only between letters; an exclamation mark at the end closes a sentence. */
function replaceWithin(units: Uint16Array, from: number, end: number): boolean {
  let found = other
  for (let at = from; at < end; at++) found |= kindAt(units, at)
  if ((found & letter) === 0) return false
  const last = units[end - 1] ?? 0
  for (let at = from; at < end; at++) units[at] = letterFor[units[at] ?? 0] ?? 0
  if (last === exclamation) units[end - 1] = last
  return true
}

const other = 0
const letter = 1
const sign = 2
const separator = 4
const kinds = new Uint8Array(65_536)
for (const code of Array(128).keys()) kinds[code] = getKind(String.fromCharCode(code))

function getKind(character: string): number {
  if (/[a-z]/i.test(character)) return letter
  if (/[ .\-_]/.test(character)) return separator
  return character in signs ? sign : other
}

function kindAt(units: Uint16Array, at: number): number {
  return kinds[units[at] ?? 0] ?? other
}

/** A letter maps to itself. */
const letterFor = Uint16Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  return (signs[character] ?? character).charCodeAt(0)
})
