/**
 * Shared parts of endpoints without a key: the work for unauthenticated clients is small and counted, and web pages of
 * any origin may call them.
 */

import type { Caller } from '../core/limits/plans.ts'
import { afterRequest, type RateLimiterFactory, waitMs } from '../core/limits/rate-limits.ts'
import type { Clock } from '../core/ports.ts'
import { parseJson } from '../core/validation/validate.ts'
import { refuseMalformed } from './authentication.ts'
import { bodyLimits, checkContentType, readBody, whileHeld } from './body.ts'
import type { BodyBudget } from './body-budget.ts'
import { enforceAccountLimit, enforceIpLimit, ipRateLimitedError } from './rate-limits.ts'

/** Maximum prompt length without a key, in UTF-16 units. */
export const maximumFreePrompt = 32_768

/** Limit of one account, or of one IP address without a known key, per endpoint. */
const perAddress = { perMinute: 20, burst: 5 }
/**
 * Limit of all clients per endpoint and process: many IP addresses are cheap, and counting dense text takes 10 to 20
 * ms. This keeps the event loop busy for at most 10% of the time.
 */
const perProcess = { perMinute: 300, burst: 50 }

/** Headers of every response, for pages of any origin. Scripts can read only the headers that are listed here. */
const forAnyPage = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'x-request-id, retry-after, retry-after-ms, x-should-retry',
}

/** JSON makes a browser send a preflight request. */
const preflight = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': 'content-type',
  'access-control-max-age': '86400',
  'cache-control': 'no-store',
}

export type PublicEndpointDeps = {
  /** IP address of the client, IPv6 by network; `server` is Elysia's own. */
  readonly getAddress: (request: Request, server: Bun.Server<unknown> | null) => string
  readonly clock: Pick<Clock, 'now'>
  readonly limits: RateLimiterFactory
  readonly bodies: BodyBudget
  /** Returns the caller of a request's key if memory has it. */
  readonly recall: (headers: Headers) => Caller | null | Promise<Caller | null>
}

/** Context that a route passes on. */
type Context = {
  readonly request: Request
  readonly server: Bun.Server<unknown> | null
  readonly set: { readonly headers: Record<string, string | number> }
}

type FreeEndpoint = {
  preflight(): Response
  /**
   * Returns the JSON response of one request. Throws `requests_per_minute_exceeded` over 20 per minute of one account. Throws
   * `ip_rate_limited` without a known key over 20 of one IP address, or over 300 of all clients of one process. Throws 401 for a malformed key, and as
   * reading the body and `reply` do.
   */
  answer(
    context: Context,
    reply: (body: Readonly<Record<string, unknown>>, caller: Caller | null) => object | Promise<object>,
  ): Promise<Response>
}

/** Creates one endpoint with its own limits, under its title. */
export function createPublicEndpoint(
  { getAddress, clock, limits, bodies, recall }: PublicEndpointDeps,
  title: string,
): FreeEndpoint {
  const limit = limits(title, perAddress)
  let everybodyFullAt = 0

  return {
    preflight: () => new Response(null, { status: 204, headers: preflight }),
    async answer({ request, server, set }, reply) {
      // Pages of other origins must be able to read errors too.
      Object.assign(set.headers, forAnyPage)
      // Checked first, so that a request that fails anyway does not use up the client's own limit.
      const wait = waitMs(everybodyFullAt, perProcess, clock.now())
      if (wait > 0) throw ipRateLimitedError(wait, null, 'of all clients')
      const caller = await recall(request.headers)
      const owner = caller?.accountId ?? getAddress(request, server)
      if (caller === null) await enforceIpLimit(limit, owner)
      else
        await enforceAccountLimit(limit, owner, { perMinute: perAddress.perMinute, what: `requests to \`${title}\`` })
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
