/**
 * Password resets: single use, valid for 30 minutes, for the address they were sent to, identified by the digest of
 * their token.
 */

import type { TransactionSql } from 'postgres'
import type { Database } from '../../../database/database.ts'
import { recordAudit } from '../../../database/repositories/audit.ts'
import { rememberAddress } from './known-addresses.ts'

const lifetimeMinutes = 30

/** Stores a reset for the user of an address, replacing earlier ones. Returns false if no user has it. */
export async function createReset(database: Database, email: string, digest: string): Promise<boolean> {
  const rows = await database.run(
    ({ sql }) => sql`
      with known as (select id, email from users where email = ${email} and removed_at is null),
      earlier as (delete from password_resets using known where user_id = known.id)
      insert into password_resets (digest, user_id, email, created_at, expires_at)
      select ${digest}, id, email, now, now + make_interval(mins => ${lifetimeMinutes})
      from known, clock_timestamp() as now
      returning digest`,
  )
  return rows.length > 0
}

/** Returns true if a token's reset can be used now. Checked before a password is hashed for it. */
export async function isResetOpen(database: Database, digest: string): Promise<boolean> {
  const rows = await database.run(
    ({ sql }) => sql`
      select 1 from password_resets join users on users.id = user_id and users.email = password_resets.email
      where digest = ${digest} and used_at is null and expires_at > clock_timestamp() and removed_at is null`,
  )
  return rows.length > 0
}

type Reset = {
  readonly digest: string
  readonly passwordHash: string
  /** True if all keys of the user are revoked too. */
  readonly revokesKeys: boolean
  /** Network address of the client. */
  readonly address: string
  /** Returns the digests under which the network address is stored, given the user's email. */
  readonly addressDigests: (email: string) => readonly string[]
}

/**
 * Sets the password once. Ends all sessions and a lockout, since the reader of the mailbox owns it. Confirms an
 * unconfirmed address, and ends sessions and keys of its earlier user. Returns false if the reset was used, replaced or
 * has expired.
 */
export function useReset(database: Database, reset: Reset): Promise<boolean> {
  const { digest, passwordHash, revokesKeys, address, addressDigests } = reset
  return database.run(({ sql }) =>
    sql.begin(async step => {
      const [user] = await step<{ id: string; account_id: string; email: string; is_unverified: boolean }[]>`
        select users.id, users.account_id, users.email, unverified_since is not null as is_unverified from users join password_resets on user_id = users.id
        where digest = ${digest} and password_resets.email = users.email and removed_at is null
        for no key update of users`
      if (user === undefined) return false
      const used = await step`
        update password_resets set used_at = clock_timestamp()
        where digest = ${digest} and used_at is null and expires_at > clock_timestamp() returning digest`
      if (used.length === 0) return false
      await step`update users set password_hash = ${passwordHash}, unverified_since = null, email_proven = true where id = ${user.id}`
      // The reader of the mailbox acts as the user.
      const acting = { actor: { kind: 'user', userId: user.id, address } } as const
      if (user.is_unverified) await endAccess(step, acting, user.id)
      else await step`delete from sessions where user_id = ${user.id}`
      if (revokesKeys) await getRevokeKeys(step, acting, user.id)
      await rememberAddress(step, user.id, addressDigests(user.email))
      await step`
        delete from sign_in_failures
        where subject = 'mail:' || encode(sha256(convert_to(${user.email}::text, 'UTF8')), 'hex')`
      const details = { revoked_keys: revokesKeys || user.is_unverified }
      const entry = { accountId: user.account_id, action: 'password.reset', target: user.id, details } as const
      await recordAudit(step, acting, entry)
      return true
    }),
  )
}

/**
 * Confirmations of email addresses: a mailed token, single use, valid for one day, stored as its digest. The reader of
 * the mailbox can take over an unconfirmed address; the earlier user then loses all access.
 */

const lifetimeHours = 24

/** An open confirmation, with the data that the password is checked against. */
type OpenVerification = {
  readonly userId: string
  readonly accountId: string
  readonly email: string
  readonly passwordHash: string
}

/**
 * Stores a confirmation for a user, replacing an earlier one. Returns false if the user's address is already confirmed.
 */
export async function askVerification(database: Database, userId: string, digest: string): Promise<boolean> {
  const rows = await database.run(
    ({ sql }) => sql`
      insert into email_verifications (digest, user_id, email, created_at, expires_at)
      select ${digest}, id, email, now, now + make_interval(hours => ${lifetimeHours})
      from users, clock_timestamp() as now
      where id = ${userId} and unverified_since is not null and removed_at is null
      on conflict (user_id) do update set digest = excluded.digest, email = excluded.email,
        created_at = excluded.created_at, expires_at = excluded.expires_at
      returning digest`,
  )
  return rows.length > 0
}

/** Returns the open confirmation of a token's digest; null = none. */
export async function findVerification(database: Database, digest: string): Promise<OpenVerification | null> {
  const rows = await database.run(
    ({ sql }) => sql<OpenVerification[]>`
      select users.id as "userId", account_id as "accountId", users.email, password_hash as "passwordHash"
      from email_verifications join users on users.id = user_id and users.email = email_verifications.email
      where digest = ${digest} and expires_at > clock_timestamp() and removed_at is null`,
  )
  return rows[0] ?? null
}

/** Confirms the address once. Returns false if the token was used, replaced or has expired. */
export function useVerification(database: Database, digest: string): Promise<boolean> {
  return database.run(({ sql }) =>
    sql.begin(async step => {
      // Locks the user's row first, like every other change of a user, so that two transactions cannot deadlock.
      const [user] = await step<{ id: string; account_id: string }[]>`
        select users.id, users.account_id from users join email_verifications on user_id = users.id
        where digest = ${digest} and email_verifications.email = users.email and removed_at is null
        for no key update of users`
      if (user === undefined) return false
      const used = await step`
        delete from email_verifications where digest = ${digest} and expires_at > clock_timestamp() returning user_id`
      if (used.length === 0) return false
      await step`update users set unverified_since = null, email_proven = true where id = ${user.id}`
      await recordAudit(step, database, { accountId: user.account_id, action: 'email.confirmed', target: user.id })
      return true
    }),
  )
}

/**
 * Frees an unconfirmed address for a new user: removes its user with sessions, keys and tokens. Changes nothing if the
 * address is confirmed or unknown. `provenFor` = the account whose new user has proven the address, which also frees it
 * from a user of another account who has not; null = it is not proven.
 */
export function releaseUnverified(database: Database, email: string, provenFor: string | null = null): Promise<void> {
  return database.run(({ sql }) => sql.begin(step => releaseUnverifiedIn(step, database, email, provenFor)))
}

/** The same within a transaction. */
export async function releaseUnverifiedIn(
  step: TransactionSql,
  by: Pick<Database, 'actor'>,
  email: string,
  provenFor: string | null = null,
): Promise<void> {
  const [user] = await step<{ id: string; account_id: string }[]>`
    select id, account_id from users
    where email = ${email} and removed_at is null and (unverified_since is not null
      or (${provenFor}::text is not null and not email_proven and account_id <> ${provenFor}))
    for update`
  if (user === undefined) return
  await endUser(step, by, user.id)
  await recordAudit(step, by, { accountId: user.account_id, action: 'member.removed', target: user.id })
}

/**
 * Ends a user: email and password are blanked, and all access ends. The row stays for keys and records that reference it,
 * and so do identities of single sign-on, because a removed user needs an invitation to return.
 */
export async function endUser(step: TransactionSql, by: Pick<Database, 'actor'>, userId: string): Promise<void> {
  // No address ends in `.invalid`, and no password has an empty hash.
  await step`
    update users set removed_at = clock_timestamp(), email = lower(id) || '@removed.invalid', password_hash = '',
      unverified_since = null, password_sign_in_until = null
    where id = ${userId}`
  await endAccess(step, by, userId)
  for (const table of ['project_members', 'totp_recovery_codes', 'totp_secrets', 'oidc_sign_ins'])
    await step`delete from ${step(table)} where user_id = ${userId}`
}

/** Ends all access of a user whose address was not confirmed or who is removed: sessions, keys, tokens, known addresses. */
async function endAccess(step: TransactionSql, by: Pick<Database, 'actor'>, userId: string): Promise<void> {
  for (const table of ['sessions', 'password_resets', 'email_verifications', 'known_addresses'])
    await step`delete from ${step(table)} where user_id = ${userId}`
  await step`delete from invitations where invited_by = ${userId} and accepted_at is null`
  await getRevokeKeys(step, by, userId)
}

/** Revokes every key of a user. */
async function getRevokeKeys(step: TransactionSql, by: Pick<Database, 'actor'>, userId: string): Promise<void> {
  const keys = await step<{ id: string; name: string; account_id: string }[]>`
    update api_keys set revoked_at = clock_timestamp(), updated_at = clock_timestamp()
    where user_id = ${userId} and (revoked_at is null or revoked_at > clock_timestamp())
    returning id, name, account_id`
  for (const { id: target, name, account_id: accountId } of keys)
    await recordAudit(step, by, { accountId, action: 'key.revoked', target, details: { name } })
}
