/** What a user says in several turns, read as one: a request may be cut in two, or told in pieces. */
import type { Message } from '../chat/chat.ts'

/** Of the last so many turns of a user. */
const mostTurns = 5
/** What a turn adds to the next, and the next to it, in UTF-16 units. */
const mostBorder = 300
/** Longer turns are no pieces of one request. */
const longestPiece = 200

/** Each turn of a user that the next one may go on with, both as one text; and the short ones as one, where there are more than two. */
export function joinedTurns(messages: readonly Message[]): readonly string[] {
  const turns: string[] = []
  for (let at = messages.length - 1; at >= 0 && turns.length < mostTurns; at--) {
    const message = messages[at]
    if (message?.role !== 'user') continue
    const text = message.content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')
    if (text.trim() !== '') turns.unshift(text)
  }
  const joined = turns.slice(1).flatMap((next, index) => {
    const first = turns[index] ?? ''
    return [`${withoutPause(first.slice(-mostBorder))} ${next.slice(0, mostBorder)}`]
  })
  const pieces = turns.filter(({ length }) => length <= longestPiece)
  if (pieces.length > 2) joined.push(pieces.map(withoutPause).join(' '))
  return joined
}

/** Dots behind a text that is to go on. */
function withoutPause(text: string): string {
  let end = text.length
  while (end > 0 && pauses.has(text.charCodeAt(end - 1))) end--
  return text.slice(0, end)
}

const pauses = new Set(Array.from(' \n\t…,;:-–—', mark => mark.charCodeAt(0)))
