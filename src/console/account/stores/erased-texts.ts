/** Erases the texts that people and their clients wrote: names, addresses, metadata, tags. See `erasure.ts`. */
import type { TransactionSql } from 'postgres'
import type { Database } from '../../../database/database.ts'
import { retentionDeadlineMs } from '../../../database/repositories/audit.ts'

/**
 * Erases an address where people typed it as a name, and where the gateway did: a new account is named after its owner. An
 * account and a project keep a name to be told by, their ID.
 */
export async function eraseAddressIn(step: TransactionSql, email: string): Promise<void> {
  await step`
    update accounts set name = id, updated_at = clock_timestamp() where position(${email} in lower(name)) > 0`
  await step`update projects set name = id where position(${email} in lower(name)) > 0`
  await step`
    update api_keys set name = id, updated_at = clock_timestamp() where position(${email} in lower(name)) > 0`
  await step`
    update audit_log set details = details - (
      select array_agg(key) from jsonb_each_text(details) where position(${email} in lower(value)) > 0)
    where exists (select from jsonb_each_text(details) where position(${email} in lower(value)) > 0)`
}

/** Blanks the names of a user's keys, and the address, in the delivery log of webhooks. What waits is delivered without them. */
export async function eraseDeliveriesIn(
  step: TransactionSql,
  { accountId, userId, email }: { readonly accountId: string; readonly userId: string; readonly email: string },
): Promise<void> {
  await step`
    update webhook_deliveries as delivery set body = jsonb_set(body::jsonb, '{data}', (
      select jsonb_object_agg(key, case
        when key = 'name' and is_own or position(${email} in lower(value #>> '{}')) > 0 then '""' else value end)
      from jsonb_each(body::jsonb -> 'data')))::text
    from (
      select id, type like 'key.%' and body::jsonb #>> '{data,key_id}' in (
        select id from api_keys where user_id = ${userId}) as is_own
      from webhook_deliveries where account_id = ${accountId}) as sent
    where delivery.id = sent.id and (is_own or position(${email} in lower(body)) > 0)`
}

const erasedAtOnce = 5_000
/** Parts that the deletion itself erases, so that it responds soon. The sweep goes on until all is erased. */
const firstParts = 20
/** Details of the entry of the audit log while texts are left to erase. They are erased last. */
export const unfinished = { unfinished: true } as const

/** Erases the first texts at once. Texts that remain or failed keep their mark for the sweep: the account has ended either way. */
export async function eraseFirst(database: Database, subject: Subject): Promise<void> {
  let count = 0
  await eraseTexts(database, subject, '-infinity', () => count++ >= firstParts).catch(() => {})
}

/** An account, or one user of it. */
export type Subject = { readonly accountId: string; readonly userId: string | null }

/**
 * Erases the texts that requests from `from` (ISO 8601) on and changes have left, until `isEnough`. Usage stays, without the
 * labels that its clients chose.
 */
export async function eraseTexts(
  database: Database,
  subject: Subject,
  from: string,
  isEnough: () => boolean,
): Promise<void> {
  const { accountId, userId } = subject
  const own = (step: TransactionSql, keyId = step`key_id`) => step`
    account_id = ${accountId} and (${userId}::text is null
      or ${keyId} in (select id from api_keys where user_id = ${userId}))`
  // Each part starts where the last one ended: the erased records are in the index too.
  let since = from
  const erasures: readonly ((step: TransactionSql) => PromiseLike<readonly { readonly at?: string }[]>)[] = [
    step => step<{ at: string }[]>`
      with texts as (
        select request_id, at from usage_records
        where ${own(step)} and at >= ${since}::text::timestamptz and (metadata is not null or tags is not null)
        order by at limit ${erasedAtOnce}),
      erased as (
        update usage_records as record set metadata = null, tags = null from texts
        where record.request_id = texts.request_id and record.at = texts.at)
      select at::text as at from texts order by texts.at`,
    step => step`
      update usage_replaced set "row" = "row" - '{metadata,tags}'::text[] where ctid in (
        select ctid from usage_replaced
        where ${own(step, step`"row" ->> 'key_id'`)} and "row" ?| '{metadata,tags}' limit ${erasedAtOnce})
      returning 1`,
    step => step`
      delete from usage_tags_daily where ctid in (
        select ctid from usage_tags_daily where ${own(step)} limit ${erasedAtOnce}) returning 1`,
    step => step`
      delete from rejected_requests where ctid in (
        select ctid from rejected_requests where ${own(step)} limit ${erasedAtOnce}) returning 1`,
    step =>
      userId === null
        ? step`
            update audit_log set address = null, target = case when target not like 'tag:%' then target end,
              details = case when details ? 'unfinished' then details else '{}' end
            where ctid in (
              select ctid from audit_log where account_id = ${accountId}
                and (address is not null or details - 'unfinished' <> '{}' or target like 'tag:%') limit ${erasedAtOnce})
            returning 1`
        : step`
            update audit_log set address = case when user_id is distinct from ${userId} then address end,
              details = details - '{name,tags}'::text[]
            where ctid in (
              select ctid from audit_log where account_id = ${accountId} and (user_id = ${userId} and address is not null
                or target in (select id from api_keys where user_id = ${userId}) and details ?| '{name,tags}')
              limit ${erasedAtOnce})
            returning 1`,
  ]
  for (const erase of erasures)
    for (let isDone = false; !isDone; ) {
      if (isEnough()) return
      const rows = await database.run(({ sql }) => sql.begin(async step => erase(step)), retentionDeadlineMs)
      isDone = rows.length < erasedAtOnce
      since = rows.at(-1)?.at ?? since
    }
  await database.run(
    ({ sql }) => sql`
      update audit_log set details = '{}'
      where account_id = ${accountId} and details ? 'unfinished'
        and (action, coalesce(target, '')) = (${userId === null ? 'account.deleted' : 'member.anonymized'}, ${userId ?? ''})`,
    retentionDeadlineMs,
  )
}
