/** Routes for people who are signed in, as a table: what a route says of its policy is what is enforced. */
import { Elysia } from 'elysia'
import { type Action, isAllowed } from '../core/accounts/roles.ts'
import type { RateLimiterFactory } from '../core/limits/rate-limits.ts'
import { findDuplicateKey } from '../core/validation/duplicate-json-key.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { invalidField, parseJson } from '../core/validation/validate.ts'
import type { Principal } from './authentication.ts'
import { bodyLimits, checkContentType, notJson, readBody, whileHeld } from './body.ts'
import type { BodyBudget } from './body-budget.ts'
import { session } from './policies.ts'
import { type RouteDocs, withRouteDocs } from './route-docs.ts'

/** One request of somebody whose role is open to the route's action. */
export type SessionRequest = {
  readonly principal: Principal
  /** The path's parameters, each short and of harmless characters. */
  readonly params: Readonly<Record<string, string>>
  readonly request: Request
}

export type SessionRoute = RouteDocs & {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly action: Action
  readonly handle: (call: SessionRequest) => Promise<Response>
}

export type Authenticate = {
  /** The user behind the headers. Throws 401 for anyone else. */
  readonly principal: (headers: Headers) => Promise<Principal>
  readonly bodies: BodyBudget
}

/**
 * One Elysia instance of the routes. Who is asking is settled before anything of the request is read: a stranger learns
 * nothing of a route but that it wants a session.
 */
export function sessionRoutes(name: string, identify: Authenticate, routes: readonly SessionRoute[]) {
  const app = new Elysia({ name })
  for (const { method, path, action, handle, ...told } of routes)
    app.route(
      method,
      path,
      async ({ request, params = {} }: { request: Request; params?: Record<string, string> }) => {
        const principal = await identify.principal(request.headers)
        if (!isAllowed(principal.role, action)) throw forbidden()
        if (principal.isUnverified && method !== 'GET' && action !== 'sessions.own') throw unverified()
        if (!Object.values(params).every(value => harmless.test(value))) throw notFound()
        const work = () => handle({ principal, params, request })
        return whileHeld({ budget: identify.bodies, owner: principal.accountId }, request, bodyLimits.other, work)
      },
      { parse: 'none', ...withRouteDocs(session(action), told) },
    )
  return app
}

const harmless = /^[\w.-]{1,128}$/

/** Dependencies of a route without a session. */
export type OpenRouteDeps = {
  /** The client's network address, IPv6 by network. */
  readonly addressOf: (request: Request, server: Bun.Server<unknown> | null) => string
  readonly limits: RateLimiterFactory
  readonly bodies: BodyBudget
}

/** Does the work of a route without a session while the address's small body is reserved. */
export function heldOpen(
  deps: { readonly bodies: BodyBudget },
  { request, address }: { readonly request: Request; readonly address: string },
  work: () => Promise<Response>,
): Promise<Response> {
  return whileHeld({ budget: deps.bodies, owner: address }, request, bodyLimits.other, work)
}

/** A JSON body under the small cap, checked; its content type must say so. An absent body counts as `{}`. A key sent twice is refused. */
export async function readInput<T>(request: Request, check: (value: unknown) => T): Promise<T> {
  checkContentType(request.headers)
  const sent = await readBody(request, bodyLimits.other)
  // A page of another origin can send a body without a content type, and browsers send no preflight for it.
  if (sent !== '' && !request.headers.has('content-type')) throw notJson()
  const text = sent || '{}'
  const value = parseJson(text)
  const twice = findDuplicateKey(text)
  if (twice !== null) throw invalidField(twice.slice(0, 64).toWellFormed(), 'is sent twice: send it once')
  return check(value)
}

/** A JSON answer that nobody keeps. */
export function reply(body: object, status = 200): Response {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } })
}

/** Done, and nothing to say about it. */
export function replyNoContent(): Response {
  return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } })
}

/** A role that this is not open to. */
export function forbidden(): GatewayError {
  return new GatewayError('forbidden', 'Your role does not allow this. Ask an owner of the account.', {
    shouldRetry: false,
  })
}

/** An unverified user only reads: the address may belong to another person. */
function unverified(): GatewayError {
  return new GatewayError(
    'forbidden',
    'Your email address is not confirmed yet. Follow the link in the confirmation mail, or POST /api/v1/auth/verification for another one.',
    { shouldRetry: false },
  )
}

/** Of another account or of nobody: the same answer. */
export function notFound(): GatewayError {
  return new GatewayError('not_found', 'There is nothing of this id here. Check it, and list what there is.')
}
