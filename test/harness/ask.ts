import { plainAsk } from '../../src/core/request/chat-request.ts'
import type { Ask } from '../../src/core/chat/chat.ts'

/** An ask of one word that leaves everything else open, but for `fields`. */
export function askWith(fields: Partial<Ask> = {}): Ask {
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'Hello' }], name: null }] as const
  return plainAsk(messages, { fallback: true, bodyCharacters: 100, ...fields })
}
