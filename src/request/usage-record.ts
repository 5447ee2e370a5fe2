/** Content-free usage record of a request in the ledger. */
import type { AttemptOutcome } from '../core/chat/attempts.ts'
import type { TokenUsage } from '../core/chat/chat-events.ts'
import type { Caller } from '../core/limits/plans.ts'
import { type Tags, tagsOf } from '../core/request/tags.ts'
import { dayMs } from '../core/text/utc-days.ts'
import {
  type AttemptRecord,
  attemptOutcomes,
  maximumRecordedAttempts,
  maximumTried,
  maximumUpstreamId,
  type TriedOutcome,
  type UsageRecord,
} from '../core/usage/usage-record.ts'
import type { AdmittedRequest } from './admitted-request.ts'
import type { Progress } from './progress.ts'
import { requestedModel } from './routing/named-model.ts'
import type { SettledCost } from './settled-cost.ts'

/** Builds the record. `end` is the status of the request and its monotonic millisecond. */
export function toUsageRecord(
  request: AdmittedRequest,
  progress: Progress,
  cost: SettledCost,
  end: Pick<Progress, 'outcome' | 'errorCode'> & { readonly at: number },
): UsageRecord {
  const { ask, caller, plan, startedMonotonic } = request
  const { reservation } = progress
  const { response, model, estimated, owed, billed, search, fetch, hedge, otherUsages } = cost
  const usage = otherUsages.reduce(sumOf, cost.usage)
  return {
    request_id: request.requestId,
    account_id: caller.accountId,
    key_id: caller.keyId,
    // A request counts for the day of its reservation.
    at_ms: Math.max(request.startedAt, reservation.day * dayMs),
    provider: model?.provider ?? '',
    model: model?.id ?? '',
    requested_model: requestedModel(plan),
    ...upstreamIdOf(response),
    routing_mode: plan.mode,
    strategy: plan.strategy,
    query_type: ask.embedding === undefined ? plan.reading.queryType : null,
    streamed: ask.stream !== null,
    dialect: ask.dialect,
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
    attempts: Math.min(progress.attempts.length, maximumRecordedAttempts),
    tried: toAttemptRecords(progress, startedMonotonic),
    latency_ms: Math.round(end.at - startedMonotonic),
    first_token_ms: progress.firstContentMs === null ? null : Math.round(progress.firstContentMs),
    metadata: ask.metadata === null ? null : { ...ask.metadata },
    ...recordLabels(caller, tagsOf(caller, ask)),
  }
}

/** Tags, and the key's lineage if it is not the key itself. Both are absent in most records. */
export function recordLabels(
  { keyId, lineageId = keyId }: Caller,
  tags: Tags | undefined,
): Pick<UsageRecord, 'lineage_id' | 'tags'> {
  return {
    ...(lineageId === keyId ? {} : { lineage_id: lineageId }),
    ...(tags === undefined ? {} : { tags }),
  }
}

function upstreamIdOf(response: SettledCost['response']): Pick<UsageRecord, 'upstream_id'> {
  const id = response?.upstreamId ?? null
  return id === null || id === '' || id.length > maximumUpstreamId || /[^!-~]/.test(id) ? {} : { upstream_id: id }
}

/** The tokens of all attempts that the provider charges count against the daily limit. */
function sumOf(one: TokenUsage, other: TokenUsage): TokenUsage {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    cachedInputTokens: one.cachedInputTokens + other.cachedInputTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    reasoningTokens: one.reasoningTokens + other.reasoningTokens,
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
export function wasCalled(outcome: AttemptOutcome): outcome is TriedOutcome {
  return attemptOutcomes.some(one => one === outcome)
}
