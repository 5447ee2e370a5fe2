/**
 * Prompt caches with the providers' semantics: per key and model, of a beginning of at least 1,024 tokens, for five
 * minutes after the last use. Anthropic caches up to the marks of a request, and looks for an earlier one at most 20
 * blocks back. OpenAI and Google need no marks.
 */
import type { Clock } from '../core/ports.ts'
import { createRecentMap } from '../core/text/recent-map.ts'
import type { RawRequest } from './server.ts'
import { isWireObject, objectsIn, readKey, type SimulatedFormat, type WireObject } from './wire-format.ts'

/** Tokens of a prompt that were read from a cache or written to one. */
export type CacheUse = { readonly cached: number; readonly written: number }

/** A part of the prompt that cannot be cached in pieces. */
type Block = { readonly text: string; readonly isMarked: boolean }

const leastTokens = 1_024
const lifetimeMs = 5 * 60_000
const maximumLookback = 20
const maximumEntries = 50_000

/** Returns a function that reads and writes the cache for one request with `inputTokens` tokens. */
export function createPromptCaches(clock: Pick<Clock, 'now'>) {
  /** Until when each beginning is kept, by its hash. */
  const kept = createRecentMap<number>(maximumEntries)

  return (
    provider: SimulatedFormat['provider'],
    request: RawRequest,
    body: WireObject,
    inputTokens: number,
  ): CacheUse => {
    const now = clock.now()
    const blocks = inputTokens < leastTokens ? [] : readBlocks(provider, body)
    const scope = `${provider} ${readKey(request) || request.path} ${String(body.model ?? request.path)}`
    const beginnings = hashBeginnings(blocks, scope, inputTokens)
    const isFound = (at: number) =>
      (beginnings[at]?.tokens ?? 0) >= leastTokens && (kept.get(beginnings[at]?.hash ?? '') ?? 0) > now
    const ends = blocks.flatMap(({ isMarked }, at) => (isMarked || provider !== 'anthropic' ? [at] : []))
    const found = Math.max(-1, ...ends.map(end => findLast(isFound, end)))
    const cached = beginnings[found]?.tokens ?? 0
    let end = cached
    for (const [at, { hash, tokens }] of beginnings.entries()) {
      if (at > found ? ends.includes(at) && tokens >= leastTokens : isFound(at)) kept.set(hash, now + lifetimeMs)
      if (at > found && ends.includes(at) && tokens >= leastTokens) end = tokens
    }
    return provider === 'anthropic'
      ? { cached, written: end - cached }
      : { cached: cached - (cached % 128), written: 0 }
  }
}

function findLast(isFound: (at: number) => boolean, end: number): number {
  for (let at = end; at >= 0 && at > end - maximumLookback; at--) if (isFound(at)) return at
  return -1
}

function hashBeginnings(blocks: readonly Block[], scope: string, inputTokens: number) {
  const total = blocks.reduce((sum, { text }) => sum + text.length, 0)
  const hasher = new Bun.CryptoHasher('sha256').update(scope)
  let length = 0
  return blocks.map(({ text }) => {
    length += text.length
    hasher.update(`${text.length} ${text}`)
    return { hash: hasher.copy().digest('base64'), tokens: Math.floor((inputTokens * length) / total) }
  })
}

function readBlocks(provider: SimulatedFormat['provider'], body: WireObject): readonly Block[] {
  const list = (name: string) => [body[name]].flat().filter(isWireObject).map(readBlock)
  switch (provider) {
    case 'anthropic': {
      const turns = objectsIn(body.messages).flatMap(({ role, content }) => readContent(content, String(role)))
      const blocks = [...list('tools'), ...readContent(body.system, 'system'), ...turns]
      const isMarked = isWireObject(body.cache_control)
      return blocks.map((block, at) => (isMarked && at === blocks.length - 1 ? { ...block, isMarked } : block))
    }
    case 'google':
      return [...list('systemInstruction'), ...list('tools'), ...list('contents')]
    case 'openai': {
      const instructions = { text: String(body.instructions ?? ''), isMarked: false }
      return [...list('tools'), instructions, ...list('messages'), ...list('input')]
    }
  }
}

function readContent(content: unknown, role: string): readonly Block[] {
  if (typeof content === 'string') return [readBlock({ type: 'text', text: content, role })]
  return objectsIn(content).map(block => readBlock({ ...block, role }))
}

function readBlock({ cache_control, ...block }: WireObject): Block {
  return { text: JSON.stringify(block), isMarked: isWireObject(cache_control) }
}
