/** Converts one found request to its API form, with explanations. */
import { type AttemptFailure, attemptFailures } from '../../core/chat/attempts.ts'
import { shownRule } from '../../core/policy/rules.ts'
import { toUsd } from '../../core/usage/money.ts'
import { type Rejection, sentKindIn } from '../../core/usage/rejection.ts'
import type { RequestTrace, TracedCandidate } from '../../core/usage/usage-record.ts'
import { type ErrorCode, errorTable } from '../../core/validation/errors.ts'
import type { FoundRequest, RejectedRequest, TracedRequest } from '../../ledger/find-request.ts'
import { explainPlace } from '../../request/dry-run.ts'
import { attemptCause, explainRequest, skipCause } from './explain-request.ts'
import type { RequestRecord, ShownRequest } from './schemas.ts'
import { shownRejected, shownRequest } from './serializers.ts'

/** Returns the values that a field of a dialect's requests accepts, in words; null = unknown. */
export type DescribeField = (dialect: Rejection['dialect'], field: string) => string | null

/** Returns the record of a found request. */
export function shownRecord(found: FoundRequest, describeField: DescribeField): RequestRecord {
  return found.kind === 'recorded' ? shownTraced(found.request) : shownRejection(found.request, describeField)
}

function shownTraced(row: TracedRequest): RequestRecord {
  const request = shownRequest(row)
  const { trace } = row
  const [layer = null, category = null] = trace?.m ?? []
  const param = trace?.p ?? null
  const isTruncated = row.status === 'failed' && row.streamed && row.first_token_ms !== null
  const causes = request.tried?.flatMap(({ outcome }) => (isFailure(outcome) ? [outcome] : [])) ?? []
  const ended = {
    status: row.status,
    errorCode: row.error_code,
    layer,
    category,
    param,
    sent: null,
    accepted: null,
    limit: null,
    finishReason: row.finish_reason,
    causes,
    isTruncated,
  }
  const { decidedBy, summary, nextStep } = explainRequest(ended)
  return {
    ...request,
    http_status: httpStatus(row.status, row.error_code, isTruncated),
    fallback: trace?.f ?? 'any',
    rules: (trace?.u ?? []).map(shownRule),
    candidates: trace?.c.map(shownCandidate) ?? null,
    attempt_details:
      request.tried?.map((attempt, at) => ({
        ...attempt,
        http_status: trace?.s?.[at] || null,
        own_key: trace?.o?.[at] || null,
        cause: attemptCause(attempt.outcome),
      })) ?? null,
    skipped:
      trace === null ? null : (trace.k ?? []).map(([model, reason]) => ({ model, reason, cause: skipCause(reason) })),
    cost: shownCost(row),
    cache_share: row.input_tokens === 0 ? null : Math.min(1, row.cached_input_tokens / row.input_tokens),
    decided_by: decidedBy,
    layer,
    category: category === '' ? null : category,
    param,
    param_sent: null,
    param_accepted: null,
    limit: null,
    summary,
    next_step: nextStep,
  }
}

function isFailure(outcome: string): outcome is AttemptFailure {
  return attemptFailures.some(attemptFailure => attemptFailure === outcome)
}

function httpStatus(status: ShownRequest['status'], code: string | null, isTruncated: boolean): number | null {
  if (status === 'completed' || isTruncated) return 200
  if (status === 'client_closed' || code === null || !Object.hasOwn(errorTable, code)) return null
  return errorTable[code as ErrorCode].status
}

function shownCandidate([model, thousandths, place, health, traced]: TracedCandidate) {
  const [quality = 0, cost = 0, speed = 0, reliability = 0, adjustment = 0] = traced?.map(part => part / 1000) ?? []
  const parts = traced === null ? null : { quality, cost, speed, reliability, adjustment }
  return { model, score: thousandths / 1000, parts, place, health, reasons: [...explainPlace({ place, health })] }
}

function shownCost(row: TracedRequest): RequestRecord['cost'] {
  const { trace, search_microcents: search, fetch_microcents: fetch } = row
  if (trace === null) return null
  const [input, cached, written, output] = trace.b ?? [0, 0, 0, 0]
  const reasoning = row.output_tokens === 0 ? 0 : Math.round((output * row.reasoning_tokens) / row.output_tokens)
  return {
    input_usd: toUsd(input),
    cached_input_usd: toUsd(cached),
    cache_write_usd: toUsd(written),
    output_usd: toUsd(output),
    reasoning_usd: toUsd(Math.min(output, reasoning)),
    search_usd: toUsd(search),
    fetch_usd: toUsd(fetch),
    total_usd: toUsd(row.billed_microcents),
    unbilled_usd: toUsd(row.shortfall_microcents),
    prices: trace.r === undefined ? null : shownPrices(trace.r),
    baseline: trace.v === undefined ? null : shownBaseline(trace.v),
  }
}

function shownBaseline([model, microcents, cached, written]: NonNullable<RequestTrace['v']>) {
  return { model, cost_usd: toUsd(microcents), cached_input_tokens: cached, cache_write_tokens: written }
}

function shownPrices([input, cached, written, output, source]: NonNullable<RequestTrace['r']>) {
  return {
    input_per_mtok: input,
    cached_input_per_mtok: cached,
    cache_write_per_mtok: written,
    output_per_mtok: output,
    source,
  }
}

function shownRejection(row: RejectedRequest, describeField: DescribeField): RequestRecord {
  const { error_code: errorCode, layer, param } = row
  // Without a moderation layer the column has the limit, or the kind of the invalid value.
  const sent = layer === null ? sentKindIn(row.category) : null
  const [category, limit] = layer === null ? [null, sent === null ? row.category : null] : [row.category, null]
  const accepted = sent === null || param === null ? null : describeField(row.dialect, param)
  const named = { layer, category, param, sent, accepted, limit }
  const ended = { errorCode, ...named, finishReason: null, causes: [], isTruncated: false }
  const { decidedBy, summary, nextStep } = explainRequest({ status: 'rejected', ...ended })
  return {
    ...shownRejected(row),
    http_status: httpStatus('rejected', errorCode, false),
    fallback: 'any',
    rules: [],
    candidates: null,
    attempt_details: [],
    skipped: [],
    cost: null,
    cache_share: null,
    decided_by: decidedBy,
    layer,
    category,
    param,
    param_sent: sent,
    param_accepted: accepted,
    limit,
    summary,
    next_step: nextStep,
  }
}
