/** Invitations to an account: single use, for one email address, identified by the digest of their token. */
import type { TransactionSql } from 'postgres'
import { isAllowed, outranks, type Role } from '../../../core/accounts/roles.ts'
import type { Database } from '../../../database/database.ts'
import { changeAudited, recordAudit } from '../../../database/repositories/audit.ts'
import { withAccountRls } from '../../../database/statement.ts'
import type { ShownInvitation } from '../schemas.ts'

const lifetimeDays = 7

type NewInvitation = Omit<ShownInvitation, 'created_at' | 'expires_at'> & {
  readonly invitedBy: string
  readonly digest: string
}

/**
 * Stores an invitation, replacing an open one to the same address. `forbidden` = the inviter no longer belongs to the
 * account, or may not invite to the role; `not_found` = the account has no such project, or it is archived.
 */
export function invite(
  database: Database,
  accountId: string,
  { id, email, role, project_id, project_role, invitedBy, digest }: NewInvitation,
): Promise<'done' | 'not_found' | 'forbidden'> {
  return changeAudited<'not_found' | 'forbidden'>(database, accountId, async step => {
    // Serializes changes to one account's team, so that the inviter's current rights apply.
    await step`select 1 from accounts where id = ${accountId} for no key update`
    const inviter = await step`
      select 1 from users where id = ${invitedBy} and account_id = ${accountId} and removed_at is null
        and (role = 'owner' or (role = 'admin' and ${role}::text in ('member', 'viewer')))`
    if (inviter.length === 0) return 'forbidden'
    const project = await step`
      select 1 from projects where id = ${project_id} and account_id = ${accountId} and archived_at is null`
    if (project_id !== null && project.length === 0) return 'not_found'
    await step`delete from invitations where account_id = ${accountId} and email = ${email} and accepted_at is null`
    await step`
      insert into invitations
        (id, account_id, email, role, project_id, project_role, invited_by, digest, created_at, expires_at)
      select ${id}, ${accountId}, ${email}, ${role}, ${project_id}, ${project_role}, ${invitedBy}, ${digest}, now,
        now + make_interval(days => ${lifetimeDays})
      from clock_timestamp() as now`
    const details = { email, role, ...(project_id === null ? {} : { project_id, project_role }) }
    return { action: 'member.invited', target: id, details }
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
  return changeAudited<'not_found' | 'forbidden'>(database, accountId, async step => {
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
    return { action: 'invitation.withdrawn', target: invitationId }
  })
}

/** Returns an account's open invitations, oldest first. */
export function listInvitations(database: Database, accountId: string): Promise<ShownInvitation[]> {
  return withAccountRls(database, accountId).sql(
    sql => sql<ShownInvitation[]>`
      select id, email, role, project_id, project_role, iso_time(created_at) as created_at, iso_time(expires_at) as expires_at
      from invitations
      where account_id = ${accountId} and accepted_at is null and expires_at > clock_timestamp()
      order by invitations.created_at, id limit 1000`,
  )
}

type OpenInvitation = { readonly accountId: string; readonly email: string; readonly invitedBy: string }

/** Returns the open invitation of a token's digest; null = none. */
export async function findInvitation(database: Database, digest: string): Promise<OpenInvitation | null> {
  const [row] = await database.run(
    ({ sql }) => sql<OpenInvitation[]>`
      select account_id as "accountId", email, invited_by as "invitedBy" from invitations
      where digest = ${digest} and accepted_at is null and expires_at > clock_timestamp()`,
  )
  return row ?? null
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
