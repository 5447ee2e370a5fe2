/** Users of an account. Changes of a team are serialized by the account's row, so that its last owner stays. */
import { and, asc, eq, isNull, sql, TransactionRollbackError } from 'drizzle-orm'
import type { TransactionSql } from 'postgres'
import { isAllowed, outranks, type Role } from '../../../core/accounts/roles.ts'
import type { ContinuePolicy, FallbackPolicy } from '../../../core/chat/chat.ts'
import type { ConstraintsRow } from '../../../core/policy/constraints.ts'
import type { AccountRuleRow } from '../../../core/policy/rules.ts'
import type { Shadow } from '../../../core/usage/shadow.ts'
import type { Database } from '../../../database/database.ts'
import { recordAudit } from '../../../database/repositories/audit.ts'
import { withAccountRls } from '../../../database/statement.ts'
import { type Account, accounts, type NewAccount, type NewUser, type User, users } from '../../../database/tables.ts'
import { revokeKeysBeyondRights } from '../../projects/store.ts'
import { endUser } from './email-links.ts'

/** Creates an account with its first user. Returns false and creates nothing if the email address already has one. */
export function registerAccount(database: Database, account: NewAccount, owner: NewUser): Promise<boolean> {
  return database.run(({ orm }) =>
    orm
      .transaction(async step => {
        await step.insert(accounts).values(account)
        const made = await step
          .insert(users)
          .values(owner)
          .onConflictDoNothing({ target: users.email })
          .returning({ id: users.id })
        if (made.length === 0) step.rollback()
        await recordAudit(step, database, { accountId: account.id, action: 'account.created', target: owner.id })
        return true
      })
      .catch(error => {
        if (error instanceof TransactionRollbackError) return false
        throw error
      }),
  )
}

/** Returns an account; null = none. */
export async function findAccount(database: Database, accountId: string): Promise<Account | null> {
  const rows = await withAccountRls(database, accountId).orm(step =>
    step.select().from(accounts).where(eq(accounts.id, accountId)).limit(1),
  )
  return rows[0] ?? null
}

/** Returns a user of the account; null if there is none of this ID or the user was removed. */
export async function findUser(database: Database, accountId: string, userId: string): Promise<User | null> {
  const rows = await withAccountRls(database, accountId).orm(step =>
    step
      .select()
      .from(users)
      .where(and(eq(users.id, userId), eq(users.accountId, accountId), isNull(users.removedAt)))
      .limit(1),
  )
  return rows[0] ?? null
}

/** Changes the account's name and permissions. Takes effect in all instances within 1 s. */
export async function changeSettings(
  database: Database,
  accountId: string,
  settings: {
    readonly name?: string
    readonly web?: boolean
    readonly hedge?: boolean
    /** Full name; null = the operator's. */
    readonly baselineModel?: string | null
    readonly shadow?: Shadow | null
    readonly requiresTotp?: boolean
    readonly fallback?: FallbackPolicy | null
    readonly continue?: ContinuePolicy | null
    readonly constraints?: ConstraintsRow | null
    readonly rules?: AccountRuleRow[] | null
  },
): Promise<void> {
  await withAccountRls(database, accountId).orm(async step => {
    await step
      .update(accounts)
      .set({ ...settings, updatedAt: sql`clock_timestamp()` })
      .where(eq(accounts.id, accountId))
    const { requiresTotp, baselineModel, shadow, constraints, rules, ...others } = settings
    const details = {
      ...others,
      requires_two_factor: requiresTotp,
      baseline_model: baselineModel,
      constraints: constraints === undefined ? undefined : JSON.stringify(constraints),
      rules: rules === undefined ? undefined : JSON.stringify(rules?.map(({ name }) => name) ?? []),
      shadow: shadow === undefined ? undefined : JSON.stringify(shadow),
    }
    await recordAudit(step, database, { accountId, action: 'account.changed', details })
  })
}

/** Returns an account's users, oldest first; at most 1,000. */
export function listUsers(database: Database, accountId: string): Promise<User[]> {
  return withAccountRls(database, accountId).orm(step =>
    step
      .select()
      .from(users)
      .where(and(eq(users.accountId, accountId), isNull(users.removedAt)))
      .orderBy(asc(users.createdAt), asc(users.id))
      .limit(1000),
  )
}

/**
 * Sets a password if the checked one is still current, and ends all of the user's sessions except `keptSession`.
 * Returns false if it was changed concurrently.
 */
export function changePassword(
  database: Database,
  accountId: string,
  userId: string,
  change: {
    readonly checkedHash: string
    readonly newHash: string
    readonly keptSession: string
    /**
     * The operator vouches for the user: the address counts as confirmed, and the password signs in for an hour where
     * users sign in by single sign-on only.
     */
    readonly isByOperator?: boolean
  },
): Promise<boolean> {
  const { isByOperator = false } = change
  return withAccountRls(database, accountId).sql(async step => {
    const changed = await step`
        update users set password_hash = ${change.newHash},
          unverified_since = case when ${isByOperator}::boolean then null else unverified_since end,
          email_proven = email_proven or ${isByOperator}::boolean,
          password_sign_in_until = case when ${isByOperator}::boolean then clock_timestamp() + interval '1 hour' end
        where id = ${userId} and account_id = ${accountId} and password_hash = ${change.checkedHash} and removed_at is null
        returning id`
    if (changed.length === 0) return false
    // Separate statements: one that waited for the user's row does not see sessions created meanwhile.
    await step`delete from sessions where user_id = ${userId} and id <> ${change.keptSession} and scopes is null`
    await step`delete from password_resets where user_id = ${userId}`
    await recordAudit(step, database, { accountId, action: 'password.changed', target: userId })
    return true
  })
}

/** Replaces a hash by one of the same password with today's parameters, unless it has changed. */
export async function rehash(
  database: Database,
  accountId: string,
  userId: string,
  hashes: { readonly from: string; readonly to: string },
): Promise<void> {
  await withAccountRls(database, accountId).sql(
    query => query`
      update users set password_hash = ${hashes.to}
      where id = ${userId} and account_id = ${accountId} and password_hash = ${hashes.from}`,
  )
}

type TeamChange = 'done' | 'not_found' | 'forbidden' | 'last_owner'

/**
 * Changes a user's role with the current rights of `actorId`. Open invitations by a demoted user end, and the API keys that
 * the new role does not allow.
 */
export function changeRole(
  database: Database,
  accountId: string,
  actorId: string,
  userId: string,
  role: Role,
): Promise<TeamChange> {
  return onTeam(database, accountId, actorId, userId, async (step, { actor, target, owners }) => {
    if (actor !== 'owner') return 'forbidden'
    if (target === 'owner' && role !== 'owner' && owners === 1) return 'last_owner'
    await applyRole(step, database, { accountId, userId, role })
    const details = { from: target, to: role }
    await recordAudit(step, database, { accountId, action: 'member.role_changed', target: userId, details })
    return 'done'
  })
}

/** Removes a user with the current rights of `actorId`, including sessions, keys and open invitations. */
export function removeUser(
  database: Database,
  accountId: string,
  actorId: string,
  userId: string,
): Promise<TeamChange> {
  return onTeam(database, accountId, actorId, userId, async (step, { actor, target, owners }) => {
    if (!isAllowed(actor, 'team.remove') || !outranks(actor, target)) return 'forbidden'
    if (target === 'owner' && owners === 1) return 'last_owner'
    await endUser(step, database, userId)
    await recordAudit(step, database, {
      accountId,
      action: 'member.removed',
      target: userId,
      details: { role: target },
    })
    return 'done'
  })
}

/** Sets a role within a transaction. A demoted user's invitations end, and the keys that the new role does not allow. */
export async function applyRole(
  step: TransactionSql,
  by: Pick<Database, 'actor'>,
  { accountId, userId, role }: { readonly accountId: string; readonly userId: string; readonly role: Role },
): Promise<void> {
  await step`update users set role = ${role} where id = ${userId} and account_id = ${accountId}`
  if (role !== 'owner') await endInvitations(step, accountId, userId)
  await revokeKeysBeyondRights(step, by, userId)
}

type RolesInTeam = { readonly actor: Role; readonly target: Role; readonly owners: number }

function onTeam(
  database: Database,
  accountId: string,
  actorId: string,
  userId: string,
  change: (step: TransactionSql, roles: RolesInTeam) => Promise<TeamChange>,
): Promise<TeamChange> {
  return withAccountRls(database, accountId).sql(async step => {
    await step`select 1 from accounts where id = ${accountId} for no key update`
    const rows = await step<{ actor: Role | null; target: Role | null; owners: number }[]>`
        select max(role) filter (where id = ${actorId}) as actor, max(role) filter (where id = ${userId}) as target,
          count(*) filter (where role = 'owner')::int as owners
        from users where account_id = ${accountId} and removed_at is null`
    const { actor, target, owners } = rows[0] ?? { actor: null, target: null, owners: 0 }
    if (actor === null) return 'forbidden'
    return target === null ? 'not_found' : change(step, { actor, target, owners })
  })
}

function endInvitations(step: TransactionSql, accountId: string, userId: string) {
  return step`
    delete from invitations where invited_by = ${userId} and account_id = ${accountId} and accepted_at is null`
}
