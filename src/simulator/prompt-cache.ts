/**
 * Prompt caches with the providers' semantics: per key and model, of a beginning of at least 1,024 tokens, for five
 * minutes after the last use. Anthropic caches up to the marks of a request (for an hour if the mark requests it) and looks
 * for an earlier one at most 20 blocks back. OpenAI and Google need no marks.
 */
import { createRecentMap } from '../core/text/recent-map.ts'
import type { RawRequest } from './request.ts'
import { isWireObject, objectsIn, type SimulatedFormat, type WireObject } from './wire-format.ts'

/** Tokens of a prompt that were read from a cache or written to one. */
export type CacheUse = { readonly cached: number; readonly written: number; readonly hourWritten: number }

export type PromptCaches = {
  /** Reads and writes the cache for one request with `inputTokens` tokens. */
  use(provider: SimulatedFormat['provider'], request: RawRequest, body: WireObject, inputTokens: number): CacheUse
}

/** A part of the prompt that cannot be cached in pieces. */
type Block = {
  readonly text: string
  /** Lifetime that the client's mark requests; null = no mark. */
  readonly markMs: number | null
}

const leastTokens = 1_024
const usualMs = 5 * 60_000
const hourMs = 60 * 60_000
const maximumLookback = 20
const maximumEntries = 50_000
const none: CacheUse = { cached: 0, written: 0, hourWritten: 0 }

export function createPromptCaches(clock: { now(): number }): PromptCaches {
  /** Until when each beginning is kept, by its hash. */
  const kept = createRecentMap<{ readonly until: number; readonly forMs: number }>(maximumEntries)

  const isKept = (hash: string) => (kept.get(hash)?.until ?? 0) > clock.now()
  const keep = (hash: string, forMs: number) => kept.set(hash, { until: clock.now() + forMs, forMs })
  const refresh = (hash: string) => keep(hash, kept.get(hash)?.forMs ?? usualMs)

  return {
    use(provider, { headers, path }, body, inputTokens) {
      if (inputTokens < leastTokens) return none
      const blocks = blocksOf(provider, body)
      const key = headers.authorization ?? headers['x-api-key'] ?? headers['x-goog-api-key'] ?? path
      const beginnings = beginningsOf(blocks, `${provider} ${key} ${String(body.model ?? path)}`, inputTokens)
      const marks = blocks.flatMap(({ markMs }, at) => (markMs === null ? [] : [{ at, markMs }]))
      const ends = provider === 'anthropic' ? marks : blocks.map((_, at) => ({ at, markMs: usualMs }))
      const isFound = (at: number) => {
        const { hash, tokens } = beginnings[at] ?? { hash: '', tokens: 0 }
        return tokens >= leastTokens && isKept(hash)
      }
      const found = Math.max(-1, ...ends.map(end => lastFound(isFound, end.at)))
      const cached = beginnings[found]?.tokens ?? 0
      let written = 0
      let hourWritten = 0
      for (const { hash } of beginnings.slice(0, found + 1)) if (isKept(hash)) refresh(hash)
      for (const { at, markMs } of ends) {
        const { hash, tokens } = beginnings[at] ?? { hash: '', tokens: 0 }
        if (at <= found || tokens < leastTokens) continue
        keep(hash, markMs)
        const fresh = tokens - cached - written
        written += fresh
        if (markMs === hourMs) hourWritten += fresh
      }
      return provider === 'anthropic' ? { cached, written, hourWritten } : { ...none, cached: cached - (cached % 128) }
    },
  }
}

function lastFound(isFound: (at: number) => boolean, end: number): number {
  for (let at = end; at >= 0 && at > end - maximumLookback; at--) if (isFound(at)) return at
  return -1
}

function beginningsOf(blocks: readonly Block[], scope: string, inputTokens: number) {
  const total = blocks.reduce((sum, { text }) => sum + text.length, 0)
  const hasher = new Bun.CryptoHasher('sha256').update(scope)
  let length = 0
  return blocks.map(({ text }) => {
    length += text.length
    hasher.update(`${text.length} ${text}`)
    return { hash: hasher.copy().digest('base64'), tokens: Math.floor((inputTokens * length) / total) }
  })
}

function blocksOf(provider: SimulatedFormat['provider'], body: WireObject): readonly Block[] {
  const list = (name: string) => [body[name]].flat().filter(isWireObject).map(blockOf)
  switch (provider) {
    case 'anthropic': {
      const turns = objectsIn(body.messages).flatMap(({ role, content }) => contentBlocks(content, String(role)))
      const blocks = [...list('tools'), ...contentBlocks(body.system, 'system'), ...turns]
      const last = blocks.at(-1)
      const isMarked = last !== undefined && isWireObject(body.cache_control)
      return isMarked ? [...blocks.slice(0, -1), { ...last, markMs: markOf(body) }] : blocks
    }
    case 'google':
      return [...list('systemInstruction'), ...list('tools'), ...list('contents')]
    case 'openai': {
      const instructions = typeof body.instructions === 'string' ? [{ text: body.instructions, markMs: null }] : []
      return [...list('tools'), ...instructions, ...list('messages'), ...list('input')]
    }
  }
}

function contentBlocks(content: unknown, role: string): readonly Block[] {
  if (typeof content === 'string') return [blockOf({ type: 'text', text: content, role })]
  return objectsIn(content).map(block => blockOf({ ...block, role }))
}

function blockOf(value: WireObject): Block {
  const { cache_control, ...rest } = value
  return { text: JSON.stringify(rest), markMs: isWireObject(cache_control) ? markOf(value) : null }
}

function markOf({ cache_control }: WireObject): number {
  return isWireObject(cache_control) && cache_control.ttl === '1h' ? hourMs : usualMs
}
