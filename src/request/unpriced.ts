/** Usage that no price of the catalog covers. The record names it, so that no part of a bill is left out silently. */
import type { TokenUsage } from '../core/chat/chat-events.ts'
import { chosenTier } from '../core/chat/provider-features.ts'
import { type Model, unknownPrices } from '../core/models/models.ts'
import { coversTier } from '../core/models/pricing.ts'
import { type UnpricedKind, unpricedKinds } from '../core/usage/usage-record.ts'
import type { UpstreamResponse } from './upstream-response.ts'

type Served = Pick<UpstreamResponse, 'providerFields'>

/** Returns the tier that the provider reports; null = none, or it leaves the choice open. */
export function reportedTier({ providerFields }: Served): string | null {
  const reported = providerFields?.form === 'openai' ? providerFields.serviceTier : providerFields?.usage.service_tier
  return typeof reported === 'string' ? chosenTier(reported) : null
}

/** Returns the kind of a response's usage without a known price; null = none. */
export function findUnpriced(
  { pricing, pricingSource }: Pick<Model, 'pricing' | 'pricingSource'>,
  response: Served,
  { inputTokens, outputTokens, audioTokens = 0 }: TokenUsage,
): UnpricedKind | null {
  if (inputTokens + outputTokens === 0) return null
  if (pricingSource === unknownPrices) return 'model'
  const tier = reportedTier(response)
  if (tier !== null && !coversTier(pricing, tier)) return 'tier'
  return audioTokens > 0 ? 'audio' : null
}

export const worstKind = (kinds: readonly (UnpricedKind | null)[]): UnpricedKind | null =>
  unpricedKinds.find(kind => kinds.includes(kind)) ?? null
