import type { ChatRequest, QueryType } from '../core/chat/chat.ts'
import type { TokenUsage } from '../core/chat/chat-events.ts'
import { fullName } from '../core/models/models.ts'
import type { CalibrationSample } from '../learning/estimate-calibration.ts'
import type { CachePlace } from '../models/cache-affinity.ts'
import { likelyInputTokens } from '../text/tokens/tokens.ts'
import type { AdmittedRequest } from './admitted-request.ts'
import { baseCost, type CalibratedOutput, expectedOutput, usualWebTokens } from './cost-estimate.ts'
import { usualOutputTokens } from './output-length.ts'
import type { SettledCost } from './settled-cost.ts'
import type { UpstreamResponse } from './upstream-response.ts'

export type EstimateDeps = {
  /** Output length per query type, of one account and of all. */
  readonly foresight: {
    of(queryType: QueryType, accountId: string | null): CalibratedOutput
    settled(accountId: string, queryType: QueryType, outcome: CalibrationSample): void
  }
  /** Which model has the beginning of a conversation in its cache. */
  readonly ties: {
    answered(
      accountId: string,
      ask: ChatRequest,
      by: {
        readonly model: string
        readonly inputTokens: number
        readonly isCached: boolean | null
        readonly place: CachePlace
      },
    ): void
  }
}

/**
 * Updates the in-memory state after an answered request: error of the cost estimate, output length, and the model whose
 * cache has the conversation's beginning.
 */
export function updateEstimates(
  deps: EstimateDeps,
  { caller, ask, plan: { reading, web } }: AdmittedRequest,
  { response, model, rates, usage, billed, hedge }: SettledCost,
): void {
  if (model === null || rates === null || response === null) return
  const { accountId } = caller
  const { inputTokens, outputTokens } = usage
  deps.ties.answered(accountId, ask, {
    model: fullName(model),
    inputTokens,
    isCached: isCached(response, usage),
    place: { host: response.candidate.endpoint.id, account: response.keyAccount ?? null },
  })
  const known = deps.foresight.of(reading.queryType, accountId)
  const expected = expectedOutput(model, reading, ask.maxOutputTokens, known).tokens * ask.choices
  const input = likelyInputTokens(ask, model.provider) + usualWebTokens(web, model)
  const estimate = baseCost(rates, input, expected) + web.microcents
  // A model without a price has no estimate error, and a truncated output has no length of its own.
  if (estimate === 0 || billed === 0) return
  const isWhole = response.finishes.get(0) === 'stop'
  const usual = usualOutputTokens(model, reading) * ask.choices
  deps.foresight.settled(accountId, reading.queryType, {
    lengthRatio: isWhole ? outputTokens / usual : null,
    costRatio: (billed - hedge) / estimate,
  })
}

/** Returns whether the upstream used its prompt cache; null = it writes without saying so. */
function isCached(response: UpstreamResponse, { cachedInputTokens, cacheWriteTokens }: TokenUsage): boolean | null {
  if (cachedInputTokens + cacheWriteTokens > 0) return true
  const { endpoint, model } = response.candidate
  return endpoint.provider.cachesMarkedInput?.(model) === true ? false : null
}
