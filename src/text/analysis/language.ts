import { withoutAddresses } from './extract-urls.ts'
import { type FeatureReader, type Features, featureSieveSize, getHash, getSieve } from './features.ts'
import words from './lexicon/languages.json'

/** Language unknown: too little text, or no script and no word that indicates one. */
const undetermined = 'und'

/**
 * Returns the language of a text in ISO 639-1, or `und`. Decided by its script if only one language uses it, else by
 * its most common words; URLs are ignored. `features` are the text's; `readAside` reads what remains without URLs.
 */
export function getLanguage(text: string, features: Features, readAside: FeatureReader): string {
  const prose = withoutQuoted(withoutAddresses(text))
  const script = getScript(prose)
  if (script !== 'latin') return script
  return latinLanguage(prose === text ? features : readAside(prose))
}

/** Removes quotations, code and program messages, which are not in the user's language, if enough words remain. */
function withoutQuoted(text: string): string {
  const opening = text.length > openingRead ? text.slice(0, openingRead) : text
  if (!mayQuote.test(opening)) return text
  const left = opening.replace(quoted, ' ').replace(programMessage, ' ')
  return leastWords.test(left) ? left : text
}

const openingRead = 400
const mayQuote = /["`“«„「]|\s'|^'|(?:Error|Exception|error)\b/
const quoted =
  /```[^`]{0,900}(?:```|$)|`[^`]{1,300}`|"[^"\n]{1,300}"|(?<![\p{L}\p{N}])'[^'\n]{1,300}'(?![\p{L}])|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|「[^」\n]{1,300}」/gu
/** From the name of an error to the end of the line. */
const programMessage = /\b[A-Za-z.]{0,60}(?:Error|Exception|error):[^\n]{0,300}/g
const leastWords = /\p{L}[^\p{L}]+\p{L}+[^\p{L}]+\p{L}|[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]{4}/u

const charactersRead = 200
const wordsRead = 64

/** Returns the language of the most frequent script in the opening, or `latin`. */
function getScript(text: string): string {
  const limit = Math.min(text.length, charactersRead)
  let units = 0
  for (let at = 0; at < limit; at++) units |= text.charCodeAt(at)
  if (units < latinEnd) return hasLatin(text, limit) ? 'latin' : undetermined
  let latin = 0
  let han = 0
  let kana = 0
  let cyrillic = 0
  let arabic = 0
  let ukrainian = 0
  let persian = 0
  let others = 0
  let other = ''
  for (let at = 0; at < limit; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 0x370) {
      if (isLatin(unit)) latin++
    } else if (unit >= 0x400 && unit < 0x530) {
      cyrillic++
      if (ukrainianLetters.has(unit)) ukrainian++
    } else if (unit >= 0x600 && unit < 0x780) {
      arabic++
      if (persianLetters.has(unit)) persian++
    } else if (unit >= 0x3040 && unit < 0x3100) kana++
    else if (unit >= 0x3400 && unit < 0xa000) han++
    else {
      const own = ownScripts.find(([from, to]) => unit >= from && unit < to)
      if (own === undefined) continue
      others++
      other = own[2]
    }
  }
  // An ideograph counts as three letters, since such sentences often contain Latin code and names.
  const asian = 3 * (han + kana)
  const most = Math.max(latin, cyrillic, arabic, asian, 2 * others)
  if (most === 0) return undetermined
  if (most === asian) return 8 * kana > han ? 'ja' : 'zh'
  if (most === 2 * others) return other
  if (most === cyrillic) return 25 * ukrainian > cyrillic ? 'uk' : 'ru'
  if (most === arabic) return 25 * persian > arabic ? 'fa' : 'ar'
  return 'latin'
}

/**
 * All units below are Latin letters or belong to no script. A power of two, so that a bitwise OR of such units is below
 * it too.
 */
const latinEnd = 0x200

function hasLatin(text: string, limit: number): boolean {
  for (let at = 0; at < limit; at++) if (isLatin(text.charCodeAt(at))) return true
  return false
}

function isLatin(unit: number): boolean {
  return unit < 0x80 ? (unit | 0x20) >= 97 && (unit | 0x20) <= 122 : unit > 0xbf
}

const ukrainianLetters = new Set(Array.from('іїєґІЇЄҐ', letter => letter.charCodeAt(0)))
const persianLetters = new Set(Array.from('پچژگکی', letter => letter.charCodeAt(0)))

/** Scripts used by one language, from the first unit up to but excluding the second. */
const ownScripts: readonly (readonly [number, number, string])[] = [
  [0x370, 0x400, 'el'],
  [0x530, 0x590, 'hy'],
  [0x590, 0x600, 'he'],
  [0x900, 0x980, 'hi'],
  [0x980, 0xa00, 'bn'],
  [0xb80, 0xc00, 'ta'],
  [0xc00, 0xc80, 'te'],
  [0xe00, 0xe80, 'th'],
  [0x10a0, 0x1100, 'ka'],
  [0x1100, 0x1200, 'ko'],
  [0xac00, 0xd7b0, 'ko'],
]

/**
 * `common`: the most common words of languages in Latin script; a word of several languages counts for each.
 * `requests`: typical words of very short requests, such as `meal plan`; a word that several languages share is listed in
 * each of them or in none. `borrowed`: words that many languages took from English, which are English among English
 * words and no evidence among others.
 */
const languages = Object.keys(words.common)
const english = languages.indexOf('en')

/** Languages that use a word, by its signed hash, which maps look up faster. */
type Speakers = ReadonlyMap<number, readonly number[]>

const speakers = getSpeakers(words.common)
const requesters = getSpeakers(words.requests)

const borrowed: ReadonlySet<number> = new Set(words.borrowed.join(' ').split(' ').map(getHash))

function getSpeakers(spoken: Readonly<Record<string, readonly string[]>>): Speakers {
  const table = new Map<number, number[]>()
  for (const [index, language] of languages.entries())
    for (const word of new Set(spoken[language]?.join(' ').split(' ')))
      table.set(getHash(word), [...(table.get(getHash(word)) ?? []), index])
  return table
}

const noLanguages: readonly number[] = []
const sieve = getSieve(speakers.keys())

/** Votes of the current text. */
const votes = new Float64Array(languages.length)

function latinLanguage(features: Features): string {
  const { count, words } = features
  votes.fill(0)
  for (let at = 0; at < Math.min(count, wordsRead); at++) {
    const word = words[at] ?? 0
    if (sieve[word & (featureSieveSize - 1)] === 1) vote(speakers, word)
  }
  const told = mostVoted()
  if (told !== undetermined || count > fewWords) return told
  for (let at = 0; at < count; at++) vote(requesters, words[at] ?? 0)
  const asked = mostVoted()
  return asked === undetermined && isAllEnglish(features) ? 'en' : asked
}

/**
 * Returns true if a text has several words that are all English or borrowed from it. No single word proves the
 * language, but together they do.
 */
function isAllEnglish({ count, numbers, words }: Features): boolean {
  let known = 0
  for (let at = 0; at < count; at++) {
    const word = words[at] ?? 0
    if (borrowed.has(word) || speaks(speakers, word, english) || speaks(requesters, word, english)) known++
  }
  return known > 1 && known + numbers >= count
}

function speaks(table: Speakers, word: number, language: number): boolean {
  return table.get(word)?.includes(language) ?? false
}

/** Short requests may contain no common word. For longer texts, topic words do not decide the language. */
const fewWords = 8

function vote(table: Speakers, word: number): void {
  const spoken = table.get(word) ?? noLanguages
  for (const index of spoken) votes[index] = (votes[index] ?? 0) + 1 / spoken.length
}

function mostVoted(): string {
  let best = 0
  for (let index = 1; index < votes.length; index++) if ((votes[index] ?? 0) > (votes[best] ?? 0)) best = index
  const most = votes[best] ?? 0
  if (most < 0.5) return undetermined
  for (let index = 0; index < votes.length; index++)
    if (index !== best && (votes[index] ?? 0) >= most) return undetermined
  return languages[best] ?? undetermined
}
