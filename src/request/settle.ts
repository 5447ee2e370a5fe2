/**
 * Settlement: replaces a reservation by the actual usage, exactly once per admitted request, however it ended. Other
 * files compute the cost (`settled-cost.ts`), the usage record and the summary; this file writes them.
 */
import type { ResponseSummary } from '../core/chat/chat-events.ts'
import { type Catalog, fullName } from '../core/models/models.ts'
import type { Clock, Log } from '../core/ports.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import type { Meter } from '../limits/meter.ts'
import type { AdmittedRequest } from './admitted-request.ts'
import { type LearningEntryDeps, toLearningEntry } from './learning-entry.ts'
import type { Progress } from './progress.ts'
import { toResponseSummary } from './receipt.ts'
import { toRequestTrace } from './request-trace.ts'
import type { Candidate } from './routing/candidate.ts'
import type { Route } from './routing/route.ts'
import { paysInFull, type SettledCost, settledCost } from './settled-cost.ts'
import { type EstimateDeps, updateEstimates } from './update-estimates.ts'
import { toUsageRecord } from './usage-record.ts'

/** A finished request, as telemetry reads it. */
export type SettledRequest = {
  readonly request: Pick<AdmittedRequest, 'startedAt' | 'startedMonotonic' | 'trace'> & {
    readonly plan: Pick<Route, 'mode' | 'choices'> & {
      readonly first: { readonly model: Pick<Candidate['model'], 'id' | 'provider'> }
    }
  }
  readonly progress: Progress
  readonly response: SettledCost['response']
  readonly record: UsageRecord
  /** `chat` unless given. */
  readonly operation?: 'chat' | 'embeddings'
}

export type SettleDeps = LearningEntryDeps &
  EstimateDeps & {
    readonly meter: Pick<Meter, 'settle'>
    readonly catalogue: Pick<Catalog, 'resolve'>
    readonly clock: Pick<Clock, 'now' | 'monotonic'>
    readonly log: Pick<Log, 'warn'>
    readonly observe: { settled(request: SettledRequest): void }
  }

/**
 * Releases the reservation, counts the usage, and writes the usage record, in one step of the meter. Resolves when the
 * record is durable. Awaits `settled` with the record before it returns the summary.
 */
export async function settle(
  deps: SettleDeps,
  request: AdmittedRequest,
  progress: Progress,
  settled?: (record: UsageRecord) => Promise<void>,
): Promise<ResponseSummary> {
  const cost = settledCost(deps.catalogue, request, progress)
  const { response, model, billed } = cost
  if (model !== null && cost.isCut)
    deps.log.warn('bill_capped_at_reservation', {
      request_id: request.requestId,
      model: fullName(model),
      account_id: request.caller.accountId,
      owed: cost.owed,
      billed,
      shortfall: cost.owed - billed,
    })
  const { outcome, errorCode } = progress
  const record = toUsageRecord(request, progress, cost, { outcome, errorCode, at: deps.clock.monotonic() })
  record.trace = toRequestTrace(request.plan, progress, { ...cost, fallback: request.ask.fallback })
  const isEmbedding = request.ask.embedding !== undefined
  record.learning = isEmbedding ? null : toLearningEntry(deps, request, progress, cost)
  try {
    await deps.meter.settle({
      seat: progress.reservation,
      tokens: tokensOf(record),
      microcents: billed,
      ...(paysInFull(request.caller) && { isOwedInFull: true }),
      record,
    })
  } finally {
    deps.observe.settled({ request, progress, response, record, operation: isEmbedding ? 'embeddings' : 'chat' })
  }
  if (settled !== undefined) await settled(record)
  if (outcome === 'completed' && !isEmbedding) updateEstimates(deps, request, cost)
  return toResponseSummary(request, progress, cost)
}

/** Tokens that count against the daily limit. */
function tokensOf(record: UsageRecord): number {
  return record.input_tokens + record.output_tokens
}

export type CheckpointDeps = {
  readonly meter: Pick<Meter, 'checkpoint'>
  readonly catalogue: Pick<Catalog, 'resolve'>
  readonly clock: Pick<Clock, 'monotonic'>
}

/**
 * Writes a checkpoint with the bill of a running request, so that a process that dies loses at most 1 s of it. It
 * counts as a failure of the gateway: the ledger then shows that the output was truncated.
 */
export function checkpoint(deps: CheckpointDeps, request: AdmittedRequest, progress: Progress): void {
  deps.meter.checkpoint(progress.reservation, () => {
    const cost = { ...settledCost(deps.catalogue, request, progress), estimated: true }
    const end = { outcome: 'failed', errorCode: 'service_unavailable', at: deps.clock.monotonic() } as const
    const record = { ...toUsageRecord(request, progress, cost, end), truth: 'checkpoint' } as const
    return {
      tokens: tokensOf(record),
      microcents: cost.billed,
      ...(paysInFull(request.caller) && { isOwedInFull: true }),
      record,
    }
  })
}
