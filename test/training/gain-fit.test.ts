import { describe, expect, test } from 'bun:test'
import { askForest, growForest } from '../../src/training/forest.ts'
import { solveRidge } from '../../src/training/ridge.ts'

describe('solveRidge', () => {
  test('equals the normal equations', () => {
    // Two columns, three rows, ridge 1 and 2, weights 1, 2, 1: (XᵀWX + Λ) b = XᵀWt, solved by hand.
    const rows = [
      [1, 0],
      [1, 1],
      [0, 2],
    ].map(([first = 0, second = 0]) => ({
      columns: Uint32Array.of(0, 1),
      values: Float32Array.of(first, second),
    }))
    const solution = solveRidge({
      rows,
      targets: Float64Array.of(1, 2, 3),
      weights: Float64Array.of(1, 2, 1),
      ridge: Float64Array.of(1, 2),
    })
    // [[4, 2], [2, 8]] b = [5, 10]
    expect(solution[0]).toBeCloseTo(20 / 28, 9)
    expect(solution[1]).toBeCloseTo(30 / 28, 9)
  })
})

describe('growForest', () => {
  const settings = { trees: 60, depth: 2, rate: 0.3, ridge: 0.1, rows: 1, columns: 1, bins: 8, seed: 3 }
  const columns = [0, 1].map(column =>
    Float64Array.from({ length: 64 }, (_, row) => (column === 0 ? row % 8 : row >> 3)),
  )
  const both = Float64Array.from({ length: 64 }, (_, row) => (row % 8 > 3 && row >> 3 > 4 ? 1 : 0))

  test('learns an interaction of two columns', () => {
    const forest = growForest({ columns, targets: both, weights: new Float64Array(64).fill(1) }, settings)
    expect(askForest(forest, Float64Array.of(6, 6))).toBeGreaterThan(0.9)
    for (const values of [
      [6, 1],
      [1, 6],
      [0, 0],
    ])
      expect(askForest(forest, Float64Array.from(values))).toBeLessThan(0.1)
  })

  test('returns the same forest for the same rows and seed', () => {
    const rows = { columns, targets: both, weights: new Float64Array(64).fill(1) }
    const sparing = { ...settings, rows: 0.5, columns: 0.5 }
    expect(growForest(rows, sparing)).toEqual(growForest(rows, sparing))
  })

  test('ignores rows of weight 0', () => {
    const weights = Float64Array.from(both, value => 1 - value)
    const forest = growForest({ columns, targets: both, weights }, settings)
    expect(askForest(forest, Float64Array.of(6, 6))).toBeCloseTo(0, 9)
  })
})
