/**
 * Cache marks of a translated request: the client's own, else those that the gateway sets. A mark at a block lets
 * Anthropic read the prompt up to there from its cache, or write it. Without marks it caches nothing.
 */

import type { CacheMark } from '../core/chat/chat.ts'
import type { AutomaticCacheMarks } from '../core/chat/provider-features.ts'
import type { WireTurn } from './conversation-steps.ts'
import type { Json } from './json.ts'

/** The blocks of a request, in the order in which the cache reads them. */
type MarkableBlocks = {
  readonly tools: readonly Json[]
  readonly system: readonly Json[]
  readonly turns: readonly WireTurn<Json>[]
}

/** Blocks to be marked. */
export type MarkedBlocks = Map<Json, CacheMark>

/** More marks are refused with status 400. */
const maximumMarks = 4

/** Returns the marks to send, and whether some of the client's were too many: the last four count. */
export function chosenMarks(
  { tools, system, turns }: MarkableBlocks,
  own: MarkedBlocks,
  automatic: AutomaticCacheMarks | null,
): { readonly marks: MarkedBlocks; readonly dropsMarks: boolean } {
  const marks = own.size > 0 || automatic === null ? own : automaticMarks({ tools, system, turns }, automatic)
  if (marks.size <= maximumMarks) return { marks, dropsMarks: false }
  const inOrder = [...tools, ...system, ...turns.flatMap(({ parts }) => parts)]
  const kept = inOrder.flatMap(block => {
    const mark = marks.get(block)
    return mark === undefined ? [] : [[block, mark] as const]
  })
  return { marks: new Map(kept.slice(-maximumMarks)), dropsMarks: kept.length > maximumMarks }
}

/** Returns the blocks with their marks, and whether some of the client's were too many. */
export function withCacheMarks(
  blocks: MarkableBlocks,
  own: MarkedBlocks,
  automatic: AutomaticCacheMarks | null,
): MarkableBlocks & { readonly dropsMarks: boolean } {
  const { marks, dropsMarks } = chosenMarks(blocks, own, automatic)
  if (marks.size === 0) return { ...blocks, dropsMarks }
  const { tools, system, turns } = blocks
  const marked = (block: Json): Json => {
    const mark = marks.get(block)
    return mark === undefined ? block : { ...block, cache_control: cacheControl(mark) }
  }
  return {
    tools: tools.map(marked),
    system: system.map(marked),
    turns: turns.map(({ role, parts }) => ({ role, parts: parts.map(marked) })),
    dropsMarks,
  }
}

/** Five minutes is the default, which older hosts do not know by name. */
export function cacheControl(mark: CacheMark): Json {
  return mark === '5m' ? { type: 'ephemeral' } : { type: 'ephemeral', ttl: mark }
}

/**
 * Marks the end of what stays equal between requests: tools and system text; for a conversation also the end of this
 * request and the end of the one before. The provider looks for an earlier mark at most 20 blocks back, and a turn with many parallel calls
 * is longer.
 */
function automaticMarks({ tools, system, turns }: MarkableBlocks, automatic: AutomaticCacheMarks): MarkedBlocks {
  const users = turns.filter(({ role }) => role === 'user')
  const ends = [
    system.at(-1) ?? tools.at(-1),
    ...(automatic === 'conversation' ? users.slice(-2).map(({ parts }) => parts.at(-1)) : []),
  ]
  return new Map(ends.flatMap(block => (block === undefined ? [] : [[block, '5m'] as const])))
}
