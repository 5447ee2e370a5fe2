/** API keys of an account: members manage their own keys, admins and owners all of them, admins of a project those in it. */

import { mintApiKey } from '../../core/accounts/api-keys.ts'
import { isAllowed } from '../../core/accounts/roles.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField, validate } from '../../core/validation/validate.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Authenticate, notFound, type SessionRequest, sessionRoute, sessionRoutes } from '../routes.ts'
import {
  auditedChange,
  keyChangeSchema,
  keyCreationSchema,
  keyListQuerySchema,
  keyRotationSchema,
  managedKey,
  refuseProject,
  rulesIn,
  shownKey,
  shownLineage,
  visibleKey,
} from './rules.ts'
import { keyPageShape, keyShape, keysShape, newKeyShape } from './schemas.ts'
import {
  addKey,
  changeKey,
  findLineage,
  recentKeys,
  recentRequests,
  rotateKey,
  usageByLineage,
} from './stores/key-lineages.ts'
import { revokeKey } from './stores/keys.ts'

/** Routes under `/api/v1/keys`. */
export function keys(deps: ConsoleDeps, identify: Authenticate) {
  return sessionRoutes('keys', identify, [
    sessionRoute({
      route: 'GET /api/v1/keys',
      action: 'keys.see',
      summary: 'List API keys with their usage, newest first',
      query: keyListQuerySchema,
      answer: keysShape,
      handle: list,
    }),
    sessionRoute({
      route: 'POST /api/v1/keys',
      action: 'keys.own',
      summary: 'Create an API key',
      body: keyCreationSchema,
      answer: newKeyShape,
      status: 201,
      once: deps,
      errors: ['not_found'],
      handle: call => create(deps, call),
    }),
    sessionRoute({
      route: 'GET /api/v1/keys/:id',
      action: 'keys.see',
      summary: 'Get an API key with its lineage',
      description: 'The lineage are the keys of one rotation after another, oldest first. They share usage and limits.',
      answer: keyPageShape,
      handle: item,
    }),
    sessionRoute({
      route: 'PATCH /api/v1/keys/:id',
      action: 'keys.own',
      summary: 'Change an API key',
      description:
        'An omitted field or limit stays as it is; null removes it. A later `expires_at` makes an expired key valid again, but no key that was revoked or replaced by a rotation.',
      body: keyChangeSchema,
      answer: keyShape,
      errors: ['conflict'],
      handle: call => change(deps, call),
    }),
    sessionRoute({
      route: 'POST /api/v1/keys/:id/rotate',
      action: 'keys.own',
      summary: 'Rotate an API key',
      body: keyRotationSchema,
      bodyRequired: false,
      answer: newKeyShape,
      status: 201,
      once: deps,
      handle: call => rotate(deps, call),
    }),
    sessionRoute({
      route: 'DELETE /api/v1/keys/:id',
      action: 'keys.own',
      summary: 'Revoke an API key',
      description: 'Takes effect on every instance within 1 s.',
      answer: null,
      handle: call => revoke(deps, call),
    }),
  ])
}

async function list({ principal, request, database }: SessionRequest) {
  const { accountId, userId, role, projects } = principal
  // Other parameters have no meaning here, and were accepted before this one was known.
  const projectId = new URL(request.url).searchParams.get('project_id')
  const { project_id } = validate(keyListQuerySchema, projectId === null ? {} : { project_id: projectId })
  const own = isAllowed(role, 'keys.all') ? null : userId
  const visible = { userId: own, projectIds: [...projects.keys()], projectId: project_id }
  const [rows, usage] = await Promise.all([
    recentKeys(database, accountId, visible),
    usageByLineage(database, accountId),
  ])
  return { data: rows.map(row => shownKey(row, usage.get(row.lineId ?? row.id))) }
}

async function item(call: SessionRequest) {
  const {
    principal: { accountId },
    database,
  } = call
  const row = await visibleKey(call)
  const lineId = row.lineId ?? row.id
  const [usage, lineage, requests] = await Promise.all([
    usageByLineage(database, accountId),
    findLineage(database, accountId, lineId),
    recentRequests(database, accountId, lineId),
  ])
  return {
    ...shownKey(row, usage.get(lineId)),
    requests_last_minute: requests,
    ...shownLineage(row.id, lineage),
  }
}

async function create(deps: ConsoleDeps, { principal, body, database }: SessionRequest<typeof keyCreationSchema>) {
  const { randomBytes, newId, clock } = deps
  const { accountId, userId, sessionId } = principal
  refuseProject(principal, body.project_id ?? null, userId)
  const now = clock.now()
  const minted = mintApiKey(randomBytes)
  const row = await addKey(database, accountId, sessionId, {
    id: newId('key'),
    userId,
    name: body.name,
    publicId: minted.id,
    digest: minted.digest,
    createdAt: new Date(now),
    web: body.web ?? true,
    ...rulesIn(body, null, now),
  })
  if (row === 'gone') throw notFound()
  if (row === 'full') throw tooManyKeys()
  deps.keys.expect(minted.digest)
  deps.announce()
  return { ...shownKey(row, undefined), key: minted.key }
}

async function change(deps: ConsoleDeps, call: SessionRequest<typeof keyChangeSchema>) {
  const { body: wanted, database } = call
  if (Object.keys(wanted).length === 0) throw invalidField('name', 'is required unless another field is sent')
  const { id, userId, limits, projectId } = await managedKey(call)
  const { project_id: target = projectId } = wanted
  if (target !== projectId) refuseProject(call.principal, target, userId)
  const { name, web } = wanted
  const change = { name, web, ...rulesIn(wanted, limits, deps.clock.now()) }
  const row = await changeKey(database, {
    accountId: call.principal.accountId,
    keyId: id,
    change,
    details: auditedChange(change),
  })
  if (row === null) throw target === projectId ? notFound() : notMoved()
  if (row === 'full') throw tooManyKeys()
  if (typeof row === 'string') throw new GatewayError('conflict', endedKey[row], { param: 'expires_at' })
  deps.announce()
  const usage = await usageByLineage(database, call.principal.accountId)
  return shownKey(row, usage.get(row.lineId ?? row.id))
}

function notMoved(): GatewayError {
  const message =
    'The key was not moved: the project is unknown or archived, or the user of the key may not have keys there. Add the user to the project first.'
  return new GatewayError('not_found', message)
}

const tooManyKeys = () => new GatewayError('conflict', 'Too many API keys. Revoke unused keys first.')
/** Error messages for keys whose expiry cannot be extended. */
const endedKey = {
  revoked: 'This key is revoked. Its expiry cannot change. Create a new key.',
  replaced: 'A rotation replaced this key. It can only expire earlier. Use the key that replaces it.',
  barred: 'The user of this key may not have keys in its project, or the project is archived. Create a new key.',
} as const

async function rotate(
  { randomBytes, newId, clock, ...deps }: ConsoleDeps,
  call: SessionRequest<typeof keyRotationSchema>,
) {
  const {
    principal: { accountId, sessionId },
    database,
  } = call
  const { overlap_seconds: overlapSeconds = 0 } = call.body
  const { id } = await managedKey(call)
  const minted = mintApiKey(randomBytes)
  const fresh = { id: newId('key'), publicId: minted.id, digest: minted.digest, createdAt: new Date(clock.now()) }
  const row = await rotateKey(database, accountId, sessionId, id, fresh, overlapSeconds)
  if (row === 'not_found') throw notFound()
  if (row === 'not_valid')
    throw new GatewayError('conflict', 'This key is revoked, expired or already rotated. Create a new key.')
  deps.keys.expect(minted.digest)
  deps.announce()
  const usage = await usageByLineage(database, accountId)
  return { ...shownKey(row, usage.get(row.lineId ?? row.id)), key: minted.key }
}

async function revoke({ clock, announce }: ConsoleDeps, call: SessionRequest): Promise<null> {
  const { id } = await managedKey(call)
  // A second revocation of an ended key succeeds: the result is the same.
  const isRevoked = await revokeKey(call.database, call.principal.accountId, id, new Date(clock.now()))
  if (isRevoked) announce()
  return null
}
