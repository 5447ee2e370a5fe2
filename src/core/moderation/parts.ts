/** The parts of a text that are judged by themselves: its sentences, lines and quotations. */
import type { Features } from '../analysis/features.ts'

/** Fewer words than these are read with what follows them: a number of a list, an abbreviation, a name before a colon. */
const fewestWords = 4

/** Calls `onPart` with each part's first word and the one behind its last, in order; never for a text that is all one part. */
export function eachPart({ count, breaks, breakCount }: Features, onPart: (from: number, to: number) => void): void {
  let from = 0
  for (let index = 0; index <= breakCount; index++) {
    const to = index < breakCount ? (breaks[index] ?? count) : count
    if (to - from < fewestWords && to < count) continue
    if (to > from && to - from < count) onPart(from, to)
    from = to
  }
}

/** How many parts a text has. */
export function partsIn(features: Features): number {
  let parts = 0
  eachPart(features, () => parts++)
  return parts
}
