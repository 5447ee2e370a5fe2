/** Joins the turns of a user into one text, since a request may be split over several turns. */
import type { Message, PromptDefinition } from '../../core/chat/chat.ts'
import { getUserText } from '../segments/conversation.ts'

/** Number of a user's latest turns that are joined. */
const mostTurns = 5
/** Characters taken from the end of one turn and the start of the next, in UTF-16 units. */
const mostBorder = 300
/** Longer turns are not treated as fragments of one request. */
const longestPiece = 200

/** Returns each pair of adjacent user turns as one text, and all short turns as one text if there are more than two. */
export function joinedTurns(messages: readonly (Message | PromptDefinition)[]): readonly string[] {
  const turns: string[] = []
  for (let at = messages.length - 1; at >= 0 && turns.length < mostTurns; at--) {
    const message = messages[at]
    if (message?.role !== 'user') continue
    const text = getUserText(message)
    if (text.trim() !== '') turns.unshift(text)
  }
  if (turns.length < 2) return []
  const joined = turns.slice(1).flatMap((next, index) => {
    const first = turns[index] ?? ''
    return [`${withoutPause(first.slice(-mostBorder))} ${next.slice(0, mostBorder)}`]
  })
  const pieces = turns.filter(({ length }) => length <= longestPiece)
  if (pieces.length > 2) joined.push(pieces.map(withoutPause).join(' '))
  return joined
}

/** Removes trailing dots of a text that continues. */
function withoutPause(text: string): string {
  let end = text.length
  while (end > 0 && pauses.has(text.charCodeAt(end - 1))) end--
  return text.slice(0, end)
}

const pauses = new Set(Array.from(' \n\t…,;:-–—', mark => mark.charCodeAt(0)))
