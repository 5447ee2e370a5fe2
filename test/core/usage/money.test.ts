import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { TokenUsage } from '../../../src/core/chat/chat-events.ts'
import type { Prices } from '../../../src/core/models/models.ts'
import {
  costOf,
  fromUsd,
  highestCostOf,
  hourCacheCost,
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
const model = {
  pricing: {
    ...prices(2, 10, 0.0825, 2.5),
    longContext: { aboveInputTokens: 200_000, ...prices(4, 15, 0.4, null) },
  },
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
  expect(costOf(model, usage(1_000_000, 0, { cachedInputTokens: 0 }))).toBe(fromUsd(4))
  expect(costOf(model, usage(1_000, 500))).toBe(fromUsd(0.002 + 0.005))
  expect(costOf(model, usage(1_000, 0, { cachedInputTokens: 400, cacheWriteTokens: 100 }))).toBe(
    fromUsd((500 * 2 + 400 * 0.0825 + 100 * 2.5) / 1e6),
  )
  expect(costOf(model, usage(0, 0))).toBe(0)
})

test('costOf: applies the long-context price to the whole request above the threshold', () => {
  expect(priceTable(model.pricing, 200_000).input).toBe(fromUsd(2))
  expect(priceTable(model.pricing, 200_001)).toEqual({
    input: fromUsd(4),
    output: fromUsd(15),
    cachedInput: fromUsd(0.4),
    cacheWrite: fromUsd(4),
  })
})

test('costOf: rounds up once per request, and one token is never free', () => {
  const cheap = { pricing: { ...prices(0.000001, 0, null, null), longContext: null } }
  expect(costOf(cheap, usage(1, 0))).toBe(1)
  expect(costOf(cheap, usage(10_001, 0))).toBe(2)
})

test('costOf: limits parts of the input to the whole', () => {
  const whole = costOf(model, usage(100, 0, { cachedInputTokens: 100 }))
  expect(costOf(model, usage(100, 0, { cachedInputTokens: 900, cacheWriteTokens: 900 }))).toBe(whole)
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
      expect(costOf({ pricing: { ...some, longContext: null } }, used)).toBe(exact)
    }),
    { numRuns: 2_000 },
  )
})

test('highestCostOf: covers any division of the input into cached and written tokens', () => {
  fc.assert(
    fc.property(somePrices, someUsage, (some, used) => {
      const any = { pricing: { ...some, longContext: null } }
      expect(costOf(any, used)).toBeLessThanOrEqual(highestCostOf(any, used.inputTokens, used.outputTokens))
    }),
    { numRuns: 500 },
  )
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

test('hourCacheCost: charges a write for an hour at twice the input, once beside costOf', () => {
  const pricing = { input: 4, output: 20, cachedInput: 0.4, cacheWrite: 5, longContext: null }
  const written = usage(1_000, 0, { cacheWriteTokens: 600 })
  expect(hourCacheCost({ pricing }, written)).toBe(0)
  const kept = { ...written, hourCacheWriteTokens: 400 }
  expect(costOf({ pricing }, kept) + hourCacheCost({ pricing }, kept)).toBe(
    fromUsd((400 * 4 + 200 * 5 + 400 * 8) / 1_000_000),
  )
  // Never more of them than were written.
  expect(hourCacheCost({ pricing }, { ...kept, hourCacheWriteTokens: 9_000 })).toBe(fromUsd((600 * 3) / 1_000_000))
})

test('providerSearchCost: charges one cent per search', () => {
  expect(providerSearchCost(usage(0, 0))).toBe(0)
  expect(providerSearchCost({ ...usage(0, 0), providerSearches: 3 })).toBe(fromUsd(0.03))
})
