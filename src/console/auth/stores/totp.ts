/** Secrets and recovery codes of two-factor sign-in. Secrets arrive sealed and leave sealed. */
import { withAccountRls } from '../../../database/account-transaction.ts'
import type { Database } from '../../../database/database.ts'
import { recordAudit } from '../../../database/repositories/audit.ts'

export type TotpState = {
  /** Sealed. */
  readonly secret: string
  readonly isConfirmed: boolean
  readonly recoveryCodes: number
}

/** Returns the state of a user's two-factor sign-in; null = not set up. */
export async function findTotp(database: Database, userId: string): Promise<TotpState | null> {
  const rows = await database.run(
    ({ sql }) => sql<TotpState[]>`
      select secret, confirmed_at is not null as "isConfirmed",
        (select count(*)::int from totp_recovery_codes as code where code.user_id = totp_secrets.user_id) as "recoveryCodes"
      from totp_secrets where user_id = ${userId}`,
  )
  return rows[0] ?? null
}

type Owner = { readonly accountId: string; readonly userId: string }

/** Stores an unconfirmed secret, replacing an unconfirmed one. Returns false if a confirmed one exists. */
export async function offerTotp(database: Database, { accountId, userId }: Owner, secret: string): Promise<boolean> {
  const rows = await withAccountRls(database, accountId).sql(
    sql => sql`
      insert into totp_secrets (user_id, secret, created_at) values (${userId}, ${secret}, clock_timestamp())
      on conflict (user_id) do update set secret = excluded.secret, created_at = excluded.created_at, last_step = 0
        where totp_secrets.confirmed_at is null
      returning user_id`,
  )
  return rows.length > 0
}

/** Confirms exactly this secret with its first code, and stores the recovery codes. Returns false if it has changed. */
export function confirmTotp(
  database: Database,
  { accountId, userId }: Owner,
  {
    secret,
    step,
    digests,
  }: { readonly secret: string; readonly step: number; readonly digests: readonly (string | null)[] },
): Promise<boolean> {
  return withAccountRls(database, accountId).sql(async sql => {
    const confirmed = await sql`
      update totp_secrets set confirmed_at = clock_timestamp(), last_step = ${step}
      where user_id = ${userId} and secret = ${secret} and confirmed_at is null returning user_id`
    if (confirmed.length === 0) return false
    await sql`delete from totp_recovery_codes where user_id = ${userId}`
    await sql`
      insert into totp_recovery_codes (user_id, digest)
      select ${userId}, json_array_elements_text(${JSON.stringify(digests)}::text::json)`
    await recordAudit(sql, database, { accountId, action: 'two_factor.enabled', target: userId })
    return true
  })
}

/**
 * Uses up the code of a time step, in one statement, and stores the secret as it is sealed now. Returns false if the code
 * or a later one was used.
 */
export async function useTotpStep(
  database: Database,
  userId: string,
  { step, secret }: { readonly step: number; readonly secret: string },
): Promise<boolean> {
  const rows = await database.run(
    ({ sql }) => sql`
      update totp_secrets set last_step = ${step}, secret = ${secret}
      where user_id = ${userId} and confirmed_at is not null and last_step < ${step} returning user_id`,
  )
  return rows.length > 0
}

/** Uses up a recovery code. Returns false if there is none of this digest. */
export async function useRecoveryCode(database: Database, userId: string, digest: string): Promise<boolean> {
  const rows = await database.run(
    ({ sql }) => sql`delete from totp_recovery_codes where user_id = ${userId} and digest = ${digest} returning digest`,
  )
  return rows.length > 0
}

/** Disables two-factor sign-in of a user. Returns false if it was not set up. */
export function removeTotp(database: Database, { accountId, userId }: Owner): Promise<boolean> {
  return withAccountRls(database, accountId).sql(async sql => {
    await sql`delete from totp_recovery_codes where user_id = ${userId}`
    const removed = await sql`delete from totp_secrets where user_id = ${userId} returning user_id`
    if (removed.length === 0) return false
    await recordAudit(sql, database, { accountId, action: 'two_factor.disabled', target: userId })
    return true
  })
}
