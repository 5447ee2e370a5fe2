import { expect, test } from 'bun:test'
import { trainLbfgs } from '../../src/training/linear.ts'

test('trainLbfgs: equals the normal equations when the loss is squared', () => {
  // Two columns, three rows, ridge 1 and 2, weights 1, 2, 1: (XᵀWX + Λ) b = XᵀWt, solved by hand.
  const examples = [
    { row: [1, 0], target: 1, weight: 1 },
    { row: [1, 1], target: 2, weight: 2 },
    { row: [0, 2], target: 3, weight: 1 },
  ].map(({ row, target, weight }) => ({
    slots: Int32Array.of(0, 1),
    values: Float32Array.from(row),
    classes: [target],
    weight,
  }))
  const weights = trainLbfgs(examples, {
    size: 2,
    classes: 1,
    ridge: Float64Array.of(1, 2),
    isSquared: true,
    steps: 50,
  })
  // [[4, 2], [2, 8]] b = [5, 10]
  expect(weights[0]).toBeCloseTo(20 / 28, 3)
  expect(weights[1]).toBeCloseTo(30 / 28, 3)
})
