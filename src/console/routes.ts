/** Routes of the console, as tables: for signed-in users, and without a session. The policy in a route's description is enforced. */

import type { Static, TSchema } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type Action, includesScope, isAllowed, isAllowedSomewhere, neededScope } from '../core/accounts/roles.ts'
import { type Actor, actingAs } from '../core/audit/audit.ts'
import type { RateLimiter } from '../core/limits/rate-limits.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { parseJson, strictObject, validate } from '../core/validation/validate.ts'
import type { Database } from '../database/database.ts'
import type { Principal } from '../http/authentication.ts'
import { bodyLimits, checkContentType, notJson, readBody, whileHeld } from '../http/body.ts'
import type { BodyBudget } from '../http/body-budget.ts'
import { idempotencyHeaders, type OnceDeps, onceErrors, runIdempotent } from '../http/idempotency.ts'
import type { PublicEndpointDeps } from '../http/public-endpoint.ts'
import { enforceIpLimit } from '../http/rate-limits.ts'
import { policies, type RouteDocs, session, withRouteDocs } from '../http/route-docs.ts'
import examples from './examples.json'

/** One request of a user whose role permits the route's action, in the account or in a project. */
export type SessionRequest<Body extends TSchema = TSchema> = {
  readonly principal: Principal
  /** Path parameters, each short and of safe characters. */
  readonly params: Readonly<Record<string, string>>
  /** The path parameter `id`. */
  readonly id: string
  /** The checked body of a route that has one. */
  readonly body: Static<Body>
  readonly request: Request
  readonly server: Bun.Server<unknown> | null
  /** The user with the network address. */
  readonly actor: Actor
  /** The database, where the user acts: the audit log names the user. */
  readonly database: Database
}

/** The JSON body of a response, null for one without a body, or a response of another form. */
type Answer<Shape extends TSchema | null> = Response | (Shape extends TSchema ? Static<Shape> & object : null)

/** A row of a table of routes. */
type Row<Call, Body extends TSchema, Shape extends TSchema | null> = RouteDocs & {
  readonly body?: Body
  readonly answer: Shape
  readonly handle: (call: Call) => Promise<Answer<Shape>>
}

export type SessionRoute<Body extends TSchema = TSchema, Shape extends TSchema | null = TSchema | null> = Row<
  SessionRequest<Body>,
  Body,
  Shape
> & {
  readonly route: `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`
  readonly action: Action
  /** Form of the path parameters, if not that of the gateway's own IDs. */
  readonly ids?: RegExp
  /** The route accepts `Idempotency-Key`. */
  readonly once?: OnceDeps
}

/** Types the handler of a route by the schemas of its body and of its answer. */
export function sessionRoute<Body extends TSchema, Shape extends TSchema | null>(
  row: SessionRoute<Body, Shape>,
): SessionRoute {
  return row as unknown as SessionRoute
}

export type Authenticate = {
  /** Returns the user of the session or the management key in the headers. Throws 401 if there is none. */
  readonly principal: (request: Request) => Promise<Principal>
  readonly bodies: BodyBudget
  readonly database: Database
  /** The client's network address, IPv6 by network. */
  readonly getAddress: (request: Request) => string
}

/** Elysia's part of a request that the tables read. */
type Context = {
  readonly request: Request
  readonly server: Bun.Server<unknown> | null
  readonly params?: Record<string, string>
}

/**
 * Creates one Elysia instance with the routes. Authentication comes before all other checks, so that unauthenticated
 * clients learn only that a route needs a session.
 */
export function sessionRoutes(name: string, identify: Authenticate, routes: readonly SessionRoute[]) {
  const app = new Elysia({ name })
  for (const { route, action, ids = harmless, handle, once, ...row } of routes)
    app.route(
      ...splitRoute(route),
      async ({ request, server, params = {} }: Context) => {
        const principal = await authorize(identify, request, action)
        if (!Object.values(params).every(value => ids.test(value))) throw notFound()
        const actor = {
          ...({ kind: 'user', userId: principal.userId, address: identify.getAddress(request) } as const),
          ...(principal.managementKey === null ? {} : { managementKey: principal.managementKey.name }),
        }
        const { id = '' } = params
        const call = { principal, params, id, request, server, actor, database: actingAs(identify.database, actor) }
        const work = async () => {
          const text = row.body === undefined ? '' : await readText(request)
          const run = async () => handle({ ...call, body: row.body && parseInput(text, row.body) })
          return toResponse(once === undefined ? await run() : await runIdempotent(once, call, text, run), row.status)
        }
        return whileHeld({ budget: identify.bodies, owner: principal.accountId }, request, bodyLimits.other, work)
      },
      { parse: 'none', ...withRouteDocs(session(action), { examples: bodies[route], ...row, ...onceDocs(row, once) }) },
    )
  return app
}

/** Examples of bodies by route. */
const bodies: Readonly<Record<string, RouteDocs['examples']>> = examples

/** Returns the method and the path of a route. */
function splitRoute(route: string): [method: string, path: string] {
  const [method = '', path = ''] = route.split(' ')
  return [method, path]
}

function onceDocs({ errors = [] }: RouteDocs, once: OnceDeps | undefined) {
  return once && { requestHeaders: idempotencyHeaders, errors: [...errors, ...onceErrors] }
}

function toResponse(answer: object | null, status = 200): Response {
  if (answer instanceof Response) return answer
  return answer === null
    ? new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } })
    : reply(answer, status)
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
export type OpenRequest<Body extends TSchema = TSchema> = {
  readonly request: Request
  /** The client's network address, IPv6 by network. */
  readonly address: string
  readonly params: Readonly<Record<string, string>>
  readonly body: Static<Body>
}

type OpenRoute<Body extends TSchema = TSchema, Shape extends TSchema | null = TSchema | null> = Row<
  OpenRequest<Body>,
  Body,
  Shape
> & {
  readonly route: `${'GET' | 'POST'} /${string}`
  /** Requests of one IP address; absent = the handler counts them. */
  readonly limit?: RateLimiter
  /** Throws if the configuration does not allow the request, before its body is read. */
  readonly refuse?: () => void
}

/** Types the handler of a route without a session. */
export function openRoute<Body extends TSchema, Shape extends TSchema | null>(row: OpenRoute<Body, Shape>): OpenRoute {
  return row as unknown as OpenRoute
}

/** Creates one Elysia instance with routes without a session. The small body is reserved for the client's IP address. */
export function openRoutes(name: string, deps: OpenRouteDeps, routes: readonly OpenRoute[]) {
  const app = new Elysia({ name })
  for (const { route, limit, refuse, handle, ...row } of routes)
    app.route(
      ...splitRoute(route),
      async ({ request, server, params = {} }: Context) => {
        const address = deps.getAddress(request, server)
        if (limit !== undefined) await enforceIpLimit(limit, address)
        const work = async () => {
          refuse?.()
          const body = row.body && parseInput(await readText(request), row.body)
          return toResponse(await handle({ request, address, params, body }), row.status)
        }
        return whileHeld({ budget: deps.bodies, owner: address }, request, bodyLimits.other, work)
      },
      { parse: 'none', ...withRouteDocs(policies.open, { examples: bodies[route], ...row }) },
    )
  return app
}

/** Description of a body that may be absent or `{}`. */
export const emptyBody = { body: strictObject({}), bodyRequired: false, examples: { nothing: {} } } as const

/** Reads a body under the small size limit. Its content type must be JSON. */
async function readText(request: Request): Promise<string> {
  checkContentType(request.headers)
  const sent = await readBody(request, bodyLimits.other)
  // A page of another origin can send a body without a content type, and browsers send no preflight for it.
  if (sent !== '' && !request.headers.has('content-type')) throw notJson()
  return sent
}

/** Returns a checked body. An absent body counts as `{}`. A duplicate key is rejected. */
const parseInput = <S extends TSchema>(text: string, schema: S) => validate(schema, parseJson(text || '{}'))

/** JSON response that must not be cached. */
export function reply(body: object, status = 200): Response {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } })
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
