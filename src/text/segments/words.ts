/** What the words of a message do, in all languages at once, since short texts do not identify theirs. */
import { foldTable, separator, skipped } from '../letters.ts'
import { createWordTable, emptyWord, enterWord, followWord, hashPrime } from '../word-table.ts'
import list from './segment-words.json'
import turnWords from './turns.txt' with { type: 'text' }

/** What words do in a turn, one bit each; a word of two kinds has the first of them. */
export const turnKinds = {
  thanks: 1 << 0,
  connects: 1 << 1,
  refers: 1 << 2,
  page: 1 << 3,
  time: 1 << 4,
  changing: 1 << 5,
  reads: 1 << 6,
  edits: 1 << 7,
  filler: 1 << 8,
} as const

/** What words do in an order. */
export const orderKinds = {
  material: 1 << 9,
  asking: 1 << 10,
  voice: 1 << 11,
  transforms: 1 << 12,
  works: 1 << 13,
  inspects: 1 << 14,
  weighs: 1 << 15,
  pointers: 1 << 16,
  courtesies: 1 << 17,
  helpers: 1 << 18,
  helperVerbs: 1 << 19,
  transformsUnspaced: 1 << 20,
} as const

const kinds: Readonly<Record<string, number>> = { ...turnKinds, ...orderKinds }
/** Kinds whose entries are beginnings of words. */
const beginnings = orderKinds.works | orderKinds.inspects | orderKinds.weighs
/** Kinds whose entries may stand within a word of a script without blanks. */
const inner = beginnings | orderKinds.helpers
/** All kinds of turns. */
export const ofTurns = 2 * turnKinds.filler - 1
const isUnspaced = /[\u2e80-\uffff]/
/** Letters from here on may begin an entry within a word. */
const firstInner = 0x590

type WordLists = {
  readonly table: ReturnType<typeof createWordTable>
  /** By meaning: kinds of an entry that is a word, of one that words begin with, and of one that stands within words. */
  readonly whole: Int32Array
  readonly begun: Int32Array
  readonly within: Int32Array
}

let lists: WordLists | null = null

function getLists(): WordLists {
  lists ??= readLists()
  return lists
}

/** `word*` = all words with this beginning; `one_two` = two words. */
function readLists(): WordLists {
  const table = createWordTable()
  const size = table.means.length + 1
  const all = { table, whole: new Int32Array(size), begun: new Int32Array(size), within: new Int32Array(size) }
  const put = (bits: Int32Array, word: string, kind: number) => {
    const place = enterWord(
      table,
      [...word.replaceAll('_', ' ')].map(letter => foldUnit(letter.charCodeAt(0))),
    )
    table.means[place] = place + 1
    bits[place + 1] = (bits[place + 1] ?? 0) | kind
  }
  const lines = turnWords.split('\n').map(line => line.split(' ').slice(1))
  for (const [name, line] of Object.entries(list)) lines.push([name, ...line.split(' ')])
  for (const [name = '', ...words] of lines)
    for (const word of words) {
      const kind = kinds[name] ?? 0
      const isOpen = word.endsWith('*')
      if (isOpen || (kind & beginnings) !== 0) put(all.begun, isOpen ? word.slice(0, -1) : word, kind)
      else put(all.whole, word, kind)
      const isInner = (kind & inner) !== 0 || (kind & ofTurns) !== 0
      if (kind === orderKinds.transformsUnspaced || (isInner && isUnspaced.test(word))) put(all.within, word, kind)
    }
  return all
}

const apostrophe = 39
const hyphen = 45

function foldUnit(unit: number): number {
  return unit === apostrophe || unit === hyphen ? unit : (foldTable(true)[unit] ?? separator)
}

/** More words are not read; a turn has no more. */
const mostWords = 150

/** Words of the text that was read last. */
export const words = {
  count: 0,
  /** Kinds of each word as it is, and by what it begins with or has within. */
  whole: new Int32Array(mostWords),
  begun: new Int32Array(mostWords),
  starts: new Int32Array(mostWords),
  ends: new Int32Array(mostWords),
  /** 1 for the first word of a sentence, line or quotation. */
  opens: new Uint8Array(mostWords),
}

const isOpening = new Uint8Array(0x1_0000)
for (const mark of '.!?…:"“«¿¡(\n') isOpening[mark.charCodeAt(0)] = 1

/** Reads the first words of a text into `words`. `joins`: hyphens and apostrophes belong to a word. */
export function readWords(text: string, joins: boolean, most = mostWords): typeof words {
  const { table, whole, begun } = getLists()
  const folds = foldTable(true)
  let count = 0
  let opens = 1
  for (let at = 0; at < text.length && count < most; at++) {
    let unit = text.charCodeAt(at)
    let folded = folds[unit] ?? separator
    if (folded <= separator) {
      opens |= isOpening[unit] ?? 0
      continue
    }
    words.starts[count] = at
    let hash = emptyWord
    let goesOn = true
    let [asWhole, asBegun] = [0, 0]
    while (folded !== separator) {
      if (folded !== skipped && goesOn) {
        hash = Math.imul(hash ^ folded, hashPrime)
        const meaning = followWord(table, hash)
        goesOn = meaning >= 0
        asWhole = meaning > 0 ? (whole[meaning] ?? 0) : 0
        asBegun |= meaning > 0 ? (begun[meaning] ?? 0) : 0
      }
      if (unit >= firstInner) asBegun |= readWithin(text, at)
      unit = text.charCodeAt(++at) || separator
      folded = joins && (unit === apostrophe || unit === hyphen) ? unit : (folds[unit] ?? separator)
    }
    words.whole[count] = goesOn ? asWhole | readOn(text, at, hash) : asWhole
    words.begun[count] = asBegun
    words.ends[count] = at
    words.opens[count] = opens
    opens = isOpening[unit] ?? 0
    count++
  }
  words.count = count
  return words
}

/** Returns the kinds of an entry of several words whose first word ends at a position with this hash. */
function readOn(text: string, from: number, first: number): number {
  const { table, whole } = getLists()
  let hash = Math.imul(first ^ separator, hashPrime)
  let before = separator
  let kind = 0
  for (let at = from + 1, meaning = followWord(table, hash); meaning >= 0 && at <= text.length; at++) {
    const folded = foldUnit(text.charCodeAt(at) || separator)
    if (folded === separator && before === separator) continue
    before = folded
    if (folded === separator) kind |= whole[meaning] ?? 0
    hash = Math.imul(hash ^ folded, hashPrime)
    meaning = followWord(table, hash)
  }
  return kind
}

/** The longest entry of a turn that the last call of `readWithin` found. */
export const longest = { kind: 0, end: 0 }

/** Returns the kinds of all entries of orders that may stand within a word and begin at a position. */
export function readWithin(text: string, from: number): number {
  const { table, within } = getLists()
  let hash = emptyWord
  let all = 0
  longest.kind = 0
  for (let at = from; at < text.length; at++) {
    hash = Math.imul(hash ^ foldUnit(text.charCodeAt(at)), hashPrime)
    const meaning = followWord(table, hash)
    if (meaning < 0) break
    const kind = within[meaning] ?? 0
    all |= kind
    if ((kind & ofTurns) === 0) continue
    longest.kind = kind & ofTurns
    longest.end = at + 1
  }
  return all & ~ofTurns
}
