import type { Deps } from '../composition/deps.ts'
import type { ChatRequest, TokenUsage } from '../core/chat/chat.ts'
import { fullName, type Model } from '../core/models/models.ts'
import { likelyInputTokens } from '../core/tokens/tokens.ts'
import { baseCost, expectedOutput, usualWebTokens } from '../core/usage/cost-estimate.ts'
import { usualOutputTokens } from '../core/usage/output-length.ts'
import type { RequestContext } from './request-context.ts'
import type { Route } from './routing/route.ts'

/**
 * What an answered request teaches at once, in memory: how far its cost was from what an estimate would have said, how long
 * its answer was, and who has its beginning in a cache now.
 */
export function updateEstimates(
  deps: Pick<Deps, 'foresight' | 'ties'>,
  accountId: string,
  ask: ChatRequest,
  { reading, web }: Route,
  { serving }: RequestContext,
  served: { readonly model: Model; readonly usage: TokenUsage; readonly microcents: number },
): void {
  const { model, usage, microcents } = served
  const { inputTokens, cachedInputTokens, outputTokens } = usage
  deps.ties.answered(accountId, ask, { model: fullName(model), inputTokens, cachedInputTokens })
  const known = deps.foresight.of(reading.queryType, accountId)
  const expected = expectedOutput(model, reading, ask.maxOutputTokens, known).tokens * ask.choices
  const input = likelyInputTokens(ask, model.provider) + usualWebTokens(web, model)
  const foreseen = baseCost(model, input, expected) + web.microcents
  // A model without a price has no error, and an answer that was cut off no length of its own.
  if (foreseen === 0 || microcents === 0) return
  const isWhole = serving?.finishes.get(0) === 'stop'
  const usual = usualOutputTokens(model, reading) * ask.choices
  deps.foresight.settled(accountId, reading.queryType, {
    lengthRatio: isWhole ? outputTokens / usual : null,
    costRatio: microcents / foreseen,
  })
}
