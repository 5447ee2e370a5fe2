import type { ChatRequest, Message } from '../../src/core/chat/chat.ts'
import { chatRequestWithDefaults } from '../../src/core/request/chat-request.ts'

/** A user's turn of one text. */
export const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }], name: null })

/** Returns a chat request with a one-word prompt and defaults for everything except `fields`. */
export function askWith(fields: Partial<ChatRequest> = {}): ChatRequest {
  return chatRequestWithDefaults([user('Hello')], { fallback: 'any', bodyCharacters: 100, ...fields })
}

/** The fields of a request that sets only its prompt, as the API documents them. */
export const documentedDefaults = {
  bodyCharacters: 100,
  choices: 1,
  continuation: null,
  endUser: null,
  enhance: false,
  extras: {},
  fallback: 'any',
  fallbackMaxCostFactor: 3,
  frequencyPenalty: null,
  hedge: null,
  logitBias: null,
  logprobs: false,
  maxOutputTokens: null,
  metadata: null,
  model: null,
  parallelToolCalls: null,
  presencePenalty: null,
  reasoningEffort: null,
  responseFormat: { type: 'text' },
  seed: null,
  session: null,
  source: null,
  stop: [],
  strategy: null,
  stream: null,
  tags: null,
  temperature: null,
  testMode: false,
  toolChoice: null,
  tools: [],
  topLogprobs: null,
  topP: null,
  web: 'auto',
} as const
