/**
 * Single sign-ons in progress, and the users that an identity provider has identified. A user is found by issuer and
 * subject; an email address only links the first sign-in, and only within the account that single sign-on belongs to.
 */
import type { TransactionSql } from 'postgres'
import type { Role } from '../../../core/accounts/roles.ts'
import type { SingleSignOnFailure } from '../../../core/accounts/single-sign-on.ts'
import type { Database } from '../../../database/database.ts'
import { recordAudit } from '../../../database/repositories/audit.ts'
import { releaseUnverifiedIn } from './email-links.ts'
import { joinInvitedProject } from './invitations.ts'
import { applyRole } from './users.ts'

const atProviderSeconds = 600
const handOverSeconds = 60

/** Stores a sign-in by the digest of its secret. `userId` = the provider has identified the user. */
export async function beginSignIn(database: Database, digest: string, userId: string | null = null): Promise<void> {
  const seconds = userId === null ? atProviderSeconds : handOverSeconds
  await database.run(
    ({ sql }) => sql`
      with forgotten as (
        delete from oidc_sign_ins where digest in (
          select digest from oidc_sign_ins where expires_at < clock_timestamp() order by expires_at limit 10
          for update skip locked))
      insert into oidc_sign_ins (digest, user_id, created_at, expires_at)
      select ${digest}, ${userId}, now, now + make_interval(secs => ${seconds}) from clock_timestamp() as now`,
  )
}

/** Uses up a sign-in whose user is at the provider. Returns false if it was used, expired or is unknown. */
export async function useSignIn(database: Database, digest: string): Promise<boolean> {
  const rows = await database.run(
    ({ sql }) => sql`
      delete from oidc_sign_ins
      where digest = ${digest} and user_id is null and expires_at > clock_timestamp() returning digest`,
  )
  return rows.length > 0
}

type IdentifiedUser = {
  readonly id: string
  readonly accountId: string
  readonly email: string
  readonly passwordHash: string
}

/** Uses up the hand-over of an identified user to the dashboard. Returns null if it was used, expired or is unknown. */
export async function useHandOver(database: Database, digest: string): Promise<IdentifiedUser | null> {
  const rows = await database.run(
    ({ sql }) => sql<IdentifiedUser[]>`
      with used as (
        delete from oidc_sign_ins where digest = ${digest} and expires_at > clock_timestamp() returning user_id)
      select id, account_id as "accountId", email, password_hash as "passwordHash"
      from used join users on users.id = used.user_id where removed_at is null`,
  )
  return rows[0] ?? null
}

type Arrival = {
  readonly issuer: string
  readonly subject: string
  /** Verified by the provider; null = none. */
  readonly email: string | null
  /** Null = the only account. */
  readonly accountId: string | null
  /** Role that the provider's groups give; `unmanaged` = roles are managed in the gateway. */
  readonly role: Role | null | 'unmanaged'
  /** Role of a new user without an invitation, if roles are managed in the gateway; null = rejected. */
  readonly defaultRole: Role | null
  readonly newUser: { readonly id: string; readonly passwordHash: string }
}

type Outcome = { readonly userId: string } | { readonly failure: SingleSignOnFailure }

/** Finds, links or creates the user whom the provider has identified, and applies the role of its groups. */
export function identifyUser(database: Database, arrival: Arrival): Promise<Outcome> {
  return database.run(({ sql }) => sql.begin(step => identifyIn(step, arrival)))
}

/** Returns the role that `identifyUser` would give, or its failure. Changes nothing. */
export function previewUser(
  database: Database,
  arrival: Arrival,
): Promise<{ readonly role: Role } | { readonly failure: SingleSignOnFailure }> {
  const undone = new Error('the preview is rolled back')
  return database.run(async ({ sql }) => {
    let preview: Awaited<ReturnType<typeof previewUser>> = { failure: 'misconfigured' }
    await sql
      .begin(async step => {
        const outcome = await identifyIn(step, arrival)
        if ('failure' in outcome) preview = outcome
        else {
          const [user] = await step<{ role: Role }[]>`select role from users where id = ${outcome.userId}`
          if (user !== undefined) preview = user
        }
        throw undone
      })
      .catch(thrown => {
        if (thrown !== undone) throw thrown
      })
    return preview
  })
}

/** Returns true if single sign-on belongs to the account. `configured` null = to the only account. */
export async function getIsAccount(database: Database, accountId: string, configured: string | null): Promise<boolean> {
  if (configured !== null) return configured === accountId
  const rows = await database.run(({ sql }) => sql`select id from accounts where deleted_at is null limit 2`)
  return rows.length === 1
}

async function identifyIn(step: TransactionSql, arrival: Arrival): Promise<Outcome> {
  const accountId = await lockAccount(step, arrival.accountId)
  if (accountId === null) return { failure: 'misconfigured' }
  const { issuer, subject, role } = arrival
  if (role === null) return { failure: 'no_role' }
  const [known] = await step<{ id: string; accountId: string; isRemoved: boolean }[]>`
    select users.id, account_id as "accountId", removed_at is not null as "isRemoved"
    from user_identities join users on users.id = user_id
    where issuer = ${issuer} and subject = ${subject}`
  if (known !== undefined && !known.isRemoved && known.accountId !== accountId) return { failure: 'other_account' }
  const found: Outcome =
    known === undefined || known.isRemoved
      ? await linkUser(step, accountId, arrival, known !== undefined)
      : { userId: known.id }
  if ('failure' in found) return found
  await step`
    insert into user_identities (issuer, subject, user_id, created_at, last_used_at)
    values (${issuer}, ${subject}, ${found.userId}, clock_timestamp(), clock_timestamp())
    on conflict (issuer, subject) do update set user_id = excluded.user_id, last_used_at = excluded.last_used_at`
  if (role !== 'unmanaged') await synchronizeRole(step, accountId, found.userId, role)
  return found
}

/** Locks the account, so that changes of its team are serialized; null = not found, or not the only one. */
async function lockAccount(step: TransactionSql, accountId: string | null): Promise<string | null> {
  const rows =
    accountId === null
      ? await step<{ id: string }[]>`select id from accounts where deleted_at is null limit 2 for no key update`
      : await step<{ id: string }[]>`
          select id from accounts where id = ${accountId} and deleted_at is null for no key update`
  return rows.length === 1 ? (rows[0]?.id ?? null) : null
}

/** Finds the user of the email address in the account, or creates it. */
async function linkUser(
  step: TransactionSql,
  accountId: string,
  { email, role, defaultRole, newUser }: Arrival,
  wasRemoved: boolean,
): Promise<Outcome> {
  if (email === null) return { failure: 'email_unverified' }
  // A registration that has not proven the address must not block its owner.
  await releaseUnverifiedIn(step, {}, email, accountId)
  const [same] = await step<{ id: string; accountId: string }[]>`
    select id, account_id as "accountId" from users where email = ${email} and removed_at is null`
  if (same !== undefined && same.accountId !== accountId) return { failure: 'other_account' }
  if (same !== undefined) {
    await step`update users set email_proven = true where id = ${same.id}`
    return { userId: same.id }
  }
  const [invitation] = await step<{ id: string; role: Role }[]>`
    select id, role from invitations
    where account_id = ${accountId} and email = ${email} and accepted_at is null and expires_at > clock_timestamp()`
  // The provider still knows a user who was removed here.
  if (wasRemoved && invitation === undefined) return { failure: 'removed' }
  const given = role === 'unmanaged' ? (invitation?.role ?? defaultRole) : role
  if (given === null) return { failure: 'no_role' }
  await step`
    insert into users (id, account_id, email, password_hash, role, created_at)
    values (${newUser.id}, ${accountId}, ${email}, ${newUser.passwordHash}, ${given}, clock_timestamp())`
  await recordAudit(step, {}, { accountId, action: 'member.joined', target: newUser.id })
  if (invitation !== undefined) {
    await joinInvitedProject(step, invitation.id, newUser.id)
    await step`update invitations set accepted_at = clock_timestamp() where id = ${invitation.id}`
  }
  return { userId: newUser.id }
}

/** The last owner keeps its role, whatever its groups are. */
async function synchronizeRole(step: TransactionSql, accountId: string, userId: string, role: Role): Promise<void> {
  const [current] = await step<{ role: Role; owners: number }[]>`
    select role, (select count(*)::int from users
      where account_id = ${accountId} and role = 'owner' and removed_at is null) as owners
    from users where id = ${userId}`
  if (current === undefined || current.role === role || (current.role === 'owner' && current.owners === 1)) return
  await applyRole(step, {}, { accountId, userId, role })
  const details = { from: current.role, to: role }
  await recordAudit(step, {}, { accountId, action: 'member.role_changed', target: userId, details })
}
