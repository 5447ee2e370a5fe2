/**
 * Projects of an account and their members. Changes of one account's projects follow each other, because each locks the
 * account's row; so the rights that a change checks are current when it is stored.
 */
import { and, eq, isNull, sql } from 'drizzle-orm'
import type { TransactionSql } from 'postgres'
import { isAllowed, outranks, type ProjectRole, type Role } from '../../core/accounts/roles.ts'
import type { ScopeLimits, ScopeUsage } from '../../core/limits/scopes.ts'
import type { ConstraintsRow } from '../../core/policy/constraints.ts'
import { projectTagName } from '../../core/request/tags.ts'
import type { Database } from '../../database/database.ts'
import { recordAudit } from '../../database/repositories/audit.ts'
import { type Transaction, withAccountRls } from '../../database/statement.ts'
import { accounts, type ProjectRow, projects, providerKeys } from '../../database/tables.ts'
import { shownScopeLimits, shownScopeUsed } from '../../http/schemas.ts'
import { lockLimits, storeLimits } from '../tags/store.ts'
import type { ShownProject } from './schemas.ts'

/** A project with its usage in the ledger of this UTC day and month, and its members by email address. */
export type ListedProject = Omit<ShownProject, 'role'>

export type NamedProject = Pick<ListedProject, 'id' | 'name' | 'archived_at'>

type ChangeLimits = (before: ScopeLimits | null) => ScopeLimits | null
type ProjectChanges = {
  readonly name?: string
  readonly limits?: ChangeLimits
  readonly constraints?: ConstraintsRow | null
}
type ProjectChange = 'done' | 'not_found' | 'archived' | 'forbidden'

/** Maximum projects of an account, without archived ones. */
const maximumProjects = 100

/**
 * Returns projects of an account, newest first and archived ones last; at most 1,000. `ids` narrows them; null = all.
 */
export async function listProjects(
  database: Database,
  accountId: string,
  ids: readonly string[] | null,
): Promise<ListedProject[]> {
  type Row = Omit<ListedProject, 'limits' | 'used'> & { limits: ScopeLimits | null; used: Omit<ScopeUsage, 'name'> }
  const rows = await withAccountRls(database, accountId).sql(
    query => query<Row[]>`
      select projects.id, projects.name, iso_time(projects.created_at) as created_at, iso_time(archived_at) as archived_at,
        limits, projects.constraints, json_build_object('tokens', used.tokens, 'microcents', used.microcents, 'monthMicrocents', used.month_microcents) as used,
        (select count(*)::int from api_keys where project_id = projects.id and ${isActive(query)}) as active_keys,
        coalesce((
          select json_agg(json_build_object('user_id', users.id, 'email', email, 'role', project_members.role) order by email)
          from project_members join users on users.id = user_id
          where project_id = projects.id and removed_at is null), '[]') as members
      from projects
        left join tag_limits on tag_limits.account_id = projects.account_id and tag_limits.name = ${projectTagName}
          and tag_limits.value = projects.id,
        lateral limit_scope_used(projects.account_id, 'tag:' || ${projectTagName} || '=' || projects.id,
          floor(extract(epoch from clock_timestamp()) / 86400)::bigint) as used
      where projects.account_id = ${accountId}
        ${ids === null ? query`` : query`and projects.id in (select json_array_elements_text(${JSON.stringify(ids)}::text::json))`}
      order by projects.archived_at is not null, projects.created_at desc, projects.id desc
      limit 1000`,
  )
  return rows.map(row => ({
    ...row,
    limits: row.limits && shownScopeLimits(row.limits),
    used: shownScopeUsed(row.used),
  }))
}

/** Returns the names of an account's projects, archived ones last; at most 1,000. */
export function allProjects(database: Database, accountId: string): Promise<NamedProject[]> {
  return withAccountRls(database, accountId).sql(
    query => query<NamedProject[]>`
      select id, name, iso_time(archived_at) as archived_at from projects where account_id = ${accountId}
      order by projects.archived_at is not null, created_at desc, id desc limit 1000`,
  )
}

/** Stores a project. Returns false if the account has the maximum number of projects. Repeating it with the same ID changes nothing. */
export function createProject(
  database: Database,
  accountId: string,
  project: Pick<ProjectRow, 'id' | 'name' | 'createdAt'> & { readonly limits: ScopeLimits | null },
): Promise<boolean> {
  const { limits, ...row } = project
  return withAccountRls(database, accountId).orm(async step => {
    const tag = { name: projectTagName, value: row.id }
    await lockLimits(step, accountId, tag)
    const present = await step.$count(projects, and(eq(projects.accountId, accountId), isNull(projects.archivedAt)))
    if (present >= maximumProjects) return false
    const made = await step
      .insert(projects)
      .values({ ...row, accountId })
      .onConflictDoNothing({ target: projects.id })
      .returning({ id: projects.id })
    if (made.length === 0) return true
    const details = { name: row.name }
    await recordAudit(step, database, { accountId, action: 'project.created', target: row.id, details })
    await storeLimits(step, database, { ...tag, accountId, target: row.id }, { before: null, after: limits })
    return true
  })
}

/** Changes the name and the constraints of a project, and its limits to what `limits` returns for the present ones. */
export function changeProject(
  database: Database,
  accountId: string,
  id: string,
  { name, limits, constraints }: ProjectChanges,
): Promise<ProjectChange> {
  return withAccountRls(database, accountId).orm(async step => {
    const tag = { name: projectTagName, value: id }
    // Before the project's row: all changes lock the account first.
    const before = limits === undefined ? null : await lockLimits(step, accountId, tag)
    const found = await lockProject(step, accountId, id)
    if (found !== 'done') return found
    if (name !== undefined) {
      await step.update(projects).set({ name }).where(eq(projects.id, id))
      await recordAudit(step, database, { accountId, action: 'project.changed', target: id, details: { name } })
    }
    if (constraints !== undefined) {
      await step.update(projects).set({ constraints }).where(eq(projects.id, id))
      // Every process reads the keys of a changed account again.
      await step.update(accounts).set({ updatedAt: sql`clock_timestamp()` }).where(eq(accounts.id, accountId))
      const details = { constraints: JSON.stringify(constraints) }
      await recordAudit(step, database, { accountId, action: 'project.changed', target: id, details })
    }
    if (limits !== undefined)
      await storeLimits(step, database, { ...tag, accountId, target: id }, { before, after: limits(before) })
    return 'done'
  })
}

/**
 * Archives a project: it accepts no more keys, and its limits end. `has_keys` = it has valid keys, which must be revoked or
 * moved first, so that no single request stops a production system.
 */
export function archiveProject(
  database: Database,
  accountId: string,
  id: string,
  at: Date,
): Promise<ProjectChange | 'has_keys'> {
  return withAccountRls(database, accountId).orm(async step => {
    const tag = { name: projectTagName, value: id }
    const before = await lockLimits(step, accountId, tag)
    const found = await lockProject(step, accountId, id)
    if (found !== 'done') return found
    const active = await step.execute(sql`
      select 1 from api_keys where project_id = ${id} and account_id = ${accountId}
        and revoked_at is null and (expires_at is null or expires_at > clock_timestamp()) limit 1`)
    if (active.length > 0) return 'has_keys'
    await step.update(projects).set({ archivedAt: at }).where(eq(projects.id, id))
    // No request can use them any more.
    await step.delete(providerKeys).where(eq(providerKeys.projectId, id))
    await recordAudit(step, database, { accountId, action: 'project.archived', target: id })
    await storeLimits(step, database, { ...tag, accountId, target: id }, { before, after: null })
    return 'done'
  })
}

/**
 * Sets a user's role in a project with the current rights of `actorId`; null removes the user from it. Keys that the role no
 * longer allows are revoked. `forbidden` = a project's admin may neither appoint nor change admins.
 */
export function setMember(
  database: Database,
  accountId: string,
  actorId: string,
  { projectId, userId, role }: { projectId: string; userId: string; role: ProjectRole | null },
): Promise<ProjectChange> {
  return withAccountRls(database, accountId).sql(async step => {
    await step`select 1 from accounts where id = ${accountId} for no key update`
    // A rotation of one of the user's keys ends first, so that its new key is revoked too.
    await step`select 1 from users where id = ${userId} and account_id = ${accountId} for no key update`
    const [project] = await step<{ archived: boolean }[]>`
      select archived_at is not null as archived from projects where id = ${projectId} and account_id = ${accountId}`
    const members = await step<{ id: string; role: Role; inProject: ProjectRole | null }[]>`
      select users.id, users.role, project_members.role as "inProject"
      from users left join project_members on user_id = users.id and project_id = ${projectId}
      where users.account_id = ${accountId} and removed_at is null and users.id in (${actorId}, ${userId})`
    const [actor, target] = [actorId, userId].map(id => members.find(item => item.id === id))
    if (project === undefined || target === undefined || (role === null && target.inProject === null))
      return 'not_found'
    // The members of an archived project still see its requests, so they can be removed.
    if (project.archived && role !== null) return 'archived'
    const rank = actor === undefined ? null : isAllowed(actor.role, 'projects.all') ? 'owner' : actor.inProject
    const touched = [role, target.inProject].filter(item => item !== null)
    if (rank === null || !isAllowed(rank, 'projects.change') || !touched.every(item => outranks(rank, item)))
      return 'forbidden'
    if (role === target.inProject) return 'done'
    await (role === null
      ? step`delete from project_members where project_id = ${projectId} and user_id = ${userId}`
      : step`
          insert into project_members (project_id, user_id, account_id, role, created_at)
          values (${projectId}, ${userId}, ${accountId}, ${role}, clock_timestamp())
          on conflict (project_id, user_id) do update set role = excluded.role`)
    await revokeKeysBeyondRights(step, database, userId)
    const action =
      role === null
        ? 'project.member_removed'
        : target.inProject === null
          ? 'project.member_added'
          : 'project.member_role_changed'
    const details = { user_id: userId, from: target.inProject, to: role }
    await recordAudit(step, database, { accountId, action, target: projectId, details })
    return 'done'
  })
}

/**
 * Returns true if a user may have keys in a project, or in no project. Locks what decides: a role that changes meanwhile waits,
 * and then revokes the key.
 */
export async function mayHoldKeys(
  step: Transaction,
  accountId: string,
  userId: string,
  projectId: string | null,
): Promise<boolean> {
  const [user] = await step.execute<{ role: Role }>(sql`
    select role from users where id = ${userId} and account_id = ${accountId} and removed_at is null for share`)
  if (user === undefined) return false
  if (projectId === null) return isAllowed(user.role, 'keys.own')
  const project = await step.execute(sql`
    select 1 from projects where id = ${projectId} and account_id = ${accountId} and archived_at is null for share`)
  if (project.length === 0) return false
  if (isAllowed(user.role, 'projects.all')) return true
  const member = await step.execute(sql`
    select 1 from project_members where project_id = ${projectId} and user_id = ${userId} and role in ('member', 'admin')
    for share`)
  return member.length > 0
}

/** Revokes the keys of a user that the present roles do not allow: a user who may not create a key in a project may not keep one there. */
export async function revokeKeysBeyondRights(
  step: TransactionSql,
  by: Pick<Database, 'actor'>,
  userId: string,
): Promise<void> {
  const keys = await step<{ id: string; name: string; account_id: string }[]>`
    update api_keys set revoked_at = clock_timestamp(), updated_at = clock_timestamp()
    from users
    where users.id = user_id and user_id = ${userId} and (revoked_at is null or revoked_at > clock_timestamp())
      and users.role not in ('owner', 'admin') and not (project_id is null and users.role = 'member')
      and not exists (
        select from project_members
        where project_members.project_id = api_keys.project_id and project_members.user_id = api_keys.user_id
          and project_members.role in ('member', 'admin'))
    returning api_keys.id, name, api_keys.account_id`
  for (const { id: target, name, account_id: accountId } of keys)
    await recordAudit(step, by, { accountId, action: 'key.revoked', target, details: { name } })
}

async function lockProject(step: Transaction, accountId: string, id: string): Promise<ProjectChange> {
  const [row] = await step
    .select({ archivedAt: projects.archivedAt })
    .from(projects)
    .where(and(eq(projects.id, id), eq(projects.accountId, accountId)))
    .for('update')
  if (row === undefined) return 'not_found'
  return row.archivedAt === null ? 'done' : 'archived'
}

const isActive = (query: TransactionSql) =>
  query`revoked_at is null and (expires_at is null or expires_at > clock_timestamp())`
