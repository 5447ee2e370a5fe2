/** Learning entries for tests: one by hand, and any. */
import fc from 'fast-check'
import { addEntry, type Entry, emptyCell } from '../../src/learning/learning-cell.ts'

export const start = Date.UTC(2026, 4, 5, 12)
export const day = 86_400_000
export const entry = (changes: Partial<Entry> = {}): Entry => ({
  at: start,
  quality: 0.75,
  latencyMs: 900,
  firstTokenMs: 200,
  costMicrocents: 1_000,
  inputTokens: 100,
  outputTokens: 300,
  automatic: true,
  influenced: false,
  enhanced: false,
  ...changes,
})

export const getCell = (qualities: readonly number[], changes: Partial<Entry> = {}) =>
  qualities.reduce((cell, quality) => addEntry(cell, entry({ quality, ...changes })), emptyCell)
export const times = (count: number, quality: number) => Array.from({ length: count }, () => quality)

export const entries = fc.array(
  fc.record({
    quality: fc.double({ min: 0, max: 1, noNaN: true }),
    at: fc.integer({ min: start, max: start + 400 * day }),
    latencyMs: fc.integer({ min: 0, max: 600_000 }),
    firstTokenMs: fc.option(fc.integer({ min: 0, max: 600_000 })),
    costMicrocents: fc.integer({ min: 0, max: 1e12 }),
    inputTokens: fc.integer({ min: 0, max: 1e6 }),
    outputTokens: fc.integer({ min: 0, max: 1e6 }),
    automatic: fc.boolean(),
    influenced: fc.boolean(),
    enhanced: fc.boolean(),
  }),
  { maxLength: 120 },
)
