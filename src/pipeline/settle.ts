import type { Deps } from '../composition/deps.ts'
import type { AttemptOutcome, ChatRequest, ResponseSummary, TokenUsage } from '../core/chat/chat.ts'
import type { Caller } from '../core/limits/plans.ts'
import { fullName, type Model } from '../core/models/models.ts'
import { dayMs } from '../core/text/utc-days.ts'
import { estimateTokens, likelyInputTokens } from '../core/tokens/tokens.ts'
import { costOf, hourCacheCost, providerSearchCost } from '../core/usage/money.ts'
import { type AttemptRecord, attemptOutcomes, type TriedOutcome, type UsageRecord } from '../core/usage/usage-record.ts'
import type { Reservation } from '../limits/meter.ts'
import { servedModel } from './call.ts'
import { toLearningEntry } from './learning-entry.ts'
import type { RequestContext, UpstreamResponse } from './request-context.ts'
import type { Route } from './routing/route.ts'
import { updateEstimates } from './update-estimates.ts'

/**
 * Gives the seat back, turns the reservation into what was really used, and writes the usage record, in one step of the
 * meter. Runs once for every admitted request, whoever ended it. Resolves when the record is durable.
 */
export async function settle(
  deps: Deps,
  caller: Caller,
  ask: ChatRequest,
  plan: Route,
  admitted: Reservation,
  tally: RequestContext,
  settled?: (record: UsageRecord) => Promise<void>,
): Promise<ResponseSummary> {
  const seat = tally.seat ?? admitted
  const bill = billOf(deps, ask, plan, seat, tally)
  const { model, usage, estimated, billed, search, fetch } = bill
  if (model !== null && bill.isCut)
    deps.log.warn('billed_less_than_used', {
      request_id: tally.requestId,
      model: fullName(model),
      account_id: caller.accountId,
      owed: bill.owed,
      billed,
      shortfall: bill.owed - billed,
    })
  const { enhancement } = tally
  const served = model === null ? null : { model, usage, isEnhanced: enhancement?.changed === true }
  const record = recordOf(deps, caller, ask, plan, seat, tally, bill)
  record.learning = toLearningEntry(deps, caller.accountId, ask, plan, tally, served)
  try {
    await deps.meter.settle({ seat, tokens: usage.inputTokens + usage.outputTokens, microcents: billed, record })
  } finally {
    deps.observe.settled({ tally, record, plan })
  }
  if (settled !== undefined) await settled(record)
  if (model !== null && tally.outcome === 'completed')
    updateEstimates(deps, caller.accountId, ask, plan, tally, { model, usage, microcents: billed })
  return {
    requestId: tally.requestId,
    model: model === null ? '' : fullName(model),
    provider: model?.provider ?? '',
    usage,
    estimated,
    ...cutBy(tally.serving),
    cost: { model: billed - search - fetch, search, fetch, total: billed },
    routing: {
      mode: plan.mode,
      strategy: plan.strategy,
      queryType: plan.reading.queryType,
      complexity: plan.reading.complexity,
      learned: plan.learning.influenced,
      attempts: tally.attempts,
    },
    enhancement,
    web: tally.web ?? noWebUsed,
  }
}

/**
 * Notes what a running request would be billed if it ended now, so that a process that dies loses a second of it at most.
 * As a failure of ours: whoever reads it in the ledger reads that the answer was cut.
 */
export function checkpoint(
  deps: Deps,
  caller: Caller,
  ask: ChatRequest,
  plan: Route,
  admitted: Reservation,
  tally: RequestContext,
): void {
  deps.meter.checkpoint(tally.seat ?? admitted, () => {
    const seat = tally.seat ?? admitted
    const bill = { ...billOf(deps, ask, plan, seat, tally), estimated: true }
    const cut = { ...tally, outcome: 'failed', errorCode: 'service_unavailable' } as const
    const { usage, billed } = bill
    const record = { ...recordOf(deps, caller, ask, plan, seat, cut, bill), truth: 'checkpoint' } as const
    return { tokens: usage.inputTokens + usage.outputTokens, microcents: billed, record }
  })
}

/** The gateway's own cap, where an answer ended at it. */
function cutBy(serving: UpstreamResponse | null): Pick<ResponseSummary, 'outputCap'> {
  if (serving === null || serving.outputCap === null) return {}
  return [...serving.finishes.values()].includes('length') ? { outputCap: serving.outputCap } : {}
}

const noWebUsed = { searched: false, sources: [], leftOut: [] }

/** What a request comes to. Money is integers of 1e-8 USD. */
type SettledCost = {
  /** Who served; null = nobody. */
  readonly model: Model | null
  readonly usage: TokenUsage
  readonly estimated: boolean
  /** All that was used, in money; above `billed` by the shortfall. */
  readonly owed: number
  readonly billed: number
  /** Parts of what is billed. */
  readonly search: number
  readonly fetch: number
  /** More was counted than had been reserved, or than can be. */
  readonly isCut: boolean
}

/**
 * Bills at most what was reserved. The tokens are the upstream's own count, also above the reservation: all of them count
 * against the day. What was used and not billed is the shortfall, which the operator bears and the account is held to.
 */
function billOf(deps: Deps, ask: ChatRequest, plan: Route, seat: Reservation, tally: RequestContext): SettledCost {
  const model = servedModel(deps, tally.serving)
  const { usage: counted, estimated } = used(plan, ask, seat, tally)
  const usage = model === null ? counted : possible(counted, model, plan, seat, ask.choices)
  // The web is reserved beside the model, and nobody has anything of it where no model answered.
  const web = model === null ? null : tally.web
  const search = (web?.searchMicrocents ?? 0) + (model === null ? 0 : providerSearchCost(usage))
  const fetch = web?.fetchMicrocents ?? 0
  const owed = model === null ? 0 : costOf(model, usage) + hourCacheCost(model, usage) + search + fetch
  const billed = Math.min(owed, seat.reservedMicrocents)
  return { model, usage, estimated, owed, billed, search, fetch, isCut: owed > billed || usage !== counted }
}

const nothing: TokenUsage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
}

/**
 * What is owed for: the upstream's own count where the answer was whole and it gave one, ours for what it left out. Of a cut
 * answer what arrived is owed; of one of which nothing arrived, nothing.
 */
function used(
  plan: Route,
  ask: ChatRequest,
  seat: Reservation,
  { serving, asked }: RequestContext,
): { usage: TokenUsage; estimated: boolean } {
  if (serving === null) return { usage: nothing, estimated: false }
  const { candidate, usage: reported, ended, hasContent } = serving
  if (ended && reported !== null) {
    const { inputTokens, outputTokens } = reported
    if (inputTokens !== null && outputTokens !== null)
      return { usage: { ...reported, inputTokens, outputTokens }, estimated: false }
  }
  if (!ended && !hasContent && reported === null) return { usage: nothing, estimated: false }
  const { provider } = candidate.model
  const inputTokens = reported?.inputTokens ?? Math.min(plan.inputTokens, likelyInputTokens(asked ?? ask, provider))
  const cachedInputTokens = Math.min(reported?.cachedInputTokens ?? 0, inputTokens)
  const told = reported?.outputTokens ?? null
  const outputTokens =
    ended && told !== null
      ? told
      : // An early count (Anthropic sends one with the first event) is a floor, not the sum.
        Math.max(told ?? reported?.leastOutputTokens ?? 0, arrivedTokens(serving, seat.outputCap * ask.choices))
  return {
    usage: {
      inputTokens,
      cachedInputTokens,
      cacheWriteTokens: Math.min(reported?.cacheWriteTokens ?? 0, inputTokens - cachedInputTokens),
      outputTokens,
      reasoningTokens: Math.min(reported?.reasoningTokens ?? 0, outputTokens),
    },
    estimated: true,
  }
}

/** Our count of what arrived, at most `cap`. Reasoning that the upstream counted is more than the summary it shows. */
function arrivedTokens({ candidate, text, reasoning, usage }: UpstreamResponse, cap: number): number {
  const { provider } = candidate.model
  const thoughts = Math.max(usage?.reasoningTokens ?? 0, estimateTokens(reasoning, provider))
  return Math.min(thoughts + estimateTokens(text, provider), cap)
}

/** The counts, where they are above what a model can read and write cut to that: an upstream's defect must not use up a day. */
function possible(counted: TokenUsage, model: Model, plan: Route, seat: Reservation, choices: number): TokenUsage {
  const mostInput = Math.max(plan.inputTokens, model.contextWindow)
  const mostOutput = Math.max(seat.outputCap, model.maxOutputTokens) * choices
  if (counted.inputTokens <= mostInput && counted.outputTokens <= mostOutput) return counted
  const inputTokens = Math.min(counted.inputTokens, mostInput)
  const outputTokens = Math.min(counted.outputTokens, mostOutput)
  const cachedInputTokens = Math.min(counted.cachedInputTokens, inputTokens)
  return {
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens: Math.min(counted.cacheWriteTokens, inputTokens - cachedInputTokens),
    outputTokens,
    reasoningTokens: Math.min(counted.reasoningTokens, outputTokens),
  }
}

function recordOf(
  deps: Deps,
  caller: Caller,
  ask: ChatRequest,
  plan: Route,
  seat: Reservation,
  tally: RequestContext,
  { model, usage, estimated, owed, billed, search, fetch }: SettledCost,
): UsageRecord {
  return {
    request_id: tally.requestId,
    account_id: caller.accountId,
    key_id: caller.keyId,
    // A request belongs to the day its reservation was taken on.
    at_ms: Math.max(tally.startedAt, seat.day * dayMs),
    provider: model?.provider ?? '',
    model: model?.id ?? '',
    routing_mode: plan.mode,
    strategy: plan.strategy,
    query_type: plan.reading.queryType,
    streamed: ask.stream !== null,
    status: tally.outcome,
    error_code: tally.errorCode,
    finish_reason: tally.outcome === 'completed' ? (tally.serving?.finishes.get(0) ?? null) : null,
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    cache_write_tokens: usage.cacheWriteTokens,
    output_tokens: usage.outputTokens,
    reasoning_tokens: usage.reasoningTokens,
    estimated,
    billed_microcents: billed,
    reserved_microcents: seat.reservedMicrocents,
    // Absent where it is nothing, as it is nearly always.
    ...(owed === billed ? {} : { shortfall_microcents: owed - billed }),
    ...(search + fetch === 0 ? {} : { search_microcents: search, fetch_microcents: fetch }),
    attempts: tally.attempts.length,
    tried: triedIn(tally),
    latency_ms: Math.round(deps.clock.monotonic() - tally.startedMonotonic),
    first_token_ms: tally.firstContentMs === null ? null : Math.round(tally.firstContentMs),
    metadata: ask.metadata === null ? null : { ...ask.metadata },
  }
}

/** The candidates that were asked. Those that were skipped are counted in `attempts` only. */
function triedIn({ attempts, startedMonotonic }: RequestContext): AttemptRecord[] {
  const tried: AttemptRecord[] = []
  for (const { model, outcome, startedAt, durationMs } of attempts)
    if (wasAsked(outcome)) tried.push([model, outcome, Math.round(startedAt - startedMonotonic), durationMs])
  return tried
}

function wasAsked(outcome: AttemptOutcome): outcome is TriedOutcome {
  return attemptOutcomes.some(one => one === outcome)
}
