/**
 * OpenRouter's `reasoning_details`: reasoning with the proofs that the model behind it requires on the next turn. They go
 * back to OpenRouter unchanged; other servers receive none.
 */
import type { ReasoningItem } from '../../core/chat/chat.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { type Json, records } from '../json.ts'
import type { AnswerPart } from '../provider.ts'

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
export function releaseDetails(details: ReasoningDetails, choice: number, parts: AnswerPart[]): void {
  if (!details.some(isProof)) return
  const data = JSON.stringify(details.splice(0))
  parts.push({ type: 'reasoning_end', choice, family: 'compatible', kind: 'encrypted', data, id: null })
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
