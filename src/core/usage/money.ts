/**
 * Money is an integer of micro-cents (1e-8 USD): it adds up exactly, in any order, on any machine. A request is rounded
 * up once, at its end.
 */
import type { TokenUsage } from '../chat/chat.ts'
import type { Model, Prices, Pricing } from '../models/models.ts'

export const microcentsPerUsd = 100_000_000
const tokensPerPriceUnit = 1_000_000

/** Micro-cents per million tokens, each an integer, none left open. */
export type PriceTable = {
  readonly input: number
  readonly output: number
  readonly cachedInput: number
  readonly cacheWrite: number
}

/** US dollars as micro-cents, to the nearest. Exact for any decimal of at most eight places below 20 million dollars. */
export function fromUsd(usd: number): number {
  return Math.round(usd * microcentsPerUsd)
}

/** Micro-cents as the decimal number of US dollars that JSON shows. */
export function toUsd(microcents: number): number {
  return microcents / microcentsPerUsd
}

/** The same, written out for a header: a number this small would show itself as `2.1e-7`. */
export function usdText(microcents: number): string {
  return toUsd(microcents).toFixed(8).replace(idleZeros, '')
}

const idleZeros = /\.?0+$/

/** The prices of a request whose input, cached tokens included, is this long: the long-context tier is all or nothing. */
export function priceTable(pricing: Pricing, inputTokens: number): PriceTable {
  const { longContext } = pricing
  const prices: Prices = longContext !== null && inputTokens > longContext.aboveInputTokens ? longContext : pricing
  let table = tables.get(prices)
  if (table === undefined) {
    table = {
      input: fromUsd(prices.input),
      output: fromUsd(prices.output),
      cachedInput: fromUsd(prices.cachedInput ?? prices.input),
      cacheWrite: fromUsd(prices.cacheWrite ?? prices.input),
    }
    tables.set(prices, table)
  }
  return table
}

/** Each request is priced five times over, and a model's prices stay what they are. */
const tables = new WeakMap<Prices, PriceTable>()

/**
 * What a request's tokens cost, in micro-cents, rounded up once. Token counts are non-negative integers; parts of the
 * input that claim to be more than the whole are cut to it.
 */
export function costOf(model: Pick<Model, 'pricing'>, usage: TokenUsage): number {
  const prices = priceTable(model.pricing, usage.inputTokens)
  const cached = Math.min(usage.cachedInputTokens, usage.inputTokens)
  const written = Math.min(usage.cacheWriteTokens, usage.inputTokens - cached)
  const fresh = usage.inputTokens - cached - written
  const total =
    fresh * prices.input +
    cached * prices.cachedInput +
    written * prices.cacheWrite +
    usage.outputTokens * prices.output
  // Below 2^53 every product and sum above was exact; above it, nothing here can be trusted.
  if (total <= Number.MAX_SAFE_INTEGER) return ceilingOfMillionth(total)
  return exactCost([
    [fresh, prices.input],
    [cached, prices.cachedInput],
    [written, prices.cacheWrite],
    [usage.outputTokens, prices.output],
  ])
}

/**
 * What the cache costs beyond `costOf`, in micro-cents: a write for an hour costs twice the input, and prices are those of a write for
 * five minutes. Only Anthropic has it. Source: Anthropic's pricing page, "Prompt caching".
 */
export function hourCacheCost(model: Pick<Model, 'pricing'>, usage: TokenUsage): number {
  const { hourCacheWriteTokens = 0, cacheWriteTokens, inputTokens } = usage
  const { input, cacheWrite } = priceTable(model.pricing, inputTokens)
  return ceilingOfMillionth(Math.min(hourCacheWriteTokens, cacheWriteTokens) * Math.max(0, 2 * input - cacheWrite))
}

/** Of one search that a provider runs, in micro-cents. Source: Anthropic's pricing page, "Web search tool": 10 USD per 1,000. */
const providerSearchPrice = fromUsd(0.01)

/** What the provider's own searches cost, in micro-cents. */
export function providerSearchCost({ providerSearches = 0 }: TokenUsage): number {
  return providerSearches * providerSearchPrice
}

/**
 * The most that so many tokens can cost: all input at the dearest of its prices, since nobody knows beforehand what will
 * be cached or written. What is reserved before the upstream is asked.
 */
export function highestCostOf(model: Pick<Model, 'pricing'>, inputTokens: number, outputTokens: number): number {
  const { input, cachedInput, cacheWrite } = priceTable(model.pricing, inputTokens)
  const written = cacheWrite > input && cacheWrite > cachedInput
  const cached = !written && cachedInput > input
  return costOf(model, {
    inputTokens,
    cachedInputTokens: cached ? inputTokens : 0,
    cacheWriteTokens: written ? inputTokens : 0,
    outputTokens,
    reasoningTokens: 0,
  })
}

/**
 * A millionth of a whole number of at most 2^53 - 1, rounded up. By remainder and not by division, whose quotient a double may
 * round to just below or above the truth.
 */
export function ceilingOfMillionth(total: number): number {
  const remainder = total % tokensPerPriceUnit
  return (total - remainder) / tokensPerPriceUnit + (remainder > 0 ? 1 : 0)
}

function exactCost(terms: readonly (readonly [tokens: number, price: number])[]): number {
  const unit = BigInt(tokensPerPriceUnit)
  const total = terms.reduce((sum, [tokens, price]) => sum + BigInt(tokens) * BigInt(price), 0n)
  return Number((total + unit - 1n) / unit)
}
