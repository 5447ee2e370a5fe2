/** Undoes what hides words from rules and classifiers: invisible characters, look-alike letters, digits for letters, base64. */

/**
 * Other readings of a text, none where nothing in it looks disguised. One pass over the characters decides; what it finds is
 * read anew up to a bound, so that a text made of disguises costs no more than twice a plain one.
 */
export function undisguised(text: string): readonly string[] {
  if (isPlain(text)) return none
  const found = signsIn(text)
  if (found === 0) return none
  const readings: string[] = []
  let seen = text.slice(0, longestReading)
  if ((found & beyondAscii) !== 0 && isHiding(text)) {
    seen = plainLetters(seen)
    readings.push(seen)
  }
  if ((found & leet) !== 0 || (readings.length > 0 && (signsIn(seen) & leet) !== 0)) {
    const spelt = seen.replace(spacedWord, joined).replace(leetWord, unleeted)
    if (spelt !== seen) readings.push(spelt)
  }
  const hidden = (found & longRun) === 0 ? null : fromBase64(text)
  if (hidden !== null) readings.push(hidden)
  return readings
}

const none: readonly string[] = []
const longestReading = 32_768

const beyondAscii = 1
const leet = 2
const longRun = 4
const shortestRun = 32
/** `i g n o r e`: so many letters in a row that stand alone. */
const fewestSpaced = 5

/**
 * Whether a text can hold no disguise at all, told from a few of its places: it is ASCII, has no digit or mark for a
 * letter, and no stretch that is long enough without two letters side by side, or without a character that base64 has not.
 */
function isPlain(text: string): boolean {
  if (Buffer.byteLength(text) !== text.length) return false
  return !leetMarks.some(mark => isWithinWord(text, mark)) && !hasLoneLetters(text) && !hasLongRun(text)
}

const leetMarks = Array.from('013457@$!')
const fewMarks = 1_000

/** Whether a mark stands behind a letter, with another or a mark behind it; or so often that to look at each takes too long. */
function isWithinWord(text: string, mark: string): boolean {
  let times = 0
  for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + 1)) {
    if (++times > fewMarks) return true
    const next = kinds[text.charCodeAt(at + 1)]
    if (kinds[text.charCodeAt(at - 1)] === kindLetter && (next === kindLetter || next === kindLeet)) return true
  }
  return false
}

/** Whether the letters of some stretch all stand alone. One that spells a word covers one of every so many places. */
function hasLoneLetters(text: string): boolean {
  for (let at = 0; at < text.length; at += shortestSpelt) {
    if (isPair(text, at)) continue
    let from = at
    while (from > 0 && !isPair(text, from - 1)) from--
    let to = at
    while (to < text.length && !isPair(text, to)) to++
    if (to - from >= shortestSpelt) return true
  }
  return false
}

/** `x x x x x `: the fewest letters that count as spelt, each with what stands behind it. */
const shortestSpelt = 2 * fewestSpaced - 1

function isPair(text: string, at: number): boolean {
  return kinds[text.charCodeAt(at)] === kindLetter && kinds[text.charCodeAt(at + 1)] === kindLetter
}

function hasLongRun(text: string): boolean {
  for (let at = 0; at < text.length; at += shortestRun) {
    let from = at
    while (from > 0 && inBase64[text.charCodeAt(from - 1)] === 1) from--
    let to = at
    while (inBase64[text.charCodeAt(to)] === 1) to++
    if (to - from >= shortestRun) return true
  }
  return false
}

/** Which disguises a text may hold. Code has digits between letters too, but not in every other word. */
function signsIn(text: string): number {
  let signs = 0
  let run = 0
  let alone = 0
  let joins = 0
  let last = kindSeparator
  let beforeLast = kindSeparator
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit > 127) {
      signs |= beyondAscii
      run = 0
      continue
    }
    const kind = kinds[unit] ?? kindSeparator
    if (kind === kindLetter) {
      if (last === kindLeet && beforeLast === kindLetter) joins++
      if (last === kindLetter) alone = 0
    } else if (kind === kindSeparator && last === kindLetter && beforeLast === kindSeparator) {
      alone++
      if (alone >= fewestSpaced) signs |= leet
    } else if (last === kindSeparator) alone = 0
    run = inBase64[unit] === 1 ? run + 1 : 0
    if (run >= shortestRun) signs |= longRun
    // A run of digits for letters counts as one.
    if (kind !== kindLeet || last !== kindLeet) beforeLast = last
    last = kind
  }
  return joins >= fewestJoins && joins * charactersPerJoin >= text.length ? signs | leet : signs
}

const fewestJoins = 2
const charactersPerJoin = 100

const kindSeparator = 0
const kindLetter = 1
const kindLeet = 2
const kindOther = 3
const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[a-z]/i.test(character)) return kindLetter
  if (/[013457@$!]/.test(character)) return kindLeet
  return /[ .\-_]/.test(character) ? kindSeparator : kindOther
})
const inBase64 = Uint8Array.from({ length: 128 }, (_, code) =>
  /[A-Za-z0-9+/]/.test(String.fromCharCode(code)) ? 1 : 0,
)

/** Zero-width, bidi and tag characters, soft hyphens; full-width and mathematical letters; Cyrillic and Greek beside Latin. */
function isHiding(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 0xad) continue
    if (hides(unit)) return true
    if (looksLatin(unit) && (isLetter(text.charCodeAt(at - 1)) || isLetter(text.charCodeAt(at + 1)))) return true
  }
  return false
}

function hides(unit: number): boolean {
  return (
    unit === 0xad ||
    unit === 0x34f ||
    unit === 0x180e ||
    (unit >= 0x200b && unit <= 0x200f) ||
    (unit >= 0x202a && unit <= 0x202e) ||
    (unit >= 0x2060 && unit <= 0x2064) ||
    unit === 0xd835 ||
    unit === 0xdb40 ||
    unit === 0xfeff ||
    (unit >= 0xff10 && unit <= 0xff5a)
  )
}

/** Cyrillic and Greek, also those letters that stand elsewhere and have a capital there. */
function looksLatin(unit: number): boolean {
  return (
    (unit >= 0x370 && unit <= 0x4ff) ||
    unit === 0xb5 ||
    unit === 0x345 ||
    (unit >= 0x1c80 && unit <= 0x1c87) ||
    unit === 0x1fbe
  )
}

function isLetter(unit: number): boolean {
  return kinds[unit] === kindLetter
}

const invisible =
  /[\u00ad\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\ufeff]|\u034f|\u200d|[\u{e0000}-\u{e007f}]/gu

/** Marks on one letter, more than any letter has: putting them in order takes the square of their number. */
const manyMarks = /(\p{M}{8})\p{M}+/gu

function plainLetters(text: string): string {
  return text
    .replace(manyMarks, '$1')
    .normalize('NFKC')
    .replace(invisible, tagLetter)
    .replace(lookAlikes, letter => latinFor.get(letter) ?? letter)
}

/** Tag characters spell ASCII that nobody sees; the rest says nothing. */
function tagLetter(character: string): string {
  const code = (character.codePointAt(0) ?? 0) - 0xe0000
  return code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : ''
}

const lookAlikes = /[\u0370-\u052f]/g
/** Letter and the Latin one that it looks like, pair by pair. */
const pairs = 'аaеeоoрpсcхxуyіiјjѕsһhԁdкkмmтtгrΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXοoαaνvρpιiΑAАAВBЕEКKМMНHОOРPСCТTХX'
const latinFor = new Map(
  Array.from({ length: pairs.length / 2 }, (_, at) => [pairs[2 * at] ?? '', pairs[2 * at + 1] ?? ''] as const),
)

/** A word with a digit or a mark among its letters; ordinary words are passed over. */
const leetWord = /(?<![a-z])[a-z]{0,24}[@$013457][a-z@$!013457]{1,40}/gi
const leetLetters: Readonly<Record<string, string>> = {
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

/** A mark at the end ends a sentence. */
function unleeted(word: string): string {
  if (!/[a-z]/i.test(word)) return word
  return word.replace(/[@$013457]|!(?=.)/g, sign => leetLetters[sign] ?? sign)
}

const spacedWord = /(?<![a-z])[a-z](?:[ .\-_][a-z]){4,63}(?![a-z])/gi

function joined(letters: string): string {
  return letters.replace(/[ .\-_]/g, '')
}

const base64Run = /[A-Za-z0-9+/]{32,8192}={0,2}/g
const maximumRuns = 8
const shareOfPrintable = 0.95

/** The text in base64 runs that decode to words, null for none. */
function fromBase64(text: string): string | null {
  const decoded: string[] = []
  let runs = 0
  for (const [run] of text.matchAll(base64Run)) {
    if (++runs > maximumRuns) break
    const plain = decodedText(run)
    if (plain !== null) decoded.push(plain)
  }
  return decoded.length === 0 ? null : decoded.join('\n')
}

function decodedText(run: string): string | null {
  const plain = Buffer.from(run, 'base64').toString('latin1')
  const printable = plain.match(/[\x20-\x7e\n]/g)?.length ?? 0
  return printable >= plain.length * shareOfPrintable && plain.includes(' ') ? plain : null
}
