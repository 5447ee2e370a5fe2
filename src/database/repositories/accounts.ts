/**
 * Accounts and their users. IDs and times are parameters, so that a caller can repeat a call with an unknown outcome.
 */
import { and, asc, eq, isNull, sql } from 'drizzle-orm'
import type { Limits, PlanName, Plans } from '../../core/limits/plans.ts'
import { shownFields } from '../../core/usage/shown-fields.ts'
import type { Database } from '../database.ts'
import { type Account, accounts, type NewAccount, type NewUser, type User, users } from '../tables.ts'
import { recordAudit } from './audit.ts'

export type AccountWithUser = { readonly account: Account; readonly user: User }

/**
 * Creates an account with its first user. Repeating it with the same IDs changes nothing. Throws Postgres' error if the
 * email is taken.
 */
export function createAccount(database: Database, account: NewAccount, owner: NewUser): Promise<void> {
  return database.run(({ orm }) =>
    orm.transaction(async transaction => {
      const made = await transaction
        .insert(accounts)
        .values(account)
        .onConflictDoNothing({ target: accounts.id })
        .returning({ id: accounts.id })
      await transaction
        .insert(users)
        .values({ ...owner, email: mailbox(owner.email) })
        .onConflictDoNothing({ target: users.id })
      const entry = { accountId: account.id, action: 'account.created', target: owner.id } as const
      if (made.length > 0) await recordAudit(transaction, database, entry)
    }),
  )
}

/** Returns the account and user of an email address, case-insensitively; null = none. */
export async function findAccountByEmail(database: Database, email: string): Promise<AccountWithUser | null> {
  const rows = await database.run(({ orm }) =>
    orm
      .select({ account: accounts, user: users })
      .from(users)
      .innerJoin(accounts, eq(accounts.id, users.accountId))
      .where(eq(users.email, mailbox(email)))
      .limit(1),
  )
  return rows[0] ?? null
}

type ListedAccount = { readonly account: Account; readonly email: string; readonly members: number }

/** Returns all accounts with the email of their first owner and the number of their members, oldest first. */
export async function listAccounts(database: Database): Promise<readonly ListedAccount[]> {
  const rows = await database.run(({ orm }) =>
    orm
      .select({ account: accounts, email: users.email, role: users.role })
      .from(accounts)
      .innerJoin(users, and(eq(users.accountId, accounts.id), isNull(users.removedAt)))
      .orderBy(asc(accounts.createdAt), asc(accounts.id), asc(users.createdAt)),
  )
  const byAccount = Map.groupBy(rows, ({ account }) => account.id)
  return [...byAccount.values()].flatMap(members => {
    const owner = members.find(({ role }) => role === 'owner') ?? members[0]
    return owner === undefined ? [] : [{ account: owner.account, email: owner.email, members: members.length }]
  })
}

/** Returns true if any account exists; without one, the database is new. */
export async function hasAccounts(database: Database): Promise<boolean> {
  const rows = await database.run(({ orm }) => orm.select({ id: accounts.id }).from(accounts).limit(1))
  return rows.length > 0
}

export type AccountChange = { readonly [Name in keyof Limits]?: Account[Name] | undefined }

/**
 * Changes limits (null = the plan's; `changeBilling` changes the plan). Takes effect in all instances within 1 s. Returns
 * false if there is no such account.
 */
export async function changeAccount(database: Database, accountId: string, change: AccountChange): Promise<boolean> {
  return database.run(({ orm }) =>
    orm.transaction(async step => {
      const rows = await step
        .update(accounts)
        .set({ ...change, updatedAt: sql`clock_timestamp()` })
        .where(eq(accounts.id, accountId))
        .returning({ id: accounts.id })
      if (rows.length === 0) return false
      await recordAudit(step, database, { accountId, action: 'limits.changed', details: shownFields(change) })
      return true
    }),
  )
}

/** Returns the limits of one account: its own limits, and those of its plan for the others. */
export function getLimits(
  account: { readonly plan: PlanName } & { readonly [name in keyof Limits]: number | null },
  plans: Plans,
): Limits {
  const plan = plans[account.plan]
  return {
    requestsPerMinute: account.requestsPerMinute ?? plan.requestsPerMinute,
    concurrentRequests: account.concurrentRequests ?? plan.concurrentRequests,
    dailyTokens: account.dailyTokens ?? plan.dailyTokens,
    dailyCostMicrocents: account.dailyCostMicrocents ?? plan.dailyCostMicrocents,
  }
}

const mailbox = (email: string) => email.trim().toLowerCase()
