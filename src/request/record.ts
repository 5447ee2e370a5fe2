/** Content-free records of a settled request: the usage record, its learning entry, and the summary for the client. */

import { type Attempt, type AttemptOutcome, type AttemptSkip, attemptSkips } from '../core/chat/attempts.ts'
import { type ChatRequest, isChat } from '../core/chat/chat.ts'
import type { ResponseSummary, TokenUsage } from '../core/chat/chat-events.ts'
import type { Caller } from '../core/limits/plans.ts'
import { fullName, type Model, unknownPrices } from '../core/models/models.ts'
import type { Rates } from '../core/models/pricing.ts'
import { nameDemands } from '../core/policy/constraints.ts'
import type { Clock } from '../core/ports.ts'
import { findTags, type Tags } from '../core/request/tags.ts'
import { dayMs } from '../core/text/utc-days.ts'
import { costParts, priceTable, toUsd } from '../core/usage/money.ts'
import { fieldName } from '../core/usage/rejection.ts'
import {
  type AttemptRecord,
  attemptOutcomes,
  maximumRecordedAttempts,
  maximumTraced,
  maximumTried,
  maximumUpstreamId,
  type RequestTrace,
  type TracedCandidate,
  type TriedOutcome,
  toThousandths,
  type UsageRecord,
} from '../core/usage/usage-record.ts'
import { logLengthRatio } from '../learning/learning-cell.ts'
import type { RecentPrompts } from '../learning/recent-prompts.ts'
import { inferQuality, type LengthStatistics } from '../learning/response-quality.ts'
import type { ChosenEffort } from '../models/effort.ts'
import type { BaselineCost } from './baseline.ts'
import type { AdmittedRequest, Progress } from './progress.ts'
import { type Candidate, getEffort } from './routing/candidate.ts'
import { requestedModel } from './routing/named-model.ts'
import type { Route } from './routing/route.ts'
import type { SettledCost } from './settled-cost.ts'

/** Cost of a request, and of the same tokens at the baseline; null = not comparable. */
export type RecordedCost = SettledCost & { readonly baseline: BaselineCost | null }

/** Builds the record. `end` is the status of the request and its monotonic millisecond. */
export function toUsageRecord(
  request: AdmittedRequest,
  progress: Progress,
  cost: RecordedCost,
  end: Pick<Progress, 'outcome' | 'errorCode'> & { readonly at: number },
): UsageRecord {
  const { request: question, caller, plan, startedMonotonic } = request
  const { reservation } = progress
  const { response, model, estimated, owed, billed, search, fetch, hedge, ownKey, otherUsages, unpriced } = cost
  const { baseline, cacheSaved } = cost
  const usage = otherUsages.reduce(getSum, wholeUsage(cost))
  return {
    request_id: request.requestId,
    account_id: caller.accountId,
    key_id: caller.keyId,
    // A request counts for the day of its reservation.
    at_ms: Math.max(request.startedAt, reservation.day * dayMs),
    provider: model?.provider ?? '',
    model: model?.id ?? '',
    requested_model: requestedModel(plan),
    ...getUpstreamId(response),
    routing_mode: plan.mode,
    strategy: plan.strategy,
    query_type: isChat(question) ? plan.analysis.queryType : null,
    streamed: question.stream !== null,
    dialect: question.dialect,
    status: end.outcome,
    error_code: end.errorCode,
    finish_reason: end.outcome === 'completed' ? (response?.finishes.get(0) ?? null) : null,
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    cache_write_tokens: usage.cacheWriteTokens,
    output_tokens: usage.outputTokens,
    reasoning_tokens: usage.reasoningTokens,
    estimated: estimated || otherUsages.length > 0,
    billed_microcents: billed,
    reserved_microcents: reservation.reservedMicrocents,
    // Absent if there is none, as in nearly every record.
    ...(owed === billed ? {} : { shortfall_microcents: owed - billed }),
    ...(search + fetch === 0 ? {} : { search_microcents: search, fetch_microcents: fetch }),
    ...(hedge === 0 ? {} : { hedge_microcents: hedge }),
    ...(ownKey === null ? {} : { own_key_microcents: ownKey }),
    ...(unpriced === null ? {} : { unpriced }),
    ...(baseline === null ? {} : { routing_saved_microcents: baseline.saved }),
    ...(cacheSaved === null ? {} : { cache_saved_microcents: cacheSaved }),
    attempts: Math.min(progress.attempts.length, maximumRecordedAttempts),
    tried: toAttemptRecords(progress, startedMonotonic),
    latency_ms: Math.round(end.at - startedMonotonic),
    first_token_ms: progress.firstContentMs === null ? null : Math.round(progress.firstContentMs),
    metadata: question.metadata === null ? null : { ...question.metadata },
    ...recordLabels(caller, findTags(caller, question)),
  }
}

/** Tags, and the key's lineage if it is not the key itself. Both are absent in most records. */
function recordLabels(
  { keyId, lineageId = keyId }: Caller,
  tags: Tags | undefined,
): Pick<UsageRecord, 'lineage_id' | 'tags'> {
  return {
    ...(lineageId === keyId ? {} : { lineage_id: lineageId }),
    ...(tags === undefined ? {} : { tags }),
  }
}

function getUpstreamId(response: SettledCost['response']): Pick<UsageRecord, 'upstream_id'> {
  const id = response?.upstreamId ?? null
  return id === null || id === '' || id.length > maximumUpstreamId || /[^!-~]/.test(id) ? {} : { upstream_id: id }
}

/** Usage of all parts of the output. */
function wholeUsage({ usage, parts }: SettledCost): TokenUsage {
  return parts.reduce((sum, part) => getSum(sum, part.usage), usage)
}

/** The tokens of all attempts that the provider charges count against the daily limit. */
function getSum(item: TokenUsage, other: TokenUsage): TokenUsage {
  return {
    inputTokens: item.inputTokens + other.inputTokens,
    cachedInputTokens: item.cachedInputTokens + other.cachedInputTokens,
    cacheWriteTokens: item.cacheWriteTokens + other.cacheWriteTokens,
    outputTokens: item.outputTokens + other.outputTokens,
    reasoningTokens: item.reasoningTokens + other.reasoningTokens,
  }
}

/** Called candidates. Skipped ones are counted in `attempts` only. */
function toAttemptRecords({ attempts }: Progress, startedMonotonic: number): AttemptRecord[] {
  const tried: AttemptRecord[] = []
  for (const { model, outcome, startedAt, durationMs } of attempts)
    if (wasCalled(outcome)) tried.push([model, outcome, Math.round(startedAt - startedMonotonic), durationMs])
  // Calls of further keys can make more than the record holds; the last ones decided.
  return tried.slice(-maximumTried)
}

/** Returns whether an outcome is that of a call; skipped candidates are not listed. */
function wasCalled(outcome: AttemptOutcome): outcome is TriedOutcome {
  return attemptOutcomes.some(attemptOutcome => attemptOutcome === outcome)
}

export function toResponseSummary(
  { requestId, plan }: AdmittedRequest,
  { attempts, continued, enhancement, web }: Progress,
  cost: SettledCost,
): ResponseSummary {
  const { response, model, estimated, billed, search, fetch, hedge, cacheSaved } = cost
  return {
    requestId,
    model: model === null ? '' : fullName(model),
    provider: model?.provider ?? '',
    usage: wholeUsage(cost),
    ...(continued.length === 0 ? {} : { continued }),
    estimated,
    ...(response?.providerFields == null ? {} : { providerFields: response.providerFields }),
    ...reachedCap(response),
    cost: { model: billed - search - fetch - hedge, search, fetch, ...(hedge === 0 ? {} : { hedge }), total: billed },
    ...(cacheSaved === null ? {} : { cacheSaved }),
    routing: {
      mode: plan.mode,
      requestedModel: requestedModel(plan),
      strategy: plan.strategy,
      queryType: plan.analysis.queryType,
      complexity: plan.analysis.complexity ?? null,
      learned: plan.learning.influenced,
      effort: response === null ? null : getEffort(response.candidate, response.request),
      attempts,
    },
    enhancement,
    web: web ?? noWebUsed,
  }
}

/** The gateway's own cap, if it truncated the output. */
function reachedCap(response: SettledCost['response']): Pick<ResponseSummary, 'outputCap'> {
  if (response === null || response.outputCap === null) return {}
  return [...response.finishes.values()].includes('length') ? { outputCap: response.outputCap } : {}
}

const noWebUsed = { searched: false, sources: [], leftOut: [] }

export type LearningEntryDeps = {
  /** Learning of an account, from memory; null = not loaded yet. */
  readonly learning: {
    of(accountId: string): { findUsualRatio(queryType: string): LengthStatistics | null } | null
  }
  readonly prompts: Pick<RecentPrompts, 'answered'>
  readonly clock: Pick<Clock, 'now'>
}

/** Returns the content-free learning entry of a request; null for a request that was not answered. */
export function toLearningEntry(
  deps: LearningEntryDeps,
  { requestId, startedAt, promptDigest, caller, request, plan }: AdmittedRequest,
  { outcome, enhancement, cut }: Progress,
  { response, usage }: SettledCost,
): NonNullable<UsageRecord['learning']> | null {
  // A text of two parts says nothing about either model.
  if (response === null || outcome !== 'completed' || cut.length > 0) return null
  const { queryType } = plan.analysis
  const quality = inferQuality({
    finish: response.finishes.get(0) ?? null,
    text: response.text,
    hasContent: response.hasContent,
    refused: response.refused,
    isCapped: request.maxOutputTokens !== null,
    wantsJson: request.responseFormat.type !== 'text' && request.choices === 1 && !response.hasToolCalls,
    queryType,
    ratio: logLengthRatio(usage),
    usualRatio: deps.learning.of(caller.accountId)?.findUsualRatio(queryType) ?? null,
  })
  const isFirst = response.candidate.model === plan.first.model
  const answered = { id: requestId, from: startedAt, to: deps.clock.now() }
  return {
    quality: Math.round(quality * 1e4) / 1e4,
    epoch: plan.learning.epoch,
    influenced: plan.learning.influenced && isFirst,
    choice_probability: isFirst ? plan.learning.probability : null,
    enhanced: enhancement?.changed === true,
    repeat_of: deps.prompts.answered(promptDigest, answered),
  }
}

/** Builds the trace. Ranks no further candidates: most requests for a named model need no fallbacks. */
export function toRequestTrace(
  { ranked, turn }: Pick<Route, 'ranked' | 'turn'>,
  { attempts, decision }: Pick<Progress, 'attempts' | 'decision'>,
  cost: {
    readonly rates: Rates | null
    readonly model: Pick<Model, 'pricingSource'> | null
    readonly usage: TokenUsage
    readonly parts: SettledCost['parts']
    /** Effort of the response; absent = none. */
    readonly effort?: ChosenEffort
    readonly baseline: BaselineCost | null
  },
  { fallback, rules, demands }: Pick<ChatRequest, 'fallback' | 'rules' | 'demands'>,
): RequestTrace {
  return {
    c: inCallOrder(ranked).slice(0, maximumTraced).map(toTracedCandidate),
    ...tracedAttempts(attempts),
    ...tracedSkips(attempts),
    ...(cost.rates === null ? {} : { b: sumOfParts(cost.rates, cost), r: tracedPrices(cost.rates, cost) }),
    ...tracedBaseline(cost),
    ...tracedDecision(decision),
    ...(fallback === 'any' ? {} : { f: fallback }),
    ...tracedReceivers(demands, attempts),
    ...(rules?.acted == null ? {} : { u: rules.acted }),
    ...(cost.effort == null ? {} : { e: cost.effort }),
    ...(turn?.runaway == null || turn.runaway.step === 'stop' ? {} : { w: turn.runaway.step }),
  }
}

/** Returns the constraints in force and who received the prompt; empty if nothing was demanded. */
function tracedReceivers(demands: ChatRequest['demands'], attempts: readonly Attempt[]): Pick<RequestTrace, 'g'> {
  const constraints = nameDemands(demands ?? [])
  if (constraints.length === 0) return {}
  return { g: [constraints, [...new Set(attempts.flatMap(({ receiver }) => receiver ?? []))]] }
}

/** Returns what each kind of tokens cost, in all parts of the output. */
function sumOfParts(rates: Rates, { usage, parts }: Pick<SettledCost, 'usage' | 'parts'>) {
  const sums = costParts(rates, usage)
  for (const part of parts)
    for (const [kind, cost] of costParts(part.rates, part.usage).entries()) sums[kind] = (sums[kind] ?? 0) + cost
  return sums
}

/** The prices of that moment explain the record also after the catalog has changed. */
function tracedPrices(
  rates: Rates,
  { usage, model }: Pick<SettledCost, 'usage'> & { readonly model: Pick<Model, 'pricingSource'> | null },
): NonNullable<RequestTrace['r']> {
  const { input, cachedInput, cacheWrite, output } = priceTable(rates, usage.inputTokens)
  const source = model?.pricingSource ?? unknownPrices
  return [toUsd(input), toUsd(cachedInput), toUsd(cacheWrite), toUsd(output), source]
}

/** A ranking can have models of a lower output limit behind unhealthy ones, which are called last. */
function inCallOrder(ranked: readonly Candidate[]): readonly Candidate[] {
  const last = ranked.filter(({ place }) => place === 'unhealthy')
  return last.length === 0 ? ranked : [...ranked.filter(({ place }) => place !== 'unhealthy'), ...last]
}

/** Returns the HTTP statuses of the attempts that the record lists, and their own keys if there are any. */
function tracedAttempts(attempts: readonly Attempt[]): Pick<RequestTrace, 's' | 'o'> {
  const statuses: number[] = []
  const ownKeys: string[] = []
  for (const { outcome, status, ownKey = '' } of attempts)
    if (wasCalled(outcome)) {
      statuses.push(status ?? 0)
      ownKeys.push(ownKey)
    }
  return {
    ...(statuses.length === 0 ? {} : { s: statuses.slice(-maximumTried) }),
    ...(ownKeys.every(name => name === '') ? {} : { o: ownKeys.slice(-maximumTried) }),
  }
}

/** Returns the candidates that were not called in their turn. */
function tracedSkips(attempts: readonly Attempt[]): Pick<RequestTrace, 'k'> {
  const skips = attempts.flatMap(({ model, outcome }) => (isSkip(outcome) ? [[model, outcome] as const] : []))
  return skips.length === 0 ? {} : { k: skips.slice(0, maximumTraced) }
}

function isSkip(outcome: AttemptOutcome): outcome is AttemptSkip {
  return attemptSkips.some(attemptSkip => attemptSkip === outcome)
}

function tracedBaseline({ baseline }: Pick<RecordedCost, 'baseline'>): Pick<RequestTrace, 'v'> {
  return baseline === null ? {} : { v: [baseline.model, baseline.microcents, baseline.cached, baseline.written] }
}

/** Returns the moderation layer that decided, and the field that the error names. */
function tracedDecision(decision: Progress['decision']): Pick<RequestTrace, 'm' | 'p'> {
  if (decision === null) return {}
  const { layer, category, param } = decision
  const field = fieldName(param)
  return {
    ...(layer === null ? {} : { m: [layer.slice(0, 32), (category ?? '').slice(0, 64)] }),
    ...(field === null ? {} : { p: field }),
  }
}

function toTracedCandidate(candidate: Candidate): TracedCandidate {
  const { model, score, place, health } = candidate
  const parts = candidate.parts()
  return [
    `${model.provider}/${model.id}`,
    toThousandths(score),
    place,
    health,
    parts === null
      ? null
      : [
          toThousandths(parts.quality),
          toThousandths(parts.cost),
          toThousandths(parts.speed),
          toThousandths(parts.reliability),
          toThousandths(parts.adjustment),
        ],
  ]
}
