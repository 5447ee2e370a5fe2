/** An answer's text comes in pieces, cut wherever its upstream likes: which of them are one text. */
import type { ChatEvent, ContentEvent } from './chat.ts'

/** A piece of some text of an answer. */
export type TextDelta = Extract<ContentEvent, { readonly text: string }>

export function isTextDelta(event: ChatEvent): event is TextDelta {
  return 'text' in event
}

/** Whether both are pieces of one text. */
export function isSameText(last: TextDelta, next: TextDelta): boolean {
  if (last.choice !== next.choice || last.type !== next.type) return false
  if (last.type === 'text' && next.type === 'text') return last.phase === next.phase
  return last.type !== 'tool_arguments' || next.type !== 'tool_arguments' || last.index === next.index
}

/** Adds an event to others; a piece that goes on where the last event ends is joined to it. */
export function appendMerged(events: ChatEvent[], event: ChatEvent): void {
  const last = events.at(-1)
  if (last !== undefined && isTextDelta(last) && isTextDelta(event) && isSameText(last, event))
    events[events.length - 1] = { ...last, text: last.text + event.text }
  else events.push(event)
}
