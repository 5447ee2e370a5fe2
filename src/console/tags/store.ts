/** Limits of an account's tags; those of a project are the limits of its tag. */
import { and, eq, ne, sql } from 'drizzle-orm'
import { type ScopeLimits, type ScopeUsage, tagScopeName, unlimitedScope } from '../../core/limits/scopes.ts'
import { projectTagName } from '../../core/request/tags.ts'
import type { Database } from '../../database/database.ts'
import { recordAudit } from '../../database/repositories/audit.ts'
import { type Transaction, withAccountRls } from '../../database/statement.ts'
import { tagLimits } from '../../database/tables.ts'
import { shownScopeLimits } from '../../http/schemas.ts'

type Tag = { readonly name: string; readonly value: string }
/** A tag with its limits, and its usage in the ledger of this UTC day and month. */
export type LimitedTag = Tag & Omit<ScopeUsage, 'name'> & { readonly limits: ScopeLimits }

const maximumLimitedTags = 200

/** Returns the tags with limits, by name and value. */
export function limitedTags(database: Database, accountId: string): Promise<LimitedTag[]> {
  return withAccountRls(database, accountId).sql(
    query => query<LimitedTag[]>`
      select name, value, limits, used.tokens::float8, used.microcents::float8, used.month_microcents::float8 as "monthMicrocents"
      from tag_limits, lateral limit_scope_used(account_id, 'tag:' || name || '=' || value,
        floor(extract(epoch from clock_timestamp()) / 86400)::bigint) as used
      where account_id = ${accountId} and name <> ${projectTagName}
      order by name, value`,
  )
}

/** Returns what the ledger has of a tag on this UTC day and in its month. */
export async function usedByTag(
  database: Database,
  accountId: string,
  { name, value }: Tag,
): Promise<Omit<ScopeUsage, 'name'>> {
  const [row] = await withAccountRls(database, accountId).sql(
    query => query<Omit<ScopeUsage, 'name'>[]>`
      select used.tokens::float8, used.microcents::float8, used.month_microcents::float8 as "monthMicrocents"
      from limit_scope_used(${accountId}, ${`tag:${name}=${value}`},
        floor(extract(epoch from clock_timestamp()) / 86400)::bigint) as used`,
  )
  return row ?? { tokens: 0, microcents: 0, monthMicrocents: 0 }
}

/**
 * Replaces the limits of a tag by what `change` returns for the present ones; null = none. Returns the new ones; `full` =
 * the account has the maximum number of tags with limits.
 */
export function changeTag(
  database: Database,
  accountId: string,
  { name, value }: Tag,
  change: (before: ScopeLimits | null) => ScopeLimits | null,
): Promise<ScopeLimits | null | 'full'> {
  return withAccountRls(database, accountId).orm(async step => {
    const before = await lockLimits(step, accountId, { name, value })
    const limits = change(before)
    if (limits !== null && before === null) {
      const present = await step.$count(
        tagLimits,
        and(eq(tagLimits.accountId, accountId), ne(tagLimits.name, projectTagName)),
      )
      if (present >= maximumLimitedTags) return 'full'
    }
    const target = tagScopeName(name, value)
    await storeLimits(step, database, { accountId, name, value, target }, { before, after: limits })
    return limits
  })
}

/**
 * Returns the limits of a tag; null = none. Locks the account, so that concurrent changes follow each other, and makes
 * every instance read it again.
 */
export async function lockLimits(step: Transaction, accountId: string, tag: Tag): Promise<ScopeLimits | null> {
  await touchAccount(step, accountId)
  const [row] = await step.select().from(tagLimits).where(isTag(accountId, tag))
  return row?.limits ?? null
}

/** Stores the limits of a tag, or deletes them, and records the change for `target`. */
export async function storeLimits(
  step: Transaction,
  by: Pick<Database, 'actor'>,
  { accountId, name, value, target }: Tag & { readonly accountId: string; readonly target: string },
  { before, after }: { readonly before: ScopeLimits | null; readonly after: ScopeLimits | null },
): Promise<void> {
  if (after !== null)
    await step
      .insert(tagLimits)
      .values({ accountId, name, value, limits: after, createdAt: new Date() })
      .onConflictDoUpdate({ target: [tagLimits.accountId, tagLimits.name, tagLimits.value], set: { limits: after } })
  else if (before === null) return
  else await step.delete(tagLimits).where(isTag(accountId, { name, value }))
  const details = shownScopeLimits(after ?? unlimitedScope)
  await recordAudit(step, by, { accountId, action: 'limits.changed', target, details })
}

function isTag(accountId: string, { name, value }: Tag) {
  return and(eq(tagLimits.accountId, accountId), eq(tagLimits.name, name), eq(tagLimits.value, value))
}

function touchAccount(step: Transaction, accountId: string) {
  return step.execute(sql`update accounts set updated_at = clock_timestamp() where id = ${accountId}`)
}
