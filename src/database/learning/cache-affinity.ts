/**
 * Tracks which model answered conversations with the same beginning. In this process's memory only, keyed by a keyed
 * SHA-256 of account and beginning, which is meaningless elsewhere. Entries are short-lived, like a provider's cache.
 */
import type { ChatRequest, Message } from '../../core/chat/chat.ts'
import type { CacheAffinity } from '../../core/routing/cache-affinity.ts'
import { createRecentMap } from '../../core/text/recent-map.ts'

export type CacheAffinityTracker = {
  /**
   * Returns the model that answered this conversation, or another with the same long system text, within the last
   * minutes; null = none.
   */
  of(accountId: string, ask: ChatRequest): CacheAffinity | null
  /** Records an answered request with the tokens that the upstream counted. */
  answered(
    accountId: string,
    ask: ChatRequest,
    by: { readonly model: string; readonly inputTokens: number; readonly cachedInputTokens: number },
  ): void
}

type Line = CacheAffinity & {
  readonly at: number
  /** True if a repeated request in time found nothing cached. */
  readonly missed: boolean
}

const maximumTies = 10_000
/** Providers keep a cached prefix for 5 to 10 minutes after its last use (OpenAI; Google publishes nothing). */
const keptMs = 5 * 60_000
/** Minimum tokens that providers cache: 1,024. */
const leastTokens = 1_024
/** Fewer characters cannot be that many tokens. */
const leastCharacters = 3_000
/** Characters of a beginning that are compared, in addition to its length. */
const comparedCharacters = 8_192

/** Creates an empty tracker. `salt` is secret and lives as long as the tracker. */
export function createTieBook(clock: { monotonic(): number }, salt: Uint8Array): CacheAffinityTracker {
  const secret = Buffer.from(salt).toString('base64')
  const lines = createRecentMap<Line>(maximumTies)

  const fresh = (key: string | null): Line | null => {
    const line = key === null ? undefined : lines.get(key)
    return line !== undefined && clock.monotonic() - line.at <= keptMs ? line : null
  }
  const keysOf = (accountId: string, ask: ChatRequest) => {
    const system = systemText(ask.messages)
    const name = (kind: string, text: string) => Bun.SHA256.hash(`${secret} ${accountId} ${kind} ${text}`, 'base64')
    return {
      conversation: name('conversation', `${beginning(system)} ${beginning(firstUserText(ask.messages))}`),
      system: system.length < leastCharacters ? null : name('system', beginning(system)),
      systemTokens: Math.floor(system.length / charactersPerToken),
    }
  }

  return {
    of(accountId, ask) {
      if (ask.bodyCharacters < leastCharacters) return null
      const { conversation, system } = keysOf(accountId, ask)
      const continues = ask.messages.some(({ role }) => role === 'assistant')
      const line = (continues ? fresh(conversation) : null) ?? fresh(system)
      return line === null || line.missed ? null : { model: line.model, tokens: line.tokens }
    },
    answered(accountId, ask, { model, inputTokens, cachedInputTokens }) {
      if (ask.bodyCharacters < leastCharacters) return
      const { conversation, system, systemTokens } = keysOf(accountId, ask)
      const note = (key: string | null, tokens: number) => {
        if (key === null || tokens < leastTokens) return
        const before = fresh(key)
        const missed = before?.model === model && cachedInputTokens === 0
        lines.set(key, { model, tokens, at: clock.monotonic(), missed })
      }
      note(conversation, inputTokens)
      note(system, Math.min(systemTokens, inputTokens))
    },
  }
}

const charactersPerToken = 4

function beginning(text: string): string {
  return `${text.length} ${text.slice(0, comparedCharacters)}`
}

function systemText(messages: readonly Message[]): string {
  let text = ''
  for (const message of messages) if (message.role === 'system') text += message.text
  return text
}

function firstUserText(messages: readonly Message[]): string {
  const first = messages.find(({ role }) => role === 'user')
  if (first?.role !== 'user') return ''
  return first.content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
}
