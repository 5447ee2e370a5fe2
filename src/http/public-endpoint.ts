/**
 * What endpoints that need no key have in common: what a stranger can make us do is small and counted, and a web page may
 * ask.
 */
import type { OpenLimit } from '../core/limits/rate-limits.ts'
import { taken, waitMs } from '../core/limits/token-buckets.ts'
import type { Caller } from '../core/limits/plans.ts'
import { parseJson } from '../core/validation/validate.ts'
import { bodyLimits, checkContentType, readBody, whileHeld } from './body.ts'
import type { BodyBudget } from './body-budget.ts'
import { refuseMalformed } from './authentication.ts'
import { refuseHaste, tooHasty } from './ip-rate-limit.ts'

/** The longest prompt that is looked at without a key, in UTF-16 units. */
export const maximumFreePrompt = 32_768

/** Of one account, or of one address without a key that is known, at one endpoint. */
const each = { perMinute: 20, burst: 5 }
/**
 * Of everybody, at one endpoint of one process: many addresses are cheap to come by, and dense text takes 10 to 20 ms to
 * count, so that the loop is kept busy for a tenth of the time at most.
 */
const together = { perMinute: 300, burst: 50 }

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

export type FreeDeps = {
  /** The caller's address, IPv6 by network; `server` is Elysia's own. */
  readonly addressOf: (request: Request, server: Bun.Server<unknown> | null) => string
  readonly clock: { now(): number }
  readonly limits: OpenLimit
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

export type FreeEndpoint = {
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
export function createFreeEndpoint(
  { addressOf, clock, limits, bodies, recall }: FreeDeps,
  title: string,
): FreeEndpoint {
  const limit = limits(title, each)
  let everybodyFullAt = 0

  return {
    preflight: () => new Response(null, { status: 204, headers: preflight }),
    async answer({ request, server, set }, reply) {
      // Refusals too are for the web page that asked.
      Object.assign(set.headers, forAnyPage)
      // First, so that nobody spends what is their own on what cannot be had.
      const wait = waitMs(everybodyFullAt, together, clock.now())
      if (wait > 0) throw tooHasty(wait)
      const caller = await recall(request.headers)
      const owner = caller?.accountId ?? addressOf(request, server)
      await refuseHaste(limit, owner)
      refuseMalformed(request.headers)
      everybodyFullAt = taken(everybodyFullAt, together, clock.now())
      checkContentType(request.headers)
      return whileHeld({ budget: bodies, owner }, request, bodyLimits.other, async () => {
        const body = parseJson(await readBody(request, bodyLimits.other))
        return Response.json(await reply(body, caller), { headers: { 'cache-control': 'no-store', ...forAnyPage } })
      })
    },
  }
}
