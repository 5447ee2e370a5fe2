/** Management keys: sessions that a user creates for a program. They end with their user, and at a password reset. */

import { and, desc, eq, gt, isNotNull, sql } from 'drizzle-orm'
import type { ManagementScope } from '../../core/accounts/roles.ts'
import type { Database } from '../../database/database.ts'
import { recordAudit } from '../../database/repositories/audit.ts'
import { withAccountRls } from '../../database/statement.ts'
import { type Session, sessions } from '../../database/tables.ts'

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
): Promise<Session | 'full' | 'gone'> {
  return withAccountRls(database, accountId).orm(async step => {
    // Serializes creations of one account, and a reset that ends the session: its user's row is locked by both.
    await step.execute(sql`select 1 from users where id = ${userId} for no key update`)
    await step.execute(sql`select 1 from accounts where id = ${accountId} for no key update`)
    if ((await step.execute(sql`select 1 from sessions where id = ${session}`)).length === 0) return 'gone'
    if ((await step.select({ id: sessions.id }).from(sessions).where(isValid(accountId))).length >= maximumKeys)
      return 'full'
    const now = sql`clock_timestamp()`
    const [row] = await step
      .insert(sessions)
      .values({
        ...{ id, accountId, userId, name, scopes: [...scopes], keyDigest: digest, userAgent: null },
        ...{ createdAt: now, lastUsedAt: now, expiresAt, endsAt: expiresAt },
      })
      .returning()
    const details = { name, scopes: scopes.join(' '), expires_at: expiresAt.toISOString() }
    await recordAudit(step, database, { accountId, action: 'management_key.created', target: id, details })
    return row ?? 'gone'
  })
}

const isValid = (accountId: string) =>
  and(eq(sessions.accountId, accountId), isNotNull(sessions.scopes), gt(sessions.expiresAt, sql`clock_timestamp()`))

/** Returns the valid management keys of an account, newest first. */
export function listManagementKeys(database: Database, accountId: string): Promise<Session[]> {
  return withAccountRls(database, accountId).orm(step =>
    step.select().from(sessions).where(isValid(accountId)).orderBy(desc(sessions.createdAt), desc(sessions.id)),
  )
}

/** Ends a management key. Returns false if the account has none of this ID. */
export function revokeManagementKey(database: Database, accountId: string, id: string): Promise<boolean> {
  return withAccountRls(database, accountId).orm(async step => {
    const [row] = await step
      .delete(sessions)
      .where(and(isValid(accountId), eq(sessions.id, id)))
      .returning()
    if (row === undefined) return false
    const details = { name: row.name }
    await recordAudit(step, database, { accountId, action: 'management_key.revoked', target: id, details })
    return true
  })
}
