/** Routes for signed-in users, as a table. The policy in a route's description is the policy that is enforced. */

import type { Static, TSchema } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type Action, includesScope, isAllowed, isAllowedSomewhere, neededScope } from '../core/accounts/roles.ts'
import type { Actor } from '../core/audit/audit.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { parseJson, strictObject, validate } from '../core/validation/validate.ts'
import type { Principal } from './authentication.ts'
import { bodyLimits, checkContentType, notJson, readBody, whileHeld } from './body.ts'
import type { BodyBudget } from './body-budget.ts'
import type { PublicEndpointDeps } from './public-endpoint.ts'
import { type RouteDocs, session, withRouteDocs } from './route-docs.ts'

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

/** Runs a route without a session while the small body is reserved for the client's IP address. */
export function heldOpen(
  deps: { readonly bodies: BodyBudget },
  { request, address }: { readonly request: Request; readonly address: string },
  work: () => Promise<Response>,
): Promise<Response> {
  return whileHeld({ budget: deps.bodies, owner: address }, request, bodyLimits.other, work)
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
