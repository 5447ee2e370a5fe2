/** Learning entries for tests: one by hand, and any. */
import fc from 'fast-check'
import { addEntry, emptyCell, type Lesson } from '../../src/learning/learning-cell.ts'

export const start = Date.UTC(2026, 4, 5, 12)
export const day = 86_400_000
type Measured = Omit<Lesson, 'learning'> & Lesson['learning']

/** Returns what a usage record has of these values. */
export function entry(changes: Partial<Measured> = {}): Lesson {
  const { quality = 0.75, influenced = false, enhanced = false, ...measured } = changes
  return {
    at_ms: start,
    latency_ms: 900,
    first_token_ms: 200,
    billed_microcents: 1_000,
    input_tokens: 100,
    output_tokens: 300,
    routing_mode: 'auto',
    ...measured,
    learning: { quality, influenced, enhanced },
  }
}

export const getCell = (qualities: readonly number[], changes: Partial<Measured> = {}) =>
  qualities.reduce((cell, quality) => addEntry(cell, entry({ quality, ...changes })), emptyCell)
export const times = (count: number, quality: number) => Array.from({ length: count }, () => quality)

export const entries = fc.array(
  fc
    .record({
      quality: fc.double({ min: 0, max: 1, noNaN: true }),
      at_ms: fc.integer({ min: start, max: start + 400 * day }),
      latency_ms: fc.integer({ min: 0, max: 600_000 }),
      first_token_ms: fc.option(fc.integer({ min: 0, max: 600_000 })),
      billed_microcents: fc.integer({ min: 0, max: 1e12 }),
      input_tokens: fc.integer({ min: 0, max: 1e6 }),
      output_tokens: fc.integer({ min: 0, max: 1e6 }),
      routing_mode: fc.constantFrom('auto' as const, 'manual' as const),
      influenced: fc.boolean(),
      enhanced: fc.boolean(),
    })
    .map(entry),
  { maxLength: 120 },
)
