import { describe, expect, test } from 'bun:test'
import { countUses, type Example, probabilities, quantised, train } from '../../src/training/linear.ts'

/** Creates texts whose class is in slot 0 or 1, with noise in slots 2 to 9. */
function separable(count: number): Example[] {
  return Array.from({ length: count }, (_, text) => {
    const is = text % 2
    const slots = Int32Array.of(is, 2 + (Math.imul(text, 0x9e3779b1) >>> 29))
    return { slots, values: Float32Array.of(1, 1), classes: [is], weight: 1 }
  })
}

const converge = (examples: readonly Example[], classes: number) =>
  train(examples, { size: 10, classes, ridge: 0.1, steps: 50 })

describe.each([1, 2])('train with %p column(s)', classes => {
  test('separates the classes', () => {
    const weights = converge(separable(200), classes)
    const chances = new Float64Array(classes)
    for (const example of separable(50)) {
      probabilities(weights, example, classes, chances)
      const said = classes === 1 ? Math.round(chances[0] ?? 0) : chances.indexOf(Math.max(...chances))
      expect(said).toBe(example.classes[0] ?? -1)
    }
  })

  test('returns the same weights each time', () => {
    expect(converge(separable(100), classes)).toEqual(converge(separable(100), classes))
  })
})

test('countUses: counts the examples that have each slot', () => {
  const uses = countUses(separable(100), 10)
  expect(uses.slice(0, 2)).toEqual(Float64Array.of(50, 50))
  expect(uses.reduce((sum, count) => sum + count, 0)).toBe(200)
})

test('train: treats a label with several classes as none of the others', () => {
  const examples = separable(200).map(example => (example.classes[0] === 1 ? { ...example, classes: [1, 2] } : example))
  const chances = new Float64Array(3)
  probabilities(converge(examples, 3), { slots: Int32Array.of(1), values: Float32Array.of(1) }, 3, chances)
  expect(chances[0]).toBeLessThan(0.2)
})

test('train: ends where no weight reduces the loss', () => {
  const examples = separable(100)
  const loss = (weights: Float32Array) => {
    const chance = new Float64Array(1)
    let sum = 0
    for (const example of examples) {
      probabilities(weights, example, 1, chance)
      sum -= Math.log(example.classes[0] === 1 ? (chance[0] ?? 0) : 1 - (chance[0] ?? 0))
    }
    return sum + 0.5 * weights.reduce((squares, weight) => squares + weight * weight, 0)
  }
  const weights = train(examples, { size: 10, classes: 1, ridge: 1, steps: 100 })
  for (let place = 0; place < 10; place++)
    for (const step of [-0.05, 0.05]) {
      const moved = weights.map((weight, index) => (index === place ? weight + step : weight))
      expect(loss(moved)).toBeGreaterThan(loss(weights))
    }
})

test('quantised: deviates at most half a step and clips at the limit', () => {
  const { scale, bytes } = quantised(Float32Array.of(0.5, -1, 1.9, 40), 2)
  expect(scale).toBeCloseTo(2 / 127, 9)
  expect(Array.from(bytes, byte => byte * scale)).toEqual(
    [0.5, -1, 1.9, 2].map(value => Math.round(value / scale) * scale),
  )
})

test('train: equals the normal equations when the loss is squared', () => {
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
  const weights = train(examples, {
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
