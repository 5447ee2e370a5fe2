/**
 * What the last turn of a conversation asks: its own request, or the one before that it continues. Judges read this
 * instead of the last text. Earlier turns count only where the last one depends on them.
 */
import type { Message } from '../../core/chat/chat.ts'
import { isHelperTask } from './phrases.ts'
import { getSegments, readSegments, type Segments } from './segments.ts'
import { readTurn } from './turns.ts'

export type LastTurn = {
  /** The text of the last user message, and its segments. */
  readonly text: string
  readonly segments: Segments
  /** What the judges of a request read: never the material. */
  readonly request: string
  /** `courtesy`: thanks or a greeting. `none`: continues earlier work. `part`: adds to it. `own`: needs no other turn. */
  readonly kind: 'own' | 'part' | 'none' | 'courtesy'
  /** Requests of earlier turns, the latest first, for a turn that continues. */
  readonly before: readonly string[]
  /** The task that the system text states; empty = none. */
  readonly task: string
  /** The system text orders a title, a label or one word about the message. */
  readonly isHelper: boolean
}

const mostBefore = 4
/** Earlier user turns that are read. */
export const turnsRead = 12

/** Reads the last user turn of a conversation. */
export function readLastTurn(messages: readonly Message[]): LastTurn {
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const message = messages[at]
  const text = getUserText(message)
  const segments = message === undefined ? readSegments(text) : getSegments(message, text)
  const task = readTask(messages)
  const isHelper = task !== '' && isHelperTask(task)
  const request = segments.request === '' ? task || text : segments.request
  const earlier = earlierUserTexts(messages, at)
  const kind = earlier.length === 0 || segments.material > 0 ? 'own' : kindOfTurn(request, messages, at)
  const continues = kind === 'none' || kind === 'part'
  const before = continues ? substantive(earlier) : []
  return { text, segments, request, kind: continues && before.length === 0 ? 'own' : kind, before, task, isHelper }
}

/** Returns the text of a message's parts. */
export function getUserText(message: Message | undefined): string {
  if (message?.role !== 'user') return ''
  const [first, second] = message.content
  if (first?.type === 'text' && second === undefined) return first.text
  return message.content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
}

/** Returns the texts of user turns before a position, the latest first. */
function earlierUserTexts(messages: readonly Message[], before: number): readonly string[] {
  const texts: string[] = []
  for (let at = before - 1; at >= 0 && texts.length < turnsRead; at--)
    if (messages[at]?.role === 'user') texts.push(getUserText(messages[at]))
  return texts
}

/** Leaves out turns that continue others themselves. */
function substantive(earlier: readonly string[]): readonly string[] {
  const found: string[] = []
  for (const [index, text] of earlier.entries()) {
    const { request } = readSegments(text)
    if (request === '') continue
    const { hasName, subjects, refers, edits } = readTurn(request)
    // A first turn has nothing to continue.
    if (index < earlier.length - 1 && !hasName && subjects <= (refers || edits ? 2 : 0)) continue
    found.push(request)
    if (found.length === mostBefore) break
  }
  return found
}

const longestPart = 160

function kindOfTurn(request: string, messages: readonly Message[], at: number): LastTurn['kind'] {
  if (request.length > longestPart) return 'own'
  const { hasName, subjects, refers, edits, thanks, connects } = readTurn(request)
  if (!hasName && subjects === 0) return thanks && !asksBefore(messages, at) ? 'courtesy' : 'none'
  if (hasName && !refers && !connects) return 'own'
  return subjects <= (refers || edits ? 3 : connects ? 2 : 0) ? 'part' : 'own'
}

/** `ok` after a question of the model is an answer, and thanks after its output. */
function asksBefore(messages: readonly Message[], at: number): boolean {
  for (let index = at - 1; index >= 0; index--) {
    const message = messages[index]
    if (message?.role !== 'assistant' || message.text === null) continue
    const end = message.text.trimEnd().at(-1) ?? ''
    return end === '?' || end === '？' || end === '؟'
  }
  return false
}

const longestTask = 400

/** Returns the orders of the first paragraph of the system text, without what it says the model is. */
function readTask(messages: readonly Message[]): string {
  const system = messages.find(({ role }) => role === 'system')
  if (system?.role !== 'system') return ''
  const from = system.text.search(/\S/)
  if (from === -1) return ''
  const paragraph = system.text.slice(from, from + longestTask)
  const end = paragraph.search(/\n\s*(?:\n|#)|\n#/)
  const opening = end === -1 ? paragraph : paragraph.slice(0, end)
  return opening
    .split(/(?<=[.!?。！？])\s*/)
    .filter(sentence => !persona.test(sentence))
    .join(' ')
    .trim()
}

/** `You are a principal engineer.` is no task. */
const persona =
  /^\s*(?:you are|you're|act as|du bist|sie sind|eres|usted es|tu es|vous êtes|sei|você é|ты|вы —|ти|你是|您是|あなたは|당신은|너는|أنت|आप|sen bir|jesteś|je bent)/iu
