/**
 * Password resets: single use, valid for 30 minutes, for the address they were sent to, identified by the digest of
 * their token.
 */
import type { Database } from '../../../database/database.ts'
import { recordAudit } from '../../../database/repositories/audit.ts'
import { rememberAddress } from './known-addresses.ts'
import { endAccess, revokeKeysOf } from './verifications.ts'

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
      if (revokesKeys) await revokeKeysOf(step, acting, user.id)
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
