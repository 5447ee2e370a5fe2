/**
 * Detects language-independent notions (to kill, a bomb, how, to prove …) with one word list per language in
 * `text/analysis/lexicon`. A model trained on combinations of notions in one language applies to all of them.
 */

import { enterWordList } from '../hash-table.ts'
import { foldTable, foldWord, isSyllable, separator, skipped, standsAlone } from '../letters.ts'
import { createWordTable, emptyWord, enterWord, followed, followLetters, type WordTable } from '../word-table.ts'
import { type Features, maximumWords } from './features.ts'
import { getLetterScript, getSpeakers, vote } from './language.ts'
import abroad from './lexicon/abroad.txt' with { type: 'text' }
import en from './lexicon/en.txt' with { type: 'text' }
import tasks from './lexicon/tasks.txt' with { type: 'text' }

/** Lines by language: a notion and its words. */
const lists: ReadonlyMap<string, readonly string[][]> = new Map([['en', getLines(en)], ...byLanguage(abroad)])

/** Languages of the word lists; English first. */
const notionLanguages = [...lists.keys()]
const languageNumbers: ReadonlyMap<string, number> = new Map(notionLanguages.map((name, index) => [name, index]))
const english = 0
const vietnamese = languageNumbers.get('vi')
export const englishLanguage = english

/** Name of the entry with a language's most common words, which only identify the language. */
const common = '.'

/** Names of all notions in the order of the English list. */
export const notions: readonly string[] = getLines(en)
  .map(([name = '']) => name)
  .filter(name => name !== common)

/**
 * Additional notions and words about the purpose of a request: language, notion and its words per line. Only readers
 * created with `withTasks` use them, so that the others see the notions they were trained with.
 */
const taskWords = byLanguage(tasks)
export const taskNotions: readonly string[] = [
  ...notions,
  ...new Set(
    [...taskWords.values()]
      .flat()
      .map(([name = '']) => name)
      .filter(name => !notions.includes(name)),
  ),
]

function getLines(list: string): readonly string[][] {
  return list
    .trim()
    .split('\n')
    .map(line => line.trim().split(/\s+/))
}

/** Returns the lines of a list that name their language first. */
function byLanguage(list: string): ReadonlyMap<string, readonly string[][]> {
  const named = Map.groupBy(getLines(list), ([language = '']) => language)
  return new Map([...named].map(([language, lines]) => [language, lines.map(([, ...line]) => line)]))
}

/** Returns the number of a notion. Throws if there is none of this name. */
export function getNotion(name: string): number {
  const index = notions.indexOf(name)
  if (index < 0) throw new TypeError(`the lexicon has no notion "${name}"`)
  return index
}

/** Notions of some words, in order. Overwritten by the reader's next reading. */
export type Notions = {
  /** Their numbers; valid up to `count`. */
  readonly found: Uint8Array
  readonly count: number
  /** Language of the words as an index of the lists; English if unknown. */
  readonly language: number
}

type NotionReader = {
  /** Starts a text. Its language applies to parts without a clear language. */
  begin(features: Features): void
  /** Reads the words from `from` up to but excluding `to`. */
  read(from: number, to: number): Notions
}

const longestWord = 40
const mostFound = 512
/** English words of at least this length count in every language. */
const leastBorrowed = 6

/** Above the number of a notion plus 1: the word must end here. */
const isExact = 0x100

/** By language. */
const tables: WordTable[] = []
const taskTables: WordTable[] = []

function getTable(language: number, withTasks: boolean): WordTable {
  const made = withTasks ? taskTables : tables
  const table = made[language] ?? madeTable(language, withTasks)
  made[language] = table
  return table
}

function madeTable(language: number, withTasks: boolean): WordTable {
  const table = createWordTable()
  const put = (lines: readonly (readonly string[])[], least: number) => {
    for (const [name = '', ...words] of lines) {
      if (name === common) continue
      const notion = taskNotions.indexOf(name)
      if (notion < 0) throw new TypeError(`the lexicon has no notion "${name}"`)
      for (const written of words) {
        const { units, mayGoOn: isOpen } = foldWord(written, keepsAccents(language))
        if (units.length < least) continue
        const place = enterWord(table, units)
        // The first meaning of a word counts, and the language's own before an English one.
        if (table.means[place] === 0) table.means[place] = (notion + 1) | (isOpen ? 0 : isExact)
      }
    }
  }
  const name = notionLanguages[language] ?? ''
  const putAll = (words: typeof lists, of: string, least = 1) => put(words.get(of) ?? [], least)
  putAll(lists, name)
  if (withTasks) putAll(taskWords, name)
  putAll(lists, neighbours[name] ?? '')
  if (language !== english) putAll(lists, 'en', leastBorrowed)
  return table
}

/** Languages that borrow many words from another. */
const neighbours: Readonly<Record<string, string>> = { jv: 'id', uk: 'ru', fa: 'ar' }

/** In Vietnamese, a word without its tone mark is another word. */
function keepsAccents(language: number): boolean {
  return language === vietnamese
}

/**
 * Creates a reader with its own buffers. Linear: at each start of a word, reads at most the length of the longest
 * entry.
 */
export function createNotionReader(withEnglish = true, withTasks = false): NotionReader {
  const text = new Uint16Array(16_384 + 2 + longestWord)
  const found = new Uint8Array(mostFound)
  const told = createLanguageOfWords()
  let features: Features | null = null
  let usual = english

  /** Fills `text` with folded letters, one blank between words; returns their number. */
  const load = (folds: Uint16Array, units: Uint16Array, from: number, to: number): number => {
    let count = 0
    let last = separator
    for (let at = from; at < to; at++) {
      const folded = folds[units[at] ?? 0] ?? separator
      if (folded === skipped || (folded === separator && last === separator)) continue
      text[count++] = folded
      last = folded
    }
    text[count] = separator
    return count
  }

  const walk = (end: number, table: WordTable): number => {
    let count = 0
    let before = separator
    /** Number of letters of the current word if all of them may be a joined prefix; −1 = they belong to the word. */
    let joined = 0
    for (let from = 0; from < end && count < mostFound; from++) {
      const unit = text[from] ?? separator
      const last = before
      before = unit
      if (unit === separator) continue
      // Inside a word of a script that separates words and joins no prefixes, which is the most common case.
      if (last !== separator && joined < 0 && unit < firstAlone) continue
      if (last === separator) joined = 0
      else joined = joined >= 0 && joined < mostJoined && last > 0x590 && joinedLetters.has(last) ? joined + 1 : -1
      const isAlone = unit >= firstAlone && standsAlone(unit)
      if (joined < 0 && !isAlone) continue
      const most = Math.min(end, from + longestWord)
      followed.hash = emptyWord
      followed.at = from
      let best = 0
      let bestEnd = 0
      let meaning = followLetters(table, text, most)
      for (; meaning !== 0; meaning = followLetters(table, text, most)) {
        const next = text[followed.at] ?? separator
        if (next !== separator && (meaning & isExact) !== 0 && !(isSyllable(unit) && particles.has(next))) continue
        best = meaning & 0xff
        bestEnd = followed.at
      }
      if (best === 0) continue
      found[count++] = best - 1
      if (!isAlone) continue
      from = bestEnd - 1
      before = text[from] ?? separator
    }
    return count
  }

  return {
    begin(read) {
      features = read
      told.begin(read)
      usual = told.getLanguage(read, 0, Math.min(read.count, mostAsked), english)
    },
    read(from, to) {
      if (features === null) return { found, count: 0, language: english }
      const { units, unitCount, offsets, count: words } = features
      // Without words, the offsets are those of the text before.
      const start = words === 0 ? 0 : (offsets[from] ?? 0)
      const end = to < words ? (offsets[to] ?? unitCount) : unitCount
      const language =
        from === 0 && to === words ? usual : told.getLanguage(features, from, Math.min(to, from + mostAsked), usual)
      // English is classified by its words, unless its notions are requested.
      if (language === english && !withEnglish) return { found, count: 0, language }
      return {
        found,
        count: walk(load(foldTable(keepsAccents(language)), units, start, end), getTable(language, withTasks)),
        language,
      }
    },
  }
}

/** Number of words that decide the language. */
const mostAsked = 64

/** Detects the language of some words by script and common words. Returns `otherwise` if unclear. */
function createLanguageOfWords() {
  const votes = new Float64Array(notionLanguages.length)
  /** Per word: number of words up to it that may be in another language, and that language. */
  const foreignUpTo = new Uint16Array(maximumWords + 1)
  const spoken = getSpeakers([...lists.values()].map(lines => lines.find(([name]) => name === common)?.slice(1) ?? []))
  const list = enterWordList('common', spoken.keys())
  const foreign = new Uint8Array(foreignPlaces)
  for (const [word, languages] of spoken) if (!languages.includes(english)) foreign[word & (foreignPlaces - 1)] = 1

  /** Finds words that are common in another language but not in English, or in another script. */
  const begin = ({ words, units, offsets, count }: Features) => {
    let others = 0
    for (let at = 0; at < count; at++) {
      others += foreign[(words[at] ?? 0) & (foreignPlaces - 1)] ?? 0
      others += ((units[offsets[at] ?? 0] ?? 0) - 0x250) >> 31 === 0 ? 1 : 0
      foreignUpTo[at + 1] = others
    }
  }

  const getLanguage = (features: Features, from: number, to: number, otherwise: number): number => {
    const others = (foreignUpTo[to] ?? 0) - (foreignUpTo[from] ?? 0)
    if (otherwise === english && others * wordsPerForeign < to - from) return english
    const { words, lists, units, offsets } = features
    votes.fill(0)
    for (let at = from; at < to; at++) {
      const script = languageNumbers.get(getLetterScript(units[offsets[at] ?? 0] ?? 0))
      if (script !== undefined) votes[script] = (votes[script] ?? 0) + scriptVote
      if (((lists[at] ?? 0) & list) !== 0) vote(votes, spoken, words[at] ?? 0)
    }
    let best = otherwise
    let most = otherwise === english ? 0 : leastVotes
    for (let language = 0; language < votes.length; language++) {
      const all = votes[language] ?? 0
      if (all > most || (all === most && language === otherwise)) {
        best = language
        most = all
      }
    }
    return best
  }

  return { begin, getLanguage }
}

/** Places of the words that are common in other languages only. Some words share theirs, which `wordsPerForeign` allows for. */
const foreignPlaces = 8_192
/** In another language at least one word of this many is a common one; in English hardly any. */
const wordsPerForeign = 6

/** A word in a language's script counts less than a common word: Ukrainian shares the script of Russian. */
const scriptVote = 0.3
/** Votes required before a part's language differs from the text's. */
const leastVotes = 1

/** Below it no letter stands for a word of its own: Thai comes first of those that may. */
const firstAlone = 0xe00

/** Arabic and Hebrew join articles and prepositions to the word: at most this many letters. */
const mostJoined = 4
const joinedLetters = new Set(Array.from('وفبلكاسהובלמשכ', letter => letter.charCodeAt(0)))

const particles = new Set(Array.from('은는이가을를의에로와과도만', letter => letter.charCodeAt(0)))
