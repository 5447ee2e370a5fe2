import type { Deps } from '../composition/deps.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import type { OmittedSource } from '../core/chat/web-sources.ts'
import type { Caller, Limits } from '../core/limits/plans.ts'
import { tokensSpared } from '../core/tokens/tokens.ts'
import { priceTable, toUsd } from '../core/usage/money.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { noWeb, type WebPlan } from '../core/web/web-plan.ts'
import type { LimitReached } from '../limits/check.ts'
import type { Admission, AdmissionRequest, LimitErrorCode, Reservation } from '../limits/meter.ts'
import type { RequestContext } from './request-context.ts'
import type { Route } from './routing/route.ts'

/** A seat, and the plan that it pays for. */
type Admitted = { readonly seat: Reservation; readonly plan: Route }

/**
 * Takes a seat, a place in the minute, and what the request can cost at most: all of it or nothing, before any work is
 * spent. Where the day has enough left for the answer and not for the web, the plan goes on without it. Throws the limit
 * that stood in the way, with the time after which it will not, or that the account has to pay or is paused.
 */
export async function admit(
  deps: Deps,
  caller: Caller,
  ask: ChatRequest,
  wanted: Route,
  tally: RequestContext,
): Promise<Admitted> {
  checkPaid(deps, caller)
  let plan = wanted
  let admission = await attempt(deps, caller, ask, plan, tally)
  if (!admission.admitted && plan.web !== noWeb && isDaily(admission.code)) {
    plan = wanted.withoutWeb()
    admission = await attempt(deps, caller, ask, plan, tally)
    if (admission.admitted) tally.web = { ...nothingLookedUp, leftOut: allOf(wanted.web) }
  }
  if (!admission.admitted) throw refusal(admission, caller.limits)
  tally.seat = admission.seat
  deps.observe.admitted(tally)
  return { seat: admission.seat, plan }
}

export type AdmissionCheckDeps = {
  /** Why a request would not be admitted now; null = it would be. Reserves nothing. */
  readonly checkLimits: (request: AdmissionRequest) => Promise<LimitReached | null>
  readonly clock: { now(): number }
  readonly config: Pick<Deps['config'], 'defaultMaxOutputTokens'>
}

/** Returns the plan that `admit` would let pass now, and reserves nothing. Throws as `admit` does. */
export async function checkAdmission(
  deps: AdmissionCheckDeps,
  caller: Caller,
  ask: ChatRequest,
  wanted: Route,
  requestId: string,
): Promise<Route> {
  checkPaid(deps, caller)
  let plan = wanted
  let reached = await deps.checkLimits(requestOf(deps, caller, ask, plan, requestId))
  if (reached !== null && plan.web !== noWeb && isDaily(reached.code)) {
    plan = wanted.withoutWeb()
    reached = await deps.checkLimits(requestOf(deps, caller, ask, plan, requestId))
  }
  if (reached !== null) throw refusal(reached, caller.limits)
  return plan
}

const nothingLookedUp = { searched: false, sources: [], searchMicrocents: 0, fetchMicrocents: 0 }

function allOf({ query, urls, surplus }: WebPlan): readonly OmittedSource[] {
  return [...(query === null ? [] : [null]), ...urls, ...surplus].map(url => ({ url, code: 'refused' }))
}

function attempt(deps: Deps, caller: Caller, ask: ChatRequest, plan: Route, tally: RequestContext): Promise<Admission> {
  return deps.meter.admit(requestOf(deps, caller, ask, plan, tally.requestId))
}

function requestOf(
  { config }: Pick<AdmissionCheckDeps, 'config'>,
  caller: Caller,
  ask: ChatRequest,
  plan: Route,
  requestId: string,
): AdmissionRequest {
  const { first } = plan
  // Enough for the first model's provider: a fallback to another one reserves what it needs on top.
  const inputTokens = plan.inputTokens - tokensSpared(ask, first.model.provider)
  const prices = priceTable(first.model.pricing, inputTokens)
  return {
    requestId,
    accountId: caller.accountId,
    limits: caller.limits,
    inputTokens,
    outputTokens: Math.min(ask.maxOutputTokens ?? config.defaultMaxOutputTokens, first.model.maxOutputTokens),
    choices: ask.choices,
    fairShare: ask.maxOutputTokens === null,
    // Nobody knows beforehand what will be cached or written.
    inputPrice: Math.max(prices.input, prices.cachedInput, prices.cacheWrite),
    outputPrice: prices.output,
    extraMicrocents: plan.web.microcents,
  }
}

/** Does not come back within a client library's three tries. */
function isDaily(code: LimitErrorCode): boolean {
  return code === 'daily_tokens_exceeded' || code === 'daily_cost_exceeded'
}

function checkPaid({ clock }: Pick<AdmissionCheckDeps, 'clock'>, { isPaused, refusedFrom }: Caller): void {
  if (isPaused) throw accountPaused()
  if (refusedFrom === undefined || refusedFrom > clock.now()) return
  const message =
    'Your account has to pay first: an owner can add a payment method under /api/v1/billing, where open invoices are listed too.'
  throw new GatewayError('payment_required', message, { shouldRetry: false })
}

function accountPaused(): GatewayError {
  const message =
    'This account is paused: its requests used more than was reserved and billed for them. Ask the operator of this gateway to resume it.'
  return new GatewayError('account_paused', message, { shouldRetry: false })
}

function refusal({ code, retryAfterMs }: LimitReached, limits: Limits): GatewayError {
  return new GatewayError(code, refusalMessage(code, limits), {
    retryAfterMs,
    ...(isDaily(code) ? { shouldRetry: false } : {}),
  })
}

function refusalMessage(code: LimitErrorCode, limits: Limits): string {
  switch (code) {
    case 'requests_per_minute_exceeded':
      return `Rate limit reached: ${limits.requestsPerMinute} requests per minute for this account. Retry after the time in the retry-after header.`
    case 'concurrent_requests_exceeded':
      return `Concurrency limit reached: ${limits.concurrentRequests} concurrent requests for this account. Retry when one has finished.`
    case 'daily_tokens_exceeded':
      return `Daily token limit reached: this request needs more than the tokens remaining of ${limits.dailyTokens} per day. Shorten it, wait until 00:00 UTC, or ask for a higher limit.`
    case 'daily_cost_exceeded':
      return `Daily cost limit reached: this request can cost more than remains of $${toUsd(limits.dailyCostMicrocents)} per day. Choose a cheaper model, wait until 00:00 UTC, or ask for a higher limit.`
    default:
      return code satisfies never
  }
}

export { checkPaid, refusal as limitReachedError }
