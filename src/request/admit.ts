import { highestAddedInput } from '../core/chat/provider-features.ts'
import type { OmittedSource } from '../core/chat/web-sources.ts'
import type { Caller, Limits } from '../core/limits/plans.ts'
import { type ScopeLimits, unlimitedScope } from '../core/limits/scopes.ts'
import type { Clock } from '../core/ports.ts'
import { findScopes, findTags, isProjectScope } from '../core/request/tags.ts'
import { highestPrices, toUsd } from '../core/usage/money.ts'
import { highestSourceCharges } from '../core/usage/source-charges.ts'
import { GatewayError } from '../core/validation/errors.ts'
import type { CacheAffinityTracker } from '../learning/cache-affinity.ts'
import type { AdmissionRequest, LimitErrorCode, LimitReached, Meter, Reservation } from '../limits/meter.ts'
import { noWeb, type WebPlan, type WebUse } from '../web/web-plan.ts'
import { highestUsage, reservedInput, reservedTerms } from './affordable.ts'
import type { AdmittedRequest } from './progress.ts'
import type { Route } from './routing/route.ts'

/** A request with its plan and its ID. */
type AdmissionInput = Pick<AdmittedRequest, 'requestId' | 'caller' | 'request' | 'plan'>

/** The reservation, and the plan that it covers. */
type Admitted = {
  readonly reservation: Reservation
  readonly plan: Route
  /** Web access that the plan does without; null = none. */
  readonly web: WebUse | null
  /** What another instance may have noted of the conversation; absent = nothing. */
  readonly note?: string
}

export type AdmitDeps = {
  readonly meter: Pick<Meter, 'admit' | 'raise' | 'quotaStatus'>
  readonly ties: Pick<CacheAffinityTracker, 'nameShared' | 'adopt'>
  readonly clock: Pick<Clock, 'now'>
  readonly config: { readonly defaultMaxOutputTokens: number }
}

/**
 * Reserves a concurrent request, one of the minute's requests, and the maximum cost: all or nothing, before any work.
 * If the remaining daily limits cover the output but not the web, the plan omits the web. Throws the limit that was
 * reached with its retry time, or that the account must pay or is paused.
 */
export async function admit(deps: AdmitDeps, input: AdmissionInput): Promise<Admitted> {
  const { caller, plan } = input
  checkPaid(deps, caller)
  const conversation = plan.turn === null ? null : deps.ties.nameShared(caller.accountId, input.request)
  const admission = await deps.meter.admit(toAdmissionRequest(deps, input, conversation))
  if (admission.admitted) {
    const { note } = admission
    const reservation = await withAddedInput(deps, input, admission.reservation)
    return { reservation, plan, web: null, ...(note === undefined ? {} : { note }) }
  }
  if (plan.web === noWeb || !isDaily(admission.code)) throw refusal(admission, caller)
  const reduced = plan.withoutWeb()
  const second = await deps.meter.admit(toAdmissionRequest(deps, { ...input, plan: reduced }))
  if (!second.admitted) throw refusal(second, caller)
  const reservation = await withAddedInput(deps, { ...input, plan: reduced }, second.reservation)
  return { reservation, plan: reduced, web: { ...nothingLookedUp, leftOut: listRefusedSources(plan.web) } }
}

/**
 * Returns the plan and the reservation of a request whose conversation another instance has answered: `replan` then plans with
 * what that one noted. They stay as they are if there is nothing new, or if the account cannot pay for the other plan.
 */
export async function rejoin(
  { meter, ties }: Pick<AdmitDeps, 'meter' | 'ties'>,
  { caller, request }: Pick<AdmissionInput, 'caller' | 'request'>,
  { note, ...admitted }: Pick<Admitted, 'reservation' | 'plan' | 'note'>,
  replan: () => Route,
): Promise<Pick<Admitted, 'reservation' | 'plan'>> {
  if (note === undefined || !ties.adopt(caller.accountId, request, note)) return admitted
  const { reservation } = admitted
  const plan = replan()
  const { inputTokens, outputCap, microcents } = highestUsage({ plan, request }, plan.first, reservation)
  const tokens = Math.max(inputTokens + outputCap * plan.choices, reservation.reservedTokens)
  const cost = Math.max(microcents + plan.web.microcents, reservation.reservedMicrocents)
  if (tokens === reservation.reservedTokens && cost === reservation.reservedMicrocents) return { reservation, plan }
  const raised = await meter.raise(reservation, tokens, cost)
  return raised === null ? admitted : { reservation: raised, plan }
}

/**
 * Enlarges a reservation by the input that the provider may add (`provider-features.ts`) or, if the account cannot cover that, by
 * all that it has left.
 */
async function withAddedInput(
  { meter }: Pick<AdmitDeps, 'meter'>,
  { caller, request, plan }: Pick<AdmissionInput, 'caller' | 'request' | 'plan'>,
  reservation: Reservation,
): Promise<Reservation> {
  if (request.source === null && highestAddedInput(request, 1) === 0) return reservation
  const { addedTokens, microcents: highest } = highestUsage({ request, plan }, plan.first, reservation)
  if (addedTokens === 0) return reservation
  const { reservedTokens, reservedMicrocents } = reservation
  const more = {
    tokens: addedTokens,
    microcents: Math.max(0, highest + plan.web.microcents - reservedMicrocents),
  }
  const quotaStatus = meter.quotaStatus(caller.accountId, caller.limits)
  const left = {
    tokens: Math.min(more.tokens, quotaStatus?.tokens.remaining ?? 0),
    microcents: Math.min(more.microcents, quotaStatus?.costMicrocents.remaining ?? 0),
  }
  for (const { tokens, microcents } of [more, left]) {
    const raised = await meter.raise(reservation, reservedTokens + tokens, reservedMicrocents + microcents)
    if (raised !== null) return raised
  }
  return reservation
}

export type AdmissionCheckDeps = Omit<AdmitDeps, 'meter' | 'ties'> & {
  /** Returns the error with which a request would be rejected now; null = it would be admitted. Reserves nothing. */
  readonly checkLimits: (request: AdmissionRequest) => Promise<LimitReached | null>
}

/** Returns the plan that `admit` would accept now, without a reservation. Throws as `admit` does. */
export async function checkAdmission(deps: AdmissionCheckDeps, input: AdmissionInput): Promise<Route> {
  const { caller } = input
  let { plan } = input
  checkPaid(deps, caller)
  let reached = await deps.checkLimits(toAdmissionRequest(deps, input))
  if (reached !== null && plan.web !== noWeb && isDaily(reached.code)) {
    plan = plan.withoutWeb()
    reached = await deps.checkLimits(toAdmissionRequest(deps, { ...input, plan }))
  }
  if (reached !== null) throw refusal(reached, caller)
  return plan
}

const nothingLookedUp = { searched: false, sources: [], searchMicrocents: 0, fetchMicrocents: 0 }

function listRefusedSources({ query, urls, surplus }: WebPlan): readonly OmittedSource[] {
  return [...(query === null ? [] : [null]), ...urls, ...surplus].map(url => ({ url, code: 'refused' }))
}

function toAdmissionRequest(
  { config }: Pick<AdmitDeps, 'config'>,
  { requestId, caller, request, plan }: AdmissionInput,
  conversation: string | null = null,
): AdmissionRequest {
  const { first } = plan
  // Covers the first model's provider; a fallback to another one reserves more if needed.
  const inputTokens = reservedInput(plan, request, first)
  const terms = reservedTerms(plan, first)
  // Calls with an own key cost nothing here. The fallback to the operator's key reserves its cost.
  const isOwn = first.endpoint.own !== undefined
  const highest = isOwn ? { input: 0, output: 0 } : highestPrices(first.model.pricing, inputTokens, terms)
  return {
    requestId,
    accountId: caller.accountId,
    limits: caller.limits,
    scopes: findScopes(caller, findTags(caller, request)),
    inputTokens,
    outputTokens: Math.min(request.maxOutputTokens ?? config.defaultMaxOutputTokens, first.model.maxOutputTokens),
    choices: request.choices,
    fairShare: request.maxOutputTokens === null,
    inputPrice: highest.input,
    outputPrice: highest.output,
    extraMicrocents: plan.web.microcents + (isOwn ? 0 : highestSourceCharges(request, first, inputTokens, terms)),
    conversation,
  }
}

/** This error lasts longer than a client library's three attempts. */
function isDaily(code: LimitErrorCode): boolean {
  return code === 'daily_tokens_exceeded' || code === 'daily_cost_exceeded' || code === 'monthly_cost_exceeded'
}

/** Throws if the account is paused or must pay. */
function checkPaid({ clock }: Pick<AdmitDeps, 'clock'>, { pause, refusedFrom }: Caller): void {
  if (pause !== undefined && pause.until > clock.now()) throw accountPaused(pause, pause.until - clock.now())
  if (refusedFrom === undefined || refusedFrom > clock.now()) return
  const message = 'Payment required: the account has an unpaid invoice or no payment method.'
  throw new GatewayError('payment_required', message, { shouldRetry: false })
}

/** The code is older than the pause of single keys. */
function accountPaused({ until, requestId, userId }: NonNullable<Caller['pause']>, retryAfterMs: number): GatewayError {
  const message =
    `This API key of the member ${userId} is paused until ${new Date(until).toISOString()}: its requests of today, most of all ` +
    `${requestId}, used more than was reserved and billed for them. Other keys of the account work.`
  return new GatewayError('account_paused', message, { retryAfterMs, shouldRetry: false })
}

function refusal({ code, scope, retryAfterMs }: LimitReached, caller: Caller): GatewayError {
  const limits = scope === null ? accountLimits(caller.limits) : limitsOfScope(caller, scope)
  return new GatewayError(code, refusalMessage(code, limits, getOwner(scope)) + getUpgrade(scope, caller), {
    retryAfterMs,
    limit: `${getOwnerName(scope)}.${limitNames[code]}`,
    remedy: findRemedy(scope),
    ...(isDaily(code) ? { shouldRetry: false } : {}),
  })
}

const limitNames = {
  requests_per_minute_exceeded: 'requests_per_minute',
  concurrent_requests_exceeded: 'concurrent_requests',
  daily_tokens_exceeded: 'daily_tokens',
  daily_cost_exceeded: 'daily_cost_usd',
  monthly_cost_exceeded: 'monthly_cost_usd',
} as const satisfies Record<LimitErrorCode, string>

const accountLimits = (limits: Limits): ScopeLimits => ({ ...limits, monthlyCostMicrocents: null })

function limitsOfScope({ keyLimits, tagLimits }: Caller, scope: string): ScopeLimits {
  return tagLimits?.get(scope) ?? keyLimits ?? unlimitedScope
}

/** Returns the owner of a limit as `x-gateway-limit` names it. A request has one key and at most one project. */
function getOwnerName(scope: string | null): string {
  if (scope === null) return 'account'
  if (isProjectScope(scope)) return 'project'
  return scope.startsWith('tag:') ? scope : 'key'
}

function getOwner(scope: string | null): string {
  if (scope === null) return 'this account'
  if (isProjectScope(scope)) return 'the project of this API key'
  return scope.startsWith('tag:') ? `the tag ${scope.slice('tag:'.length)}` : 'this API key'
}

/** Returns the sentence about the way that an owner has without the operator; empty = none. */
function getUpgrade(scope: string | null, { plan }: Caller): string {
  if (scope !== null || plan !== 'evaluation') return ''
  return ' An owner can upgrade the plan: page Billing, or `POST /api/v1/billing/upgrade`.'
}

/** Returns who can change a scope's limits and how; null = the operator changes those of an account. */
function findRemedy(scope: string | null): string | null {
  if (scope === null) return null
  if (isProjectScope(scope))
    return 'An owner or admin of the account can change it: page Projects, or `PATCH /api/v1/projects/{id}`.'
  return scope.startsWith('tag:')
    ? 'An owner or admin of the account can change it: page Tags, or `PUT /api/v1/tags`.'
    : "The key's creator, an owner or an admin can change it: page Keys, or `PATCH /api/v1/keys/{id}`."
}

function refusalMessage(code: LimitErrorCode, limits: ScopeLimits, owner: string): string {
  const usd = (microcents: number | null) => `$${toUsd(microcents ?? 0)}`
  const requests = (count: number | null, kind = '') => `${count} ${kind}${count === 1 ? 'request' : 'requests'}`
  const of = owner === 'this account' ? '' : ` for ${owner}`
  switch (code) {
    case 'requests_per_minute_exceeded':
      return `Rate limit reached: ${requests(limits.requestsPerMinute)} per minute for ${owner}. Retry after the time in the retry-after header.`
    case 'concurrent_requests_exceeded':
      return `Concurrency limit reached: ${requests(limits.concurrentRequests, 'concurrent ')} for ${owner}. Retry when one has finished.`
    case 'daily_tokens_exceeded':
      return `Daily token limit reached: this request needs more than the tokens remaining of ${limits.dailyTokens} per day${of}. Shorten it or wait until 00:00 UTC.`
    case 'daily_cost_exceeded':
      return `Daily cost limit reached: this request can cost more than remains of ${usd(limits.dailyCostMicrocents)} per day${of}. Choose a cheaper model or wait until 00:00 UTC.`
    case 'monthly_cost_exceeded':
      return `Monthly cost limit reached: this request can cost more than remains of ${usd(limits.monthlyCostMicrocents)} per UTC calendar month${of}. Choose a cheaper model or wait until the next month.`
    default:
      return code satisfies never
  }
}

export { checkPaid, refusal as limitReachedError }

/** Loads the quota status of an account that this process has not seen. It stays unknown if no store answers. Never throws. */
export async function loadQuotaStatus(
  { meter }: { readonly meter: Pick<Meter, 'loadStatus'> },
  { accountId, limits }: Caller,
): Promise<void> {
  await meter.loadStatus(accountId, limits).catch(() => null)
}
