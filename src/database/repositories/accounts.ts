/**
 * Accounts and their users. IDs and times are parameters, so that a caller can repeat a call with an unknown outcome.
 */

import type { Account, NewAccount, NewUser, User } from '../../../drizzle/tables.ts'
import type { Limits, PlanName, Plans } from '../../core/limits/plans.ts'
import { shownFields } from '../../core/usage/shown-fields.ts'
import type { Database } from '../database.ts'
import { inTransaction, toColumns, typedRows } from '../statement.ts'
import { recordAudit } from './audit.ts'

export type AccountWithUser = { readonly account: Account; readonly user: User }

/**
 * Creates an account with its first user. Repeating it with the same IDs changes nothing. Throws Postgres' error if the
 * email is taken.
 */
export function createAccount(database: Database, account: NewAccount, owner: NewUser): Promise<void> {
  return inTransaction(database, async step => {
    const made = await step`insert into accounts ${step(toColumns(account))} on conflict (id) do nothing returning id`
    const user = toColumns({ ...owner, email: mailbox(owner.email) })
    await step`insert into users ${step(user)} on conflict (id) do nothing`
    const entry = { accountId: account.id, action: 'account.created', target: owner.id } as const
    if (made.length > 0) await recordAudit(step, database, entry)
  })
}

/** Returns the account and user of an email address, case-insensitively; null = none. */
export async function findAccountByEmail(database: Database, email: string): Promise<AccountWithUser | null> {
  return database.run(async ({ sql }) => {
    const [user] = await typedRows<User>(sql`select * from users where email = ${mailbox(email)}`)
    if (user === undefined) return null
    const [account] = await typedRows<Account>(sql`select * from accounts where id = ${user.accountId}`)
    return account === undefined ? null : { account, user }
  })
}

type ListedAccount = { readonly account: Account; readonly email: string; readonly members: number }

/** Returns all accounts with the email of their first owner and the number of their members, oldest first. */
export async function listAccounts(database: Database): Promise<readonly ListedAccount[]> {
  const rows = await database.run(({ sql }) =>
    typedRows<Account & Omit<ListedAccount, 'account'>>(sql`
      select accounts.*, (array_agg(email order by role <> 'owner', users.created_at))[1] as email,
        count(*)::int as members
      from accounts join users on account_id = accounts.id and removed_at is null
      group by accounts.id order by accounts.created_at, accounts.id`),
  )
  return rows.map(({ email, members, ...account }) => ({ account, email, members }))
}

/** Returns true if any account exists; without one, the database is new. */
export async function hasAccounts(database: Database): Promise<boolean> {
  const rows = await database.run(({ sql }) => sql`select 1 from accounts limit 1`)
  return rows.length > 0
}

export type AccountChange = { readonly [Name in keyof Limits]?: Account[Name] | undefined }

/**
 * Changes limits (null = the plan's; `changeBilling` changes the plan). Takes effect in all instances within 1 s. Returns
 * false if there is no such account.
 */
export async function changeAccount(database: Database, accountId: string, change: AccountChange): Promise<boolean> {
  return inTransaction(database, async step => {
    const rows = await step`
        update accounts set ${step(toColumns(change))}, updated_at = clock_timestamp() where id = ${accountId} returning id`
    if (rows.length === 0) return false
    await recordAudit(step, database, { accountId, action: 'limits.changed', details: shownFields(change) })
    return true
  })
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
