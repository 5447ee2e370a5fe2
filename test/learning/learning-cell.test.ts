import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  addEntry,
  emptyCell,
  getConfidence,
  type LearningCell,
  maximumBias,
  ratingWeight,
  replaceEvidence,
} from '../../src/learning/learning-cell.ts'
import { entries, entry, getCell, start } from '../core/entries.ts'

test('confidenceOf: changes at 10 and 50 entries', () => {
  expect([0, 9, 10, 49, 50, 1e6].map(getConfidence)).toEqual([
    'cold_start',
    'cold_start',
    'warm_up',
    'warm_up',
    'established',
    'established',
  ])
  expect([9, 10, 49, 50].map(maximumBias)).toEqual([0, 0.05, 0.05, 0.2])
})

describe('learning cell', () => {
  test('stays within its ranges for any entries and ratings', () => {
    const ratings = fc.array(fc.record({ which: fc.nat(), quality: fc.double({ min: 0, max: 1, noNaN: true }) }), {
      maxLength: 40,
    })
    fc.assert(
      fc.property(entries, ratings, (list, rated) => {
        let cell = list.reduce(addEntry, emptyCell)
        const thought = list.map(({ at_ms: at, learning: { quality } }) => ({
          quality,
          weight: 1,
          at,
          isRating: false,
        }))
        const marked = new Set<number>()
        for (const { which, quality } of rated) {
          if (list.length === 0) break
          const index = which % list.length
          const before = thought[index]
          if (before === undefined) throw new Error('one thought an entry')
          const after = { quality, weight: ratingWeight, at: cell.at, isRating: true }
          cell = replaceEvidence(cell, before, after, list[index]?.learning.enhanced ?? false)
          thought[index] = after
          marked.add(index)
        }
        expect(cell.requests).toBe(list.length)
        expect(cell.entries).toBe(list.length + (ratingWeight - 1) * marked.size)
        expect(cell.ratings).toBe(marked.size)
        for (const share of [cell.quality, cell.rating, cell.enhancedQuality, cell.plainQuality]) {
          expect(share).toBeGreaterThanOrEqual(0)
          expect(share).toBeLessThanOrEqual(1)
        }
        for (const value of Object.values(cell)) if (value !== null) expect(Number.isFinite(value)).toBe(true)
        for (const value of [cell.weight, cell.spread, cell.slump]) expect(value).toBeGreaterThanOrEqual(0)
      }),
      { numRuns: 300 },
    )
  })

  test('counts a rating as three entries that replace the inferred one', () => {
    const cell = getCell([0.75, 0.75])
    const auto = { quality: 0.75, weight: 1, at: start, isRating: false }
    const low = { quality: 0, weight: ratingWeight, at: start, isRating: true }
    const once = replaceEvidence(cell, auto, low, false)
    expect([once.entries, once.requests, once.ratings, once.rating]).toEqual([4, 2, 1, 0])
    expect(once.quality).toBeCloseTo(0.75 / 4, 9)
    const twice = replaceEvidence(once, low, { ...low, quality: 1 }, false)
    expect([twice.entries, twice.ratings, twice.rating]).toEqual([4, 1, 1])
    expect(twice.quality).toBeCloseTo((0.75 + 3) / 4, 9)
  })

  test('computes the displayed averages, with enhanced responses separately', () => {
    let cell: LearningCell = emptyCell
    for (const [enhanced, quality, latency_ms, first_token_ms] of [
      [true, 1, 100, null],
      [false, 0.5, 300, 50],
      [true, 0.5, 500, 150],
    ] as const)
      cell = addEntry(cell, entry({ enhanced, quality, latency_ms, first_token_ms, at_ms: start + latency_ms }))
    expect(cell).toMatchObject({
      requests: 3,
      enhanced: 2,
      enhancedQuality: 0.75,
      plainQuality: 0.5,
      since: start + 100,
    })
    expect(cell.latencyMs).toBeCloseTo(300, 9)
    expect(cell.ratio).toBeCloseTo(Math.log(301 / 101), 9)
  })

  test('adapts quickly to a model that becomes worse after a long good period', () => {
    const random = (seed: number) => ((seed * 48_271) % 2_147_483_647) / 2_147_483_647
    let seed = 7
    const drawn = (mean: number) => {
      seed = Math.floor(random(seed) * 2_147_483_647)
      return random(seed) < mean ? 1 : 0
    }
    let cell = emptyCell
    for (let count = 0; count < 500; count++) cell = addEntry(cell, entry({ quality: drawn(0.8) }))
    expect(cell.quality).toBeGreaterThan(0.7)
    for (let count = 0; count < 60; count++) cell = addEntry(cell, entry({ quality: drawn(0.5) }))
    expect(cell.quality).toBeLessThan(0.66)
  })
})
