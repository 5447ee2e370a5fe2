import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { TokenUsage } from '../../../src/core/chat/chat-events.ts'
import {
  type Prices,
  type PriceTerms,
  type Pricing,
  priceVariant,
  ratesAt,
  weekdays,
} from '../../../src/core/models/pricing.ts'
import {
  fromUsd,
  getCost,
  getHighestCost,
  highestPrices,
  priceTable,
  providerSearchCost,
  toUsd,
  usdText,
} from '../../../src/core/usage/money.ts'

const prices = (input: number, output: number, cachedInput: number | null, cacheWrite: number | null): Prices => ({
  input,
  output,
  cachedInput,
  cacheWrite,
})
const pricing: Pricing = {
  ...prices(2, 10, 0.0825, 2.5),
  longContext: { aboveInputTokens: 200_000, ...prices(4, 15, 0.4, null) },
}
const usage = (inputTokens: number, outputTokens: number, parts: Partial<TokenUsage> = {}): TokenUsage => ({
  inputTokens,
  outputTokens,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  ...parts,
})

test('costOf: uses the published prices', () => {
  expect(getCost(pricing, usage(1_000_000, 0, { cachedInputTokens: 0 }))).toBe(fromUsd(4))
  expect(getCost(pricing, usage(1_000, 500))).toBe(fromUsd(0.002 + 0.005))
  expect(getCost(pricing, usage(1_000, 0, { cachedInputTokens: 400, cacheWriteTokens: 100 }))).toBe(
    fromUsd((500 * 2 + 400 * 0.0825 + 100 * 2.5) / 1e6),
  )
  expect(getCost(pricing, usage(0, 0))).toBe(0)
})

test('costOf: applies the long-context price to the whole request above the threshold', () => {
  expect(priceTable(pricing, 200_000).input).toBe(fromUsd(2))
  expect(priceTable(pricing, 200_001)).toEqual({
    input: fromUsd(4),
    output: fromUsd(15),
    cachedInput: fromUsd(0.4),
    cacheWrite: fromUsd(4),
    hourSurcharge: fromUsd(4),
  })
})

test('costOf: rounds up once per request, and one token is never free', () => {
  const cheap = { ...prices(0.000001, 0, null, null), longContext: null }
  expect(getCost(cheap, usage(1, 0))).toBe(1)
  expect(getCost(cheap, usage(10_001, 0))).toBe(2)
})

test('costOf: limits parts of the input to the whole', () => {
  const whole = getCost(pricing, usage(100, 0, { cachedInputTokens: 100 }))
  expect(getCost(pricing, usage(100, 0, { cachedInputTokens: 900, cacheWriteTokens: 900 }))).toBe(whole)
})

const price = fc.nat(2_000_000_000).map(hundredths => hundredths / 1e6)
const somePrices = fc.record({
  input: price,
  output: price,
  cachedInput: fc.option(price),
  cacheWrite: fc.option(price),
})
const someUsage = fc.record({
  inputTokens: fc.nat(20_000_000),
  outputTokens: fc.nat(2_000_000),
  cachedInputTokens: fc.nat(20_000_000),
  cacheWriteTokens: fc.nat(20_000_000),
  reasoningTokens: fc.nat(1_000),
})

test('costOf: equals exact bigint arithmetic', () => {
  fc.assert(
    fc.property(somePrices, someUsage, (some, used) => {
      const integer = (usd: number) => BigInt(Math.round(usd * 1e8))
      const cached = Math.min(used.cachedInputTokens, used.inputTokens)
      const written = Math.min(used.cacheWriteTokens, used.inputTokens - cached)
      const total =
        BigInt(used.inputTokens - cached - written) * integer(some.input) +
        BigInt(cached) * integer(some.cachedInput ?? some.input) +
        BigInt(written) * integer(some.cacheWrite ?? some.input) +
        BigInt(used.outputTokens) * integer(some.output)
      const exact = Number((total + 999_999n) / 1_000_000n)
      expect(getCost({ ...some, longContext: null }, used)).toBe(exact)
    }),
    { numRuns: 2_000 },
  )
})

test('highestCostOf: covers any division of the input into cached and written tokens', () => {
  fc.assert(
    fc.property(somePrices, someUsage, (some, used) => {
      const any = { ...some, longContext: null }
      expect(getCost(any, used)).toBeLessThanOrEqual(getHighestCost(any, used, { at: 0, tier: null }))
    }),
    { numRuns: 500 },
  )
})

const someRates = fc.record({
  input: price,
  output: price,
  cachedInput: fc.option(price),
  cacheWrite: fc.option(price),
  longContext: fc.option(
    somePrices.chain(own => fc.nat(2_000_000).map(aboveInputTokens => ({ ...own, aboveInputTokens }))),
  ),
})
const time = fc
  .nat(1_439)
  .map(minute => `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`)
const someTier = fc.constantFrom('flex', 'priority', 'batch')
const someVariant = fc
  .record({
    serviceTier: fc.option(someTier),
    hoursUtc: fc.option(
      fc.array(
        fc.tuple(time, time).map(pair => pair.join('-')),
        { minLength: 1, maxLength: 3 },
      ),
    ),
    days: fc.option(fc.subarray([...weekdays], { minLength: 1 })),
    rates: someRates,
  })
  .map(({ rates, ...conditions }) => priceVariant(conditions, rates))
const somePricing = fc
  .record({ rates: someRates, variants: fc.array(someVariant, { maxLength: 4 }) })
  .map(({ rates, variants }): Pricing => ({ ...rates, variants }))

const hourMs = 3_600_000

test('highestCostOf: covers the bill for every time, tier and length that a request can have', () => {
  fc.assert(
    fc.property(
      somePricing,
      someUsage,
      fc.record({
        at: fc.nat(5e12),
        asked: fc.option(someTier),
        answered: fc.option(someTier),
        waitMs: fc.nat(hourMs),
        fewer: fc.double({ min: 0, max: 1, noNaN: true }),
        hour: fc.nat(20_000_000),
      }),
      (some, most, { at, asked, answered, waitMs, fewer, hour }) => {
        const reserved: PriceTerms = { at, tier: asked }
        // A provider serves what was asked for, or in its usual tier; without a named tier its settings choose.
        const tier = asked === null || answered === asked ? answered : null
        const rates = ratesAt(some, { at: at + waitMs, tier })
        const used = { ...most, inputTokens: Math.floor(most.inputTokens * fewer), hourCacheWriteTokens: hour }
        const surcharge = highestPrices(some, most.inputTokens, reserved).hourSurcharge
        expect(getCost(rates, used)).toBeLessThanOrEqual(
          getHighestCost(some, most, reserved) + Math.ceil((most.inputTokens * surcharge) / 1e6),
        )
      },
    ),
    { numRuns: 3_000 },
  )
})

const deepseek: Pricing = {
  ...prices(0.15, 0.6, 0.003, null),
  longContext: null,
  variants: [
    priceVariant(
      { hoursUtc: ['01:00-04:00', '06:00-10:00'], days: ['mon', 'tue', 'wed', 'thu', 'fri'] },
      { ...prices(0.3, 1.2, 0.006, null), longContext: null },
    ),
  ],
}

test.each([
  ['Monday before the first window', '2026-11-23T00:59:59.999Z', 0.15],
  ['Monday at its start', '2026-11-23T01:00:00Z', 0.3],
  ['Monday at its end', '2026-11-23T04:00:00Z', 0.15],
  ['Friday in the second window', '2026-11-27T09:59:59Z', 0.3],
  ['Friday after it', '2026-11-27T10:00:00Z', 0.15],
  ['Saturday in the same hours', '2026-11-28T02:00:00Z', 0.15],
  ['Sunday in the same hours', '2026-11-29T07:00:00Z', 0.15],
])('ratesAt: returns the price of %s', (_, time, input) => {
  expect(ratesAt(deepseek, { at: Date.parse(time), tier: null }).input).toBe(input)
})

test('ratesAt: continues hours over midnight and over the end of the week', () => {
  const late = { ...prices(9, 9, null, null), longContext: null }
  const night: Pricing = { ...deepseek, variants: [priceVariant({ hoursUtc: ['22:00-02:00'], days: ['sun'] }, late)] }
  const inputAt = (time: string) => ratesAt(night, { at: Date.parse(time), tier: null }).input
  expect(['2026-11-29T21:59Z', '2026-11-29T22:00Z', '2026-11-30T01:59Z', '2026-11-30T02:00Z'].map(inputAt)).toEqual([
    0.15, 9, 9, 0.15,
  ])
  expect(inputAt('2026-11-29T01:00Z')).toBe(0.15)
})

test('highestPrices: counts hours that begin before the last possible attempt, and no later ones', () => {
  const highestAt = (time: string) => highestPrices(deepseek, 1, { at: Date.parse(time), tier: null }).input
  const times = ['2026-11-23T00:20Z', '2026-11-22T23:40Z', '2026-11-23T04:00Z', '2026-11-27T10:00Z']
  expect(times.map(highestAt)).toEqual([0.3, 0.15, 0.15, 0.15].map(fromUsd))
})

test('ratesAt: uses the variant of the served tier, and the usual prices for others', () => {
  const half = { ...prices(1, 5, 0.04, null), longContext: null }
  const tiered: Pricing = { ...pricing, variants: [priceVariant({ serviceTier: 'flex' }, half)] }
  expect(['flex', 'default', 'priority', null].map(tier => ratesAt(tiered, { at: 0, tier }).input)).toEqual([
    1, 2, 2, 2,
  ])
})

test('highestPrices: counts a more expensive tier unless the request names another one', () => {
  const double = { ...prices(4, 20, 0.2, null), longContext: null }
  const tiered: Pricing = { ...pricing, variants: [priceVariant({ serviceTier: 'priority' }, double)] }
  const inputFor = (tier: string | null) => highestPrices(tiered, 1, { at: 0, tier }).input
  expect([null, 'priority', 'default', 'flex'].map(inputFor)).toEqual([4, 4, 2.5, 2.5].map(fromUsd))
})

test('toUsd: converts back to the same micro-cents', () => {
  fc.assert(
    fc.property(fc.nat(2 ** 50), microcents => {
      expect(fromUsd(JSON.parse(JSON.stringify(toUsd(microcents))))).toBe(microcents)
    }),
  )
  expect(toUsd(1)).toBe(0.00000001)
  expect(toUsd(8_250_000)).toBe(0.0825)
})

test('usdText: writes dollars without an exponent and trailing zeros', () => {
  expect([0, 1, 21, 8_250_000, 100_000_000, 1_000_000_000_000].map(usdText)).toEqual([
    '0',
    '0.00000001',
    '0.00000021',
    '0.0825',
    '1',
    '10000',
  ])
})

test('getCost: charges a write for an hour at twice the input, rounded once with the rest', () => {
  const pricing = { input: 4, output: 20, cachedInput: 0.4, cacheWrite: 5, longContext: null }
  const written = usage(1_000, 0, { cacheWriteTokens: 600 })
  const kept = { ...written, hourCacheWriteTokens: 400 }
  expect(getCost(pricing, kept)).toBe(fromUsd((400 * 4 + 200 * 5 + 400 * 8) / 1_000_000))
  // Never more of them than were written.
  expect(getCost(pricing, { ...kept, hourCacheWriteTokens: 9_000 })).toBe(fromUsd((400 * 4 + 600 * 8) / 1_000_000))
  // Fractions of a micro-cent: 1.2 of input, 0.5 of the write and 0.3 of the surcharge make 2, not 3.
  const cheap = { ...pricing, input: 0.004, cacheWrite: 0.005 }
  expect(getCost(cheap, usage(4, 0, { cacheWriteTokens: 1, hourCacheWriteTokens: 1 }))).toBe(2)
})

test('providerSearchCost: charges one cent per search', () => {
  expect(providerSearchCost(usage(0, 0))).toBe(0)
  expect(providerSearchCost({ ...usage(0, 0), providerSearches: 3 })).toBe(fromUsd(0.03))
})
