/**
 * Settlement: replaces a reservation by the actual usage, exactly once per admitted request, however it ended. Other
 * files compute the cost (`settled-cost.ts`), the usage record and the summary; this file writes them.
 */

import type { ResponseSummary, TokenUsage } from '../core/chat/chat-events.ts'
import { fullName } from '../core/models/models.ts'
import type { Clock, Log } from '../core/ports.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import { failureReason } from '../core/validation/errors.ts'
import type { CacheAffinityTracker } from '../learning/cache-affinity.ts'
import type { EstimateCalibrator } from '../learning/estimate-calibration.ts'
import type { ConversationNote, InterimUsage, Meter } from '../limits/meter.ts'
import { likelyInputTokens } from '../text/tokens/tokens.ts'
import { type BaselineDeps, compareWithBaseline } from './baseline.ts'
import { baseCost, expectedOutput, usualOutputTokens, usualWebTokens } from './cost-estimate.ts'
import type { AdmittedRequest, Progress } from './progress.ts'
import { type RecordDeps, type SettledRequest, settledRequest, toUsageRecord } from './record.ts'
import { paysInFull, type SettledCost, settledCost } from './settled-cost.ts'
import type { UpstreamResponse } from './upstream-response.ts'

export type SettleDeps = RecordDeps &
  BaselineDeps &
  EstimateDeps & {
    readonly meter: Pick<Meter, 'settle'>
    readonly clock: Pick<Clock, 'now' | 'monotonic'>
    readonly log: Pick<Log, 'warn'>
    readonly observe: { settled(request: SettledRequest): void }
  }

/**
 * Releases the reservation, counts the usage, and writes the usage record, in one step of the meter. Resolves when the
 * record is durable. Awaits `settled` with the record before it returns.
 */
export async function settle(
  deps: SettleDeps,
  request: AdmittedRequest,
  progress: Progress,
  settled?: (record: UsageRecord) => Promise<void>,
): Promise<ResponseSummary> {
  const cost = recordedCost(deps, request, progress)
  if (cost.isCut) warnOfShortfall(deps, request, cost)
  const ended = settledRequest(deps, request, progress, cost)
  const { record } = ended
  try {
    await deps.meter.settle({
      reservation: progress.reservation,
      ...getBill(request, record),
      note: record.learning == null ? null : findNote(deps, request, cost),
    })
  } finally {
    deps.observe.settled(ended)
    // A record that is not durable yet is billed all the same, so its request must not run again.
    if (settled !== undefined) await settled(record)
  }
  return ended
}

function warnOfShortfall({ log }: SettleDeps, request: AdmittedRequest, { model, owed, billed }: SettledCost): void {
  if (model === null) return
  log.warn('bill_capped_at_reservation', {
    request_id: request.requestId,
    model: fullName(model),
    account_id: request.caller.accountId,
    owed,
    billed,
    shortfall: owed - billed,
  })
}

/** Returns what the meter counts. */
function getBill({ caller }: AdmittedRequest, record: UsageRecord): InterimUsage {
  return paysInFull(caller) ? { record, isOwedInFull: true } : { record }
}

/** Returns the cost of a request, and what it would have cost at the baseline. */
function recordedCost(deps: BaselineDeps, request: AdmittedRequest, progress: Progress): SettledCost {
  const cost = settledCost(deps.catalog, request, progress)
  cost.baseline = compareWithBaseline(deps, request, cost)
  return cost
}

export type CheckpointDeps = BaselineDeps & {
  readonly meter: Pick<Meter, 'checkpoint'>
  readonly clock: Pick<Clock, 'monotonic'>
}

/**
 * Writes a checkpoint with the bill of a running request, so that a process that dies loses at most 1 s of it. It
 * counts as a failure of the gateway: the ledger then shows that the output was truncated.
 */
export function checkpoint(deps: CheckpointDeps, request: AdmittedRequest, progress: Progress): void {
  deps.meter.checkpoint(progress.reservation, () => {
    const cost = recordedCost(deps, request, progress)
    const end = { outcome: 'failed', errorCode: 'service_unavailable', at: deps.clock.monotonic() } as const
    const record = toUsageRecord(request, progress, cost, end)
    record.estimated = true
    record.truth = 'checkpoint'
    return getBill(request, record)
  })
}

type EstimateDeps = {
  /** Output length per query type, of one account and of all. */
  readonly calibration: EstimateCalibrator
  /** Which model has the beginning of a conversation in its cache. */
  readonly ties: Pick<CacheAffinityTracker, 'answered'>
}

/** Updates the estimates before the settlement, which carries the note: an error in them must not leave a request unbilled. */
function findNote(deps: SettleDeps, request: AdmittedRequest, cost: SettledCost): ConversationNote | null {
  try {
    return updateEstimates(deps, request, cost)
  } catch (cause) {
    deps.log.warn('estimates_not_updated', { request_id: request.requestId, detail: failureReason(cause) })
    return null
  }
}

/**
 * Updates the in-memory state after an answered request: error of the cost estimate, output length, and the model whose
 * cache has the conversation's beginning. Returns the note of the conversation for other instances; null = none.
 */
function updateEstimates(
  deps: EstimateDeps,
  { caller, request, plan: { analysis, web, turn, inputTokens: planned } }: AdmittedRequest,
  { response, model, rates, usage, parts, billed, hedge }: SettledCost,
): ConversationNote | null {
  // The length and the cost of a continued text are of two models.
  if (model === null || rates === null || response === null || parts.length > 0) return null
  const { accountId } = caller
  const { inputTokens, outputTokens } = usage
  const { effort } = response
  const note = deps.ties.answered(accountId, request, {
    model: fullName(model),
    inputTokens,
    isCached: isCached(response, usage),
    place: { host: response.candidate.endpoint.id, account: response.keyAccount },
    turn: turn?.next ?? null,
    effort,
    estimatedTokens: planned,
    microcents: billed,
  })
  const { queryType, words } = analysis
  const cues = { queryType, words, effort, lengths: deps.calibration.reasoning.current }
  const known = deps.calibration.of(queryType, accountId)
  const expected = expectedOutput(model, cues, request.maxOutputTokens, known).tokens * request.choices
  const input = likelyInputTokens(request, model.provider) + usualWebTokens(web, model)
  const estimate = baseCost(rates, input, expected) + web.microcents
  // A model without a price has no estimate error, and a truncated output has no length of its own.
  if (estimate === 0 || billed === 0) return note
  const isWhole = response.finishes.get(0) === 'stop'
  const usual = usualOutputTokens(model, cues) * request.choices
  // Some providers do not count reasoning on its own; that of several choices has no length of one.
  const reasoning = usage.reasoningTokens > 0 || effort === 'none' ? usage.reasoningTokens : null
  if (effort !== null && reasoning !== null && isWhole && request.choices === 1)
    deps.calibration.reasoning.add(fullName(model), effort, reasoning)
  deps.calibration.settled(accountId, queryType, {
    lengthRatio: isWhole ? outputTokens / usual : null,
    costRatio: (billed - hedge) / estimate,
  })
  return note
}

/** Returns whether the upstream used its prompt cache; null = it writes without saying so. */
function isCached(response: UpstreamResponse, { cachedInputTokens, cacheWriteTokens }: TokenUsage): boolean | null {
  if (cachedInputTokens + cacheWriteTokens > 0) return true
  const { endpoint, model } = response.candidate
  return endpoint.provider.cachesMarkedInput?.(model) === true ? false : null
}
