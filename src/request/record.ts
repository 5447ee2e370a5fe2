/**
 * Builds what remains of a settled request: its usage record, from which journal, shipping, learning, the log, metrics, spans
 * and the client read, and the references beside it. A record has no content.
 */

import { type AttemptOutcome, type AttemptSkip, attemptSkips } from '../core/chat/attempts.ts'
import { isChat } from '../core/chat/chat.ts'
import type { Built, ResponseSummary, TokenUsage } from '../core/chat/chat-events.ts'
import { fullName, unknownPrices } from '../core/models/models.ts'
import type { Rates } from '../core/models/pricing.ts'
import { nameDemands } from '../core/policy/constraints.ts'
import type { Clock } from '../core/ports.ts'
import { findTags } from '../core/request/tags.ts'
import { dayMs } from '../core/text/utc-days.ts'
import { costParts, priceTable, toUsd } from '../core/usage/money.ts'
import { fieldName } from '../core/usage/rejection.ts'
import { shadowKeyId } from '../core/usage/shadow.ts'
import {
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
import type { AdmittedRequest, Progress } from './progress.ts'
import type { Candidate } from './routing/candidate.ts'
import { requestedModel } from './routing/named-model.ts'
import type { Route } from './routing/route.ts'
import type { SettledCost } from './settled-cost.ts'
import type { UpstreamResponse } from './upstream-response.ts'

/** A request that has ended. It has references only, except for the record. */
export type SettledRequest = ResponseSummary & {
  readonly request: Pick<AdmittedRequest, 'startedAt' | 'startedMonotonic' | 'trace'>
  readonly plan: Pick<Route, 'mode' | 'choices'> & {
    readonly first: { readonly model: Pick<Candidate['model'], 'id' | 'provider'> }
  }
  readonly progress: Progress
  readonly record: UsageRecord
  /** The response that is billed; null = none. */
  readonly response: UpstreamResponse | null
}

export type RecordDeps = {
  /** Learning of an account, from memory; null = not loaded yet. */
  readonly learning: {
    of(accountId: string): { findUsualRatio(queryType: string): LengthStatistics | null } | null
  }
  readonly prompts: Pick<RecentPrompts, 'answered'>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
}

/** Builds the record of a request that has ended, with its trace and what learning reads. */
export function settledRequest(
  deps: RecordDeps,
  request: AdmittedRequest,
  progress: Progress,
  cost: SettledCost,
): SettledRequest {
  const record = toUsageRecord(request, progress, cost, {
    outcome: progress.outcome,
    errorCode: progress.errorCode,
    at: deps.clock.monotonic(),
  })
  record.trace = getTrace(request, progress, cost)
  record.learning = getLesson(deps, request, progress, cost)
  const { response, estimated } = cost
  const settled: Built<SettledRequest> = {
    request,
    plan: request.plan,
    progress,
    response,
    record,
    usage: wholeUsage(cost),
    estimated,
  }
  if (response === null) return settled
  if (response.providerFields !== null) settled.providerFields = response.providerFields
  if (response.outputCap !== null && [...response.finishes.values()].includes('length'))
    settled.outputCap = response.outputCap
  return settled
}

/** Builds the record of a request at any time. `end` is its status and its monotonic millisecond. */
export function toUsageRecord(
  request: AdmittedRequest,
  progress: Progress,
  cost: SettledCost,
  end: Pick<Progress, 'outcome' | 'errorCode'> & { readonly at: number },
): UsageRecord {
  const { request: question, caller, plan, startedMonotonic } = request
  const { reservation } = progress
  const { response, model, owed, billed, search, fetch, otherUsages, baseline } = cost
  const whole = wholeUsage(cost)
  const usage = otherUsages.length === 0 ? whole : otherUsages.reduce(getSum, whole)
  const record: UsageRecord = {
    request_id: request.requestId,
    account_id: caller.accountId,
    key_id: caller.keyId,
    // A request counts for the day of its reservation.
    at_ms: Math.max(request.startedAt, reservation.day * dayMs),
    provider: model?.provider ?? '',
    model: model?.id ?? '',
    requested_model: requestedModel(plan),
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
    estimated: cost.estimated || otherUsages.length > 0,
    billed_microcents: billed,
    reserved_microcents: reservation.reservedMicrocents,
    attempts: Math.min(progress.attempts.length, maximumRecordedAttempts),
    tried: getTried(progress, startedMonotonic),
    latency_ms: Math.round(end.at - startedMonotonic),
    first_token_ms: progress.firstContentMs === null ? null : Math.round(progress.firstContentMs),
    metadata: question.metadata === null ? null : { ...question.metadata },
  }
  // Nearly every record has none of these.
  const upstreamId = response?.upstreamId ?? ''
  if (storedId.test(upstreamId)) record.upstream_id = upstreamId
  if (owed !== billed) record.shortfall_microcents = owed - billed
  if (search + fetch !== 0) {
    record.search_microcents = search
    record.fetch_microcents = fetch
  }
  if (cost.hedge !== 0) record.hedge_microcents = cost.hedge
  if (cost.ownKey !== null) record.own_key_microcents = cost.ownKey
  if (cost.unpriced !== null) record.unpriced = cost.unpriced
  if (baseline !== null) record.routing_saved_microcents = baseline.saved
  if (cost.cacheSaved !== null) record.cache_saved_microcents = cost.cacheSaved
  if (caller.lineageId !== undefined && caller.lineageId !== caller.keyId) record.lineage_id = caller.lineageId
  const tags = findTags(caller, question)
  if (tags !== undefined) record.tags = tags
  return record
}

const storedId = new RegExp(`^[!-~]{1,${maximumUpstreamId}}$`)

/** Usage of all parts of the output. */
function wholeUsage({ usage, parts }: SettledCost): TokenUsage {
  return parts.length === 0 ? usage : parts.reduce((sum, part) => getSum(sum, part.usage), usage)
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
function getTried({ attempts }: Progress, startedMonotonic: number): UsageRecord['tried'] {
  const tried: UsageRecord['tried'] = []
  for (const { model, outcome, startedAt, durationMs } of attempts)
    if (wasCalled(outcome)) tried.push([model, outcome, Math.round(startedAt - startedMonotonic), durationMs])
  // Calls of further keys can make more than the record holds; the last ones decided.
  return tried.slice(-maximumTried)
}

/** Returns whether an outcome is that of a call; skipped candidates are not listed. */
function wasCalled(outcome: AttemptOutcome): outcome is TriedOutcome {
  return !skips.has(outcome)
}

const skips: ReadonlySet<AttemptOutcome> = new Set(attemptSkips)

/** Returns what learning reads of a request; null = it was not answered, or learning is not about it. */
function getLesson(
  deps: RecordDeps,
  { requestId, startedAt, promptDigest, caller, request, plan }: AdmittedRequest,
  { outcome, enhancement, cut }: Progress,
  { response, usage }: SettledCost,
): NonNullable<UsageRecord['learning']> | null {
  if (!isChat(request) || caller.keyId === shadowKeyId) return null
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
    ratio: logLengthRatio(usage.inputTokens, usage.outputTokens),
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
function getTrace(
  { plan: { ranked, turn }, request: { fallback, rules, demands = [] } }: AdmittedRequest,
  { attempts, decision }: Progress,
  cost: SettledCost,
): RequestTrace {
  const { rates, baseline, response } = cost
  const trace: Built<RequestTrace> = { c: traceCandidates(ranked) }
  traceAttempts(attempts, trace)
  if (rates !== null) {
    trace.b = sumOfParts(rates, cost)
    trace.r = tracedPrices(rates, cost)
  }
  if (baseline !== null) trace.v = [baseline.model, baseline.microcents, baseline.cached, baseline.written]
  if (decision !== null) traceDecision(decision, trace)
  if (fallback !== 'any') trace.f = fallback
  const constraints = demands.length === 0 ? [] : nameDemands(demands)
  // The constraints in force, and who received the prompt.
  if (constraints.length > 0) trace.g = [constraints, [...new Set(attempts.flatMap(({ receiver }) => receiver ?? []))]]
  if (rules?.acted != null) trace.u = rules.acted
  if (response !== null && response.effort !== null) trace.e = response.effort
  if (turn?.runaway != null && turn.runaway.step !== 'stop') trace.w = turn.runaway.step
  return trace
}

/** Returns what each kind of tokens cost, in all parts of the output. */
function sumOfParts(rates: Rates, { usage, parts }: SettledCost) {
  const sums = costParts(rates, usage)
  for (const part of parts)
    for (const [kind, cost] of costParts(part.rates, part.usage).entries()) sums[kind] = (sums[kind] ?? 0) + cost
  return sums
}

/** The prices of that moment explain the record also after the catalog has changed. */
function tracedPrices(rates: Rates, { usage, model }: SettledCost): NonNullable<RequestTrace['r']> {
  const { input, cachedInput, cacheWrite, output } = priceTable(rates, usage.inputTokens)
  const source = model?.pricingSource ?? unknownPrices
  return [toUsd(input), toUsd(cachedInput), toUsd(cacheWrite), toUsd(output), source]
}

/** A ranking can have models of a lower output limit behind unhealthy ones, which are called last. */
export function traceCandidates(ranked: readonly Candidate[]): readonly TracedCandidate[] {
  const traced: TracedCandidate[] = []
  for (const candidate of ranked) if (candidate.place !== 'unhealthy') traced.push(traceCandidate(candidate))
  for (const candidate of ranked) if (candidate.place === 'unhealthy') traced.push(traceCandidate(candidate))
  return traced.slice(0, maximumTraced)
}

/** Adds the HTTP statuses and own keys of the attempts that the record lists, and the candidates not called in their turn. */
function traceAttempts(attempts: Progress['attempts'], trace: Built<RequestTrace>): void {
  const statuses: number[] = []
  const ownKeys: string[] = []
  const skipped: [string, AttemptSkip][] = []
  for (const { model, outcome, status, ownKey = '' } of attempts)
    if (wasCalled(outcome)) {
      statuses.push(status ?? 0)
      ownKeys.push(ownKey)
    } else skipped.push([model, outcome])
  if (statuses.length > 0) trace.s = statuses.slice(-maximumTried)
  if (ownKeys.some(name => name !== '')) trace.o = ownKeys.slice(-maximumTried)
  if (skipped.length > 0) trace.k = skipped.slice(0, maximumTraced)
}

/** Adds the moderation layer that decided, and the field that the error names. */
function traceDecision(
  { layer, category, param }: NonNullable<Progress['decision']>,
  trace: Built<RequestTrace>,
): void {
  const field = fieldName(param)
  if (layer !== null) trace.m = [layer.slice(0, 32), (category ?? '').slice(0, 64)]
  if (field !== null) trace.p = field
}

function traceCandidate(candidate: Candidate): TracedCandidate {
  const { model, score, place, health } = candidate
  const parts = candidate.parts()
  return [
    fullName(model),
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
