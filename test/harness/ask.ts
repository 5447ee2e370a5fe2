import type { ChatRequest } from '../../src/core/chat/chat.ts'
import { chatRequestWithDefaults } from '../../src/core/request/chat-request.ts'

/** Returns a chat request with a one-word prompt and defaults for everything except `fields`. */
export function askWith(fields: Partial<ChatRequest> = {}): ChatRequest {
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'Hello' }], name: null }] as const
  return chatRequestWithDefaults(messages, { fallback: 'any', bodyCharacters: 100, ...fields })
}
