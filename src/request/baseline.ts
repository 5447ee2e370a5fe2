/**
 * Savings of routing: what the baseline model would have cost for the same tokens, with the prompt cache that a
 * conversation would have had there, against what was paid. docs/savings.md has the formula. Only prices of the catalog and
 * counts are read, never the texts.
 */

import type { ChatRequest } from '../core/chat/chat.ts'
import type { TokenUsage } from '../core/chat/chat-events.ts'
import type { Caller } from '../core/limits/plans.ts'
import { type Catalog, fitsWindow, fullName, type Model, unknownPrices, unmet } from '../core/models/models.ts'
import { ratesAt } from '../core/models/pricing.ts'
import { getCost } from '../core/usage/money.ts'
import type { CacheAffinityTracker } from '../learning/cache-affinity.ts'
import { getPromptCache } from '../models/catalog.ts'
import type { Endpoints } from '../providers/configured-provider.ts'
import { findEndpoint } from './routing/hosts.ts'
import type { Route } from './routing/route.ts'
import type { BaselineCost, SettledCost } from './settled-cost.ts'

export type BaselineDeps = {
  readonly catalog: Pick<Catalog, 'list' | 'resolve'>
  readonly endpoints: Endpoints
  /** `provider/model` that the operator named; null = the strongest configured model. */
  readonly config: { readonly routing: { readonly baselineModel: string | null } }
  readonly ties: Pick<CacheAffinityTracker, 'tokensBefore'>
}

/** Returns the baseline of an account: its own, the operator's, else the strongest one. Null = none has known prices. */
export function findBaseline(
  { catalog, endpoints, config }: Omit<BaselineDeps, 'ties'>,
  { baseline = config.routing.baselineModel ?? undefined }: Pick<Caller, 'baseline'>,
): Model | null {
  const model = baseline === undefined ? strongest(catalog.list, endpoints) : catalog.resolve(baseline)
  return model !== null && isPriced(model) ? model : null
}

const isPriced = ({ pricingSource }: Model) => pricingSource !== unknownPrices

/** Kept until a change of the catalog, which replaces its list as a whole. */
const strongestModels = new WeakMap<Endpoints, { readonly list: readonly Model[]; readonly model: Model | null }>()

function strongest(list: readonly Model[], endpoints: Endpoints): Model | null {
  const known = strongestModels.get(endpoints)
  if (known?.list === list) return known.model
  const [model = null] = list
    .filter(item => !item.deprecated && isPriced(item) && findEndpoint(endpoints, item) !== undefined)
    .toSorted((left, right) => right.figures.quality - left.figures.quality)
  strongestModels.set(endpoints, { list, model })
  return model
}

type ComparedRequest = {
  readonly plan: Pick<Route, 'mode' | 'needs' | 'terms'>
  readonly caller: Pick<Caller, 'accountId' | 'baseline'>
  readonly request: ChatRequest
}

type PaidCost = Pick<SettledCost, 'model' | 'rates' | 'usage' | 'parts' | 'billed' | 'ownKey'>

/**
 * Compares an automatic request with the baseline. The paid amount includes searches, page fetches, hedges, each part of a
 * continued text, and calls with own keys at catalog prices. Null = the client named its model, there was no output, or the
 * baseline has no price or cannot take the request.
 */
export function compareWithBaseline(
  deps: BaselineDeps,
  { plan, caller, request }: ComparedRequest,
  { model: served, rates, usage: last, parts, billed, ownKey }: PaidCost,
): BaselineCost | null {
  if (plan.mode !== 'auto' || served === null || rates === null) return null
  const baseline = findBaseline(deps, caller)
  if (baseline === null) return null
  const usage = parts.length === 0 ? last : joined(last, parts)
  const { inputTokens, outputTokens } = usage
  if (inputTokens + outputTokens === 0 || !fitsWindow(baseline, inputTokens, outputTokens)) return null
  if (plan.needs !== undefined && unmet(baseline, plan.needs) !== null) return null
  const isServed = baseline.id === served.id && baseline.provider === served.provider
  const caches = isServed ? last : cacheAtBaseline(deps, baseline, { caller, request, usage })
  const { cachedInputTokens: cached, cacheWriteTokens: written } = caches
  const microcents = getCost(isServed ? rates : ratesAt(baseline.pricing, plan.terms), {
    inputTokens,
    outputTokens,
    reasoningTokens: 0,
    cachedInputTokens: cached,
    cacheWriteTokens: written,
  })
  return { model: fullName(baseline), microcents, cached, written, saved: microcents - billed - (ownKey ?? 0) }
}

/** The whole text as one model would have written it: the input of the first part, and the output of all. */
function joined(last: TokenUsage, [first, ...more]: SettledCost['parts']): TokenUsage {
  if (first === undefined) return last
  const outputTokens = [first, ...more].reduce((sum, { usage }) => sum + usage.outputTokens, last.outputTokens)
  return { ...first.usage, outputTokens }
}

type CachedRequest = Pick<ComparedRequest, 'caller' | 'request'> & { readonly usage: TokenUsage }

/**
 * Returns what a conversation that had stayed at the baseline would read from its cache and write to it: the input of the
 * request before, if it is recent enough, or what the serving provider had cached, which no shorter memory explains.
 * Writes count where the provider writes every prompt, or where this prompt was written.
 */
function cacheAtBaseline(
  { ties }: Pick<BaselineDeps, 'ties'>,
  baseline: Model,
  { caller: { accountId }, request, usage }: CachedRequest,
): Pick<TokenUsage, 'cachedInputTokens' | 'cacheWriteTokens'> {
  const { leastTokens, stepTokens, isMarked } = getPromptCache(baseline.provider)
  const { inputTokens } = usage
  if (inputTokens < leastTokens) return { cachedInputTokens: 0, cacheWriteTokens: 0 }
  const before = Math.max(ties.tokensBefore(accountId, request, fullName(baseline)), usage.cachedInputTokens)
  const known = Math.min(before, inputTokens)
  const cached = known < leastTokens ? 0 : known - (known % stepTokens)
  const isWritten = !isMarked || usage.cacheWriteTokens > 0
  return { cachedInputTokens: cached, cacheWriteTokens: isWritten ? inputTokens - cached : 0 }
}
