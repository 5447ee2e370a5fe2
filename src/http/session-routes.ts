/** Routes of the console, as tables: for signed-in users, and without a session. The policy in a route's description is enforced. */

import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type Action, includesScope, isAllowed, isAllowedSomewhere, neededScope } from '../core/accounts/roles.ts'
import type { Actor } from '../core/audit/audit.ts'
import type { RateLimiter } from '../core/limits/rate-limits.ts'
import { dayMs, timeIn } from '../core/text/utc-days.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { invalidField, parseJson, strictObject, validate } from '../core/validation/validate.ts'
import type { Principal } from './authentication.ts'
import { bodyLimits, checkContentType, notJson, readBody, whileHeld } from './body.ts'
import type { BodyBudget } from './body-budget.ts'
import type { PublicEndpointDeps } from './public-endpoint.ts'
import { enforceIpLimit } from './rate-limits.ts'
import { policies, type RouteDocs, session, withRouteDocs } from './route-docs.ts'

/** One request of a user whose role permits the route's action, in the account or in a project. */
export type SessionRequest = {
  readonly principal: Principal
  /** Path parameters, each short and of safe characters. */
  readonly params: Readonly<Record<string, string>>
  readonly request: Request
  /** The user with the network address, for the audit log: `actingAs(database, actor)`. */
  readonly actor: Actor
}

export type SessionRoute = RouteDocs & {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly action: Action
  readonly handle: (call: SessionRequest) => Promise<Response>
}

export type Authenticate = {
  /** Returns the user of the session or the management key in the headers. Throws 401 if there is none. */
  readonly principal: (request: Request) => Promise<Principal>
  readonly bodies: BodyBudget
  /** The client's network address, IPv6 by network. */
  readonly getAddress: (request: Request) => string
}

/**
 * Creates one Elysia instance with the routes. Authentication comes before all other checks, so that unauthenticated
 * clients learn only that a route needs a session.
 */
export function sessionRoutes(name: string, identify: Authenticate, routes: readonly SessionRoute[]) {
  const app = new Elysia({ name })
  for (const { method, path, action, handle, ...told } of routes)
    app.route(
      method,
      path,
      async ({ request, params = {} }: { request: Request; params?: Record<string, string> }) => {
        const principal = await authorize(identify, request, action)
        if (!Object.values(params).every(value => harmless.test(value))) throw notFound()
        const actor = {
          ...({ kind: 'user', userId: principal.userId, address: identify.getAddress(request) } as const),
          ...(principal.managementKey === null ? {} : { managementKey: principal.managementKey.name }),
        }
        const work = () => handle({ principal, params, request, actor })
        return whileHeld({ budget: identify.bodies, owner: principal.accountId }, request, bodyLimits.other, work)
      },
      { parse: 'none', ...withRouteDocs(session(action), told) },
    )
  return app
}

/** Returns the user of a request. Throws unless the role, and the scopes of a management key, permit the action. */
export async function authorize(
  identify: Pick<Authenticate, 'principal'>,
  request: Request,
  action: Action,
): Promise<Principal> {
  const principal = await identify.principal(request)
  if (!isAllowedSomewhere(principal, action)) throw forbidden()
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (principal.managementKey !== null) {
    const needed = neededScope(action, isRead ? 'read' : 'write')
    if (!includesScope(principal.managementKey.scopes, needed)) throw outOfScope(needed)
  }
  if (action === 'sessions.own') return principal
  refuseWithoutTwoFactor(principal)
  if (principal.isUnverified && !isRead) throw unverified()
  return principal
}

/** Throws `two_factor_setup_required` until the user has set up the two-factor sign-in that the account requires. */
function refuseWithoutTwoFactor({ mustSetUpTwoFactor }: Pick<Principal, 'mustSetUpTwoFactor'>): void {
  if (mustSetUpTwoFactor)
    throw new GatewayError(
      'two_factor_setup_required',
      'Your account requires two-factor sign-in. Set it up with POST /api/v1/auth/two-factor, or in the dashboard.',
      { shouldRetry: false },
    )
}

const harmless = /^[\w.-]{1,128}$/

/** Dependencies of a route without a session. */
export type OpenRouteDeps = Pick<PublicEndpointDeps, 'getAddress' | 'limits' | 'bodies'>

/** One request of a client without a session. */
export type OpenRequest = {
  readonly request: Request
  /** The client's network address, IPv6 by network. */
  readonly address: string
  readonly params: Readonly<Record<string, string>>
}

export type OpenRoute = RouteDocs & {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** Requests of one IP address; absent = the handler counts them. */
  readonly limit?: RateLimiter
  readonly handle: (call: OpenRequest) => Promise<Response>
}

/** Creates one Elysia instance with routes without a session. The small body is reserved for the client's IP address. */
export function openRoutes(name: string, deps: OpenRouteDeps, routes: readonly OpenRoute[]) {
  const app = new Elysia({ name })
  for (const { method, path, limit, handle, ...told } of routes)
    app.route(
      method,
      path,
      async ({ request, server, params = {} }: OpenContext) => {
        const address = deps.getAddress(request, server)
        if (limit !== undefined) await enforceIpLimit(limit, address)
        const work = () => handle({ request, address, params })
        return whileHeld({ budget: deps.bodies, owner: address }, request, bodyLimits.other, work)
      },
      { parse: 'none', ...withRouteDocs(policies.open, told) },
    )
  return app
}

type OpenContext = {
  readonly request: Request
  readonly server: Bun.Server<unknown> | null
  readonly params?: Record<string, string>
}

/** Body of a route that needs none: absent, or `{}`. */
export const emptyBody = strictObject({})

/**
 * Reads and checks a JSON body under the small size limit. Its content type must be JSON. An absent body counts as
 * `{}`. A duplicate key is rejected.
 */
export async function readInput<S extends TSchema>(request: Request, schema: S): Promise<Static<S>> {
  checkContentType(request.headers)
  const sent = await readBody(request, bodyLimits.other)
  // A page of another origin can send a body without a content type, and browsers send no preflight for it.
  if (sent !== '' && !request.headers.has('content-type')) throw notJson()
  return validate(schema, parseJson(sent || '{}'))
}

const metadataName = /^metadata\[(.*)\]$/s

/** Reads and checks the query of a URL, each name once, with `metadata[…]` as one field. */
export function readQuery<S extends TSchema>(url: string, schema: S): Static<S> {
  // Without prototype: a name may be `__proto__`.
  const parameters: Record<string, unknown> = Object.create(null)
  const metadata: Record<string, string> = Object.create(null)
  for (const [name, value] of new URL(url).searchParams) {
    const pair = metadataName.exec(name)?.[1]
    const [group, key] = pair === undefined ? [parameters, name] : [metadata, pair]
    if (Object.hasOwn(group, key)) throw invalidField(name.slice(0, 64).toWellFormed(), 'must be sent once')
    group[key] = value
    if (pair !== undefined) parameters.metadata = metadata
  }
  return validate(schema, parameters)
}

const moment = Type.Optional(
  Type.String({
    pattern: '^\\d{4}-\\d\\d-\\d\\d(T\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,3})?)?(Z|[+-]\\d\\d:\\d\\d))?$',
    maxLength: 32,
    description: 'a UTC day `YYYY-MM-DD`, or a time with its zone: `2026-05-05T12:00:00Z`',
  }),
)

/** A period. A time is exclusive as `to`; a day is inclusive. */
export const periodFields = { from: moment, to: moment }

/** Returns a period in epoch milliseconds, null = open. Throws `invalid_request` if it ends before it begins. */
export function readPeriod(query: { readonly from?: string; readonly to?: string }) {
  const from = query.from === undefined ? null : readTime('from', query.from)
  const to = query.to === undefined ? null : readTime('to', query.to) + (query.to.length === 10 ? dayMs : 0)
  if (from !== null && to !== null && from > to) throw invalidField('from', 'must not be after `to`')
  return { from, to }
}

/** Returns a parameter's time in epoch milliseconds. Throws `invalid_request` if it is out of range. */
export function readTime(param: string, text: string): number {
  const time = timeIn(text)
  if (!(time >= 0) || time >= Date.UTC(2200, 0)) throw invalidField(param, 'must be a date from 1970 to 2199')
  return time
}

/** Entries of one page. */
export const pageLimit = Type.Optional(
  Type.String({ pattern: '^([1-9]\\d?|1\\d\\d|200)$', maxLength: 3, description: 'an integer from 1 to 200' }),
)

/** Returns the entries of one page, 50 by default. */
export const readPageLimit = (sent: string | undefined) => (sent === undefined ? 50 : Number(sent))

/** JSON response that must not be cached. */
export function reply(body: object, status = 200): Response {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } })
}

/** 204 response. */
export function replyNoContent(): Response {
  return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } })
}

/** Error for a role without the permission. */
export function forbidden(): GatewayError {
  return new GatewayError('forbidden', 'Your role does not allow this action. Ask an owner of the account.', {
    shouldRetry: false,
  })
}

function outOfScope(needed: string | null): GatewayError {
  const message =
    needed === null
      ? 'No management key may do this. Sign in as a user.'
      : `This management key does not have the scope "${needed}". Create one that has it.`
  return new GatewayError('forbidden', message, { shouldRetry: false })
}

/** An unverified user only reads: the address may belong to another person. */
function unverified(): GatewayError {
  return new GatewayError(
    'forbidden',
    'Your email address is not confirmed yet. Follow the link in the confirmation email, or POST /api/v1/auth/verification for another one.',
    { shouldRetry: false },
  )
}

/** Error for an ID of another account or an unknown ID: both are the same. */
export function notFound(): GatewayError {
  return new GatewayError('not_found', 'No resource with this ID exists in your account. Check the ID.')
}

/**
 * Throws the error of a change that was not done. `conflicts` has the messages of outcomes that are 409 `conflict`, with what
 * to do.
 */
export function refuseUnlessDone<Conflict extends string>(
  outcome: 'done' | 'not_found' | 'forbidden' | Conflict,
  conflicts: Readonly<Record<Conflict, string>>,
): void {
  if (outcome === 'done') return
  if (outcome === 'not_found') throw notFound()
  if (outcome === 'forbidden') throw forbidden()
  throw new GatewayError('conflict', conflicts[outcome])
}

/** Returns the requests that a user sees: all of the account with the action, else those of the own keys and of projects. */
export function scopeFor({ accountId, userId, role, projects }: Principal, all: Action) {
  return { accountId, userId: isAllowed(role, all) ? null : userId, projectIds: [...projects.keys()] }
}
