/** Management keys: credentials of programs that manage an account. They never answer a chat. */

import { getDigest, type RandomBytes } from '../../core/accounts/api-keys.ts'
import { actingAs } from '../../core/audit/audit.ts'
import type { Clock } from '../../core/ports.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { Database } from '../../database/database.ts'
import type { Session } from '../../database/tables.ts'
import { mintManagementKey } from '../../http/authentication.ts'
import {
  type Authenticate,
  notFound,
  readInput,
  reply,
  replyNoContent,
  type SessionRequest,
  sessionRoutes,
} from '../../http/session-routes.ts'
import {
  managementKeyCreationSchema,
  managementKeysShape,
  newManagementKeyShape,
  type ShownManagementKey,
} from './schemas.ts'
import { addManagementKey, listManagementKeys, revokeManagementKey } from './store.ts'

type ManagementKeysDeps = {
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
  readonly randomBytes: RandomBytes
  readonly newId: (prefix: string) => string
  /** Forgets cached sessions of this process. */
  readonly sessions: { forget(): void }
}

const usualDays = 90

/** Routes under `/api/v1/management-keys`. */
export function managementKeys(deps: ManagementKeysDeps, identify: Authenticate) {
  return sessionRoutes('management-keys', identify, [
    {
      method: 'GET',
      path: '/api/v1/management-keys',
      action: 'management_keys.manage',
      summary: 'List management keys, newest first',
      answer: managementKeysShape,
      async handle({ principal }) {
        return reply({ data: (await listManagementKeys(deps.database, principal.accountId)).map(shown) })
      },
    },
    {
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
    },
    {
      method: 'DELETE',
      path: '/api/v1/management-keys/:id',
      action: 'management_keys.manage',
      summary: 'Revoke a management key',
      description: 'Takes effect on every instance within 1 s.',
      answer: null,
      async handle({ principal: { accountId }, params: { id = '' }, actor }) {
        if (!(await revokeManagementKey(actingAs(deps.database, actor), accountId, id))) throw notFound()
        deps.sessions.forget()
        return replyNoContent()
      },
    },
  ])
}

async function create(deps: ManagementKeysDeps, { principal, request, actor }: SessionRequest): Promise<Response> {
  const { name, scopes, expires_in_days: days = usualDays } = await readInput(request, managementKeyCreationSchema)
  const expiresAt = new Date(deps.clock.now() + days * dayMs)
  const { accountId, userId, sessionId } = principal
  const key = mintManagementKey(deps.randomBytes)
  const row = await addManagementKey(actingAs(deps.database, actor), accountId, sessionId, {
    ...{ id: deps.newId('ses'), userId, name, scopes, digest: getDigest(key), expiresAt },
  })
  if (row === 'gone') throw notFound()
  if (row === 'full')
    throw new GatewayError('conflict', 'Too many management keys. Revoke unused ones first.', { shouldRetry: false })
  return reply({ ...shown(row), key }, 201)
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
