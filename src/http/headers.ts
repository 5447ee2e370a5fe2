/**
 * Headers of chat responses, written directly into a `Headers`: a record in between would create the fifteen headers of
 * a response three times.
 */

import type { OutputCap } from '../core/chat/attempts.ts'
import type { ResponseStart, ResponseSummary } from '../core/chat/chat-events.ts'
import type { Caller, QuotaStatus } from '../core/limits/plans.ts'
import { type Catalog, fullName } from '../core/models/models.ts'
import { asciiName } from '../core/text/safe-name.ts'
import { usdText } from '../core/usage/money.ts'
import { catalogueDate } from '../models/catalog.ts'
import type { Callers } from './authentication.ts'

/** Header names and values as pairs. */
export type HeaderPairs = Readonly<Record<string, string>>

/**
 * Writes the account's limits in the form of OpenAI's client libraries, and a warning if its monthly soft cap is nearly
 * used. Writes nothing for an unauthenticated client or an account whose quota status is unknown.
 */
export function writeCaller(
  headers: Headers,
  deps: Pick<QuotaHeaderDeps, 'meter' | 'budget'>,
  caller: Caller | null,
): void {
  if (caller === null) return
  const quotaStatus = deps.meter.quotaStatus(caller.accountId, caller.limits)
  if (quotaStatus !== null) writeQuotaStatus(headers, quotaStatus)
  const warning = deps.budget.findWarning(caller)
  if (warning !== null) headers.set('x-gateway-budget-warning', warning)
}

function writeQuotaStatus(headers: Headers, { requests, tokens, costMicrocents }: QuotaStatus): void {
  headers.set('x-ratelimit-limit-requests', String(requests.limit))
  headers.set('x-ratelimit-remaining-requests', String(requests.remaining))
  headers.set('x-ratelimit-reset-requests', duration(requests.resetMs))
  headers.set('x-ratelimit-limit-tokens', String(tokens.limit))
  headers.set('x-ratelimit-remaining-tokens', String(tokens.remaining))
  headers.set('x-ratelimit-reset-tokens', duration(tokens.resetMs))
  headers.set('x-gateway-budget-remaining-usd', usdText(costMicrocents.remaining))
}

/** Writes the serving model and its routing, which are known with the first content. */
export function writeOpening(headers: Headers, opening: ResponseStart): void {
  headers.set('x-gateway-model', asciiName(opening.model))
  headers.set('x-gateway-provider', asciiName(opening.provider))
  if (opening.requestedModel !== undefined) headers.set('x-gateway-requested-model', asciiName(opening.requestedModel))
  if (opening.effort !== undefined) headers.set('x-gateway-effort', opening.effort)
  if (opening.runaway !== undefined) headers.set('x-gateway-conversation-warning', opening.runaway)
  headers.set('x-gateway-attempts', String(opening.attempts.length))
  headers.set('x-gateway-overhead-ms', opening.overheadMs.toFixed(2))
  if (opening.rules !== undefined) headers.set('x-gateway-rules', asciiList(opening.rules.map(({ name }) => name)))
  if (opening.secrets !== undefined) headers.set('x-gateway-secrets', asciiList(opening.secrets))
  if (opening.hedge !== undefined) headers.set('x-gateway-hedge', opening.hedge)
  if (opening.enhanced !== null) headers.set('x-gateway-enhanced', String(opening.enhanced))
  if (opening.web !== undefined) writeWebCost(headers, opening.web)
  if (opening.droppedParameters.length > 0)
    headers.set('x-gateway-dropped-params', asciiList(opening.droppedParameters))
}

/** A client can send any number of fields, and proxies reject responses with large headers. */
const maximumListCharacters = 1_024

/** Writes names as a list; names beyond the bound are counted. */
function asciiList(names: readonly string[]): string {
  let list = ''
  for (const [index, name] of names.entries()) {
    const next = `${list}${index === 0 ? '' : ', '}${asciiName(name)}`
    if (next.length > maximumListCharacters) return `${list}${index === 0 ? '' : ', '}and ${names.length - index} more`
    list = next
  }
  return list
}

/** The web is paid before the model is called, so its cost is known here for streams too. */
function writeWebCost(
  headers: Headers,
  { searchMicrocents, fetchMicrocents }: NonNullable<ResponseStart['web']>,
): void {
  if (searchMicrocents > 0) headers.set('x-gateway-search-cost-usd', usdText(searchMicrocents))
  if (fetchMicrocents > 0) headers.set('x-gateway-fetch-cost-usd', usdText(fetchMicrocents))
}

/**
 * Writes the cost of a JSON response, and the gateway's own cap if it truncated the output. A stream's cost is known
 * only after its headers.
 */
export function writeReceipt(headers: Headers, { record, outputCap }: ResponseSummary): void {
  const { billed_microcents: billed, hedge_microcents: hedge, cache_saved_microcents: cacheSaved } = record
  headers.set('x-gateway-cost-usd', usdText(billed))
  if (hedge !== undefined) headers.set('x-gateway-hedge-cost-usd', usdText(hedge))
  if (cacheSaved !== undefined) headers.set('x-gateway-cache-saved-usd', usdText(cacheSaved))
  if (outputCap !== undefined) writeOutputCap(headers, outputCap)
}

/** Writes the output cap that the gateway set because the client set none. */
export function writeOutputCap(headers: Headers, { tokens, limitedBy }: OutputCap): void {
  headers.set('x-gateway-output-cap', String(tokens))
  headers.set('x-gateway-output-cap-reason', limitedBy)
}

/** Writes pairs; replaces existing values. */
export function writePairs(headers: Headers, pairs: HeaderPairs): void {
  for (const [name, value] of Object.entries(pairs)) headers.set(name, value)
}

/**
 * Writes the headers of RFC 9745 and RFC 8594 for a deprecated model: since when it is deprecated, and its retirement
 * date if set. Dates are `YYYY-MM-DD`, `since` in the past.
 */
function deprecationHeaders(since: string, endsOn: string | null, successor: string | null): HeaderPairs {
  return {
    deprecation: `@${Date.parse(since) / 1000}`,
    ...(endsOn === null ? {} : { sunset: new Date(endsOn).toUTCString() }),
    ...(successor === null
      ? {}
      : { link: `</api/v1/models>; rel="successor-version"; title="${asciiName(successor)}"` }),
  }
}

/** Formats milliseconds as OpenAI's reset headers do: `6ms`, `1.5s`, `6m0s`, `1h2m3s`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.max(0, Math.ceil(milliseconds))}ms`
  const seconds = Math.ceil(milliseconds / 1000)
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60]
  if (hours > 0) return `${hours}h${minutes}m${rest}s`
  return minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`
}

/**
 * Returns a function that looks up the deprecation headers of a model (`provider/model`); null = it is not deprecated.
 * Follows a catalog that is replaced.
 */
export function createDeprecationLookup(catalog: Pick<Catalog, 'list'>): (model: string) => HeaderPairs | null {
  let known = { list: catalog.list, headers: getHeaders(catalog.list) }
  return model => {
    if (known.list !== catalog.list) known = { list: catalog.list, headers: getHeaders(catalog.list) }
    return known.headers.get(model) ?? null
  }
}

function getHeaders(list: Catalog['list']): ReadonlyMap<string, HeaderPairs> {
  return new Map(
    list
      .filter(model => model.deprecated)
      .map(model => [fullName(model), deprecationHeaders(catalogueDate, model.deprecationDate, model.successor)]),
  )
}

export type QuotaHeaderDeps = {
  readonly meter: { quotaStatus(accountId: string, limits: Caller['limits']): QuotaStatus | null }
  readonly budget: { findWarning(caller: Caller): string | null }
  readonly recall: Callers['recall']
  /** Loads the account's quota status into `meter`. Never throws. */
  readonly look: (caller: Caller, requestId: string) => Promise<void>
}

/** Adds the account's limits to any response to a known key; chat routes write them themselves. Never throws. */
export async function withQuotaHeaders(
  deps: QuotaHeaderDeps,
  headers: Headers,
  response: Response,
  requestId: string,
): Promise<Response> {
  try {
    const caller = await deps.recall(headers)
    if (caller === null) return response
    if (deps.meter.quotaStatus(caller.accountId, caller.limits) === null) await deps.look(caller, requestId)
    writeCaller(response.headers, deps, caller)
  } catch {
    // The response already reports why the key cannot be found.
  }
  return response
}
