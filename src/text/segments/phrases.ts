/** Words by which a paragraph shows that it asks, announces material, or is a label, in all languages at once. */

import type { SegmentKind } from '../dry-run-names.ts'
import list from './segment-words.json'
import { readTurn } from './turns.ts'

const toWords = (line: string) => new Set(line.split(' ').map(word => word.replaceAll('_', ' ')))
const materialLabels = toWords(list.material)
const requestLabels = toWords(list.request)
const frames = new Set(list.frames.split(' '))
const wrappers = new Set(list.wrappers.split(' '))
const asking = toWords(list.asking)
const voices = toWords(list.voice)
const transforms = new Set(list.transforms.split(' ').filter(word => !word.endsWith('*')))
const transformStems = new Set(
  list.transforms.split(' ').flatMap(word => (word.endsWith('*') ? [word.slice(0, -1)] : [])),
)
const unspacedTransforms = list.transformsUnspaced.split(' ').map(word => word.replaceAll('_', ' '))

export const isFrameTag = (name: string) => frames.has(name.toLowerCase())
export const isWrapperTag = (name: string) => wrappers.has(name.toLowerCase())

const longestLabel = 40
const [newline, colon, wideColon] = [10, 58, 0xff1a]
const opensLabel = new Set(Array.from('#*_ \t<[', mark => mark.charCodeAt(0)))

/** Returns what the label at the start of a line announces: `Context:`, `Question 2:`, `**Document**`; null = none. */
export function getLabel(text: string, from: number, to: number): SegmentKind | null {
  let start = from
  while (start < to && opensLabel.has(text.charCodeAt(start))) start++
  let end = start
  let mark = text.charCodeAt(end)
  while (end < to && end - start < longestLabel && mark !== colon && mark !== wideColon && mark !== newline)
    mark = text.charCodeAt(++end)
  if (mark !== colon && mark !== wideColon) return null
  let word = text.slice(start, end).toLowerCase()
  while (word !== '' && ' *_]0123456789()'.includes(word.at(-1) ?? '')) word = word.slice(0, -1)
  const last = word.slice(word.lastIndexOf(' ') + 1)
  if (requestLabels.has(word)) return 'request'
  if (materialLabels.has(word)) return 'material'
  // `HMAC Output: …` is a line of a list; `The release notes:` announces what follows.
  return text.slice(end + 1, to).trim() === '' && word.split(' ').length <= 3 && materialLabels.has(last)
    ? 'material'
    : null
}

/** How far a paragraph asks for something. */
export type Ask = {
  /** From 2 on it is a request rather than material. */
  readonly score: number
  /** It announces that material follows. */
  readonly announces: boolean
  /** It asks to solve, write or build, so that what follows states the task. */
  readonly works: boolean
  /** Words of an author who speaks to a reader. */
  readonly voice: number
  /** It begins with such a word. */
  readonly speaks: boolean
}

const closers = '?？؟'

/** Reads the beginning and the end of a paragraph. */
export function asksFor(opening: string, ending: string): Ask {
  const words = withoutCourtesy(getWords(opening))
  const last = ending.trimEnd().at(-1) ?? ''
  const isShort = opening.length <= 300
  const isLine = opening.length <= 120
  const isQuestion = closers.includes(last)
  const asksWithin = !isQuestion && (opening.includes('? ') || opening.includes('?\n') || opening.includes('？'))
  const isColon = last === ':' || last === '：'
  const opens = words.length > 0 && (asking.has(words[0] ?? '') || isTransform(words.slice(0, 2).join(' ')))
  const works = !isQuestion && words.slice(0, 4).some(word => beginsWith(workStems, word))
  const voice = words.filter(word => voices.has(word)).length
  const refers = isLine && refersBack(opening)
  const points = pointers.some(word => words.includes(word))
  const score =
    (isQuestion ? 3 : asksWithin ? 2 : 0) +
    (isColon ? 2 : 0) +
    (opens || works ? 2 : 0) +
    (refers ? 2 : 0) +
    (voice > 0 && isShort ? 1 : 0) +
    (points ? 2 : 0) +
    (isLine && last !== '.' && !isQuestion && !isColon ? 1 : 0)
  return {
    score,
    announces: isColon || (isShort && points),
    voice,
    works,
    speaks: words.slice(0, 8).some(word => voices.has(word)),
  }
}

/** `Make it shorter.`, `What does the page say?` */
function refersBack(line: string): boolean {
  const { refers, namesPage, edits } = readTurn(line)
  return refers || namesPage || edits
}

const workStems = toWords(list.works)
const inspectStems = toWords(list.inspects)

/** Scripts without blanks: a stem may stand anywhere. */
function beginsWith(stems: ReadonlySet<string>, word: string): boolean {
  for (let end = 2; end <= word.length; end++) if (stems.has(word.slice(0, end))) return true
  if (word.charCodeAt(0) < 0x2e80) return false
  for (const stem of stems) if (stem.charCodeAt(0) > 0x2e80 && word.includes(stem)) return true
  return false
}

const weighStems = toWords(list.weighs)

/** Returns true if a request is to weigh statements of its material against each other. */
export function weighs(request: string): boolean {
  return getWords(request).some(word => beginsWith(weighStems, word))
}

/** Returns true if a request is to find or repair faults of its material, or to judge it. */
export function inspects(request: string): boolean {
  return getWords(request)
    .slice(0, 40)
    .some(word => beginsWith(inspectStems, word))
}

const helperPhrases = [...toWords(list.helpers)]
const helperVerbs = toWords(list.helperVerbs)

/** Returns true if a system text orders work on each message: to prove, write or build something. */
export function ordersWork(task: string): boolean {
  const words = getWords(task)
  return words.slice(0, 4).some(word => beginsWith(workStems, word)) && !words.some(word => materialLabels.has(word))
}

/** Returns true if a system text orders a label, a title or one word about the user's message. */
export function isHelperTask(task: string): boolean {
  const words = getWords(task).slice(0, 60)
  const line = ` ${words.join(' ')} `
  const orders = words.some(word => helperVerbs.has(word)) || task.charCodeAt(0) > 0x2e80
  return (
    orders &&
    helperPhrases.some(phrase => (phrase.charCodeAt(0) > 0x2e80 ? line.includes(phrase) : line.includes(` ${phrase} `)))
  )
}

const pointers = [...toWords(list.pointers)]

/** Returns true for a short question. */
export function isQuestion(request: string): boolean {
  if (request.length > 160) return false
  return closers.includes(request.trimEnd().at(-1) ?? '') || asking.has(getWords(request)[0] ?? '')
}

/** Returns true if a short order works on a text that follows: to translate, count, sort or extract. */
export function isTransform(order: string): boolean {
  const words = withoutCourtesy(getWords(order))
  if (unspacedTransforms.some(word => order.includes(word))) return true
  return words.slice(0, 4).some(word => transforms.has(word) || beginsWith(transformStems, word))
}

const courtesies = toWords(list.courtesies)

/** `Could you please …` does not change what is asked; only `can you` may be the question. */
function withoutCourtesy(words: readonly string[]): readonly string[] {
  const from = words.findIndex(word => !courtesies.has(word))
  return from <= 0 ? words : words.slice(from)
}

function getWords(text: string): readonly string[] {
  return (text.toLowerCase().match(/[\p{L}\p{M}\p{N}'-]+/gu) ?? []).slice(0, 120)
}
