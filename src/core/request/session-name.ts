import { Type } from '@sinclair/typebox'
import type { ChatRequest } from '../chat/chat.ts'
import { nullable } from '../validation/validate.ts'

/** Headers in which agents name their session: Codex, Claude Code, OpenRouter's clients. The first present one counts. */
const sessionHeaders = ['x-claude-code-session-id', 'thread-id', 'session-id', 'session_id', 'x-session-id'] as const

const maximumCharacters = 1024

/**
 * `prompt_cache_key` of every API form. Another type is rejected: it would reach the provider without the account's digest, and be
 * the same key for all accounts.
 */
export const promptCacheKey = nullable(Type.String({ maxLength: maximumCharacters }))

/**
 * Returns the client's own name for the conversation: `prompt_cache_key` of the body, else the session header of an
 * agent; null = none. The gateway keeps only a digest of it. The field itself still goes to providers that take it.
 */
export function sessionNameOf(headers: Headers, promptCacheKey?: string | null): ChatRequest['session'] {
  return promptCacheKey || agentSessionOf(headers)
}

/** Returns the session ID that an agent sends; null = none. */
export function agentSessionOf(headers: Headers): string | null {
  for (const name of sessionHeaders) {
    const value = headers.get(name)
    if (value !== null && value !== '') return value.slice(0, maximumCharacters)
  }
  return null
}
