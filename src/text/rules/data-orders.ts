/**
 * Patterns for instructions to a model inside text that it reads: documents, tool results, fetched pages. Text there
 * has no authority: addressing the model, asking it to hide something from the user, or giving it a new task is an
 * attack. A report about such instructions ("attackers hide instructions in pages") is not.
 */
import file from './data-orders.json'
import { withWords } from './patterns.ts'

/** Patterns that count anywhere in the text. */
export const dataOrders: readonly string[] = Object.values(file.patterns)
  .flat()
  .map(pattern => withWords(pattern, file.words))

/**
 * Marks after which a sentence or line, and so an instruction, can begin. Not a quotation mark, since it may quote an
 * example.
 */
const beginnings = /(?:[\n\r.!?>\])*#|;:]|-->|[。！？।؟：]) *(?=[^\s.!?>\])*#|;:。！？।؟："“„«「『'-])/g

/** Returns the start positions of sentences and lines, including 0. Linear. */
export function beginningsOf(text: string): readonly number[] {
  const places = [0]
  for (const { index, 0: mark } of text.matchAll(beginnings)) {
    if (places.length === mostBeginnings) break
    places.push(index + mark.length)
  }
  return places
}

const mostBeginnings = 4_096
