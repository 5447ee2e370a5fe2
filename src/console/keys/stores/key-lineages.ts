/**
 * API keys as managed by their owners: creation, rotation within a key lineage that shares usage, and lists with usage.
 */

import { and, asc, desc, eq, inArray, or, sql } from 'drizzle-orm'
import type { AuditDetails } from '../../../core/audit/audit.ts'
import type { Database } from '../../../database/database.ts'
import { recordAudit } from '../../../database/repositories/audit.ts'
import { type Transaction, withAccountRls } from '../../../database/statement.ts'
import { type ApiKey, apiKeys } from '../../../database/tables.ts'
import { mayHoldKeys } from '../../projects/store.ts'

type AddKeyInput = KeyChange & Pick<ApiKey, 'id' | 'userId' | 'name' | 'publicId' | 'digest' | 'createdAt' | 'web'>

/** What a key's requests may do, and what they count in; null = no rule. */
export type KeyRules = Pick<
  ApiKey,
  'limits' | 'models' | 'tags' | 'strategy' | 'fallback' | 'continue' | 'hedge' | 'constraints'
>

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
    if (!(await mayHoldKeys(step, accountId, key.userId, key.projectId ?? null))) return 'gone'
    if (!(await isRunning(step, sessionId))) return 'gone'
    if (await isFull(step, accountId)) return 'full'
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
        project_id: key.projectId ?? undefined,
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

async function isFull(step: Transaction, accountId: string): Promise<boolean> {
  const active = await step.execute(
    sql`select 1 from api_keys where account_id = ${accountId} and revoked_at is null
        and (expires_at is null or expires_at > clock_timestamp()) limit ${maximumActiveKeys}`,
  )
  return active.length >= maximumActiveKeys
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

/** New values of a key. An omitted field stays as it is. */
export type KeyChange = {
  [Name in 'name' | 'web' | 'expiresAt' | 'projectId' | keyof KeyRules]?: ApiKey[Name] | undefined
}

type ChangeKeyInput = {
  readonly accountId: string
  readonly keyId: string
  readonly change: KeyChange
  /** The new values by their names in the API, for the audit log. */
  readonly details: AuditDetails
}

/**
 * Changes name, permissions, expiry and rules of a key. An expiry never makes a key valid again that was ended on purpose:
 * `revoked` = it was revoked; `replaced` = a rotation replaced it, and its end can only come earlier. `full` = the account
 * has the maximum number of valid keys; `barred` = its user may not have keys in its project, or the project is archived;
 * null = no key of this ID, or its user may not have keys in the project that the change names.
 */
export function changeKey(
  database: Database,
  { accountId, keyId, change, details }: ChangeKeyInput,
): Promise<ApiKey | 'revoked' | 'replaced' | 'full' | 'barred' | null> {
  return withAccountRls(database, accountId).orm(async step => {
    const { projectId, expiresAt } = change
    // A later expiry makes a key valid like a new one: also a key of a project that was archived meanwhile.
    if (projectId !== undefined || expiresAt !== undefined) {
      const [key] = await step
        .select({ userId: apiKeys.userId, projectId: apiKeys.projectId })
        .from(apiKeys)
        .where(and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, accountId)))
      if (key === undefined) return null
      const target = projectId === undefined ? key.projectId : projectId
      if (!(await mayHoldKeys(step, accountId, key.userId, target))) return projectId === undefined ? 'barred' : null
    }
    // Locked, so that no rotation or revocation comes between the check and the change.
    const [before] = await step
      .select()
      .from(apiKeys)
      .where(and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, accountId)))
      .for('update')
    if (before === undefined) return null
    const refusal = expiresAt === undefined ? null : await expiryRefusal(step, before, expiresAt)
    if (refusal !== null) return refusal
    const [row] = await step
      .update(apiKeys)
      .set({ ...change, updatedAt: sql`clock_timestamp()` })
      .where(and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, accountId)))
      .returning()
    if (row === undefined) return null
    await recordAudit(step, database, { accountId, action: 'key.changed', target: keyId, details })
    return row
  })
}

/** Returns why a key cannot get this expiry; null = it can. Its row is locked. */
async function expiryRefusal(
  step: Transaction,
  { id, accountId, lineId, revokedAt, expiresAt: end, createdAt }: ApiKey,
  wanted: Date | null,
): Promise<'revoked' | 'replaced' | 'full' | null> {
  const endsLater = end !== null && (wanted === null || wanted > end)
  if (revokedAt !== null) return wanted?.getTime() === end?.getTime() ? null : 'revoked'
  if (!endsLater) return null
  const isReplaced = (await lineageIn(step, accountId, lineId ?? id)).some(
    lineageKey => lineageKey.createdAt > createdAt,
  )
  if (isReplaced) return 'replaced'
  const [now] = await step.execute<{ isExpired: boolean }>(
    sql`select ${end.toISOString()}::timestamptz <= clock_timestamp() as "isExpired"`,
  )
  return now?.isExpired === true && (await isFull(step, accountId)) ? 'full' : null
}

/** One key of a lineage. Each key was replaced by the next one. */
export type LineageKey = Pick<ApiKey, 'id' | 'publicId' | 'createdAt' | 'lastUsedAt' | 'revokedAt' | 'expiresAt'>

function lineageIn(step: Transaction, accountId: string, lineId: string): Promise<LineageKey[]> {
  const { id, publicId, createdAt, lastUsedAt, revokedAt, expiresAt } = apiKeys
  return step
    .select({ id, publicId, createdAt, lastUsedAt, revokedAt, expiresAt })
    .from(apiKeys)
    .where(and(eq(apiKeys.accountId, accountId), or(eq(apiKeys.id, lineId), eq(apiKeys.lineId, lineId))))
    .orderBy(asc(apiKeys.createdAt), asc(apiKeys.id))
}

/** Returns the keys of a lineage, oldest first. `lineId` is the ID of the first one. */
export function findLineage(database: Database, accountId: string, lineId: string): Promise<LineageKey[]> {
  return withAccountRls(database, accountId).orm(step => lineageIn(step, accountId, lineId))
}

/** Returns the number of a lineage's requests that were settled in the last minute. */
export async function recentRequests(database: Database, accountId: string, lineId: string): Promise<number> {
  const [row] = await withAccountRls(database, accountId).sql(
    query => query<{ count: number }[]>`
      select count(*)::int as count from usage_records
      where account_id = ${accountId} and at > clock_timestamp() - interval '1 minute'
        and key_id in (select id from api_keys where account_id = ${accountId} and (id = ${lineId} or line_id = ${lineId}))`,
  )
  return row?.count ?? 0
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
    const { userId, name, expiresAt, web, limits, models, tags, strategy, fallback, hedge, constraints, projectId } =
      old
    const { shortfallDay, shortfallMicrocents, shortfallRequestId, shortfallRequestMicrocents } = old
    // Rotation does not end a pause.
    const shortfall = { shortfallDay, shortfallMicrocents, shortfallRequestId, shortfallRequestMicrocents }
    // The order of a lineage is that of its times, also if the clocks of two instances differ.
    const createdAt = new Date(Math.max(fresh.createdAt.getTime(), old.createdAt.getTime() + 1))
    const rules = {
      web,
      limits,
      models,
      tags,
      strategy,
      fallback,
      continue: old.continue,
      hedge,
      constraints,
      projectId,
    }
    const rows = await step
      .insert(apiKeys)
      .values({ ...fresh, createdAt, accountId, userId, name, expiresAt, lineId, ...rules, ...shortfall })
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
