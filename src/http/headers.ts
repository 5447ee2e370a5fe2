import type { Opening, Receipt } from '../core/chat.ts'
import { usdText } from '../core/money.ts'
import type { Caller, Standing } from '../core/plans.ts'

/** The header names and values of an answer, as plain pairs. */
export type HeaderPairs = Record<string, string>

/**
 * What every answer to a key says of its limits, in the form that OpenAI's client libraries read; empty where the account
 * has not been seen yet.
 */
function limitHeaders(standing: Standing | null): HeaderPairs {
  if (standing === null) return {}
  const { requests, tokens, costMicrocents } = standing
  return {
    'x-ratelimit-limit-requests': String(requests.limit),
    'x-ratelimit-remaining-requests': String(requests.remaining),
    'x-ratelimit-reset-requests': duration(requests.resetMs),
    'x-ratelimit-limit-tokens': String(tokens.limit),
    'x-ratelimit-remaining-tokens': String(tokens.remaining),
    'x-ratelimit-reset-tokens': duration(tokens.resetMs),
    'x-gateway-budget-remaining-usd': usdText(costMicrocents.remaining),
  }
}

/** Standing of a caller's account, where somebody is asking, and a warning where its monthly soft cap is nearly used. */
export function callerHeaders(
  deps: {
    readonly meter: { standing(accountId: string, limits: Caller['limits']): Standing | null }
    readonly budget: { warningOf(caller: Caller): string | null }
  },
  caller: Caller | null,
): HeaderPairs {
  if (caller === null) return {}
  const headers = limitHeaders(deps.meter.standing(caller.accountId, caller.limits))
  const warning = deps.budget.warningOf(caller)
  return warning === null ? headers : { ...headers, 'x-gateway-budget-warning': warning }
}

/** What served and how it came to that. Known with the first content. */
export function openingHeaders(opening: Opening): HeaderPairs {
  const dropped = opening.droppedParameters
  return {
    'x-gateway-model': opening.model,
    'x-gateway-provider': opening.provider,
    'x-gateway-attempts': String(opening.attempts.length),
    'x-gateway-overhead-ms': opening.overheadMs.toFixed(2),
    ...(opening.secrets === undefined ? {} : { 'x-gateway-secrets': opening.secrets.join(', ') }),
    ...(opening.enhanced === null ? {} : { 'x-gateway-enhanced': String(opening.enhanced) }),
    ...(dropped.length === 0 ? {} : { 'x-gateway-dropped-params': dropped.join(', ') }),
  }
}

/** What a JSON answer cost. A stream's cost is known only after its headers have gone. */
export function receiptHeaders(receipt: Receipt): HeaderPairs {
  return { 'x-gateway-cost-usd': usdText(receipt.cost.total) }
}

/**
 * A model on its way out is announced by RFC 9745 and RFC 8594 headers: since when it is deprecated, and on which day it
 * ends, where one is set. Dates are `YYYY-MM-DD`, `since` in the past.
 */
export function deprecationHeaders(since: string, endsOn: string | null, successor: string | null): HeaderPairs {
  return {
    deprecation: `@${Date.parse(since) / 1000}`,
    ...(endsOn === null ? {} : { sunset: new Date(endsOn).toUTCString() }),
    ...(successor === null ? {} : { link: `</api/v1/models>; rel="successor-version"; title="${successor}"` }),
  }
}

/** Milliseconds in the form of OpenAI's reset headers: `6ms`, `1.5s`, `6m0s`, `1h2m3s`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.max(0, Math.ceil(milliseconds))}ms`
  const seconds = Math.ceil(milliseconds / 1000)
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60]
  if (hours > 0) return `${hours}h${minutes}m${rest}s`
  return minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`
}
