/** Cost of a request: the upstream's own token counts, estimates for missing ones, and at most the reservation. */

import type { ChatRequest } from '../core/chat/chat.ts'
import type { ReportedUsage, TokenUsage } from '../core/chat/chat-events.ts'
import { requestedTier } from '../core/chat/provider-features.ts'
import type { Caller } from '../core/limits/plans.ts'
import type { Catalog, Model } from '../core/models/models.ts'
import { type PriceTerms, type Rates, ratesAt, scaledRates } from '../core/models/pricing.ts'
import { getCost, providerSearchCost, savedByCache } from '../core/usage/money.ts'
import type { UnpricedKind } from '../core/usage/usage-record.ts'
import type { Reservation } from '../limits/meter.ts'
import { estimateTokens, likelyInputTokens } from '../text/tokens/tokens.ts'
import { billedResponse, cutParts, type Progress, unbilledResponses } from './progress.ts'
import type { Route } from './routing/route.ts'
import { findUnpriced, reportedTier, worstKind } from './unpriced.ts'
import type { UpstreamResponse } from './upstream-response.ts'

/** The baseline of one request. Money is an integer of 1e-8 USD. */
export type BaselineCost = {
  /** `provider/model`. */
  readonly model: string
  readonly microcents: number
  /** Input tokens that it would have read from its cache and written to it. */
  readonly cached: number
  readonly written: number
  /** Its cost minus what was paid; negative if that was more. */
  readonly saved: number
}

/** Settled cost of a request. Money is integers of 1e-8 USD. */
export type SettledCost = {
  /** The response that is billed; null = none. */
  readonly response: UpstreamResponse | null
  /** The model that served; null = none. */
  readonly model: Model | null
  /** Prices at which the response is billed; null = it costs nothing. */
  readonly rates: Rates | null
  readonly usage: TokenUsage
  readonly estimated: boolean
  /** Cost of the whole usage, and of the responses that are not billed; above `billed` by the shortfall. */
  readonly owed: number
  readonly billed: number
  /** Components of `billed`. */
  readonly search: number
  readonly fetch: number
  readonly hedge: number
  /** Parts of a cut text before `response`, which are billed. */
  readonly parts: readonly PartCost[]
  /** Catalog cost of calls with own keys of the account, which is not billed; null = there were none. */
  readonly ownKey: number | null
  /** Tokens of other attempts than `response`: the one that lost a hedge, and those that are not billed. */
  readonly otherUsages: readonly TokenUsage[]
  /** What the prompt cache saved; negative if writing cost more. Null = nothing was read or written. */
  readonly cacheSaved: number | null
  /** Usage without a known price; null = none. */
  readonly unpriced: UnpricedKind | null
  /** The counts exceeded the reservation, or the model's limits. */
  readonly isCut: boolean
  /** Cost of the same tokens at the baseline; null = not compared yet, or not comparable. */
  baseline: BaselineCost | null
}

/** Input of the computation. */
type Counted = {
  readonly plan: Pick<Route, 'inputTokens'>
  readonly request: Pick<ChatRequest, 'choices' | 'embedding'>
  readonly reservation: Reservation
}

/** Returns whether an account is billed for all that it used. Evaluation is free, and never exceeds what was reserved. */
export function paysInFull({ plan }: Pick<Caller, 'plan'>): boolean {
  return plan === 'usage'
}

/**
 * Bills what was used, on evaluation at most the reservation. Token counts are the upstream's own, also above the reservation: all count against the
 * daily token limit. The shortfall is usage that is not billed: the operator bears it, and the account can be paused
 * for it.
 */
export function settledCost(
  catalog: Pick<Catalog, 'resolve'>,
  { plan, request, caller }: Pick<Counted, 'plan' | 'request'> & { readonly caller: Pick<Caller, 'plan'> },
  progress: Progress,
): SettledCost {
  const response = billedResponse(progress)
  const { reservation, hedge: hedged } = progress
  // The next part of a cut text has the text in its input too: at most one token per character.
  const inputTokens = progress.cut.reduce((sum, { text }) => sum + text.length + instructionTokens, plan.inputTokens)
  const input = { plan: { inputTokens }, request, reservation }
  const model = response === null ? null : servedModel(catalog, response)
  const rates = response === null || model === null ? null : getRates(model, response)
  const { usage: counted, estimated } = used(response, input)
  const usage = model === null ? counted : possible(counted, model, input)
  // The web is reserved beside the model, and has no value to the client without an output.
  const web = model === null ? null : progress.web
  const isOwn = response !== null && isOnOwnKey(response)
  const search = (web?.searchMicrocents ?? 0) + (model === null || isOwn ? 0 : providerSearchCost(usage))
  const fetch = web?.fetchMicrocents ?? 0
  const getPart = (other: UpstreamResponse) => partCost(catalog, other, input)
  const parts = cutParts(progress, response).map(getPart)
  // The attempt that lost a hedge. As a failed attempt, it costs nothing if nothing was answered.
  const other = hedged === null ? null : hedged.other
  const lost = model === null || other === null || progress.discarded.includes(other) ? [] : [getPart(other)]
  const unbilled = unbilledResponses(progress).map(getPart)
  const besides = [...parts, ...lost]
  const beside = besides.reduce((sum, { cost }) => sum + cost, search + fetch)
  const costFor = (tokens: TokenUsage) => (rates === null ? 0 : (isOwn ? 0 : getCost(rates, tokens)) + beside)
  const charged = costFor(usage)
  // The provider charges for its own counts, also where they exceed the model's limits.
  const due = Math.min(usage === counted ? charged : costFor(counted), Number.MAX_SAFE_INTEGER)
  const billed = paysInFull(caller) ? charged : Math.min(charged, reservation.reservedMicrocents)
  const ownCosts = [...besides, ...unbilled].flatMap(({ ownKey }) => ownKey ?? [])
  if (isOwn && rates !== null) ownCosts.push(getCost(rates, usage) + providerSearchCost(usage))
  const kinds = besides.map(({ unpriced }) => unpriced)
  return {
    response,
    model,
    rates,
    usage,
    estimated: estimated || parts.some(part => part.estimated),
    parts,
    owed: unbilled.reduce(addUp, due),
    billed,
    search,
    fetch,
    hedge: Math.min(lost[0]?.cost ?? 0, Math.max(0, billed - search - fetch)),
    ownKey: ownCosts.length === 0 ? null : ownCosts.reduce((sum, cost) => addUp(sum, { cost })),
    otherUsages: [...lost, ...unbilled].map(item => item.usage),
    cacheSaved: rates === null || isOwn ? null : savedByCache(rates, usage),
    unpriced: worstKind(response === null || model === null ? kinds : [findUnpriced(model, response, usage), ...kinds]),
    isCut: due > billed || usage !== counted,
    baseline: null,
  }
}

function addUp(sum: number, { cost }: Pick<PartCost, 'cost'>): number {
  return Math.min(sum + cost, Number.MAX_SAFE_INTEGER)
}

/** What the prices of a response depend on beside its tokens. */
type Served = Pick<UpstreamResponse, 'startedAtMs' | 'providerFields' | 'request' | 'droppedParameters'>

/** Returns what this usage of a response costs. */
export function responseCost(model: Pick<Model, 'pricing'>, response: Served, usage: TokenUsage): number {
  return getCost(getRates(model, response), usage) + providerSearchCost(usage)
}

/** Anthropic's multiplier of all token prices for inference in the USA only. Source: its pricing page, "Data residency pricing". */
const usOnlyFactor = 1.1

/** Returns the prices of the attempt. Anthropic reports a region only for models that have one, also where its workspace chose it. */
function getRates({ pricing }: Pick<Model, 'pricing'>, response: Served): Rates {
  const rates = ratesAt(pricing, getTerms(response))
  const { providerFields } = response
  const isUsOnly = providerFields?.form === 'anthropic' && providerFields.usage.inference_geo === 'us'
  return isUsOnly ? scaledRates(rates, price => price * usOnlyFactor) : rates
}

/** Returns when the attempt began, and the tier that the provider reports, or else the one that it was sent. */
function getTerms(response: Served): PriceTerms {
  const { startedAtMs, request, droppedParameters } = response
  return {
    at: startedAtMs,
    tier: reportedTier(response) ?? (droppedParameters.includes('service_tier') ? null : requestedTier(request)),
  }
}

function isOnOwnKey({ candidate }: UpstreamResponse): boolean {
  return candidate.endpoint.own !== undefined
}

/** Usage and cost in micro-cents of one response. */
type PartCost = {
  readonly rates: Rates
  readonly usage: TokenUsage
  readonly estimated: boolean
  readonly cost: number
  /** Its catalog cost if it was called with an own key, which makes `cost` 0; null = it was not. */
  readonly ownKey: number | null
  readonly unpriced: UnpricedKind | null
}

/** What the parts of a cut text have used, and how much their text adds to the input of the next one. */
export type Spent = {
  readonly tokens: number
  readonly microcents: number
  readonly outputTokens: number
  readonly addedTokens: number
}

/** Tokens of the turns around a text in the request that continues it. */
const instructionTokens = 100

export function spentOn(catalog: Pick<Catalog, 'resolve'>, { cut }: Pick<Progress, 'cut'>, counted: Counted): Spent {
  const parts = cut.map(part => partCost(catalog, part, counted))
  const outputTokens = parts.reduce((sum, { usage }) => sum + usage.outputTokens, 0)
  return {
    tokens: parts.reduce((sum, { usage }) => sum + usage.inputTokens + usage.outputTokens, 0),
    microcents: parts.reduce((sum, { cost }) => sum + cost, 0),
    outputTokens,
    addedTokens: outputTokens + instructionTokens,
  }
}

/**
 * Returns the cost of a response beside the billed one. Providers bill the input of a canceled request, and the output until
 * then.
 */
function partCost(catalog: Pick<Catalog, 'resolve'>, response: UpstreamResponse, counted: Counted): PartCost {
  const model = servedModel(catalog, response)
  const { usage: said, estimated } = used(response, counted)
  const usage = possible(said, model, counted)
  const rates = getRates(model, response)
  const cost = getCost(rates, usage) + providerSearchCost(usage)
  const costs = isOnOwnKey(response) ? { cost: 0, ownKey: cost } : { cost, ownKey: null }
  return { rates, usage, estimated, ...costs, unpriced: findUnpriced(model, response, usage) }
}

const nothing: TokenUsage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
}

/**
 * Returns the upstream's own counts if it reported them, also zeros and also for the received part of a truncated
 * output, and estimates for missing ones. Readers report an output count only while it covers all received content.
 * A response without content and counts costs nothing, unless the gateway canceled it.
 */
function used(
  response: UpstreamResponse | null,
  { plan, request, reservation }: Counted,
): { readonly usage: TokenUsage; readonly estimated: boolean } {
  if (response === null) return { usage: nothing, estimated: false }
  const { candidate, usage: reported, ended, hasContent, isCanceled } = response
  if (reported !== null && isCounted(reported)) return { usage: reported, estimated: response.isEstimated }
  if (!isCanceled && !ended && !hasContent && reported === null) return { usage: nothing, estimated: false }
  const { provider } = candidate.model
  const inputTokens = reported?.inputTokens ?? Math.min(plan.inputTokens, likelyInputTokens(response.request, provider))
  const { leastOutputTokens = 0, ...parts }: ReportedUsage = reported ?? nothing
  const outputTokens =
    reported?.outputTokens ??
    Math.max(leastOutputTokens, arrivedTokens(response, reservation.outputCap * request.choices))
  return { usage: withTotals(parts, inputTokens, outputTokens), estimated: true }
}

function isCounted(usage: ReportedUsage): usage is ReportedUsage & TokenUsage {
  return usage.inputTokens !== null && usage.outputTokens !== null
}

/**
 * Returns the estimated tokens of the received text, at most `cap`. Reasoning that the upstream counted can exceed the
 * summary that it shows.
 */
function arrivedTokens({ candidate, text, reasoning, usage }: UpstreamResponse, cap: number): number {
  const { provider } = candidate.model
  const thoughts = Math.max(usage?.reasoningTokens ?? 0, estimateTokens(reasoning, provider))
  return Math.min(thoughts + estimateTokens(text, provider), cap)
}

/** Limits counts to the model's context window and output: an upstream's defect must not use up a daily limit. */
function possible(counted: TokenUsage, model: Model, { plan, request, reservation }: Counted): TokenUsage {
  const mostInput = Math.max(plan.inputTokens, model.contextWindow * (request.embedding?.inputs.length ?? 1))
  const mostOutput = Math.max(reservation.outputCap, model.maxOutputTokens) * request.choices
  if (counted.inputTokens <= mostInput && counted.outputTokens <= mostOutput) return counted
  return withTotals(counted, Math.min(counted.inputTokens, mostInput), Math.min(counted.outputTokens, mostOutput))
}

/**
 * Returns the usage with these totals, and with parts of at most these. The cost of the other counts is bounded by the
 * tokens, or by the reservation.
 */
function withTotals(
  parts: Omit<TokenUsage, 'inputTokens' | 'outputTokens'>,
  inputTokens: number,
  outputTokens: number,
): TokenUsage {
  const cachedInputTokens = Math.min(parts.cachedInputTokens, inputTokens)
  return {
    ...parts,
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens: Math.min(parts.cacheWriteTokens, inputTokens - cachedInputTokens),
    outputTokens,
    reasoningTokens: Math.min(parts.reasoningTokens, outputTokens),
  }
}

/**
 * Returns the model that served. If the provider answers with another model of its catalog (the successor of a retired
 * one), returns that one, also for the price. A dated snapshot of the called model counts as the called model.
 */
export function servedModel(
  catalog: Pick<Catalog, 'resolve' | 'findDisabled'>,
  { candidate: { model, host }, upstreamModel }: Pick<UpstreamResponse, 'candidate' | 'upstreamModel'>,
): Model {
  // Another host has its own names and prices.
  const isElsewhere = host !== undefined && host.host !== model.provider
  if (upstreamModel === null || upstreamModel === model.id || isElsewhere) return model
  const name = `${model.provider}/${upstreamModel}`
  const other = catalog.resolve(name) ?? catalog.findDisabled?.(name) ?? null
  return other !== null && other.provider === model.provider ? other : model
}
