/** Upstreams split output at arbitrary places. These functions join deltas that belong to the same text. */
import type { ChatEvent, ContentEvent } from './chat-events.ts'

/** An event that carries part of a text. */
export type TextDelta = Extract<ContentEvent, { readonly text: string }>

export function isTextDelta(event: ChatEvent): event is TextDelta {
  return 'text' in event
}

/** Returns true if both deltas belong to the same text. */
export function isSameText(last: TextDelta, next: TextDelta): boolean {
  if (last.choice !== next.choice || last.type !== next.type) return false
  if (last.type === 'text' && next.type === 'text') return last.phase === next.phase && last.block === next.block
  return last.type !== 'tool_arguments' || next.type !== 'tool_arguments' || last.index === next.index
}

/** Appends an event. A delta that continues the last event's text is merged into it. */
export function appendMerged(events: ChatEvent[], event: ChatEvent): void {
  const last = events.at(-1)
  if (last !== undefined && isTextDelta(last) && isTextDelta(event) && isSameText(last, event))
    events[events.length - 1] = { ...last, text: last.text + event.text }
  else events.push(event)
}
