import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { catalogue } from '../../src/core/catalogue.ts'
import { strategies } from '../../src/core/chat.ts'
import { blendedPrice, fullName, type Model } from '../../src/core/models.ts'
import {
  type Choice,
  diversify,
  explain,
  quickness,
  score,
  strategyWeights,
  weightsOf,
} from '../../src/core/scoring.ts'

const choice = (given: Partial<Choice>): Choice => ({ strategy: null, complexity: 0.5, testMode: false, ...given })
const best = (given: Partial<Choice>): Model => {
  const [first] = score(catalogue, choice(given))
  if (first === undefined) throw new Error('no model')
  return first.model
}

describe('score', () => {
  test('quality, cost and speed each take the extreme of the catalogue', () => {
    expect(best({ strategy: 'quality' }).figures.quality).toBe(
      Math.max(...catalogue.map(model => model.figures.quality)),
    )
    expect(blendedPrice(best({ strategy: 'cost' }).pricing)).toBe(
      Math.min(...catalogue.map(model => blendedPrice(model.pricing))),
    )
    expect(quickness(best({ strategy: 'speed' }))).toBe(Math.max(...catalogue.map(quickness)))
  })

  test('a simple prompt goes to a cheap model, a complex one to a capable one', () => {
    const simple = best({ complexity: 0 })
    const complex = best({ complexity: 1 })
    expect(simple.tier).toBe('economy')
    expect(complex.figures.quality).toBeGreaterThan(simple.figures.quality + 0.3)
  })

  test('quality never falls as prompts get harder', () => {
    let last = 0
    for (let step = 0; step <= 20; step++) {
      const { quality } = best({ complexity: step / 20 }).figures
      expect(quality).toBeGreaterThanOrEqual(last)
      last = quality
    }
  })

  test('balanced and the other strategies ignore the prompt', () => {
    for (const strategy of strategies)
      expect(score(catalogue, choice({ strategy, complexity: 0 }))).toEqual(
        score(catalogue, choice({ strategy, complexity: 1 })),
      )
  })

  test('test mode never brings in a premium model', () => {
    for (const strategy of [null, ...strategies])
      for (const { model } of score(catalogue, choice({ strategy, complexity: 1, testMode: true })))
        expect(model.tier).not.toBe('premium')
  })

  test('does not depend on the order of the models, and every score is between 0 and 1', () => {
    fc.assert(
      fc.property(
        fc.shuffledSubarray([...catalogue], { minLength: catalogue.length }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom(null, ...strategies),
        (shuffled, complexity, strategy) => {
          const given = choice({ strategy, complexity })
          const scored = score(shuffled, given)
          expect(scored.map(({ model }) => fullName(model))).toEqual(
            score(catalogue, given).map(({ model }) => fullName(model)),
          )
          for (const entry of scored) expect(entry.score).toBeWithin(0, 1.000001)
        },
      ),
      { numRuns: 50 },
    )
  })

  test('weights are shares of one', () => {
    for (const weights of [
      ...Object.values(strategyWeights),
      ...[0, 0.3, 1].map(complexity => weightsOf(choice({ complexity }))),
    ])
      expect(weights.quality + weights.cost + weights.speed).toBeCloseTo(1, 9)
  })

  test('an explanation names figures and weights', () => {
    expect(explain(best({ strategy: 'balanced' }), choice({ strategy: 'balanced' }))).toMatch(
      /^quality \d+ × 40 %, cost \d+ × 35 %, speed \d+ × 25 %$/,
    )
  })
})

describe('diversify', () => {
  test('keeps the best first and brings the next from another provider where scores are near', () => {
    for (const strategy of [null, ...strategies]) {
      const ordered = score(catalogue, choice({ strategy }))
      const [first, second] = diversify(ordered, 4)
      expect(first).toBe(ordered[0])
      const rival = ordered.find(({ model }) => model.provider !== first?.model.provider)
      if ((ordered[1]?.score ?? 0) - (rival?.score ?? 0) <= 0.15)
        expect(second?.model.provider).not.toBe(first?.model.provider)
    }
  })

  test('loses and repeats nobody', () => {
    const ordered = score(catalogue, choice({}))
    expect(new Set(diversify(ordered, 100).map(({ model }) => fullName(model))).size).toBe(catalogue.length)
    expect(diversify(ordered, 2).length).toBe(2)
    expect(diversify([], 2)).toEqual([])
  })
})
