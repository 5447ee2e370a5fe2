/**
 * API keys as managed by their owners: creation, rotation within a key lineage that shares usage, and lists with usage.
 */

import { and, desc, eq, inArray, or, sql } from 'drizzle-orm'
import type { AuditDetails } from '../../core/audit/audit.ts'
import { type Transaction, withAccountRls } from '../account-transaction.ts'
import type { Database } from '../database.ts'
import { type ApiKey, apiKeys } from '../tables.ts'
import { recordAudit } from './audit.ts'
import { mayHoldKeys } from './projects.ts'

type AddKeyInput = {
  readonly id: string
  readonly userId: string
  readonly name: string
  readonly publicId: string
  readonly digest: string
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly web: boolean
  readonly projectId: string | null
} & KeyRules

/** What a key's requests may do, and what they count in; null = no rule. */
export type KeyRules = Pick<ApiKey, 'limits' | 'models' | 'tags' | 'strategy' | 'fallback'>

export type KeyUsage = {
  readonly requests: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** Integer of 1e-8 USD. */
  readonly microcents: number
  /** Of this UTC day and calendar month. */
  readonly now: { readonly tokens: number; readonly microcents: number; readonly monthMicrocents: number }
}

/** Maximum valid keys per account. */
const maximumActiveKeys = 1000

/**
 * Stores a key for a current user of the account; a concurrent removal of the user waits and then revokes this key too.
 * `full` = the account has the maximum number of keys; `gone` = the user was removed or may no longer have keys there, the
 * project is unknown or archived, or the session has ended.
 */
export function addKey(
  database: Database,
  accountId: string,
  sessionId: string,
  key: AddKeyInput,
): Promise<ApiKey | 'full' | 'gone'> {
  return withAccountRls(database, accountId).orm(async step => {
    if (!(await mayHoldKeys(step, accountId, key.userId, key.projectId))) return 'gone'
    if (!(await isRunning(step, sessionId))) return 'gone'
    const active = await step.execute(
      sql`select 1 from api_keys where account_id = ${accountId} and revoked_at is null
          and (expires_at is null or expires_at > clock_timestamp()) limit ${maximumActiveKeys}`,
    )
    if (active.length >= maximumActiveKeys) return 'full'
    const rows = await step
      .insert(apiKeys)
      .values({ ...key, accountId })
      .returning()
    await recordAudit(step, database, {
      accountId,
      action: 'key.created',
      target: key.id,
      details: {
        ...{ name: key.name, expires_at: key.expiresAt?.toISOString() ?? null, web: key.web },
        ...(key.projectId === null ? {} : { project_id: key.projectId }),
      },
    })
    return rows[0] ?? 'gone'
  })
}

/**
 * Returns true if a session is active. Checked while the user's row is locked: a reset that revokes the user's keys
 * ends the session in the same transaction, so no key of that session is stored afterwards.
 */
async function isRunning(step: Transaction, sessionId: string): Promise<boolean> {
  return (await step.execute(sql`select 1 from sessions where id = ${sessionId}`)).length > 0
}

/** Returns a key of the account; null if there is none of this ID. */
export async function findKey(database: Database, accountId: string, keyId: string): Promise<ApiKey | null> {
  const rows = await withAccountRls(database, accountId).orm(step =>
    step
      .select()
      .from(apiKeys)
      .where(and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, accountId)))
      .limit(1),
  )
  return rows[0] ?? null
}

/**
 * Changes name, permissions, expiry, project and rules of a key; null if the account has none of this ID, or its user may not
 * have keys in that project.
 */
export async function changeKey(
  database: Database,
  accountId: string,
  keyId: string,
  change: Partial<Pick<ApiKey, 'name' | 'web' | 'expiresAt' | 'projectId' | keyof KeyRules>>,
): Promise<ApiKey | null> {
  return withAccountRls(database, accountId).orm(async step => {
    if (change.projectId !== undefined) {
      const [key] = await step
        .select({ userId: apiKeys.userId })
        .from(apiKeys)
        .where(and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, accountId)))
      if (key === undefined || !(await mayHoldKeys(step, accountId, key.userId, change.projectId))) return null
    }
    const [row] = await step
      .update(apiKeys)
      .set({ ...change, updatedAt: sql`clock_timestamp()` })
      .where(and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, accountId)))
      .returning()
    if (row === undefined) return null
    const { projectId, ...others } = change
    const details = { ...detailsOf(others), ...(projectId === undefined ? {} : { project_id: projectId }) }
    await recordAudit(step, database, { accountId, action: 'key.changed', target: keyId, details })
    return row
  })
}

/** The keys that a user sees: all (null), or the own ones and those of projects; `projectId` narrows them to one project. */
type VisibleKeys = {
  readonly userId: string | null
  readonly projectIds?: readonly string[]
  readonly projectId?: string | undefined
}

/** Returns the keys that a user sees, newest first, including revoked ones; at most 1,000. */
export function recentKeys(
  database: Database,
  accountId: string,
  { userId, projectIds = [], projectId }: VisibleKeys,
): Promise<ApiKey[]> {
  const visible = or(
    userId === null ? undefined : eq(apiKeys.userId, userId),
    projectIds.length === 0 ? undefined : inArray(apiKeys.projectId, [...projectIds]),
  )
  return withAccountRls(database, accountId).orm(step =>
    step
      .select()
      .from(apiKeys)
      .where(
        and(
          eq(apiKeys.accountId, accountId),
          userId === null ? undefined : visible,
          projectId === undefined ? undefined : eq(apiKeys.projectId, projectId),
        ),
      )
      .orderBy(desc(apiKeys.createdAt), desc(apiKeys.id))
      .limit(1000),
  )
}

/**
 * Replaces a valid key by a new one with the same user, name, permissions, rules and expiry in the same key lineage. The old
 * key ends after `overlapSeconds`. `sessionId` is null for an operator's command. `not_valid` = it is revoked, expired or
 * already rotated; `not_found` = no key of this ID, or the session has ended.
 */
export function rotateKey(
  database: Database,
  accountId: string,
  sessionId: string | null,
  keyId: string,
  fresh: Pick<AddKeyInput, 'id' | 'publicId' | 'digest' | 'createdAt'>,
  overlapSeconds: number,
): Promise<ApiKey | 'not_valid' | 'not_found'> {
  return withAccountRls(database, accountId).orm(async step => {
    await step.execute(
      sql`select 1 from users where id = (select user_id from api_keys where id = ${keyId} and account_id = ${accountId}) for share`,
    )
    if (sessionId !== null && !(await isRunning(step, sessionId))) return 'not_found'
    const [old] = await step
      .select()
      .from(apiKeys)
      .where(and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, accountId)))
      .for('update')
    if (old === undefined) return 'not_found'
    const lineId = old.lineId ?? old.id
    const ended = await step.execute(sql`
        update api_keys set updated_at = clock_timestamp(),
          revoked_at = case when ${overlapSeconds}::int = 0 then clock_timestamp() end,
          expires_at = case when ${overlapSeconds}::int = 0 then expires_at
            else least(expires_at, clock_timestamp() + make_interval(secs => ${overlapSeconds})) end
        where id = ${keyId} and revoked_at is null and (expires_at is null or expires_at > clock_timestamp())
          and not exists (
            select from api_keys as later where later.line_id = ${lineId} and later.id <> api_keys.id and later.created_at >= api_keys.created_at)
        returning id`)
    if (ended.length === 0) return 'not_valid'
    const { userId, name, expiresAt, web, limits, models, tags, strategy, fallback, projectId } = old
    const rules = { limits, models, tags, strategy, fallback, projectId }
    const rows = await step
      .insert(apiKeys)
      .values({ ...fresh, accountId, userId, name, expiresAt, lineId, web, ...rules })
      .returning()
    await recordAudit(step, database, {
      accountId,
      action: 'key.rotated',
      target: fresh.id,
      details: { name, replaces: keyId, overlap_seconds: overlapSeconds },
    })
    return rows[0] ?? 'not_valid'
  })
}

/** Returns the total usage of each key lineage by the ID of its first key. */
export async function usageByLineage(database: Database, accountId: string): Promise<ReadonlyMap<string, KeyUsage>> {
  const rows = await withAccountRls(database, accountId).sql(
    query => query<
      { line: string; requests: string; input: string; output: string; billed: string; now: KeyUsage['now'] }[]
    >`
      select coalesce(api_keys.line_id, key_id) as line, sum(requests)::text as requests, sum(input_tokens)::text as input,
        sum(output_tokens)::text as output, sum(billed_microcents)::text as billed,
        json_build_object(
          'tokens', coalesce(sum(input_tokens + output_tokens) filter (where day = (now() at time zone 'UTC')::date), 0),
          'microcents', coalesce(sum(billed_microcents) filter (where day = (now() at time zone 'UTC')::date), 0),
          'monthMicrocents', coalesce(sum(billed_microcents)
            filter (where date_trunc('month', day) = date_trunc('month', now() at time zone 'UTC')), 0)) as now
      from usage_daily left join api_keys on api_keys.id = key_id and api_keys.account_id = usage_daily.account_id
      where usage_daily.account_id = ${accountId}
      group by 1`,
  )
  return new Map(
    rows.map(row => [
      row.line,
      {
        requests: Number(row.requests),
        inputTokens: Number(row.input),
        outputTokens: Number(row.output),
        microcents: Number(row.billed),
        now: row.now,
      },
    ]),
  )
}

/** Values of a change as the audit log keeps them: a time in ISO 8601, a list or an object as JSON. */
function detailsOf(change: Readonly<Record<string, unknown>>): AuditDetails {
  return Object.fromEntries(
    Object.entries(change).map(([name, value]) => [
      name,
      typeof value === 'string' || typeof value === 'boolean' || value === null
        ? value
        : value instanceof Date
          ? value.toISOString()
          : JSON.stringify(value),
    ]),
  )
}
