import type { ChatRequest } from '../../src/core/chat/chat.ts'
import { chatRequestWithDefaults } from '../../src/core/request/chat-request.ts'

/** An ask of one word that leaves everything else open, but for `fields`. */
export function askWith(fields: Partial<ChatRequest> = {}): ChatRequest {
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'Hello' }], name: null }] as const
  return chatRequestWithDefaults(messages, { fallback: true, bodyCharacters: 100, ...fields })
}
