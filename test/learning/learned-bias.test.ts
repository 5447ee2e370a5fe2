import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { estimateBiases } from '../../src/learning/learned-bias.ts'
import {
  addEntry,
  emptyCell,
  type LearningCell,
  ratingWeight,
  replaceEvidence,
} from '../../src/learning/learning-cell.ts'
import { day, entries, entry, getCell, start, times } from '../core/entries.ts'

const models = fc.array(fc.record({ figure: fc.double({ min: 0, max: 1, noNaN: true }), entries }), {
  minLength: 1,
  maxLength: 9,
})

/** Returns the cell with `count` of its responses rated, which had no signal before. */
function withRatings(cell: LearningCell, count: number, quality: number): LearningCell {
  const before = { quality: 0.75, weight: 1, at: start, isRating: false }
  const after = { quality, weight: ratingWeight, at: start, isRating: true }
  return times(count, quality).reduce(known => replaceEvidence(known, before, after, false), cell)
}

describe('estimateBiases', () => {
  test('reaches the bound after 18 ratings of one star, whatever the catalog expects and others receive', () => {
    const learningCell = withRatings(getCell(times(18, 0.75)), 18, 0)
    const other = getCell(times(40, 0.75))
    for (const figure of [0, 0.1, 0.3, 0.5, 0.7, 0.9, 1])
      for (const others of [[], [{ figure: 0.6, cell: other }], [{ figure: 0.1, cell: withRatings(other, 9, 0.5) }]]) {
        const [bad] = estimateBiases([{ figure, cell: learningCell }, ...others], start)
        expect({ figure, bias: bad?.bias }).toEqual({ figure, bias: -0.2 })
      }
  })

  test('moves within 0.05 after the first rating, down for few stars and up for five', () => {
    for (const figure of [0, 0.2, 0.4, 0.6, 0.8, 1])
      for (const responses of [1, 5, 9]) {
        const [value, three, five] = [0, 0.5, 1].map(quality => {
          const cell = withRatings(getCell(times(responses, 0.75)), 1, quality)
          return estimateBiases([{ figure, cell }], start)[0]?.bias ?? Number.NaN
        })
        expect(value).toBeWithin(-0.05, -0.02)
        expect(three).toBeWithin(-0.05, -0.01)
        expect(five).toBeWithin(0.01, 0.05)
      }
  })

  test('stays within the bound of its confidence, and is 0 below 10 entries, for any data', () => {
    fc.assert(
      fc.property(models, fc.integer({ min: start, max: start + 800 * day }), (given, now) => {
        const known = given.map(({ figure, entries: list }) => ({ figure, cell: list.reduce(addEntry, emptyCell) }))
        for (const [index, { bias, quality, error }] of estimateBiases(known, now).entries()) {
          const { cell } = known[index] ?? { cell: emptyCell }
          const limit = cell.entries < 10 ? 0 : cell.entries < 50 ? 0.05 : 0.2
          expect(Math.abs(bias)).toBeLessThanOrEqual(limit)
          expect(quality).toBeGreaterThanOrEqual(0)
          expect(quality).toBeLessThanOrEqual(1)
          expect(Number.isFinite(error)).toBe(true)
        }
      }),
      { numRuns: 300 },
    )
  })

  test("returns 0 when models match the catalog's prediction, and when all perform alike", () => {
    const figures = [0.8, 0.6, 0.4]
    const alike = figures.map(figure => ({ figure, cell: getCell(times(60, 0.75)) }))
    const foretold = figures.map(figure => ({
      figure,
      cell: getCell(Array.from({ length: 100 }, (_, index) => (index % 20 < figure * 20 ? 1 : 0))),
    }))
    for (const known of [alike, foretold])
      for (const { bias } of estimateBiases(known, start)) expect(Math.abs(bias)).toBeLessThan(0.01)
  })

  test('returns 0 for a model whose responses only show no problems, whatever the catalog says', () => {
    for (const figure of [0.2, 0.5, 0.7, 0.95])
      for (const count of [12, 60, 500]) {
        const [alone] = estimateBiases([{ figure, cell: getCell(times(count, 0.75)) }], start)
        expect(Math.abs(alone?.bias ?? 1)).toBeLessThan(0.01)
      }
  })

  test('follows the evidence: up for the better of two, down for the worse, more with more evidence', () => {
    const biases = (count: number) =>
      estimateBiases(
        [times(count, 0.4), times(count, 0.9)].map(qualities => ({ figure: 0.7, cell: getCell(qualities) })),
        start,
      ).map(({ bias }) => bias)
    const [few, many] = [biases(12), biases(200)]
    expect(few).toEqual([-0.05, 0.05])
    expect(many[0]).toBeLessThan(-0.1)
    expect(many[1]).toBeGreaterThan(0.1)
  })

  test('uses ratings even when only one model is known', () => {
    const [bad] = estimateBiases([{ figure: 0.8, cell: getCell(times(60, 0)) }], start)
    const [good] = estimateBiases([{ figure: 0.6, cell: getCell(times(60, 1)) }], start)
    expect(bad?.bias).toBeLessThan(-0.05)
    expect(good?.bias).toBeGreaterThan(0.02)
  })

  test('decays: half of the evidence after 30 days, nearly all after a year', () => {
    const cell = getCell(times(100, 0.5))
    const later = addEntry(cell, entry({ at_ms: start + 30 * day, quality: 0.5 }))
    expect(later.weight).toBeCloseTo(51, 6)
    const known = [0.2, 0.9].map(quality => ({ figure: 0.7, cell: getCell(times(60, quality)) }))
    const [now, muchLater] = [start, start + 720 * day].map(at =>
      estimateBiases(known, at).map(({ bias }) => Math.abs(bias)),
    )
    expect(muchLater?.[0]).toBeLessThan((now?.[0] ?? 0) / 4)
  })
})
