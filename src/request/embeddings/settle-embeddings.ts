/** The bill of one request for embeddings: what it owes, its usage record, and its settlement in the meter. */
import type { Caller } from '../../core/limits/plans.ts'
import { fullName } from '../../core/models/models.ts'
import type { Tags } from '../../core/request/tags.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import {
  type AttemptRecord,
  attemptOutcomes,
  maximumRecordedAttempts,
  maximumTraced,
  maximumTried,
  type RequestTrace,
  type TracedCandidate,
  type TriedOutcome,
  type UsageRecord,
} from '../../core/usage/usage-record.ts'
import type { InterimUsage } from '../../limits/meter.ts'
import { baseCost } from '../cost-estimate.ts'
import type { Progress } from '../progress.ts'
import { tracedAttempts, tracedDecision } from '../request-trace.ts'
import { paysInFull } from '../settled-cost.ts'
import { recordLabels } from '../usage-record.ts'
import type { EmbeddingsProgress } from './call-hosts.ts'
import type { PreparedEmbeddings } from './prepare.ts'

/** Fixed properties of an admitted request. */
export type AdmittedEmbeddings = {
  readonly requestId: string
  readonly caller: Caller
  readonly tags: Tags | undefined
  /** Epoch milliseconds. */
  readonly startedAt: number
  /** Monotonic milliseconds of the same moment, for durations. */
  readonly startedMonotonic: number
}

/** Usage and cost of a request. Money is an integer of 1e-8 USD. */
type EmbeddingsBill = {
  readonly inputTokens: number
  readonly estimated: boolean
  readonly owed: number
  /** On evaluation at most what was reserved. */
  readonly billed: number
}

/**
 * Computes the bill. A client that disconnected owes for the completed calls; a request that failed or was blocked owes
 * nothing, since its client has no vector. Counts above what the inputs can hold are an upstream's defect and are cut.
 */
export function computeEmbeddingsBill(
  { hosts, mostTokens, texts }: PreparedEmbeddings,
  { host, seat, ...progress }: Pick<EmbeddingsProgress, 'host' | 'seat' | 'inputTokens' | 'estimated'>,
  { isOwed, caller }: { readonly isOwed: boolean; readonly caller: Pick<Caller, 'plan'> },
): EmbeddingsBill {
  if (host === null || !isOwed) return { inputTokens: 0, estimated: false, owed: 0, billed: 0 }
  const most = Math.max(mostTokens, texts.length * hosts[0].model.maximumInputTokens)
  const inputTokens = Math.min(progress.inputTokens, most)
  const owed = baseCost(host.model.pricing, inputTokens, 0)
  const billed = paysInFull(caller) ? owed : Math.min(owed, seat.reservedMicrocents)
  return { inputTokens, estimated: progress.estimated, owed, billed }
}

/** Builds the content-free usage record. */
export function toEmbeddingsRecord(
  { requestId, caller, tags, startedAt, startedMonotonic }: AdmittedEmbeddings,
  { hosts }: Pick<PreparedEmbeddings, 'hosts'>,
  progress: EmbeddingsProgress,
  { bill, ...end }: Pick<UsageRecord, 'status' | 'error_code'> & { readonly at: number; readonly bill: EmbeddingsBill },
): UsageRecord {
  const { seat } = progress
  // A failed request has no serving model: `tried` lists the hosts that were called.
  const model = end.status === 'failed' || end.status === 'blocked' ? null : (progress.host?.model ?? null)
  return {
    request_id: requestId,
    account_id: caller.accountId,
    key_id: caller.keyId,
    at_ms: Math.max(startedAt, seat.day * dayMs),
    provider: model?.provider ?? '',
    model: model?.id ?? '',
    requested_model: fullName(hosts[0].model),
    routing_mode: 'manual',
    strategy: null,
    query_type: null,
    streamed: false,
    dialect: 'embeddings',
    status: end.status,
    error_code: end.error_code,
    finish_reason: null,
    input_tokens: bill.inputTokens,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    output_tokens: 0,
    reasoning_tokens: 0,
    estimated: bill.estimated,
    billed_microcents: bill.billed,
    reserved_microcents: seat.reservedMicrocents,
    ...(bill.owed === bill.billed ? {} : { shortfall_microcents: bill.owed - bill.billed }),
    attempts: Math.min(progress.attempts.length, maximumRecordedAttempts),
    tried: triedOf(progress.attempts, startedMonotonic),
    latency_ms: Math.round(end.at - startedMonotonic),
    first_token_ms: null,
    metadata: null,
    ...recordLabels(caller, tags),
    learning: null,
  }
}

/** Builds the trace of a settled request. Its candidates are hosts of one model, in the order of calls. */
export function toEmbeddingsTrace(
  { hosts }: Pick<PreparedEmbeddings, 'hosts'>,
  { attempts }: Pick<EmbeddingsProgress, 'attempts'>,
  { decision }: Pick<Progress, 'decision'>,
): RequestTrace {
  const candidates = hosts
    .slice(0, maximumTraced)
    .map(({ model }): TracedCandidate => [fullName(model), 1000, 'requested', 'healthy', null])
  return { c: candidates, ...tracedAttempts(attempts), ...tracedDecision(decision) }
}

/** Returns the checkpoint of a running request: its settlement if this process died now. */
export function toInterimUsage(
  request: AdmittedEmbeddings,
  prepared: PreparedEmbeddings,
  progress: EmbeddingsProgress,
  now: number,
): InterimUsage {
  const bill = {
    ...computeEmbeddingsBill(prepared, progress, { isOwed: true, caller: request.caller }),
    estimated: true,
  }
  const end = { status: 'failed', error_code: 'service_unavailable', at: now, bill } as const
  const record = { ...toEmbeddingsRecord(request, prepared, progress, end), truth: 'checkpoint' } as const
  const host = progress.host?.model
  const served = host === undefined ? {} : { provider: host.provider, model: host.id }
  return {
    tokens: bill.inputTokens,
    microcents: bill.billed,
    ...(paysInFull(request.caller) && { isOwedInFull: true }),
    record: { ...record, ...served },
  }
}

function triedOf(attempts: Progress['attempts'], startedMonotonic: number): AttemptRecord[] {
  const tried: AttemptRecord[] = []
  for (const { model, outcome, startedAt, durationMs } of attempts)
    if (isTried(outcome)) tried.push([model, outcome, Math.round(startedAt - startedMonotonic), durationMs])
  return tried.slice(-maximumTried)
}

function isTried(outcome: Progress['attempts'][number]['outcome']): outcome is TriedOutcome {
  return attemptOutcomes.some(one => one === outcome)
}

/** Name of the serving host in the operator's log. */
export function servedName({ host }: EmbeddingsProgress): string {
  return host === null ? '' : fullName(host.model)
}
