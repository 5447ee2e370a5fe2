import type { Ask } from '../core/chat.ts'
import { GatewayError } from '../core/errors.ts'
import { priceTable, toUsd } from '../core/money.ts'
import type { Caller, Limits } from '../core/plans.ts'
import type { LeftOut } from '../core/web.ts'
import { noWeb, type WebPlan } from '../core/web-plan.ts'
import type { Deps } from '../deps.ts'
import type { Admission, RefusalCode, Seat } from '../stores/meter.ts'
import type { Route } from './route.ts'
import type { Tally } from './tally.ts'

/** A seat, and the plan that it pays for. */
type Admitted = { readonly seat: Seat; readonly plan: Route }

/**
 * Takes a seat, a place in the minute, and what the request can cost at most: all of it or nothing, before any work is
 * spent. Where the day has enough left for the answer and not for the web, the plan goes on without it. Throws the limit
 * that stood in the way, with the time after which it will not, or that the account has to pay.
 */
export async function admit(deps: Deps, caller: Caller, ask: Ask, wanted: Route, tally: Tally): Promise<Admitted> {
  if (caller.refusedFrom !== undefined && caller.refusedFrom <= deps.clock.now()) throw paymentRequired()
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

const nothingLookedUp = { searched: false, sources: [], searchMicrocents: 0, fetchMicrocents: 0 }

function allOf({ query, urls, surplus }: WebPlan): readonly LeftOut[] {
  return [...(query === null ? [] : [null]), ...urls, ...surplus].map(url => ({ url, code: 'refused' }))
}

function attempt(deps: Deps, caller: Caller, ask: Ask, plan: Route, tally: Tally): Promise<Admission> {
  const { first } = plan
  const prices = priceTable(first.model.pricing, plan.inputTokens)
  return deps.meter.admit({
    requestId: tally.requestId,
    accountId: caller.accountId,
    limits: caller.limits,
    inputTokens: plan.inputTokens,
    outputTokens: Math.min(ask.maxOutputTokens ?? deps.config.defaultMaxOutputTokens, first.model.maxOutputTokens),
    choices: ask.choices,
    fairShare: ask.maxOutputTokens === null,
    // Nobody knows beforehand what will be cached or written.
    inputPrice: Math.max(prices.input, prices.cachedInput, prices.cacheWrite),
    outputPrice: prices.output,
    extraMicrocents: plan.web.microcents,
  })
}

/** Does not come back within a client library's three tries. */
function isDaily(code: RefusalCode): boolean {
  return code === 'daily_tokens_exceeded' || code === 'daily_cost_exceeded'
}

function paymentRequired(): GatewayError {
  const message =
    'Your account has to pay first: an owner can add a payment method under /api/v1/billing, where open invoices are listed too.'
  return new GatewayError('payment_required', message, { shouldRetry: false })
}

function refusal(admission: Extract<Admission, { admitted: false }>, limits: Limits): GatewayError {
  const { code, retryAfterMs } = admission
  return new GatewayError(code, refusalMessage(code, limits), {
    retryAfterMs,
    ...(isDaily(code) ? { shouldRetry: false } : {}),
  })
}

function refusalMessage(code: RefusalCode, limits: Limits): string {
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
