/** Management keys: sessions that a user creates for a program. They end with their user, and at a password reset. */

import type { ManagementScope } from '../../core/accounts/roles.ts'
import type { Database } from '../../database/database.ts'
import { changeAudited } from '../../database/repositories/audit.ts'
import { withAccountRls } from '../../database/statement.ts'
import type { ShownManagementKey } from './schemas.ts'

const maximumKeys = 100

type NewManagementKey = {
  readonly id: string
  readonly userId: string
  readonly name: string
  readonly scopes: readonly ManagementScope[]
  /** SHA-256 of the key, hex. */
  readonly digest: string
  readonly expiresAt: Date
}

/** Adds a key of `session`'s user. Returns `full` if the account has too many, `gone` if the session has ended. */
export function addManagementKey(
  database: Database,
  accountId: string,
  session: string,
  { id, userId, name, scopes, digest, expiresAt }: NewManagementKey,
): Promise<'done' | 'full' | 'gone'> {
  return changeAudited<'full' | 'gone'>(database, accountId, async step => {
    // Serializes creations of one account, and a reset that ends the session: its user's row is locked by both.
    await step`select 1 from users where id = ${userId} for no key update`
    await step`select 1 from accounts where id = ${accountId} for no key update`
    if ((await step`select 1 from sessions where id = ${session}`).length === 0) return 'gone'
    const valid = await step`
      select 1 from sessions where account_id = ${accountId} and scopes is not null and expires_at > clock_timestamp()`
    if (valid.length >= maximumKeys) return 'full'
    const end = expiresAt.toISOString()
    await step`
      insert into sessions (id, account_id, user_id, name, scopes, key_digest, created_at, last_used_at, expires_at, ends_at)
      select ${id}, ${accountId}, ${userId}, ${name}, string_to_array(${scopes.join(' ')}, ' '), ${digest}, now, now,
        ${end}::text::timestamptz, ${end}::text::timestamptz
      from clock_timestamp() as now`
    const details = { name, scopes: scopes.join(' '), expires_at: end }
    return { action: 'management_key.created', target: id, details }
  })
}

/** Returns the valid management keys of an account, newest first. */
export function listManagementKeys(database: Database, accountId: string): Promise<ShownManagementKey[]> {
  return withAccountRls(database, accountId).sql(
    sql => sql<ShownManagementKey[]>`
      select id, name, array_to_json(scopes) as scopes, user_id, iso_time(created_at) as created_at,
        iso_time(last_used_at) as last_used_at, iso_time(expires_at) as expires_at
      from sessions
      where account_id = ${accountId} and scopes is not null and expires_at > clock_timestamp()
      order by sessions.created_at desc, id desc`,
  )
}

/** Ends a management key. */
export function revokeManagementKey(database: Database, accountId: string, id: string): Promise<'done' | 'not_found'> {
  return changeAudited<'not_found'>(database, accountId, async step => {
    const [row] = await step<{ name: string }[]>`
      delete from sessions
      where id = ${id} and account_id = ${accountId} and scopes is not null and expires_at > clock_timestamp()
      returning name`
    return row === undefined ? 'not_found' : { action: 'management_key.revoked', target: id, details: { ...row } }
  })
}
