/** Limits of an account's tags. */
import { and, eq, sql } from 'drizzle-orm'
import type { AuditDetails } from '../../core/audit/audit.ts'
import { type ScopeLimits, type ScopeUsage, tagScopeName, unlimitedScope } from '../../core/limits/scopes.ts'
import { toUsd } from '../../core/usage/money.ts'
import { type Transaction, withAccountRls } from '../account-transaction.ts'
import type { Database } from '../database.ts'
import { tagLimits } from '../tables.ts'
import { recordAudit } from './audit.ts'

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
      where account_id = ${accountId}
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
    // Locks the account, so that concurrent changes follow each other, and tells every instance to read it again.
    await touchAccount(step, accountId)
    const own = and(eq(tagLimits.accountId, accountId), eq(tagLimits.name, name), eq(tagLimits.value, value))
    const [before] = await step.select().from(tagLimits).where(own)
    const limits = change(before?.limits ?? null)
    const target = tagScopeName(name, value)
    const record = () =>
      recordAudit(step, database, { accountId, action: 'limits.changed', target, details: detailsOf(limits) })
    if (limits === null) {
      await step.delete(tagLimits).where(own)
      if (before !== undefined) await record()
      return null
    }
    if (before === undefined) {
      const present = await step.$count(tagLimits, eq(tagLimits.accountId, accountId))
      if (present >= maximumLimitedTags) return 'full'
    }
    await step
      .insert(tagLimits)
      .values({ accountId, name, value, limits, createdAt: new Date() })
      .onConflictDoUpdate({ target: [tagLimits.accountId, tagLimits.name, tagLimits.value], set: { limits } })
    await record()
    return limits
  })
}

function touchAccount(step: Transaction, accountId: string) {
  return step.execute(sql`update accounts set updated_at = clock_timestamp() where id = ${accountId}`)
}

/** Limits as the audit log keeps them; null = unlimited. */
function detailsOf(limits: ScopeLimits | null): AuditDetails {
  const { dailyCostMicrocents: daily, monthlyCostMicrocents: monthly, ...counts } = limits ?? unlimitedScope
  return {
    requests_per_minute: counts.requestsPerMinute,
    concurrent_requests: counts.concurrentRequests,
    daily_tokens: counts.dailyTokens,
    daily_cost_usd: daily === null ? null : toUsd(daily),
    monthly_cost_usd: monthly === null ? null : toUsd(monthly),
  }
}
