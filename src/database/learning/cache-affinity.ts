/**
 * Which model answered what begins alike, in this process's memory alone: under a keyed SHA-256 of the account and the
 * beginning, which means nothing outside of it. A provider's cache is short-lived, and so is this.
 */
import type { ChatRequest, Message } from '../../core/chat/chat.ts'
import type { CacheAffinity } from '../../core/routing/cache-affinity.ts'
import { createRecentMap } from '../../core/text/recent-map.ts'

export type CacheAffinityTracker = {
  /** Who answered this conversation, or another with the same long system text, within the last minutes. */
  of(accountId: string, ask: ChatRequest): CacheAffinity | null
  /** Notes an answered request: tokens as the upstream counted them. */
  answered(
    accountId: string,
    ask: ChatRequest,
    by: { readonly model: string; readonly inputTokens: number; readonly cachedInputTokens: number },
  ): void
}

type Line = CacheAffinity & {
  readonly at: number
  /** It was asked again in time, and its provider had kept nothing. */
  readonly missed: boolean
}

const maximumTies = 10_000
/** Providers keep a beginning for five to ten minutes after its last use (OpenAI; Google says nothing). */
const keptMs = 5 * 60_000
/** Providers keep nothing shorter: 1,024 tokens. */
const leastTokens = 1_024
/** Fewer characters of a request cannot be so many tokens worth a look. */
const leastCharacters = 3_000
/** What of a beginning tells it from others: its length counts too. */
const comparedCharacters = 8_192

/** An empty book; `salt` is secret and lives as long as it. */
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
