/**
 * What endpoints that need no key have in common: what a stranger can make us do is small and counted, and a web page may
 * ask.
 */

import type { Caller } from '../core/limits/plans.ts'
import type { RateLimiterFactory } from '../core/limits/rate-limits.ts'
import { afterRequest, waitMs } from '../core/limits/token-buckets.ts'
import { parseJson } from '../core/validation/validate.ts'
import { refuseMalformed } from './authentication.ts'
import { bodyLimits, checkContentType, readBody, whileHeld } from './body.ts'
import type { BodyBudget } from './body-budget.ts'
import { enforceDryRunLimit, ipRateLimitedError } from './ip-rate-limit.ts'

/** The longest prompt that is looked at without a key, in UTF-16 units. */
export const maximumFreePrompt = 32_768

/** Of one account, or of one address without a key that is known, at one endpoint. */
const perAddress = { perMinute: 20, burst: 5 }
/**
 * Of everybody, at one endpoint of one process: many addresses are cheap to come by, and dense text takes 10 to 20 ms to
 * count, so that the loop is kept busy for a tenth of the time at most.
 */
const perProcess = { perMinute: 300, burst: 50 }

/** Of every answer, for a page from anywhere. Scripts see of others' headers what is named here. */
const forAnyPage = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'x-request-id, retry-after, retry-after-ms, x-should-retry',
}

/** JSON makes a browser ask first. */
const preflight = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': 'content-type',
  'access-control-max-age': '86400',
  'cache-control': 'no-store',
}

export type PublicEndpointDeps = {
  /** The caller's address, IPv6 by network; `server` is Elysia's own. */
  readonly addressOf: (request: Request, server: Bun.Server<unknown> | null) => string
  readonly clock: { now(): number }
  readonly limits: RateLimiterFactory
  readonly bodies: BodyBudget
  /** The caller behind a key that a request shows, if memory knows it. */
  readonly recall: (headers: Headers) => Caller | null | Promise<Caller | null>
}

/** What a route hands on of its context. */
type Context = {
  readonly request: Request
  readonly server: Bun.Server<unknown> | null
  readonly set: { readonly headers: Record<string, string | number> }
}

type FreeEndpoint = {
  preflight(): Response
  /**
   * The reply to one request as JSON. Throws `ip_rate_limited` past 20 per minute of one account or, without a known key, of
   * one address, or 300 of all at one process, 401 for a malformed key, and what reading the body and `reply` throw.
   */
  answer(
    context: Context,
    reply: (body: Readonly<Record<string, unknown>>, caller: Caller | null) => object | Promise<object>,
  ): Promise<Response>
}

/** One endpoint with limits of its own, under its title. */
export function createPublicEndpoint(
  { addressOf, clock, limits, bodies, recall }: PublicEndpointDeps,
  title: string,
): FreeEndpoint {
  const limit = limits(title, perAddress)
  let everybodyFullAt = 0

  return {
    preflight: () => new Response(null, { status: 204, headers: preflight }),
    async answer({ request, server, set }, reply) {
      // Refusals too are for the web page that asked.
      Object.assign(set.headers, forAnyPage)
      // First, so that nobody spends what is their own on what cannot be had.
      const wait = waitMs(everybodyFullAt, perProcess, clock.now())
      if (wait > 0) throw ipRateLimitedError(wait)
      const caller = await recall(request.headers)
      const owner = caller?.accountId ?? addressOf(request, server)
      await enforceDryRunLimit(limit, owner)
      refuseMalformed(request.headers)
      everybodyFullAt = afterRequest(everybodyFullAt, perProcess, clock.now())
      checkContentType(request.headers)
      return whileHeld({ budget: bodies, owner }, request, bodyLimits.other, async () => {
        const body = parseJson(await readBody(request, bodyLimits.other))
        return Response.json(await reply(body, caller), { headers: { 'cache-control': 'no-store', ...forAnyPage } })
      })
    },
  }
}
