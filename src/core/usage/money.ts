/**
 * Money is an integer of micro-cents (1e-8 USD), so that sums are exact in any order on any machine. A request is
 * rounded up once, at settlement.
 */
import type { ResponseSummary, TokenUsage } from '../chat/chat-events.ts'
import { canApply, type Prices, type PriceTerms, type Pricing, type Rates } from '../models/pricing.ts'
import { remembered } from '../text/recent-map.ts'
import type { CompletedUsage } from '../validation/errors.ts'
import type { UsageRecord } from './usage-record.ts'

export const microcentsPerUsd = 100_000_000
const tokensPerPriceUnit = 1_000_000

/** Micro-cents per million tokens, all integers. */
type PriceTable = {
  readonly input: number
  readonly output: number
  readonly cachedInput: number
  readonly cacheWrite: number
  /** Of a cache write for an hour, beyond `cacheWrite`. */
  readonly hourSurcharge: number
}

/** Returns US dollars as micro-cents, rounded. Exact for decimals with up to eight places below 20 million dollars. */
export function fromUsd(usd: number): number {
  return Math.round(usd * microcentsPerUsd)
}

/** Returns micro-cents as the decimal US dollars used in JSON. */
export function toUsd(microcents: number): number {
  return microcents / microcentsPerUsd
}

/** Returns the gateway's own fields in the usage of a response: the same in all API forms. */
export function shownCost({ record, progress: { continued } }: Pick<ResponseSummary, 'record' | 'progress'>) {
  const { billed_microcents: billed, hedge_microcents: hedge, cache_saved_microcents: cacheSaved } = record
  return {
    cost_usd: toUsd(billed),
    ...(hedge === undefined ? {} : { hedge_cost_usd: toUsd(hedge) }),
    ...(cacheSaved === undefined ? {} : { cache_saved_usd: toUsd(cacheSaved) }),
    ...(continued.length === 0 ? {} : { continued: [...continued] }),
  }
}

/** Returns the usage of a completed request for its client. */
export function toCompletedUsage(
  record: Pick<UsageRecord, 'input_tokens' | 'output_tokens' | 'billed_microcents' | 'estimated'>,
): CompletedUsage {
  const { input_tokens, output_tokens, billed_microcents, estimated } = record
  const total_tokens = input_tokens + output_tokens
  return { input_tokens, output_tokens, total_tokens, cost_usd: toUsd(billed_microcents), estimated }
}

/**
 * Returns micro-cents as US dollars in decimal notation for a header; JavaScript would print small numbers as `2.1e-7`.
 */
export function usdText(microcents: number): string {
  return toUsd(microcents).toFixed(8).replace(idleZeros, '')
}

/** Returns micro-cents as `$1.50`, for people: with eight decimal places unless whole cents suffice. */
export function shownUsd(microcents: number): string {
  return `$${toUsd(microcents).toFixed(microcents % 1_000_000 === 0 ? 2 : 8)}`
}

/** Returns micro-cents as US dollars with eight decimal places and no exponent, which spreadsheets would round. */
export function decimalUsd(microcents: number): string {
  if (microcents < 0) return `-${decimalUsd(-microcents)}`
  const whole = Math.floor(microcents / microcentsPerUsd)
  return `${whole}.${String(microcents % microcentsPerUsd).padStart(8, '0')}`
}

const idleZeros = /\.?0+$/

/**
 * Returns the prices for a request with this many input tokens (cached included). The long-context tier applies to the
 * whole request.
 */
export function priceTable(rates: Rates, inputTokens: number): PriceTable {
  const { longContext } = rates
  return getTable(longContext !== null && inputTokens > longContext.aboveInputTokens ? longContext : rates)
}

/** Remembered, since each request is priced five times and prices do not change. */
const getTable = remembered((prices: Prices): PriceTable => {
  const [input, cacheWrite] = [fromUsd(prices.input), fromUsd(prices.cacheWrite ?? prices.input)]
  return {
    input,
    output: fromUsd(prices.output),
    cachedInput: fromUsd(prices.cachedInput ?? prices.input),
    cacheWrite,
    // A cache write for an hour costs twice the input, and prices are those of a write for five minutes. Only models of
    // Anthropic have it. Source: Anthropic's pricing page, "Prompt caching".
    hourSurcharge: Math.max(0, 2 * input - cacheWrite),
  }
})

type Term = readonly [tokens: number, price: number]

/**
 * Returns uncached input, cached input, cache writes, and those of them for an hour. Token counts are non-negative integers; parts of
 * the input that exceed the whole are limited to it.
 */
function splitInput({ inputTokens, cachedInputTokens, cacheWriteTokens, hourCacheWriteTokens = 0 }: TokenUsage) {
  const cached = Math.min(cachedInputTokens, inputTokens)
  const written = Math.min(cacheWriteTokens, inputTokens - cached)
  return { fresh: inputTokens - cached - written, cached, written, hour: Math.min(hourCacheWriteTokens, written) }
}

/** Returns the cost of tokens in micro-cents, rounded up once. */
export function getCost(rates: Rates, usage: TokenUsage): number {
  const prices = priceTable(rates, usage.inputTokens)
  const { fresh, cached, written, hour } = splitInput(usage)
  const total =
    fresh * prices.input +
    cached * prices.cachedInput +
    written * prices.cacheWrite +
    hour * prices.hourSurcharge +
    usage.outputTokens * prices.output
  // Below 2^53 all products and sums above are exact; beyond it they are not.
  if (total <= Number.MAX_SAFE_INTEGER) return ceilingOfMillionth(total)
  return exactCost([
    [fresh, prices.input],
    [cached, prices.cachedInput],
    [written, prices.cacheWrite],
    [hour, prices.hourSurcharge],
    [usage.outputTokens, prices.output],
  ])
}

/**
 * Returns the cost of uncached input, cached input, cache writes (with those for an hour) and output in micro-cents, each
 * rounded. They explain a cost: only `getCost` is billed.
 */
export function costParts(rates: Rates, usage: TokenUsage): [number, number, number, number] {
  const prices = priceTable(rates, usage.inputTokens)
  const { fresh, cached, written, hour } = splitInput(usage)
  const rounded = (cost: number) => Math.round(cost / tokensPerPriceUnit)
  return [
    rounded(fresh * prices.input),
    rounded(cached * prices.cachedInput),
    rounded(written * prices.cacheWrite + hour * prices.hourSurcharge),
    rounded(usage.outputTokens * prices.output),
  ]
}

/**
 * Returns what a prompt cache saved, in micro-cents: the cost without it minus the cost with it. Negative if writing cost
 * more than reading saved; null = nothing was read or written.
 */
export function savedByCache(rates: Rates, usage: TokenUsage): number | null {
  if (usage.cachedInputTokens + usage.cacheWriteTokens === 0) return null
  const uncached = getCost(rates, { ...usage, cachedInputTokens: 0, cacheWriteTokens: 0 })
  return uncached - getCost(rates, usage)
}

/** Of one search that a provider runs, in micro-cents. Source: Anthropic's pricing page, "Web search tool": 10 USD per 1,000. */
const providerSearchPrice = fromUsd(0.01)

/** What the provider's own searches cost, in micro-cents. */
export function providerSearchCost({ providerSearches = 0 }: Pick<TokenUsage, 'providerSearches'>): number {
  return providerSearches * providerSearchPrice
}

/** The highest prices at which a request can be billed, in micro-cents per million tokens. */
type HighestPrices = {
  /** Of fresh, cached or written input: cache hits and writes are unknown before the response. */
  input: number
  output: number
  /** Of a cache write for an hour, beyond `input`. */
  hourSurcharge: number
}

/**
 * Returns the highest prices that can apply to a request of up to this many input tokens: the usual ones and those of each variant
 * in whose hours and tier it can be served, below and above the long-context threshold.
 */
export function highestPrices(pricing: Pricing, inputTokens: number, terms: PriceTerms): Readonly<HighestPrices> {
  const highest = { input: 0, output: 0, hourSurcharge: 0 }
  raise(highest, pricing, inputTokens)
  if (pricing.variants !== undefined)
    for (const variant of pricing.variants) if (canApply(variant, terms)) raise(highest, variant, inputTokens)
  return highest
}

function raise(highest: HighestPrices, rates: Rates, inputTokens: number): void {
  const { longContext } = rates
  raiseBy(highest, getTable(rates))
  if (longContext !== null && inputTokens > longContext.aboveInputTokens) raiseBy(highest, getTable(longContext))
}

function raiseBy(highest: HighestPrices, table: PriceTable): void {
  highest.input = Math.max(highest.input, table.input, table.cachedInput, table.cacheWrite)
  highest.output = Math.max(highest.output, table.output)
  highest.hourSurcharge = Math.max(highest.hourSurcharge, table.hourSurcharge)
}

/** Returns the maximum cost of these tokens, which is reserved before the call. */
export function getHighestCost(
  pricing: Pricing,
  { inputTokens, outputTokens }: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>,
  terms: PriceTerms,
): number {
  const { input, output } = highestPrices(pricing, inputTokens, terms)
  const total = inputTokens * input + outputTokens * output
  if (total <= Number.MAX_SAFE_INTEGER) return ceilingOfMillionth(total)
  return exactCost([
    [inputTokens, input],
    [outputTokens, output],
  ])
}

/**
 * Returns a millionth of an integer up to 2^53 - 1, rounded up. Uses the remainder, because a division may round to the
 * wrong side.
 */
export function ceilingOfMillionth(total: number): number {
  const remainder = total % tokensPerPriceUnit
  return (total - remainder) / tokensPerPriceUnit + (remainder > 0 ? 1 : 0)
}

function exactCost(terms: readonly Term[]): number {
  const unit = BigInt(tokensPerPriceUnit)
  const total = terms.reduce((sum, [tokens, price]) => sum + BigInt(tokens) * BigInt(price), 0n)
  return Number((total + unit - 1n) / unit)
}
