import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Strategy, strategies } from '../../src/core/chat/chat.ts'
import { blendedPrice, fullName, type Model } from '../../src/core/models/models.ts'
import { type Level, levels } from '../../src/models/capability-levels.ts'
import { catalog } from '../../src/models/catalog.ts'
import { alternateProviders } from '../../src/models/insert-sorted.ts'
import {
  describeScore,
  type Figures,
  getWeights,
  levelWeights,
  publishedFigures,
  type ScoringMode,
  score,
  scoreComponents,
  speedScore,
  strategyWeights,
  withoutFailures,
} from '../../src/models/scoring.ts'

const choice = (given: Partial<ScoringMode>): ScoringMode => ({
  strategy: null,
  level: 'middle',
  terms: { at: 0, tier: null },
  ...given,
})
const best = (given: Partial<ScoringMode>, models: readonly Model[] = catalog): Model => {
  const [first] = score(models, choice(given))
  if (first === undefined) throw new Error('no model')
  return first.model
}

/** Any set of models: figures and prices of all sizes. */
const offers = fc.array(
  fc.record({
    quality: fc.double({ min: 0, max: 1, noNaN: true }),
    firstTokenMs: fc.integer({ min: 50, max: 200_000 }),
    tokensPerSecond: fc.integer({ min: 1, max: 2_000 }),
    input: fc.double({ min: 0.01, max: 30, noNaN: true }),
    output: fc.double({ min: 0.01, max: 90, noNaN: true }),
  }),
  { minLength: 1, maxLength: 12 },
)
const [pattern] = catalog
function offered(rows: typeof offers extends fc.Arbitrary<infer R> ? R : never): Model[] {
  if (pattern === undefined) throw new Error('the catalogue is empty')
  return rows.map(({ input, output, ...figures }, at) => ({
    ...pattern,
    id: `m${at}`,
    pricing: { ...pattern.pricing, input, output },
    figures: { ...figures, estimated: false },
  }))
}

describe('score', () => {
  test("ranks the catalog's extreme first for quality, cost and speed", () => {
    expect(best({ strategy: 'quality' }).figures.quality).toBe(Math.max(...catalog.map(model => model.figures.quality)))
    expect(blendedPrice(best({ strategy: 'cost' }).pricing)).toBe(
      Math.min(...catalog.map(model => blendedPrice(model.pricing))),
    )
    expect(speedScore(best({ strategy: 'speed' }).figures)).toBe(
      Math.max(...catalog.map(model => speedScore(model.figures))),
    )
  })

  test('ranks a cheap model first for light prompts and a capable one for strong prompts', () => {
    const simple = best({ level: 'light' })
    const complex = best({ level: 'strong' })
    expect(simple.tier).toBe('economy')
    expect(complex.figures.quality).toBeGreaterThan(simple.figures.quality + 0.3)
  })

  test('never decreases quality with the level, or from balanced to quality, for any models', () => {
    fc.assert(
      fc.property(offers, rows => {
        const models = offered(rows)
        const rising = [...levels.map(level => best({ level }, models)), best({ strategy: 'quality' }, models)]
        const qualities = rising.map(model => model.figures.quality)
        expect(qualities).toEqual(qualities.toSorted((a, b) => a - b))
        const balanced = best({ strategy: 'balanced' }, models).figures.quality
        expect(balanced).toBeLessThanOrEqual(best({ strategy: 'quality' }, models).figures.quality)
      }),
      { numRuns: 300 },
    )
  })

  test('ignores the prompt when a strategy is given', () => {
    for (const strategy of strategies)
      expect(score(catalog, choice({ strategy, level: 'light' }))).toEqual(
        score(catalog, choice({ strategy, level: 'strong' })),
      )
  })

  test('rises for measured speed, falls for failures, and equals the sum of its components', () => {
    const measured = (change: Partial<Figures>) => (model: Model) =>
      model === slow ? { ...publishedFigures(model), ...change } : publishedFigures(model)
    const slow = best({ strategy: 'quality' })
    const getScore = (change: Partial<Figures>, given: Partial<ScoringMode>) =>
      score(catalog, choice(given), measured(change)).find(({ model }) => model === slow)?.score ?? 0
    for (const given of [{ strategy: 'balanced' }, { strategy: 'speed' }, { level: 'light' }] as const) {
      const quick = { firstTokenMs: 300, tokensPerSecond: 500 }
      expect(getScore(quick, given)).toBeGreaterThan(getScore({}, given))
      const failing = { errorRate: 0.3, tries: 20 }
      expect(getScore(failing, given)).toBeCloseTo(0.7 * getScore({}, given), 9)
      const parts = scoreComponents(slow, choice(given), { ...publishedFigures(slow), ...failing })
      expect(Object.values(parts).reduce((sum, part) => sum + part, 0)).toBeCloseTo(getScore(failing, given), 9)
    }
    expect(
      score(catalog, choice({ strategy: 'speed' }), measured({ firstTokenMs: 5, tokensPerSecond: 5_000 }))[0]?.model,
    ).toBe(slow)
  })

  test('stays between 0 and 1, independent of the order of models', () => {
    fc.assert(
      fc.property(
        fc.shuffledSubarray([...catalog], { minLength: catalog.length }),
        fc.constantFrom<Level>(...levels),
        fc.constantFrom(null, ...strategies),
        (shuffled, level, strategy) => {
          const given = choice({ strategy, level })
          const scored = score(shuffled, given)
          expect(scored.map(({ model }) => fullName(model))).toEqual(
            score(catalog, given).map(({ model }) => fullName(model)),
          )
          for (const entry of scored) expect(entry.score).toBeWithin(0, 1.000001)
        },
      ),
      { numRuns: 50 },
    )
  })

  test('ranks like a list that was never ranked before, after any changes of figures, prices and mode', () => {
    const measured = new Map<Model, Figures>()
    const getFigures = (model: Model) => measured.get(model) ?? publishedFigures(model)
    const changes = fc.record({ firstTokenMs: fc.nat(9_000), errorRate: fc.constantFrom(0, 0.3, 1) })
    const modes = fc.constantFrom<(Level | Strategy)[]>(...levels, ...strategies)
    fc.assert(
      fc.property(fc.constantFrom(...catalog), changes, modes, fc.nat(6), (model, change, mode, day) => {
        measured.set(model, { ...getFigures(model), ...change })
        const strategy = strategies.find(item => item === mode) ?? null
        const level = levels.find(item => item === mode) ?? 'light'
        const given = choice({ strategy, level, terms: { at: Date.UTC(2026, 10, day, day * 4), tier: null } })
        expect(score(catalog, given, getFigures)).toEqual(score([...catalog], given, getFigures))
      }),
      { numRuns: 300 },
    )
  })

  test('uses weights with sum 1', () => {
    for (const weights of [...Object.values(strategyWeights), ...Object.values(levelWeights)])
      expect(weights.quality + weights.cost + weights.speed).toBeCloseTo(1, 9)
    expect(getWeights(choice({ strategy: 'balanced', level: 'strong' }))).toEqual(strategyWeights.balanced)
  })

  test('describes a score with figures and weights', () => {
    const given = choice({ strategy: 'balanced' })
    const { figures } = best(given)
    expect(describeScore(best(given), given, withoutFailures(figures))).toMatch(
      /^quality \d+ × 40 %, cost \d+ × 35 %, speed \d+ × 25 %$/,
    )
    expect(describeScore(best(given), given, { ...withoutFailures(figures), errorRate: 0.2 })).toEndWith(
      'of which 20 % are lost to failures',
    )
  })
})

describe('alternateProviders', () => {
  test('alternates like repeated selection for any scores', () => {
    const providers = fc.constantFrom('openai', 'anthropic', 'google', 'own')
    const lists = fc
      .array(fc.tuple(providers, fc.double({ min: 0, max: 0.6, noNaN: true })), { maxLength: 14 })
      .map(rows => rows.toSorted(([, left], [, right]) => right - left))
    fc.assert(
      fc.property(lists, fc.nat({ max: 8 }), (rows, count) => {
        const ordered = rows.map(([provider, score]) => ({ model: { ...best({}), provider }, score }))
        const left = [...ordered]
        const expected: typeof ordered = []
        const used = new Set<string>()
        while (expected.length < count && left.length > 0) {
          const highest = left[0]?.score ?? 0
          const fresh = left.findIndex(({ model, score }) => !used.has(model.provider) && highest - score <= 0.15)
          expected.push(...left.splice(Math.max(0, fresh), 1))
          used.add(expected.at(-1)?.model.provider ?? '')
          if (left.every(({ model }) => used.has(model.provider))) used.clear()
        }
        expect(
          alternateProviders(ordered, count).map(({ model }) => ordered.findIndex(item => item.model === model)),
        ).toEqual(expected.map(entry => ordered.indexOf(entry)))
      }),
      { numRuns: 500 },
    )
  })
})
