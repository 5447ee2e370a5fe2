/**
 * Limits of the output that a prompt states: a length, a number of items, `only`, `nothing else`, an excluded form,
 * brevity, a yes-or-no answer, a format. Added lines would contradict them. Found by structure: a few kinds of words in
 * all languages that are enhanced, and how the kinds follow each other (a number and a unit, a bound and a number).
 */
import list from './stated-limits.json'

const { unspaced, ...words } = list
const kinds = Object.keys(words) as readonly (keyof typeof words)[]
type Kind = keyof typeof words | 'digits' | 'mark' | 'quotation'

/** The kinds of a word as bits. */
const bits: Readonly<Record<Kind, number>> = Object.assign(
  { digits: 1 << kinds.length, mark: 1 << (kinds.length + 1), quotation: 1 << (kinds.length + 2) },
  ...kinds.map((kind, at) => ({ [kind]: 1 << at })),
)
const getBits = (...of: readonly Kind[]) => of.reduce((sum, kind) => sum | bits[kind], 0)

/** Words with their kinds. `word*` = each word that begins so, `*word` = that ends so, `_` joins the words of a phrase. */
const english = new Map<string, number>()
const all = new Map<string, number>()
const phraseStarts = new Set<string>()
for (const kind of kinds)
  for (const [language, entries] of Object.entries(words[kind]))
    for (const word of entries.split(' ')) {
      if (word.includes('_')) phraseStarts.add(word.slice(0, word.indexOf('_')))
      for (const table of language === 'en' ? [english, all] : [all])
        table.set(word, (table.get(word) ?? 0) | bits[kind])
    }
for (const [kind, marks] of [
  ['mark', '.,;:!?…–—()،؛؟।'],
  ['quotation', '"“„«\'‘'],
] as const)
  for (const mark of marks) for (const table of [english, all]) table.set(mark, bits[kind])

const longestPhrase = 4
const token = /[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*['’]?|\p{N}+|[^\s-]/gu

/** Returns the kinds of the words of a text, in order. Words of other languages count in no English text, where `sin` is a function. */
function readKinds(text: string, language: string): readonly number[] {
  const table = language === 'en' ? english : all
  const tokens = text.toLowerCase().replaceAll('\u0307', '').match(token) ?? []
  const found: number[] = []
  for (let at = 0; at < tokens.length; ) {
    let length = phraseStarts.has(tokens[at] ?? '') ? Math.min(longestPhrase, tokens.length - at) : 1
    while (length > 1 && !table.has(tokens.slice(at, at + length).join('_'))) length--
    const phrase = tokens.slice(at, at + length).join('_')
    found.push(length > 1 ? (table.get(phrase) ?? 0) : getKinds(phrase, table))
    at += length
  }
  return found
}

function getKinds(word: string, table: ReadonlyMap<string, number>): number {
  if (/^\p{N}/u.test(word)) return bits.digits
  let found = 0
  // Arabic joins prepositions and the article to the word.
  const bare = word.replace(/^[وفبلك]?(?:ال)?(?=\p{Script=Arabic}{2})/u, '')
  for (const form of bare === word ? [word] : [word, bare]) {
    found |= table.get(form) ?? 0
    for (let at = 1; at <= form.length; at++)
      found |= (table.get(`${form.slice(0, at)}*`) ?? 0) | (table.get(`*${form.slice(at)}`) ?? 0)
  }
  return found
}

const unspacedLimit = new RegExp(unspaced, 'iu')
/** Korean and Turkish state them by an ending: `숫자만`, `tablosuz`. */
const limitingEnding =
  /(?<=[\uac00-\ud7a3])(?<!지)만(?![\p{L}])|(?<!\p{L})(?:tablo|liste|başlık|madde)\p{L}*s[ıiuü]z(?!\p{L})/iu

/** Returns true if a prompt of a few lines limits its output. `isProgram` = lists and tables in it are data. */
export function statesLimit(text: string, language: string, isProgram: boolean): boolean {
  if (unspacedLimit.test(text) || limitingEnding.test(text)) return true
  const found = readKinds(text, language)
  /** Whether a kind follows `at`, directly or after `between` words that are not `bar`. */
  const follows = (at: number, kind: number, between = 1, bar = bits.mark): boolean =>
    ((found[at + 1] ?? 0) & kind) !== 0 ||
    (between > 0 &&
      at + 1 < found.length &&
      ((found[at + 1] ?? 0) & bar) === 0 &&
      follows(at + 1, kind, between - 1, bar))
  const isQuestion = /[?？؟]/.test(text)
  let clauses = 0
  /** The clause has nothing yet but a word that joins it, or `do`. */
  let isOpen = true
  /** The words tell how something is done: what it lacks is not the output's. */
  let hasAim = isQuestion
  return found.some((kind, at) => {
    const isFirst = isOpen
    if ((kind & bits.mark) !== 0) clauses++
    isOpen = (kind & bits.mark) !== 0 || (isOpen && (kind & bits.joins) !== 0)
    const has = (of: Kind) => (kind & bits[of]) !== 0
    hasAim ||= has('aims')
    return (
      has('alone') ||
      (has('lacks') && !hasAim) ||
      ((has('numbers') || has('digits')) && follows(at, getBits('lengths', 'items'))) ||
      (has('vague') &&
        (follows(at, bits.lengths, 0) || (follows(at, bits.short, 0) && follows(at + 1, bits.lengths, 0)))) ||
      (has('short') && follows(at, bits.answers, 0)) ||
      (has('bounds') && !isProgram && follows(at, getBits('numbers', 'digits'))) ||
      (has('yes') && follows(at, bits.no)) ||
      (has('not') && (isFirst || (clauses > 0 && !isQuestion))) ||
      (has('just') && (isFirst || follows(at, bits.justs, 0))) ||
      ((has('as') || (has('in') && !isProgram)) && follows(at, bits.forms)) ||
      (has('says') && follows(at, bits.quotation)) ||
      (has('lists') && follows(at, getBits('numbers', 'digits')))
    )
  })
}
