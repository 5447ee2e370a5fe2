/**
 * Erasure of personal data. A deleted account and an anonymized user keep their IDs as pseudonyms for usage, invoices and
 * the audit log; everything that names people or was written by them ends. `test/database/personal-data.ts` decides per
 * column. Runs as the owner of the tables: the role of one account may not change append-only rows.
 */
import { sql } from 'drizzle-orm'
import type { TransactionSql } from 'postgres'
import type { Role } from '../../core/accounts/roles.ts'
import type { Log } from '../../core/ports.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import { failureReason } from '../../core/validation/errors.ts'
import type { Database } from '../../database/database.ts'
import { recordAudit, retentionDeadlineMs } from '../../database/repositories/audit.ts'
import { statementIn, type Transaction } from '../../database/statement.ts'
import { eraseLearningIn } from '../../learning/learning.ts'
import { endUser } from '../auth/stores/email-links.ts'
import { mailSubject } from '../auth/stores/sessions.ts'
import { applyRole } from '../auth/stores/users.ts'
import { changeBillingInTransaction, lockBilling, workDeadlineMs } from '../billing/stores/billing.ts'

type Parts = {
  /** Epoch milliseconds. */
  readonly at: number
  readonly newId: (prefix: string) => string
}

type DeletionParts = Parts & {
  /** Deletes nothing if the account has a member: one may have joined since the caller looked. */
  readonly isOnlyWithoutMembers?: boolean
}

/**
 * Deletes an account with its users: keys end in all instances within 1 s, and a running billing cycle ends now, whose
 * invoice follows. Returns false if there is no such account, it was deleted, or has a member that keeps it.
 */
export async function deleteAccount(database: Database, accountId: string, parts: DeletionParts): Promise<boolean> {
  const isDeleted = await database.run(
    ({ orm }) => orm.transaction(step => deleteIn(step, database, accountId, parts)),
    workDeadlineMs,
  )
  if (isDeleted) await eraseFirst(database, { accountId, userId: null })
  return isDeleted
}

async function deleteIn(
  step: Transaction,
  { actor }: Pick<Database, 'actor'>,
  accountId: string,
  { at, newId, isOnlyWithoutMembers = false }: DeletionParts,
): Promise<boolean> {
  const found = await lockBilling(step, accountId)
  if (found === null || found.account.deletedAt !== null) return false
  const run = statementIn(step)
  // Under the lock that a new member takes too.
  const users = (await run`
    select id, email, removed_at is null as "isMember" from users where account_id = ${accountId} for update`) as readonly {
    readonly id: string
    readonly email: string
    readonly isMember: boolean
  }[]
  if (isOnlyWithoutMembers && users.some(({ isMember }) => isMember)) return false
  await changeBillingInTransaction(step, accountId, { event: 'downgrade_now', at, userId: null, newId, actor })
  const subjects = JSON.stringify(users.flatMap(({ id, email }) => failureSubjects(id, email)))
  await run`delete from sign_in_failures where subject in (select json_array_elements_text(${subjects}::text::json))`
  await run`
    update users set removed_at = coalesce(removed_at, clock_timestamp()), email = lower(id) || '@removed.invalid',
      password_hash = '', unverified_since = null, password_sign_in_until = null
    where account_id = ${accountId}`
  // After the users, whose lock a new key needs.
  await run`
    update api_keys set revoked_at = coalesce(revoked_at, clock_timestamp()), name = '', tags = null, updated_at = clock_timestamp()
    where account_id = ${accountId}`
  const ofUsers = sql`user_id in (select id from users where account_id = ${accountId})`
  for (const table of userTables) await step.execute(sql`delete from ${sql.identifier(table)} where ${ofUsers}`)
  for (const table of accountTables)
    await step.execute(sql`delete from ${sql.identifier(table)} where account_id = ${accountId}`)
  // The card in use stays until the last invoice is paid: `forgetMethod`.
  await run`delete from payment_methods where account_id = ${accountId} and removed_at is not null`
  await run`
    update projects set name = '', archived_at = coalesce(archived_at, clock_timestamp()) where account_id = ${accountId}`
  await eraseLearningIn(step, accountId, at)
  await run`
    update accounts set name = '', deleted_at = ${new Date(at).toISOString()}::text::timestamptz, soft_cap_microcents = null,
      rules = null, constraints = null,
      is_operator = false, updated_at = clock_timestamp()
    where id = ${accountId}`
  await recordAudit(step, { actor }, { accountId, action: 'account.deleted', details: unfinished })
  return true
}

/** Tables whose rows end with their user or account. */
const userTables = [
  ...['user_identities', 'oidc_sign_ins', 'totp_recovery_codes', 'totp_secrets', 'password_resets'],
  ...['email_verifications', 'known_addresses'],
]
const accountTables = [
  ...['sessions', 'invitations', 'project_members', 'tag_limits', 'webhook_endpoints', 'provider_keys', 'alert_rules'],
  ...['shadow_comparisons', 'idempotency_keys', 'email_notices'],
]

function failureSubjects(userId: string, email: string): readonly string[] {
  return [mailSubject(email), `change:${userId}`, `two-factor:${userId}`]
}

/** Result for the account of an anonymized user. */
type Successor = 'unchanged' | 'account_deleted' | { readonly ownerId: string }

/**
 * Anonymizes a user of a living account: access ends, and everything that names the user is blanked. Open invitations to the
 * address end in every account. An account without an owner is settled at once. Null = no such user.
 */
export async function anonymizeUser(
  database: Database,
  { accountId, userId }: { readonly accountId: string; readonly userId: string },
  parts: Parts,
): Promise<Successor | null> {
  const isDone = await database.run(
    ({ sql }) =>
      sql.begin(async step => {
        await step`select 1 from accounts where id = ${accountId} for no key update`
        const [user] = await step<{ email: string }[]>`
        select email from users where id = ${userId} and account_id = ${accountId} and removed_at is null for update`
        if (user === undefined) return false
        await endUser(step, database, userId)
        await step`update api_keys set name = '', tags = null, updated_at = clock_timestamp() where user_id = ${userId}`
        await step`delete from user_identities where user_id = ${userId}`
        // Pending alerts to others too: their texts have names of keys and tags.
        await step`
          delete from email_notices where user_id = ${userId} or (account_id = ${accountId} and kind = 'alert')`
        const subjects = JSON.stringify(failureSubjects(userId, user.email))
        await step`delete from sign_in_failures where subject in (select json_array_elements_text(${subjects}::text::json))`
        // Accepted ones too: they name the address.
        const invited = await step<{ id: string }[]>`delete from invitations where email = ${user.email} returning id`
        const ids = JSON.stringify([userId, ...invited.map(({ id }) => id)])
        await step`
          update audit_log set details = details - '{email,name}'::text[]
          where account_id = ${accountId} and target in (select json_array_elements_text(${ids}::text::json))`
        await eraseAddressIn(step, user.email)
        await eraseDeliveriesIn(step, { accountId, userId, email: user.email })
        await recordAudit(step, database, {
          accountId,
          action: 'member.anonymized',
          target: userId,
          details: unfinished,
        })
        return true
      }),
    // The audit log has no index of its details.
    retentionDeadlineMs,
  )
  if (!isDone) return null
  await eraseFirst(database, { accountId, userId })
  return settleOwner(database, accountId, parts)
}

/**
 * Gives an account without an owner to its member of the highest role, the oldest of them. Without members it is deleted:
 * no user can reach it any more.
 */
async function settleOwner(database: Database, accountId: string, parts: Parts): Promise<Successor> {
  const promote = () => database.run(({ sql }) => sql.begin(step => promoteIn(step, database, accountId)))
  const successor = await promote()
  if (successor !== 'none') return successor
  if (await deleteAccount(database, accountId, { ...parts, isOnlyWithoutMembers: true })) return 'account_deleted'
  // Deleted meanwhile, or a member joined.
  const joined = await promote()
  return joined === 'none' ? 'unchanged' : joined
}

async function promoteIn(
  step: TransactionSql,
  by: Pick<Database, 'actor'>,
  accountId: string,
): Promise<'unchanged' | 'none' | { readonly ownerId: string }> {
  await step`select 1 from accounts where id = ${accountId} for no key update`
  const [first] = await step<{ id: string; role: Role }[]>`
    select id, role from users where account_id = ${accountId} and removed_at is null
    order by array_position('{owner,admin,member,viewer}', role), created_at, id limit 1`
  if (first === undefined) return 'none'
  if (first.role === 'owner') return 'unchanged'
  const { id: userId, role } = first
  await applyRole(step, by, { accountId, userId, role: 'owner' })
  const details = { from: role, to: 'owner' }
  await recordAudit(step, by, { accountId, action: 'member.role_changed', target: userId, details })
  return { ownerId: userId }
}

/** The ledger stores later records without labels. Rejections of open requests, and batches that began before, come soon after. */
const sweptDays = 1
/** Time within which an interrupted erasure is found again. */
const markedDays = 40

/**
 * Settles accounts without an owner, such as those whose owner's address was taken over, finishes erasures, and erases what
 * arrived late for deleted accounts and anonymized users. One that fails does not stop the others: the next sweep repeats it.
 */
export async function eraseLate(
  database: Database,
  parts: Parts & {
    /** Forgets the limit counters of an account, whose scopes name tags. */
    readonly forgetCounters: (accountId: string) => Promise<void>
    readonly log: Pick<Log, 'warn'>
  },
  isClosed: () => boolean,
): Promise<void> {
  const orphans = await database.run(
    ({ sql }) => sql<{ id: string }[]>`
      select id from accounts where deleted_at is null and not exists (
        select from users where account_id = accounts.id and role = 'owner' and removed_at is null) limit 100`,
  )
  const failures: string[] = []
  const tryOne = async (work: () => Promise<unknown>) => {
    if (!isClosed()) await work().catch(error => failures.push(failureReason(error)))
  }
  for (const { id } of orphans) await tryOne(() => settleOwner(database, id, parts))
  const erased = await database.run(
    ({ sql }) => sql<(Subject & { isUnfinished: boolean })[]>`
      select account_id as "accountId", case action when 'member.anonymized' then target end as "userId",
        details ? 'unfinished' as "isUnfinished"
      from audit_log
      where at > clock_timestamp() - make_interval(days => ${markedDays})
        and action in ('account.deleted', 'member.anonymized')
        and (details ? 'unfinished' or at > clock_timestamp() - make_interval(days => ${sweptDays}))
      order by at, id`,
    retentionDeadlineMs,
  )
  const recently = new Date(parts.at - 2 * sweptDays * dayMs).toISOString()
  for (const { isUnfinished, ...subject } of erased) {
    // Of a finished erasure, older records were there in time.
    await tryOne(() => eraseTexts(database, subject, isUnfinished ? '-infinity' : recently, isClosed))
    if (subject.userId === null) await tryOne(() => parts.forgetCounters(subject.accountId))
  }
  const [detail] = failures
  if (detail !== undefined) parts.log.warn('erasure_failed', { failures: failures.length, detail })
}

/** Erases the texts that people and their clients wrote: names, addresses, metadata, tags. */

/**
 * Erases an address where people typed it as a name, and where the gateway did: a new account is named after its owner. An
 * account and a project keep a name to be told by, their ID.
 */
async function eraseAddressIn(step: TransactionSql, email: string): Promise<void> {
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
async function eraseDeliveriesIn(
  step: TransactionSql,
  { accountId, userId, email }: { readonly accountId: string; readonly userId: string; readonly email: string },
): Promise<void> {
  await step`
    update webhook_deliveries as delivery set body = jsonb_set(body::jsonb, '{data}', (
      select jsonb_object_agg(key, case
        when key in ('name', 'text') and is_own or position(${email} in lower(value #>> '{}')) > 0 then '""' else value end)
      from jsonb_each(body::jsonb -> 'data')))::text
    from (
      select id, body::jsonb #>> '{data,key_id}' in (
        select id from api_keys where user_id = ${userId}) as is_own
      from webhook_deliveries where account_id = ${accountId}) as sent
    where delivery.id = sent.id and (is_own or position(${email} in lower(body)) > 0)`
}

const erasedAtOnce = 5_000
/** Parts that the deletion itself erases, so that it responds soon. The sweep goes on until all is erased. */
const firstParts = 20
/** Details of the entry of the audit log while texts are left to erase. They are erased last. */
const unfinished = { unfinished: true } as const

/** Erases the first texts at once. Texts that remain or failed keep their mark for the sweep: the account has ended either way. */
async function eraseFirst(database: Database, subject: Subject): Promise<void> {
  let count = 0
  await eraseTexts(database, subject, '-infinity', () => count++ >= firstParts).catch(() => {})
}

/** An account, or one user of it. */
type Subject = { readonly accountId: string; readonly userId: string | null }

/**
 * Erases the texts that requests from `from` (ISO 8601) on and changes have left, until `isEnough`. Usage stays, without the
 * labels that its clients chose.
 */
async function eraseTexts(database: Database, subject: Subject, from: string, isEnough: () => boolean): Promise<void> {
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
