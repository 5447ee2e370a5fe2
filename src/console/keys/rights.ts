/** Rights of a user at API keys: a key that the user may not see is like a missing one. */
import { isAllowed, isAllowedIn } from '../../core/accounts/roles.ts'
import type { Database } from '../../database/database.ts'
import type { ApiKey } from '../../database/tables.ts'
import type { Principal } from '../../http/authentication.ts'
import { forbidden, notFound, type SessionRequest } from '../../http/session-routes.ts'
import { findKey } from './stores/key-lineages.ts'

type KeyRightsDeps = { readonly database: Database }

/** Returns the key with this ID if the list of keys shows it to the user; otherwise throws the error for an unknown ID. */
export async function visibleKey({ database }: KeyRightsDeps, { principal, params }: SessionRequest): Promise<ApiKey> {
  const row = await findKey(database, principal.accountId, params.id ?? '')
  const { role, userId, projects } = principal
  const isVisible =
    row?.userId === userId || isAllowed(role, 'keys.all') || (row?.projectId != null && projects.has(row.projectId))
  if (row === null || !isVisible) throw notFound()
  return row
}

/**
 * Returns the key with this ID if the user may manage it. Throws `forbidden` for another user's key in a project of the user,
 * and the error for an unknown ID for all other keys.
 */
export async function managedKey({ database }: KeyRightsDeps, { principal, params }: SessionRequest): Promise<ApiKey> {
  const row = await findKey(database, principal.accountId, params.id ?? '')
  if (row === null) throw notFound()
  const { projectId } = row
  if (isAllowedIn(principal, 'keys.all', projectId)) return row
  if (row.userId === principal.userId && isAllowedIn(principal, 'keys.own', projectId)) return row
  throw projectId !== null && principal.projects.has(projectId) ? forbidden() : notFound()
}

/**
 * Throws unless the user may have keys of `holderId` in a project, or in none. The error is that of an unknown ID for a project
 * of others.
 */
export function refuseProject(principal: Principal, projectId: string | null, holderId: string): void {
  if (isAllowedIn(principal, holderId === principal.userId ? 'keys.own' : 'keys.all', projectId)) return
  throw projectId === null || principal.projects.has(projectId) ? forbidden() : notFound()
}
