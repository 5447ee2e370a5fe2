/** Accounts and their users. Ids and times are given, not made, so that a caller may repeat what it does not know the end of. */
import { eq, sql } from 'drizzle-orm'
import type { Limits, PlanName, Plans } from '../../core/limits/plans.ts'
import type { Database } from '../database.ts'
import { type Account, accounts, type NewAccount, type NewUser, type User, users } from '../tables.ts'

export type AccountWithUser = { readonly account: Account; readonly user: User }

/** Creates an account with its first user; the same ids again change nothing. Throws Postgres' error where the e-mail is taken. */
export function createAccount(database: Database, account: NewAccount, owner: NewUser): Promise<void> {
  return database.run(({ orm }) =>
    orm.transaction(async transaction => {
      await transaction.insert(accounts).values(account).onConflictDoNothing({ target: accounts.id })
      await transaction
        .insert(users)
        .values({ ...owner, email: mailbox(owner.email) })
        .onConflictDoNothing({ target: users.id })
    }),
  )
}

/** The account and user behind an e-mail address, in any case of its letters; null where there is none. */
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

/** Whether any account exists: a database without one is fresh. */
export async function hasAccounts(database: Database): Promise<boolean> {
  const rows = await database.run(({ orm }) => orm.select({ id: accounts.id }).from(accounts).limit(1))
  return rows.length > 0
}

export type AccountChange = Partial<
  Pick<
    Account,
    'requestsPerMinute' | 'concurrentRequests' | 'dailyTokens' | 'dailyCostMicrocents' | 'shortfallMicrocents'
  >
>

/** Changes limits (null = the plan's own; a plan is changed by `changeBilling`) or the shortfall. Gateways take it up within a second. False where there is no such account. */
export async function changeAccount(database: Database, accountId: string, change: AccountChange): Promise<boolean> {
  const rows = await database.run(({ orm }) =>
    orm
      .update(accounts)
      .set({ ...change, updatedAt: sql`clock_timestamp()` })
      .where(eq(accounts.id, accountId))
      .returning({ id: accounts.id }),
  )
  return rows.length > 0
}

/** Returns the limits of one account: its own limits, and those of its plan for the others. */
export function limitsOf(
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
