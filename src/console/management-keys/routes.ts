/** Management keys: credentials of programs that manage an account. They never answer a chat. */

import { getDigest } from '../../core/accounts/api-keys.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { Session } from '../../database/tables.ts'
import { mintManagementKey } from '../../http/authentication.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Authenticate, notFound, type SessionRequest, sessionRoute, sessionRoutes } from '../routes.ts'
import {
  managementKeyCreationSchema,
  managementKeysShape,
  newManagementKeyShape,
  type ShownManagementKey,
} from './schemas.ts'
import { addManagementKey, listManagementKeys, revokeManagementKey } from './store.ts'

const usualDays = 90

/** Routes under `/api/v1/management-keys`. */
export function managementKeys(deps: ConsoleDeps, identify: Authenticate) {
  return sessionRoutes('management-keys', identify, [
    sessionRoute({
      method: 'GET',
      path: '/api/v1/management-keys',
      action: 'management_keys.manage',
      summary: 'List management keys, newest first',
      answer: managementKeysShape,
      async handle({ principal, database }) {
        return { data: (await listManagementKeys(database, principal.accountId)).map(shown) }
      },
    }),
    sessionRoute({
      method: 'POST',
      path: '/api/v1/management-keys',
      action: 'management_keys.manage',
      summary: 'Create a management key',
      description:
        'It replaces a session token in a program, within its scopes and the role of the user who created it. It ends with that user, and when the password is reset by email.',
      body: managementKeyCreationSchema,
      examples: {
        'keys with budgets': { name: 'onboarding', scopes: ['keys:write', 'usage:read'], expires_in_days: 30 },
      },
      answer: newManagementKeyShape,
      status: 201,
      errors: ['conflict'],
      handle: call => create(deps, call),
    }),
    sessionRoute({
      method: 'DELETE',
      path: '/api/v1/management-keys/:id',
      action: 'management_keys.manage',
      summary: 'Revoke a management key',
      description: 'Takes effect on every instance within 1 s.',
      answer: null,
      async handle({ principal: { accountId }, id, database }) {
        if (!(await revokeManagementKey(database, accountId, id))) throw notFound()
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
  const row = await addManagementKey(database, accountId, sessionId, {
    ...{ id: deps.newId('ses'), userId, name, scopes, digest: getDigest(key), expiresAt },
  })
  if (row === 'gone') throw notFound()
  if (row === 'full')
    throw new GatewayError('conflict', 'Too many management keys. Revoke unused ones first.', { shouldRetry: false })
  return { ...shown(row), key }
}

function shown({ id, name, scopes, userId, createdAt, lastUsedAt, expiresAt }: Session): ShownManagementKey {
  return {
    id,
    name: name ?? '',
    scopes: scopes ?? [],
    user_id: userId,
    created_at: createdAt.toISOString(),
    last_used_at: lastUsedAt.toISOString(),
    expires_at: expiresAt.toISOString(),
  }
}
