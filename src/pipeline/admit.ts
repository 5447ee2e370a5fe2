import type { Ask } from '../core/chat.ts'
import { GatewayError } from '../core/errors.ts'
import { priceTable } from '../core/money.ts'
import type { Caller, Limits, Standing } from '../core/plans.ts'
import type { LeftOut } from '../core/web.ts'
import { noWeb, type WebPlan } from '../core/web-plan.ts'
import type { Deps } from '../deps.ts'
import { grantOf } from '../stores/meter/grant.ts'
import type { Admission, AdmitRequest, Meter, RefusalCode, Seat } from '../stores/meter.ts'
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
  readonly meter: Pick<Meter, 'admit' | 'standing'>
  readonly clock: { now(): number }
  readonly config: Pick<Deps['config'], 'defaultMaxOutputTokens'>
}

/**
 * Returns the plan that `admit` would let pass now, and reserves nothing: the meter is asked for a place where there is none,
 * which tells the account's current standing, and the rest is decided from that by the meter's own rules. Throws as `admit` does.
 */
export async function checkAdmission(
  deps: AdmissionCheckDeps,
  caller: Caller,
  ask: Ask,
  wanted: Route,
  requestId: string,
): Promise<Route> {
  checkPaid(deps, caller)
  const { accountId, limits } = caller
  const request = requestOf(deps, caller, ask, wanted, requestId)
  const asked = await deps.meter.admit({ ...request, limits: { ...limits, concurrentRequests: 0 } })
  if (!asked.admitted && asked.code === 'requests_per_minute_exceeded') throw refusal(asked, limits)
  const standing = deps.meter.standing(accountId, limits) ?? asked.standing
  if (standing.seats.remaining <= 0)
    throw refusal({ code: 'concurrent_requests_exceeded', retryAfterMs: retryAfterMsForSeat }, limits)
  const code = dailyLimitOf(request, standing)
  if (code === null) return wanted
  const lighter = wanted.web === noWeb ? null : wanted.withoutWeb()
  if (lighter !== null && dailyLimitOf(requestOf(deps, caller, ask, lighter, requestId), standing) === null)
    return lighter
  throw refusal({ code, retryAfterMs: standing.tokens.resetMs }, limits)
}

/** The meters say so too: a seat is free again when a request ends, which nobody can foresee. */
const retryAfterMsForSeat = 1000

/** The daily limit that leaves no room for the request; null = there is room. */
function dailyLimitOf(request: AdmitRequest, { tokens, costMicrocents, seats }: Standing): RefusalCode | null {
  const used = {
    tokens: tokens.limit - tokens.remaining,
    microcents: costMicrocents.limit - costMicrocents.remaining,
  }
  const grant = grantOf(request, request.limits, used, seats.remaining)
  return typeof grant === 'string' ? grant : null
}

const nothingLookedUp = { searched: false, sources: [], searchMicrocents: 0, fetchMicrocents: 0 }

function allOf({ query, urls, surplus }: WebPlan): readonly LeftOut[] {
  return [...(query === null ? [] : [null]), ...urls, ...surplus].map(url => ({ url, code: 'refused' }))
}

function attempt(deps: Deps, caller: Caller, ask: Ask, plan: Route, tally: Tally): Promise<Admission> {
  return deps.meter.admit(requestOf(deps, caller, ask, plan, tally.requestId))
}

function requestOf(
  { config }: Pick<AdmissionCheckDeps, 'config'>,
  caller: Caller,
  ask: Ask,
  plan: Route,
  requestId: string,
): AdmitRequest {
  const { first } = plan
  const prices = priceTable(first.model.pricing, plan.inputTokens)
  return {
    requestId,
    accountId: caller.accountId,
    limits: caller.limits,
    inputTokens: plan.inputTokens,
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
function isDaily(code: RefusalCode): boolean {
  return code === 'daily_tokens_exceeded' || code === 'daily_cost_exceeded'
}

function checkPaid({ clock }: Pick<AdmissionCheckDeps, 'clock'>, { refusedFrom }: Caller): void {
  if (refusedFrom === undefined || refusedFrom > clock.now()) return
  const message =
    'Your account has to pay first: an owner can add a payment method under /api/v1/billing, where open invoices are listed too.'
  throw new GatewayError('payment_required', message, { shouldRetry: false })
}

function refusal(
  admission: Pick<Extract<Admission, { admitted: false }>, 'code' | 'retryAfterMs'>,
  limits: Limits,
): GatewayError {
  const { code, retryAfterMs } = admission
  return new GatewayError(code, refusalMessage(code, limits), {
    retryAfterMs,
    ...(isDaily(code) ? { shouldRetry: false } : {}),
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
