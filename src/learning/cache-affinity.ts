/**
 * Tracks which model answered conversations with the same beginning. In this process's memory only, keyed by a keyed
 * SHA-256 of account and beginning, which is meaningless elsewhere. Entries are short-lived, like a provider's cache.
 */

import type { ChatRequest, Message } from '../core/chat/chat.ts'
import { type AutomaticCacheMarks, leastCachedCharacters } from '../core/chat/provider-features.ts'
import type { Clock } from '../core/ports.ts'
import { createRecentMap } from '../core/text/recent-map.ts'
import { asksForHour } from '../core/usage/source-charges.ts'
import type { CacheAffinity, CachePlace } from '../models/cache-affinity.ts'

export type CacheAffinityTracker = {
  /**
   * Returns the model that answered this conversation, or another with the same long system text, and probably has it
   * cached; null = none.
   */
  of(accountId: string, request: ChatRequest): CacheAffinity | null
  /** Returns which beginning of this request was sent within the last minutes, to any model; null = none. */
  seen(accountId: string, request: ChatRequest): AutomaticCacheMarks | null
  /**
   * Records an answered request. `isCached`: the upstream read its input from the cache, or wrote it; null = it reported
   * neither, but may have written it.
   */
  answered(
    accountId: string,
    request: ChatRequest,
    by: {
      readonly model: string
      readonly inputTokens: number
      readonly isCached: boolean | null
      readonly place: CachePlace
    },
  ): void
}

type Line = Required<CacheAffinity> & {
  readonly at: number
  /** How long the provider keeps it after its last use, in milliseconds. */
  readonly keptMs: number
  /** True if a repeated request in time found nothing cached. */
  readonly missed: boolean
}

const maximumTies = 10_000
/** Providers keep a cached prefix for 5 to 10 minutes after its last use (Anthropic, OpenAI; Google publishes nothing). */
const usuallyKeptMs = 5 * 60_000
/** Minimum tokens that providers cache: 1,024. */
const leastTokens = 1_024
/** Characters of a beginning that are compared, in addition to its length. */
const comparedCharacters = 8_192

/** Creates an empty tracker. `salt` is secret and lives as long as the tracker. */
export function createCacheAffinity(clock: Pick<Clock, 'monotonic'>, salt: Uint8Array): CacheAffinityTracker {
  const secret = Buffer.from(salt).toString('base64')
  const lines = createRecentMap<Line>(maximumTies)

  const fresh = (key: string | null): Line | null => {
    const line = key === null ? undefined : lines.get(key)
    return line !== undefined && clock.monotonic() - line.at <= line.keptMs ? line : null
  }
  const getKeys = (accountId: string, request: ChatRequest) => {
    const system = systemText(request.messages)
    const name = (kind: string, text: string) => Bun.SHA256.hash(`${secret} ${accountId} ${kind} ${text}`, 'base64')
    return {
      // An agent and its helpers share a session, but not the instructions.
      conversation: name('conversation', `${beginning(system)} ${nameConversation(request)}`),
      system: system.length < leastCachedCharacters ? null : name('system', beginning(system)),
      systemTokens: Math.floor(system.length / charactersPerToken),
    }
  }
  /** The line of the conversation, else that of the system text. */
  const findLine = (
    accountId: string,
    request: ChatRequest,
  ): { readonly line: Line; readonly part: AutomaticCacheMarks } | null => {
    if (request.bodyCharacters < leastCachedCharacters) return null
    const { conversation, system } = getKeys(accountId, request)
    const continues = request.session !== null || request.messages.some(({ role }) => role === 'assistant')
    const own = continues ? fresh(conversation) : null
    if (own !== null) return { line: own, part: 'conversation' }
    const shared = fresh(system)
    return shared === null ? null : { line: shared, part: 'system' }
  }

  return {
    of(accountId, request) {
      const found = findLine(accountId, request)
      if (found === null || found.line.missed) return null
      const { model, tokens, place } = found.line
      // Instructions that many conversations share must not bind all of them to one key or host.
      return found.part === 'conversation' ? { model, tokens, place } : { model, tokens }
    },
    seen: (accountId, request) => findLine(accountId, request)?.part ?? null,
    answered(accountId, request, { model, inputTokens, isCached, place }) {
      if (request.bodyCharacters < leastCachedCharacters) return
      const { conversation, system, systemTokens } = getKeys(accountId, request)
      const keptMs = keptFor(request, model)
      const note = (key: string | null, tokens: number) => {
        if (key === null || tokens < leastTokens) return
        // Nothing cached at the first request is normal, and at the second it is a miss.
        const before = fresh(key)
        const isRepeat =
          before?.model === model && before.place.host === place.host && before.place.account === place.account
        const missed = isCached === false || (isCached === null && isRepeat)
        lines.set(key, { model, tokens, place, at: clock.monotonic(), keptMs, missed })
      }
      note(conversation, inputTokens)
      note(system, Math.min(systemTokens, inputTokens))
    },
  }
}

const charactersPerToken = 4

/** Returns how long the model's provider keeps what the client asked it to keep, in milliseconds. */
function keptFor(request: ChatRequest, model: string): number {
  if (model.startsWith('openai/') && request.extras.prompt_cache_retention === '24h') return 24 * 3_600_000
  return model.startsWith('anthropic/') && asksForHour(request) ? 3_600_000 : usuallyKeptMs
}

/** Returns what all requests of a conversation share beside its instructions; a digest of it may be kept, never the text. */
export function nameConversation({ session, messages }: Pick<ChatRequest, 'session' | 'messages'>): string {
  return session === null ? beginning(firstUserText(messages)) : `session ${beginning(session)}`
}

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
