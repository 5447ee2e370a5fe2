/** Words by which a paragraph shows that it asks, announces material, or is a label, in all languages at once. */

import type { SegmentKind } from '../dry-run-names.ts'
import list from './segment-words.json'
import { readTurn } from './turns.ts'
import { orderKinds, readWords, words } from './words.ts'

const toWords = (line: string) => new Set(line.split(' ').map(word => word.replaceAll('_', ' ')))
const materialLabels = toWords(list.material)
const requestLabels = toWords(list.request)
const frames = new Set(list.frames.split(' '))
const wrappers = new Set(list.wrappers.split(' '))
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
  return materialLabels.has(last) && word.split(' ').length <= 3 && text.slice(end + 1, to).trim() === ''
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
const { asking, voice, transforms, transformsUnspaced, works, inspects: faults, weighs: scales } = orderKinds
const { pointers, courtesies, helperVerbs, helpers, material } = orderKinds

/** Returns how many of some words of the text that was read last are of a kind. */
function count(kind: number, from = 0, to = words.count): number {
  let many = 0
  for (let at = from; at < Math.min(to, words.count); at++)
    if ((((words.whole[at] ?? 0) | (words.begun[at] ?? 0)) & kind) !== 0) many++
  return many
}

const hasKind = (kind: number, from = 0, to = words.count) => count(kind, from, to) > 0

/** `Could you please …` does not change what is asked; only `can you` may be the question. */
function behindCourtesies(): number {
  let from = 0
  while (from < words.count && hasKind(courtesies, from, from + 1)) from++
  return from === words.count ? 0 : from
}

/** Reads the beginning and the end of a paragraph. */
export function asksFor(opening: string, ending: string): Ask {
  readWords(opening, true)
  const first = behindCourtesies()
  const last = ending.trimEnd().at(-1) ?? ''
  const isShort = opening.length <= 300
  const isLine = opening.length <= 120
  const isQuestion = closers.includes(last)
  const asksWithin = !isQuestion && (opening.includes('? ') || opening.includes('?\n') || opening.includes('？'))
  const isColon = last === ':' || last === '：'
  const opens = hasKind(asking, first, first + 1) || hasKind(transforms | transformsUnspaced, first, first + 2)
  const isWork = !isQuestion && hasKind(works, first, first + 4)
  const voices = count(voice, first)
  const speaks = hasKind(voice, first, first + 8)
  const points = hasKind(pointers, first)
  const score =
    (isQuestion ? 3 : asksWithin ? 2 : 0) +
    (isColon ? 2 : 0) +
    (opens || isWork ? 2 : 0) +
    (isLine && refersBack(opening) ? 2 : 0) +
    (voices > 0 && isShort ? 1 : 0) +
    (points ? 2 : 0) +
    (isLine && last !== '.' && !isQuestion && !isColon ? 1 : 0)
  return { score, announces: isColon || (isShort && points), voice: voices, works: isWork, speaks }
}

/** `Make it shorter.`, `What does the page say?` */
function refersBack(line: string): boolean {
  const { refers, namesPage, edits } = readTurn(line)
  return refers || namesPage || edits
}

/** Returns true if a request is to weigh statements of its material against each other. */
export function weighs(request: string): boolean {
  readWords(request, true)
  return hasKind(scales)
}

/** Returns true if a request is to find or repair faults of its material, or to judge it. */
export function inspects(request: string): boolean {
  readWords(request, true, 40)
  return hasKind(faults)
}

/** Returns true if a system text orders work on each message: to prove, write or build something. */
export function ordersWork(task: string): boolean {
  readWords(task, true)
  return hasKind(works, 0, 4) && !hasKind(material)
}

/** Returns true if a system text orders a label, a title or one word about the user's message. */
export function isHelperTask(task: string): boolean {
  readWords(task, true, 60)
  return hasKind(helpers) && (hasKind(helperVerbs) || task.charCodeAt(0) > 0x2e80)
}

/** Returns true for a short question. */
export function isQuestion(request: string): boolean {
  if (request.length > 160) return false
  if (closers.includes(request.trimEnd().at(-1) ?? '')) return true
  readWords(request, true, 1)
  return hasKind(asking)
}

/** Returns true if a short order works on a text that follows: to translate, count, sort or extract. */
export function isTransform(order: string): boolean {
  readWords(order, true)
  const first = behindCourtesies()
  return hasKind(transformsUnspaced) || hasKind(transforms, first, first + 4)
}
