import type { ReasoningItem } from '../../core/chat/chat.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { type Json, records } from '../json.ts'
import type { AnswerSink } from '../provider.ts'

/**
 * OpenRouter's `reasoning_details`: reasoning with the proofs that the model behind it requires on the next turn. They go
 * back to OpenRouter unchanged; other servers receive none.
 */

/** Details of one choice that were not emitted yet. */
export type ReasoningDetails = Record<string, unknown>[]

/** A response has few blocks; further ones are dropped. */
const maximumDetails = 1_000

/** Adds details of a message or a delta: deltas with one index and type are one detail, whose texts are joined. */
export function addDetails(details: ReasoningDetails, wire: unknown): void {
  for (const delta of records(wire)) {
    const last = details.at(-1)
    if (last === undefined || delta.index === undefined || delta.index !== last.index || delta.type !== last.type) {
      if (details.length < maximumDetails) details.push({ ...delta })
      continue
    }
    for (const [name, value] of Object.entries(delta)) {
      const known = last[name]
      const grows = (name === 'text' || name === 'summary' || name === 'data') && typeof known === 'string'
      if (value !== null) last[name] = grows && typeof value === 'string' ? known + value : value
    }
  }
}

/** Emits the details if they have a proof. Without one, the reasoning text is enough. */
export function releaseDetails(details: ReasoningDetails, choice: number, sink: AnswerSink): void {
  if (!details.some(isProof)) return
  const data = JSON.stringify(details.splice(0))
  sink.add({ type: 'reasoning_end', choice, family: 'compatible', kind: 'encrypted', data, id: null })
}

/** Returns the details of earlier turns; undefined = none. */
export function detailsFor(items: readonly ReasoningItem[] = []): readonly Json[] | undefined {
  const details = items
    .filter(({ family, kind }) => family === 'compatible' && kind === 'encrypted')
    .flatMap(({ data }) => records(parseUntrustedJson(data)))
  return details.length === 0 ? undefined : details
}

function isProof({ signature, data }: Json): boolean {
  return (typeof signature === 'string' && signature !== '') || (typeof data === 'string' && data !== '')
}

/** Reasoning that a server writes into the beginning of the output text: blocks of `<think>…</think>`, or of Google's tag. */

export type Thinking = {
  /** Where a tag is expected: at the start, inside, in the white space after one, or no longer. */
  place: 'maybe' | 'inside' | 'after' | 'over'
  /** The closing tag. */
  closing: string
  /** Held-back text, which may be the beginning of a tag. */
  held: string
}

export type ReasoningText = { readonly type: 'text' | 'reasoning'; readonly text: string }

const tags = ['think>', 'thought>'] as const
/** Maximum white space held back before a tag, since output may also be only blanks. */
const longestHeld = 64

/** Returns the texts of one more delta, without tags. A loop, because a delta can have any number of blocks. */
export function readThinking(thinking: Thinking, piece: string): readonly ReasoningText[] {
  const read: ReasoningText[] = []
  let text = thinking.held + piece
  thinking.held = ''
  while (thinking.place !== 'over') {
    if (thinking.place === 'inside') {
      const { closing } = thinking
      const close = text.indexOf(closing)
      const end = close === -1 ? text.length - beginningLength(text, closing) : close
      if (end > 0) read.push({ type: 'reasoning', text: text.slice(0, end) })
      if (close === -1) {
        thinking.held = text.slice(end)
        return read
      }
      thinking.place = 'after'
      text = text.slice(close + closing.length)
      continue
    }
    const start = text.trimStart()
    const begun = tags.find(tag => start.startsWith(`<${tag}`))
    if (begun !== undefined) {
      thinking.place = 'inside'
      thinking.closing = `</${begun}`
      text = start.slice(begun.length + 1)
      continue
    }
    // White space between blocks, and before the answer, belongs to neither.
    if (thinking.place === 'after') text = start
    if (tags.some(tag => `<${tag}`.startsWith(start)) && text.length <= longestHeld) {
      thinking.held = text
      return read
    }
    thinking.place = 'over'
  }
  if (text !== '') read.push({ type: 'text', text })
  return read
}

/** Returns held-back text, which turned out not to be a tag. */
export function releaseHeld(thinking: Thinking): readonly ReasoningText[] {
  const { held: text, place } = thinking
  if (text === '') return []
  thinking.held = ''
  return [{ type: place === 'inside' ? 'reasoning' : 'text', text }]
}

/** Returns the length of the longest suffix of `text` that is a prefix of `tag`. */
function beginningLength(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(-length))) return length
  }
  return 0
}
