/** Invitations to an account: single use, for one email address, identified by the digest of their token. */
import { and, asc, eq, gt, isNull, sql } from 'drizzle-orm'
import type { TransactionSql } from 'postgres'
import { isAllowed, outranks, type Role } from '../../../core/accounts/roles.ts'
import type { Database } from '../../../database/database.ts'
import { recordAudit } from '../../../database/repositories/audit.ts'
import { withAccountRls } from '../../../database/statement.ts'
import { type Invitation, type InvitationInsert, invitations } from '../../../database/tables.ts'

const lifetimeDays = 7

/**
 * Stores an invitation, replacing an open one to the same address. Returns it with its times; null if the inviter no
 * longer belongs to `accountId`, `no_project` if the account has no such project, or it is archived.
 */
export async function invite(
  database: Database,
  accountId: string,
  invitation: Pick<InvitationInsert, 'id' | 'email' | 'role' | 'invitedBy' | 'digest' | 'projectId' | 'projectRole'>,
): Promise<Invitation | null | 'no_project'> {
  const { id, email, role, invitedBy, digest, projectId = null, projectRole = null } = invitation
  return withAccountRls(database, accountId).orm(async step => {
    // Serializes changes to one account's team, so that the inviter's current rights apply.
    await step.execute(sql`select 1 from accounts where id = ${accountId} for no key update`)
    const inviter = await step.execute(
      sql`select 1 from users where id = ${invitedBy} and account_id = ${accountId} and removed_at is null
          and (role = 'owner' or (role = 'admin' and ${role}::text in ('member', 'viewer')))`,
    )
    if (inviter.length === 0) return null
    if (projectId !== null) {
      const project = await step.execute(
        sql`select 1 from projects where id = ${projectId} and account_id = ${accountId} and archived_at is null`,
      )
      if (project.length === 0) return 'no_project'
    }
    await step
      .delete(invitations)
      .where(and(eq(invitations.accountId, accountId), eq(invitations.email, email), isNull(invitations.acceptedAt)))
    const project = projectId === null ? {} : { project_id: projectId, project_role: projectRole }
    const rows = await step
      .insert(invitations)
      .values({
        id,
        accountId,
        email,
        role,
        projectId,
        projectRole,
        invitedBy,
        digest,
        createdAt: sql`clock_timestamp()`,
        expiresAt: sql`clock_timestamp() + make_interval(days => ${lifetimeDays})`,
      })
      .returning()
    await recordAudit(step, database, {
      accountId,
      action: 'member.invited',
      target: id,
      details: { email, role, ...project },
    })
    return rows[0] ?? null
  })
}

/**
 * Withdraws an open invitation with the current rights of `actorId`: a user who may invite to a role may withdraw its
 * invitations.
 */
export function withdrawInvitation(
  database: Database,
  accountId: string,
  actorId: string,
  invitationId: string,
): Promise<'done' | 'not_found' | 'forbidden'> {
  return withAccountRls(database, accountId).sql(async step => {
    await step`select 1 from accounts where id = ${accountId} for no key update`
    const [actor] = await step<{ role: Role }[]>`
      select role from users where id = ${actorId} and account_id = ${accountId} and removed_at is null`
    const [invitation] = await step<{ role: Role }[]>`
      select role from invitations
      where id = ${invitationId} and account_id = ${accountId} and accepted_at is null and expires_at > clock_timestamp()`
    if (actor === undefined || !isAllowed(actor.role, 'team.invite')) return 'forbidden'
    if (invitation === undefined) return 'not_found'
    if (!outranks(actor.role, invitation.role)) return 'forbidden'
    await step`delete from invitations where id = ${invitationId} and account_id = ${accountId}`
    await recordAudit(step, database, { accountId, action: 'invitation.withdrawn', target: invitationId })
    return 'done'
  })
}

/** Returns an account's open invitations, oldest first. */
export function listInvitations(database: Database, accountId: string): Promise<Invitation[]> {
  return withAccountRls(database, accountId).orm(step =>
    step
      .select()
      .from(invitations)
      .where(and(eq(invitations.accountId, accountId), isOpen()))
      .orderBy(asc(invitations.createdAt), asc(invitations.id))
      .limit(1000),
  )
}

/** Returns the open invitation of a token's digest; null = none. */
export async function findInvitation(database: Database, digest: string): Promise<Invitation | null> {
  const rows = await database.run(({ orm }) =>
    orm
      .select()
      .from(invitations)
      .where(and(eq(invitations.digest, digest), isOpen()))
      .limit(1),
  )
  return rows[0] ?? null
}

/**
 * Accepts an invitation: the invited address becomes a user of the account. `taken` = the address already has an
 * account; `gone` = the invitation was accepted, replaced or withdrawn.
 */
export function acceptInvitation(
  database: Database,
  accountId: string,
  accepted: {
    readonly digest: string
    readonly userId: string
    readonly passwordHash: string
    readonly emailProven: boolean
  },
): Promise<'accepted' | 'taken' | 'gone'> {
  const { digest, userId, passwordHash, emailProven } = accepted
  return withAccountRls(database, accountId).sql(async step => {
    await step`select 1 from accounts where id = ${accountId} for no key update`
    const [invitation] = await step<{ id: string }[]>`
        select id from invitations
        where digest = ${digest} and account_id = ${accountId} and accepted_at is null and expires_at > clock_timestamp()
        for update`
    if (invitation === undefined) return 'gone'
    const made = await step`
        insert into users (id, account_id, email, password_hash, role, created_at, email_proven)
        select ${userId}, account_id, email, ${passwordHash}, role, clock_timestamp(), ${emailProven} from invitations where digest = ${digest}
        on conflict (email) do nothing returning id`
    if (made.length === 0) return 'taken'
    await joinInvitedProject(step, invitation.id, userId)
    await step`update invitations set accepted_at = clock_timestamp() where digest = ${digest}`
    await recordAudit(step, database, { accountId, action: 'member.joined', target: userId })
    return 'accepted'
  })
}

/** Adds a new user to the project of the invitation, if it names one that is not archived. */
export async function joinInvitedProject(step: TransactionSql, invitationId: string, userId: string): Promise<void> {
  await step`
    insert into project_members (project_id, user_id, account_id, role, created_at)
    select project_id, ${userId}, invitations.account_id, project_role, clock_timestamp()
    from invitations join projects on projects.id = project_id
    where invitations.id = ${invitationId} and archived_at is null`
}

const isOpen = () => and(isNull(invitations.acceptedAt), gt(invitations.expiresAt, sql`clock_timestamp()`))
