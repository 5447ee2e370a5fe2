import { expect, test } from 'bun:test'
import { solveRidge } from '../../src/training/ridge.ts'

test('solveRidge: equals the normal equations', () => {
  // Two columns, three rows, ridge 1 and 2, weights 1, 2, 1: (XᵀWX + Λ) b = XᵀWt, solved by hand.
  const rows = [
    [1, 0],
    [1, 1],
    [0, 2],
  ].map(([first = 0, second = 0]) => ({
    columns: Int32Array.of(0, 1),
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
