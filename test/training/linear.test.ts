import { describe, expect, test } from 'bun:test'
import { getFold, seededRandom, shuffled } from '../../src/training/folds.ts'
import { type Example, probabilities, quantised, train, trainLbfgs } from '../../src/training/linear.ts'

/** Creates texts whose class is in slot 0 or 1, with noise in slots 2 to 9. */
function separable(count: number): Example[] {
  const random = seededRandom(3)
  return Array.from({ length: count }, () => {
    const is = random() < 0.5 ? 0 : 1
    return { slots: Int32Array.of(is, 2 + Math.floor(random() * 8)), classes: [is], weight: 1 }
  })
}

const converge = (examples: readonly Example[], classes: number) =>
  trainLbfgs(examples, { size: 10, classes, ridge: 0.1, steps: 50 })
const learners = [
  [
    'train',
    1,
    (examples: readonly Example[]) => train(examples, { size: 10, epochs: 10, rate: 0.3, decay: 1e-4, seed: 1 }),
  ],
  ['trainLbfgs', 1, (examples: readonly Example[]) => converge(examples, 1)],
  ['trainLbfgs', 2, (examples: readonly Example[]) => converge(examples, 2)],
] as const

describe.each(learners)('%s with %p column(s)', (_, classes, learn) => {
  test('separates the classes', () => {
    const weights = learn(separable(200))
    const chances = new Float64Array(classes)
    for (const example of separable(50)) {
      probabilities(weights, example, classes, chances)
      const said = classes === 1 ? Math.round(chances[0] ?? 0) : chances.indexOf(Math.max(...chances))
      expect(said).toBe(example.classes[0] ?? -1)
    }
  })

  test('returns the same weights each time', () => {
    expect(learn(separable(100))).toEqual(learn(separable(100)))
  })
})

test('trainLbfgs: treats a label with several classes as none of the others', () => {
  const examples = separable(200).map(example => (example.classes[0] === 1 ? { ...example, classes: [1, 2] } : example))
  const chances = new Float64Array(3)
  probabilities(converge(examples, 3), { slots: Int32Array.of(1) }, 3, chances)
  expect(chances[0]).toBeLessThan(0.2)
})

test('trainLbfgs: ends where no weight reduces the loss', () => {
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
  const weights = trainLbfgs(examples, { size: 10, classes: 1, ridge: 1, steps: 100 })
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

test('foldOf: ignores case and white space and balances the folds', () => {
  expect(getFold('What is  LOVE?\n', 5)).toBe(getFold('what is love?', 5))
  const sizes = [0, 0, 0, 0, 0]
  for (let text = 0; text < 5_000; text++) {
    const fold = getFold(`text ${text}`, 5)
    sizes[fold] = (sizes[fold] ?? 0) + 1
  }
  for (const size of sizes) expect(Math.abs(size - 1_000)).toBeLessThan(150)
})

test('shuffled: contains every number once', () => {
  expect(Array.from(shuffled(100, seededRandom(1))).toSorted((left, right) => left - right)).toEqual(
    Array.from({ length: 100 }, (_, index) => index),
  )
})
