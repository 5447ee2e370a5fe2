/** What a request owes: the upstream's own count where it gave one, ours for the rest, and at most what was reserved. */
import type { ChatRequest, TokenUsage } from '../core/chat/chat.ts'
import type { Catalog, Model } from '../core/models/models.ts'
import { estimateTokens, likelyInputTokens } from '../core/tokens/tokens.ts'
import { costOf } from '../core/usage/money.ts'
import type { Reservation } from '../limits/meter.ts'
import type { AdmittedRequest } from './admitted-request.ts'
import { billedResponse, type Progress } from './progress.ts'
import type { Route } from './routing/route.ts'
import { servedModel } from './served-model.ts'
import type { UpstreamResponse } from './upstream-response.ts'

/** What a request comes to. Money is integers of 1e-8 USD. */
export type SettledCost = {
  /** The response that is billed; null = none. */
  readonly response: UpstreamResponse | null
  /** The model that served; null = none. */
  readonly model: Model | null
  readonly usage: TokenUsage
  readonly estimated: boolean
  /** All that was used, in money; above `billed` by the shortfall. */
  readonly owed: number
  readonly billed: number
  /** Parts of what is billed. */
  readonly search: number
  readonly fetch: number
  /** More was counted than had been reserved, or than can be. */
  readonly isCut: boolean
}

/** What costs are worked out from. */
type Counted = {
  readonly plan: Pick<Route, 'inputTokens'>
  readonly ask: Pick<ChatRequest, 'choices'>
  readonly seat: Reservation
}

/**
 * Bills at most what was reserved. The tokens are the upstream's own count, also above the reservation: all of them count
 * against the day. What was used and not billed is the shortfall, which the operator bears and the account is held to.
 */
export function settledCost(
  catalogue: Pick<Catalog, 'resolve'>,
  { plan, ask }: Pick<AdmittedRequest, 'plan' | 'ask'>,
  progress: Progress,
): SettledCost {
  const response = billedResponse(progress)
  const seat = progress.reservation
  const model = response === null ? null : servedModel(catalogue, response)
  const { usage: counted, estimated } = used(response, { plan, ask, seat })
  const usage = model === null ? counted : possible(counted, model, { plan, ask, seat })
  // The web is reserved beside the model, and has no value to the client where no model answered.
  const web = model === null ? null : progress.web
  const search = web?.searchMicrocents ?? 0
  const fetch = web?.fetchMicrocents ?? 0
  const owed = model === null ? 0 : costOf(model, usage) + search + fetch
  const billed = Math.min(owed, seat.reservedMicrocents)
  const isCut = owed > billed || usage !== counted
  return { response, model, usage, estimated, owed, billed, search, fetch, isCut }
}

const nothing: TokenUsage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
}

/**
 * The upstream's own count where the answer was whole and it gave one, ours for what it left out. Of a truncated answer the part
 * that arrived is owed; of an answer without any content, nothing.
 */
function used(
  response: UpstreamResponse | null,
  { plan, ask, seat }: Counted,
): { readonly usage: TokenUsage; readonly estimated: boolean } {
  if (response === null) return { usage: nothing, estimated: false }
  const { candidate, usage: reported, ended, hasContent } = response
  if (ended && reported !== null) {
    const { inputTokens, outputTokens } = reported
    if (inputTokens !== null && outputTokens !== null)
      return { usage: { ...reported, inputTokens, outputTokens }, estimated: false }
  }
  if (!ended && !hasContent && reported === null) return { usage: nothing, estimated: false }
  const { provider } = candidate.model
  const inputTokens = reported?.inputTokens ?? Math.min(plan.inputTokens, likelyInputTokens(response.ask, provider))
  const cachedInputTokens = Math.min(reported?.cachedInputTokens ?? 0, inputTokens)
  const counted = reported?.outputTokens ?? null
  const outputTokens =
    ended && counted !== null
      ? counted
      : // An early count (Anthropic sends one with the first event) is a floor, not the sum.
        Math.max(counted ?? reported?.leastOutputTokens ?? 0, arrivedTokens(response, seat.outputCap * ask.choices))
  return {
    usage: {
      inputTokens,
      cachedInputTokens,
      cacheWriteTokens: Math.min(reported?.cacheWriteTokens ?? 0, inputTokens - cachedInputTokens),
      outputTokens,
      reasoningTokens: Math.min(reported?.reasoningTokens ?? 0, outputTokens),
    },
    estimated: true,
  }
}

/** Our count of what arrived, at most `cap`. Reasoning that the upstream counted is more than the summary it shows. */
function arrivedTokens({ candidate, text, reasoning, usage }: UpstreamResponse, cap: number): number {
  const { provider } = candidate.model
  const thoughts = Math.max(usage?.reasoningTokens ?? 0, estimateTokens(reasoning, provider))
  return Math.min(thoughts + estimateTokens(text, provider), cap)
}

/** Cuts counts to what the model can read and write: an upstream's defect must not use up a day. */
function possible(counted: TokenUsage, model: Model, { plan, ask, seat }: Counted): TokenUsage {
  const mostInput = Math.max(plan.inputTokens, model.contextWindow)
  const mostOutput = Math.max(seat.outputCap, model.maxOutputTokens) * ask.choices
  if (counted.inputTokens <= mostInput && counted.outputTokens <= mostOutput) return counted
  const inputTokens = Math.min(counted.inputTokens, mostInput)
  const outputTokens = Math.min(counted.outputTokens, mostOutput)
  const cachedInputTokens = Math.min(counted.cachedInputTokens, inputTokens)
  return {
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens: Math.min(counted.cacheWriteTokens, inputTokens - cachedInputTokens),
    outputTokens,
    reasoningTokens: Math.min(counted.reasoningTokens, outputTokens),
  }
}
