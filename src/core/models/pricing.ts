/**
 * Prices of a model: one table with the usual prices, and variants by time of day and service tier. A look-up compares numbers and
 * allocates nothing, because every request needs several.
 */
import { dayMs } from '../text/utc-days.ts'

/** Prices in USD per million tokens, as published; null = no separate price, so the input price applies. */
export type Prices = {
  readonly input: number
  readonly output: number
  readonly cachedInput: number | null
  readonly cacheWrite: number | null
}

/** `longContext` prices apply to the whole request once its input tokens (cached included) exceed `aboveInputTokens`. */
export type Rates = Prices & { readonly longContext: (Prices & { readonly aboveInputTokens: number }) | null }

/** Usual prices. The first variant whose conditions all hold replaces them; absent = none. */
export type Pricing = Rates & { readonly variants?: readonly PriceVariant[] }

type PriceVariant = Rates & {
  /** The tier as the provider names it; null = any. */
  readonly serviceTier: string | null
  /** `HH:MM-HH:MM` in UTC, the end excluded; an end that is not later is on the next day. Null = any. */
  readonly hoursUtc: readonly string[] | null
  /** Days in UTC on which the hours begin; null = any. */
  readonly days: readonly Weekday[] | null
  /** The same as minutes since Monday 00:00 UTC, from and to; null = at any time. */
  readonly minutes: readonly (readonly [number, number])[] | null
}

export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
type Weekday = (typeof weekdays)[number]

/** What the prices of an attempt depend on beside its tokens. */
export type PriceTerms = {
  /** Epoch milliseconds at which the attempt began. */
  readonly at: number
  /** Service tier; null = the provider's usual one, or unknown. */
  readonly tier: string | null
}

type Conditions = Partial<Pick<PriceVariant, 'serviceTier' | 'hoursUtc' | 'days'>>

/** Creates a variant. Absent conditions always hold. */
export function priceVariant(
  { serviceTier = null, hoursUtc = null, days = null }: Conditions,
  rates: Rates,
): PriceVariant {
  return { ...rates, serviceTier, hoursUtc, days, minutes: findMinutes(hoursUtc, days) }
}

const minuteMs = 60_000
const dayMinutes = 1_440
const weekMinutes = 7 * dayMinutes

function findMinutes(hoursUtc: readonly string[] | null, days: readonly Weekday[] | null): PriceVariant['minutes'] {
  if (hoursUtc === null && days === null) return null
  return (days ?? weekdays).flatMap(day =>
    (hoursUtc ?? ['00:00-00:00']).flatMap((hours): (readonly [number, number])[] => {
      const [from = 0, to = 0] = hours.split('-').map(minuteOfDay)
      const start = weekdays.indexOf(day) * dayMinutes + from
      const end = start + (to > from ? to - from : to - from + dayMinutes)
      return end <= weekMinutes
        ? [[start, end]]
        : [
            [start, weekMinutes],
            [0, end - weekMinutes],
          ]
    }),
  )
}

function minuteOfDay(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3))
}

/** The epoch began on a Thursday. */
function minuteOfWeek(epochMs: number): number {
  return Math.floor((epochMs + 3 * dayMs) / minuteMs) % weekMinutes
}

/** Returns rates with all prices changed, those of output perhaps in another way than those of input. */
export function scaledRates(rates: Rates, toInput: (price: number) => number, toOutput = toInput): Rates {
  const scaled = <P extends Prices>(prices: P): P => ({
    ...prices,
    input: toInput(prices.input),
    output: toOutput(prices.output),
    cachedInput: prices.cachedInput === null ? null : toInput(prices.cachedInput),
    cacheWrite: prices.cacheWrite === null ? null : toInput(prices.cacheWrite),
  })
  return { ...scaled(rates), longContext: rates.longContext && scaled(rates.longContext) }
}

/** Returns the rates of an attempt that began at this time and was served in this tier. */
export function ratesAt(pricing: Pricing, { at, tier }: PriceTerms): Rates {
  if (pricing.variants === undefined) return pricing
  for (const variant of pricing.variants)
    if ((variant.serviceTier === null || variant.serviceTier === tier) && isWithin(variant, at, 0)) return variant
  return pricing
}

/** Maximum of `TOTAL_TIMEOUT_MS`. */
export const maximumTotalMinutes = 60

/** The longest time from the choice of a model to its last attempt, with the work before the first attempt. */
const longestRequestMinutes = maximumTotalMinutes + 5

/** Names of the usual tier, in which a provider may serve a request that names another one. */
const usualTiers: ReadonlySet<string> = new Set(['default', 'standard', 'on_demand'])

/**
 * Returns whether a request that is sent on these terms can be billed at a variant: in its hours until the last attempt, and in any
 * tier unless it names one, because the provider's project settings then choose.
 */
export function canApply(variant: PriceVariant, { at, tier }: PriceTerms): boolean {
  const { serviceTier } = variant
  if (serviceTier !== null && tier !== null && serviceTier !== tier && !usualTiers.has(serviceTier)) return false
  return isWithin(variant, at, longestRequestMinutes)
}

/** Returns whether the hours of a variant include this time, or begin in the minutes after it. */
function isWithin({ minutes }: PriceVariant, at: number, after: number): boolean {
  if (minutes === null) return true
  const from = minuteOfWeek(at)
  const to = from + after
  for (const [start, end] of minutes) {
    if (start <= to && from < end) return true
    if (start + weekMinutes <= to) return true
  }
  return false
}

/** Returns whether a model has the price of a service tier of OpenAI's form: the usual one, or that of a variant. */
export function isPricedTier({ variants = [] }: Pricing, tier: unknown): boolean {
  return tier === 'auto' || tier === 'default' || variants.some(({ serviceTier }) => serviceTier === tier)
}

/** Returns whether the prices of a model cover the tier that a provider reports. */
export function coversTier(pricing: Pricing, tier: string): boolean {
  return usualTiers.has(tier) || isPricedTier(pricing, tier)
}

/** Returns whether a model has the price of any tier beside the usual one. */
export function hasTierPrices({ variants = [] }: Pricing): boolean {
  return variants.some(({ serviceTier }) => serviceTier !== null)
}

/** Returns the prices of a model as clients read them. */
export function pricingFields({ variants = [], ...rates }: Pricing) {
  return {
    ...rateFields(rates),
    variants: variants.map(variant => ({
      service_tier: variant.serviceTier,
      hours_utc: variant.hoursUtc === null ? null : [...variant.hoursUtc],
      days: variant.days === null ? null : [...variant.days],
      ...rateFields(variant),
    })),
  }
}

function rateFields(rates: Rates) {
  const { longContext } = rates
  return {
    ...priceFields(rates),
    long_context:
      longContext === null ? null : { above_input_tokens: longContext.aboveInputTokens, ...priceFields(longContext) },
  }
}

function priceFields(prices: Prices) {
  return {
    input_per_mtok: prices.input,
    output_per_mtok: prices.output,
    cached_input_per_mtok: prices.cachedInput,
    cache_write_per_mtok: prices.cacheWrite,
  }
}
