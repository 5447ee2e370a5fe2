import { enterWordList } from '../hash-table.ts'
import { withoutAddresses } from './extract-urls.ts'
import { type FeatureReader, type Features, getHash } from './features.ts'
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
  const counts = { latin: 0, zh: 0, ja: 0, ru: 0, ar: 0, other: 0 }
  let ukrainian = 0
  let persian = 0
  let other = ''
  for (let at = 0; at < Math.min(text.length, charactersRead); at++) {
    const unit = text.charCodeAt(at)
    const script = getLetterScript(unit)
    if (script === 'latin') counts.latin += isLatin(unit) ? 1 : 0
    else if (script === 'zh' || script === 'ja' || script === 'ru' || script === 'ar') counts[script]++
    else if (script !== 'vi' && script !== '') {
      counts.other++
      other = script
    }
    if (ukrainianLetters.has(unit)) ukrainian++
    if (persianLetters.has(unit)) persian++
  }
  const { latin, zh, ja, ru, ar } = counts
  // An ideograph counts as three letters, since such sentences often contain Latin code and names.
  const asian = 3 * (zh + ja)
  const most = Math.max(latin, ru, ar, asian, 2 * counts.other)
  if (most === 0) return undetermined
  if (most === asian) return 8 * ja > zh ? 'ja' : 'zh'
  if (most === 2 * counts.other) return other
  if (most === ru) return 25 * ukrainian > ru ? 'uk' : 'ru'
  if (most === ar) return 25 * persian > ar ? 'fa' : 'ar'
  return 'latin'
}

/** True for a letter below 0x370. */
function isLatin(unit: number): boolean {
  return unit < 0x80 ? (unit | 0x20) >= 97 && (unit | 0x20) <= 122 : unit > 0xbf
}

const ukrainianLetters = new Set(Array.from('іїєґІЇЄҐ', letter => letter.charCodeAt(0)))
const persianLetters = new Set(Array.from('پچژگکی', letter => letter.charCodeAt(0)))

/** Scripts, from the first unit up to but excluding the second, and the first language that each suggests. */
const scripts = [
  [0, 0x370, 'latin'],
  [0x370, 0x400, 'el'],
  [0x400, 0x530, 'ru'],
  [0x530, 0x590, 'hy'],
  [0x590, 0x600, 'he'],
  [0x600, 0x780, 'ar'],
  [0x900, 0x980, 'hi'],
  [0x980, 0xa00, 'bn'],
  [0xb80, 0xc00, 'ta'],
  [0xc00, 0xc80, 'te'],
  [0xe00, 0xe80, 'th'],
  [0x10a0, 0x1100, 'ka'],
  [0x1100, 0x1200, 'ko'],
  [0x1e00, 0x1f00, 'vi'],
  [0x3040, 0x3100, 'ja'],
  [0x3400, 0xa000, 'zh'],
  [0xac00, 0xd7b0, 'ko'],
] as const

/** By sixteen units, since scripts begin and end with such a row. */
const scriptOfRow: (typeof scripts)[number][2][] = []
for (const [from, to, script] of scripts) for (let row = from >> 4; row < to >> 4; row++) scriptOfRow[row] = script

/** Returns the first language that the script of a unit suggests; empty = none, `latin` = many. */
export function getLetterScript(unit: number) {
  return scriptOfRow[unit >> 4] ?? ''
}

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

const common: Readonly<Record<string, readonly string[]>> = words.common
const requests: Readonly<Record<string, readonly string[]>> = words.requests
const getWords = (list: readonly string[] | undefined) => list?.join(' ').split(' ') ?? []
const speakers = getSpeakers(languages.map(language => getWords(common[language])))
const requesters = getSpeakers(languages.map(language => getWords(requests[language])))

const borrowed: ReadonlySet<number> = new Set(getWords(words.borrowed).map(getHash))

/** Returns the languages, by their index, of all words. */
export function getSpeakers(spoken: readonly (readonly string[])[]): Speakers {
  const table = new Map<number, number[]>()
  for (const [index, own] of spoken.entries())
    for (const hash of new Set(own.map(getHash))) table.set(hash, [...(table.get(hash) ?? []), index])
  return table
}

const noLanguages: readonly number[] = []
const spoken = enterWordList('spoken', speakers.keys())

/** Votes of the current text. */
const votes = new Float64Array(languages.length)

function latinLanguage(features: Features): string {
  const { count, words, lists } = features
  votes.fill(0)
  for (let at = 0; at < Math.min(count, wordsRead); at++) {
    if (((lists[at] ?? 0) & spoken) !== 0) vote(votes, speakers, words[at] ?? 0)
  }
  const told = mostVoted()
  if (told !== undetermined || count > fewWords) return told
  for (let at = 0; at < count; at++) vote(votes, requesters, words[at] ?? 0)
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

/** Gives each language of a word an equal part of its vote. */
export function vote(given: Float64Array, table: Speakers, word: number): void {
  const languagesOfWord = table.get(word) ?? noLanguages
  for (const index of languagesOfWord) given[index] = (given[index] ?? 0) + 1 / languagesOfWord.length
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
