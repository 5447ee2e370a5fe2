/** Splits a text into the parts that are judged separately: sentences, lines and quotations. */
import type { Features } from '../analysis/features.ts'

/** Parts with fewer words are joined with the next part: a list number, an abbreviation, a name before a colon. */
const fewestWords = 4

/**
 * Calls `onPart` with each part's first word and the index after its last one, in order. Makes no call for a text of
 * one part.
 */
export function eachPart({ count, breaks, breakCount }: Features, onPart: (from: number, to: number) => void): void {
  let from = 0
  for (let index = 0; index <= breakCount; index++) {
    const to = index < breakCount ? (breaks[index] ?? count) : count
    if (to - from < fewestWords && to < count) continue
    if (to > from && to - from < count) onPart(from, to)
    from = to
  }
}

/** Returns the number of parts of a text. */
export function partsIn(features: Features): number {
  let parts = 0
  eachPart(features, () => parts++)
  return parts
}
