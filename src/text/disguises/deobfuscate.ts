/**
 * Undoes obfuscation that hides words from rules and classifiers: invisible characters, look-alike letters, leetspeak,
 * base64.
 */
import { readSigns, textSigns } from '../signs.ts'
import { replaceConfusables } from './confusables.ts'
import { parted, unscrambled } from './scrambled.ts'

/**
 * Returns deobfuscated variants of a text; none if nothing looks obfuscated. A longer text is searched in windows, so that a
 * disguise counts the same at any place, and base64 as a whole, since its runs are long.
 */
export function deobfuscatedVariants(text: string): readonly string[] {
  const found: string[] = []
  const signs = readSigns(text) & disguises
  for (let from = 0; ; from += longestWindow - sharedByWindows) {
    const window = text.length <= longestWindow ? text : text.slice(from, from + longestWindow)
    const own = window === text || signs === 0 ? signs : readSigns(window) & disguises
    found.push(...unscrambled(window))
    if (own !== 0) found.push(...plainVariants(window, own))
    if (from + longestWindow >= text.length) break
  }
  const hidden = textsInBase64(text)
  if (hidden.length > 0) found.push(hidden.join('\n'))
  return found
}

const hiding = textSigns.hidden | textSigns.mixed
const disguises = hiding | textSigns.leet | textSigns.spaced

function plainVariants(text: string, signs: number): readonly string[] {
  const found: string[] = []
  let seen = text
  if ((signs & hiding) !== 0) {
    seen = replaceConfusables(seen)
    found.push(seen)
  }
  if (!isLeet(text, signs) && (seen === text || !isLeet(seen, readSigns(seen)))) return found
  const spelt = normalizeLeetspeak(seen)
  if (spelt === null) return found
  found.push(spelt)
  // A long word that is in the original text was not joined from spaced letters.
  const asWords = spelt.replace(longWords, run => (seen.includes(run) ? run : parted(run)))
  if (asWords !== spelt) found.push(asWords)
  return found
}

const longestWindow = 1_000
const sharedByWindows = 250

/** Too long for one word: spaced-out words separated only by blanks, now joined. */
const longWords = /[a-z]{10,64}/gi

/** Code has digits between letters too, but not in every other word. */
const fewestJoins = 2
const charactersPerJoin = 100
/** At least five spaced letters in a row, as in `i g n o r e`. Fewer are initials. */
const spacedRow = /(?:^|[ .\-_])(?:[a-z][ .\-_]){5}/i

/** Returns true for a text with digits and marks in place of letters, or a row of spaced letters. */
function isLeet(text: string, signs: number): boolean {
  if ((signs & textSigns.spaced) !== 0 && spacedRow.test(text)) return true
  const joins = (signs & textSigns.leet) === 0 ? 0 : (text.match(joiningSigns)?.length ?? 0)
  return joins >= fewestJoins && joins * charactersPerJoin >= text.length
}

const joiningSigns = /(?<=[a-z])[013457@$!]+(?=[a-z])/gi

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

const shortestRun = 32
const longestRun = 8_192
const shareOfOdd = 0.05
const inBase64 = Uint8Array.from({ length: 128 }, (_, unit) =>
  /[A-Za-z0-9+/]/.test(String.fromCharCode(unit)) ? 1 : 0,
)

/** Returns what all base64 runs are that decode to words. Such a run covers one of every N positions, so only those are tested. */
function textsInBase64(text: string): readonly string[] {
  const decoded: string[] = []
  let end = 0
  for (let at = shortestRun - 1; at < text.length; at = Math.max(at, end) + shortestRun) {
    let from = at
    while (from >= end && inBase64[text.charCodeAt(from)] === 1) from--
    if (from === at) continue
    end = at + 1
    while (inBase64[text.charCodeAt(end)] === 1) end++
    for (let start = from + 1; end - start >= shortestRun; start += longestRun) {
      const plain = decodedText(text.slice(start, Math.min(end, start + longestRun)))
      if (plain !== null) decoded.push(plain)
    }
  }
  return decoded
}

function decodedText(run: string): string | null {
  const text = Buffer.from(run, 'base64').toString('latin1')
  const odd = text.match(/[^ -~\n]/g)?.length ?? 0
  return text.includes(' ') && odd <= text.length * shareOfOdd ? text : null
}
