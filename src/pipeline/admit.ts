import type { Ask } from '../core/chat.ts'
import { GatewayError } from '../core/errors.ts'
import { priceTable } from '../core/money.ts'
import type { Caller, Limits } from '../core/plans.ts'
import type { Deps } from '../deps.ts'
import type { Admission, RefusalCode, Seat } from '../stores/meter.ts'
import type { Route } from './route.ts'
import type { Tally } from './tally.ts'

/**
 * Takes a seat, a place in the minute, and what the request can cost at most: all of it or nothing, before any work is
 * spent. Throws the limit that stood in the way, with the time after which it will not, or that the account has to pay.
 */
export async function admit(deps: Deps, caller: Caller, ask: Ask, plan: Route, tally: Tally): Promise<Seat> {
  if (caller.refusedFrom !== undefined && caller.refusedFrom <= deps.clock.now()) throw paymentRequired()
  const { first } = plan
  const prices = priceTable(first.model.pricing, plan.inputTokens)
  const admission = await deps.meter.admit({
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
    extraMicrocents: 0,
  })
  if (!admission.admitted) throw refusal(admission, caller.limits)
  tally.seat = admission.seat
  return admission.seat
}

function paymentRequired(): GatewayError {
  const message =
    'Your account has to pay first: an owner can add a payment method under /api/v1/billing, where open invoices are listed too.'
  return new GatewayError('payment_required', message, { shouldRetry: false })
}

function refusal(admission: Extract<Admission, { admitted: false }>, limits: Limits): GatewayError {
  const { code, retryAfterMs } = admission
  // An exhausted day does not come back within a client library's three tries.
  const isDaily = code === 'daily_tokens_exceeded' || code === 'daily_cost_exceeded'
  return new GatewayError(code, refusalMessage(code, limits), {
    retryAfterMs,
    ...(isDaily ? { shouldRetry: false } : {}),
  })
}

function refusalMessage(code: RefusalCode, limits: Limits): string {
  switch (code) {
    case 'requests_per_minute_exceeded':
      return `Your account may make ${limits.requestsPerMinute} requests a minute. Wait for the time in retry-after.`
    case 'concurrent_requests_exceeded':
      return `Your account may run ${limits.concurrentRequests} requests at a time. Wait until one of them has ended.`
    case 'daily_tokens_exceeded':
      return `What is left of your account's ${limits.dailyTokens} tokens a day does not pay for this request. Send less text, wait for midnight UTC, or ask for a higher limit.`
    case 'daily_cost_exceeded':
      return `What is left of your account's daily budget does not pay for this request. Choose a cheaper model, wait for midnight UTC, or ask for a higher limit.`
    default:
      return code satisfies never
  }
}
