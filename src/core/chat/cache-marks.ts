/** Decides which parts the gateway marks for a provider that caches only marked input. Writing to a cache costs extra. */
import type { ChatRequest } from './chat.ts'

/** `system`: tools and system text. `conversation`: also the messages so far. */
export type AutomaticCacheMarks = 'system' | 'conversation'

/** Providers cache from 1,024 tokens on; fewer characters cannot be that many. */
export const leastCachedCharacters = 3_000

/**
 * Returns the marks of a request without marks of the client's own; null = none. An agent sends the same beginning again
 * within seconds: its tools, or a tool result at the end, show it. Otherwise only a beginning that was seen within the
 * last minutes is worth the cost of writing. `seen` = which part was.
 */
export function automaticCacheMarks(ask: ChatRequest, seen: AutomaticCacheMarks | null): AutomaticCacheMarks | null {
  if (ask.bodyCharacters < leastCachedCharacters || hasOwnMarks(ask)) return null
  const isAgent = ask.messages.at(-1)?.role === 'tool' || (ask.tools.length > 0 && mayAnswerInText(ask))
  return isAgent ? 'conversation' : seen
}

/** A forced call is one question with one answer. */
function mayAnswerInText({ toolChoice }: ChatRequest): boolean {
  return toolChoice === null || toolChoice === 'auto'
}

/** Returns true if the client marked some part itself. */
export function hasOwnMarks({ messages, tools, source }: ChatRequest): boolean {
  return (
    tools.some(({ cache }) => cache !== undefined) ||
    messages.some(message =>
      message.role === 'user' ? message.content.some(({ cache }) => cache !== undefined) : message.cache !== undefined,
    ) ||
    (source?.dialect === 'messages' && source.text.includes('"cache_control"'))
  )
}
