/**
 * Tracks conversations by their beginning: which model answered, what it has cached, and the state of the task. Keyed by a
 * keyed SHA-256 of account and beginning, which is meaningless elsewhere. Entries are short-lived. Instances of one secret
 * share them as notes, which travel with the meter's calls.
 */

import { type Static, Type } from '@sinclair/typebox'
import type { ChatRequest, Message } from '../core/chat/chat.ts'
import { type AutomaticCacheMarks, leastCachedCharacters } from '../core/chat/provider-features.ts'
import type { Clock } from '../core/ports.ts'
import { createRecentMap } from '../core/text/recent-map.ts'
import { asksForHour } from '../core/usage/source-charges.ts'
import { strictObject, validate } from '../core/validation/validate.ts'
import type { ConversationNote } from '../limits/meter.ts'
import type { CacheAffinity, CachePlace } from '../models/cache-affinity.ts'
import { getPromptCache } from '../models/catalog.ts'
import {
  type ConversationState,
  conversationStateSchema,
  leastCachedTokens,
  settleTurn,
} from '../models/conversation.ts'
import type { ChosenEffort } from '../models/effort.ts'

export type CacheAffinityTracker = {
  /**
   * Returns the model that answered this conversation, or another with the same long system text, and probably has it
   * cached; null = none.
   */
  of(accountId: string, request: ChatRequest): CacheAffinity | null
  /** Returns the state of this conversation; null = nothing is known of it. */
  find(accountId: string, request: ChatRequest): ConversationState | null
  /** Returns the digest under which instances share this conversation; null = it has no earlier turn. */
  nameShared(accountId: string, request: ChatRequest): string | null
  /** Takes over what another instance noted of this conversation. Returns false if this one knows it already. */
  adopt(accountId: string, request: ChatRequest, note: string): boolean
  /** Returns a keyed digest of a text of an account. */
  digest(accountId: string, text: string): string
  /** Returns which beginning of this request was sent within the last minutes, to any model; null = none. */
  seen(accountId: string, request: ChatRequest): AutomaticCacheMarks | null
  /**
   * Returns the input tokens of the request before with the same beginning, to any model, as far as `model` would still have
   * them cached; 0 = none.
   */
  tokensBefore(accountId: string, request: ChatRequest, model: string): number
  /**
   * Records an answered request. `isCached`: the upstream read its input from the cache, or wrote it; null = it reported
   * neither, but may have written it. Returns the note for other instances; null = without a state there is none.
   */
  answered(
    accountId: string,
    request: ChatRequest,
    by: {
      readonly model: string
      readonly inputTokens: number
      readonly isCached: boolean | null
      readonly place: CachePlace
      /** State that the choice of the turn leaves; null = the request named its model. */
      readonly turn: ConversationState | null
      readonly effort: ChosenEffort
      /** The gateway's estimate of the input. */
      readonly estimatedTokens: number
      readonly microcents: number
    },
  ): ConversationNote | null
}

/** What instances share of a conversation. */
const lineSchema = strictObject({
  model: Type.String(),
  tokens: Type.Number(),
  place: strictObject({ host: Type.String(), account: Type.Union([Type.String(), Type.Null()]) }),
  state: Type.Union([conversationStateSchema, Type.Null()]),
  /** How long the provider keeps it after its last use, in milliseconds. */
  keptMs: Type.Number(),
  /** True if a repeated request in time found nothing cached. */
  missed: Type.Boolean(),
})

type Line = Static<typeof lineSchema> & {
  /** Monotonic and epoch milliseconds. */
  readonly at: number
  readonly notedAt: number
}

const maximumTies = 10_000
/** Characters of a beginning that are compared, in addition to its length. */
const comparedCharacters = 8_192

/** Creates an empty tracker. Instances with the same secret share conversations. */
export function createCacheAffinity(clock: Pick<Clock, 'now' | 'monotonic'>, secret: string): CacheAffinityTracker {
  const lines = createRecentMap<Line>(maximumTies)

  const fresh = (key: string | null, keptMs?: number): Line | null => {
    const line = key === null ? undefined : lines.get(key)
    if (line === undefined || line.tokens < leastCachedTokens) return null
    return clock.monotonic() - line.at <= (keptMs ?? line.keptMs) ? line : null
  }
  const name = (accountId: string, kind: string, text: string) =>
    Bun.SHA256.hash(`${secret} ${accountId} ${kind} ${text}`, 'base64')
  const known = new WeakMap<readonly Message[], { readonly accountId: string; readonly keys: Keys }>()
  /** Worked out once for each request, which its stages ask for several times. */
  const getKeys = (accountId: string, request: ChatRequest): Keys => {
    const before = known.get(request.messages)
    if (before?.accountId === accountId) return before.keys
    const system = systemText(request.messages)
    const keys = {
      // An agent and its helpers share a session, but not the instructions.
      conversation: name(accountId, 'conversation', `${beginning(system)} ${nameConversation(request)}`),
      system: system.length < leastCachedCharacters ? null : name(accountId, 'system', beginning(system)),
      systemTokens: Math.floor(system.length / charactersPerToken),
    }
    known.set(request.messages, { accountId, keys })
    return keys
  }
  const continues = (request: ChatRequest) =>
    request.session !== null || request.messages.some(({ role }) => role === 'assistant')
  /** The line of the conversation, else that of the system text. */
  const findLine = (
    accountId: string,
    request: ChatRequest,
    keptMs?: number,
  ): { readonly line: Line; readonly part: AutomaticCacheMarks } | null => {
    if (request.bodyCharacters < leastCachedCharacters) return null
    const { conversation, system } = getKeys(accountId, request)
    const own = continues(request) ? fresh(conversation, keptMs) : null
    if (own !== null) return { line: own, part: 'conversation' }
    const shared = fresh(system, keptMs)
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
    tokensBefore: (accountId, request, model) =>
      findLine(accountId, request, keptFor(request, model))?.line.tokens ?? 0,
    find(accountId, request) {
      if (!continues(request)) return null
      const line = lines.get(getKeys(accountId, request).conversation)
      const age = line === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - line.at
      if (line === undefined || line.state === null || age > Math.max(stateMs, line.keptMs)) return null
      return line.missed || age > line.keptMs ? { ...line.state, cachedTokens: 0 } : line.state
    },
    nameShared: (accountId, request) => (continues(request) ? getKeys(accountId, request).conversation : null),
    adopt(accountId, request, note) {
      const key = getKeys(accountId, request).conversation
      const line = readNote(key, note, lines.get(key)?.notedAt ?? 0)
      if (line === null) return false
      const at = clock.monotonic() - Math.max(0, clock.now() - line.notedAt)
      lines.set(key, { ...line, at, state: line.state && { ...line.state, spentAt: at } })
      return true
    },
    digest: (accountId, text) => name(accountId, 'text', text).slice(0, digestCharacters),
    answered(accountId, request, by) {
      const { model, inputTokens, isCached, place, turn } = by
      const isLong = request.bodyCharacters >= leastCachedCharacters
      if (!isLong && turn === null) return null
      const { conversation, system, systemTokens } = getKeys(accountId, request)
      const keptMs = keptFor(request, model)
      const notedAt = clock.now()
      const note = (key: string | null, inputs: number, before: ConversationState | null) => {
        const tokens = isLong && inputs >= leastCachedTokens ? inputs : 0
        if (key === null || (tokens === 0 && before === null)) return
        // Nothing cached at the first request is normal, and at the second it is a miss.
        const line = fresh(key)
        const isRepeat = line?.model === model && line.place.host === place.host && line.place.account === place.account
        const missed = isCached === false || (isCached === null && isRepeat)
        const state =
          before === null
            ? null
            : settleTurn(before, { ...by, cachedTokens: missed ? 0 : tokens, at: clock.monotonic() })
        const noted = { model, tokens, place, state, keptMs, missed }
        lines.set(key, { ...noted, at: clock.monotonic(), notedAt })
        return noted
      }
      note(system, Math.min(systemTokens, inputTokens), null)
      const noted = note(conversation, inputTokens, turn)
      if (noted === undefined || turn === null) return null
      return { name: conversation, getText: () => `${conversation} ${notedAt} ${JSON.stringify(noted)}` }
    },
  }
}

type Keys = { readonly conversation: string; readonly system: string | null; readonly systemTokens: number }

/** How long the state of a conversation is kept after its last turn: people come back to a task after hours. */
const stateMs = 12 * 3_600_000
const digestCharacters = 16

/** Reads a note about the conversation of this digest that is newer than `after`; null = another one or an older one. */
function readNote(name: string, note: string, after: number): Omit<Line, 'at'> | null {
  const [ofName, notedAt, ...json] = note.split(' ')
  if (ofName !== name || !(Number(notedAt) > after)) return null
  try {
    return { ...validate(lineSchema, JSON.parse(json.join(' '))), notedAt: Number(notedAt) }
  } catch {
    // Another version wrote it.
    return null
  }
}

const charactersPerToken = 4

/** Returns how long the model's provider keeps what the client asked it to keep, in milliseconds. */
function keptFor(request: ChatRequest, model: string): number {
  if (model.startsWith('openai/') && request.extras.prompt_cache_retention === '24h') return 24 * 3_600_000
  if (model.startsWith('anthropic/') && asksForHour(request)) return 3_600_000
  return getPromptCache(model.slice(0, model.indexOf('/'))).keptMinutes * 60_000
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
