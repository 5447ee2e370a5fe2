/** Management keys: credentials of programs that manage an account. They never answer a chat. */

import { getDigest } from '../../core/accounts/api-keys.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { mintManagementKey } from '../../http/authentication.ts'
import type { ConsoleDeps } from '../deps.ts'
import {
  type Authenticate,
  notFound,
  refuseUnlessDone,
  type SessionRequest,
  sessionRoute,
  sessionRoutes,
} from '../routes.ts'
import { managementKeyCreationSchema, managementKeysShape, newManagementKeyShape } from './schemas.ts'
import { addManagementKey, listManagementKeys, revokeManagementKey } from './store.ts'

const usualDays = 90

/** Routes under `/api/v1/management-keys`. */
export function managementKeys(deps: ConsoleDeps, identify: Authenticate) {
  return sessionRoutes('management-keys', identify, [
    sessionRoute({
      route: 'GET /api/v1/management-keys',
      action: 'management_keys.manage',
      summary: 'List management keys, newest first',
      answer: managementKeysShape,
      async handle({ principal, database }) {
        return { data: await listManagementKeys(database, principal.accountId) }
      },
    }),
    sessionRoute({
      route: 'POST /api/v1/management-keys',
      action: 'management_keys.manage',
      summary: 'Create a management key',
      description:
        'It replaces a session token in a program, within its scopes and the role of the user who created it. It ends with that user, and when the password is reset by email.',
      body: managementKeyCreationSchema,
      answer: newManagementKeyShape,
      status: 201,
      errors: ['conflict'],
      handle: call => create(deps, call),
    }),
    sessionRoute({
      route: 'DELETE /api/v1/management-keys/:id',
      action: 'management_keys.manage',
      summary: 'Revoke a management key',
      description: 'Takes effect on every instance within 1 s.',
      answer: null,
      async handle({ principal: { accountId }, id, database }) {
        refuseUnlessDone<never>(await revokeManagementKey(database, accountId, id), {})
        deps.sessions.forget()
        return null
      },
    }),
  ])
}

async function create(
  deps: ConsoleDeps,
  { principal, body, database }: SessionRequest<typeof managementKeyCreationSchema>,
) {
  const { name, scopes, expires_in_days: days = usualDays } = body
  const expiresAt = new Date(deps.clock.now() + days * dayMs)
  const { accountId, userId, sessionId } = principal
  const key = mintManagementKey(deps.randomBytes)
  const id = deps.newId('ses')
  const made = { id, userId, name, scopes, digest: getDigest(key), expiresAt }
  const outcome = await addManagementKey(database, accountId, sessionId, made)
  if (outcome === 'full')
    throw new GatewayError('conflict', 'Too many management keys. Revoke unused ones first.', { shouldRetry: false })
  const row = (await listManagementKeys(database, accountId)).find(other => other.id === id)
  if (row === undefined) throw notFound()
  return { ...row, key }
}
