/**
 * The audit log: who changed what in an account. An entry is written in the transaction of its change, so that neither
 * exists without the other. The database refuses updates, and deletes younger than a year.
 */
import type { Actor, AuditAction, AuditEntry } from '../../core/audit/audit.ts'
import type { EventProject, WebhookEvent } from '../../core/webhooks/events.ts'
import { withAccountRls } from '../account-transaction.ts'
import type { Database } from '../database.ts'
import { type Step, statementIn } from '../statement.ts'
import type { AuditRow } from '../tables.ts'
import { enqueueEvent } from './webhook-events.ts'

/** How long entries are kept: more than the year that the database enforces. */
export const auditRetentionDays = 400

/**
 * Records one action in the transaction `step` that performs it. The actor is the database's (`actingAs`); without one,
 * the gateway itself acted.
 */
export async function recordAudit(step: Step, { actor }: Pick<Database, 'actor'>, entry: AuditEntry): Promise<void> {
  const { accountId, action, target = null, details = {} } = entry
  const { kind, userId, address } =
    actor?.kind === 'user' ? actor : { kind: actor?.kind ?? 'system', userId: null, address: null }
  await statementIn(step)`
    insert into audit_log (id, account_id, actor, user_id, address, action, target, details)
    values (${newAuditId()}, ${accountId}, ${kind}, ${userId}, ${address}, ${action}, ${target},
      ${JSON.stringify(details)}::text::jsonb)`
  const event = eventOf(entry)
  if (event !== null) await enqueueEvent(step, accountId, { ...event, project: await projectOfKey(step, target) })
}

/** Returns the project of a key; null = none. */
async function projectOfKey(step: Step, keyId: string | null): Promise<EventProject | null> {
  const [project = null] = (await statementIn(step)`
    select projects.id, projects.name from api_keys join projects on projects.id = project_id
    where api_keys.id = ${keyId}`) as readonly EventProject[]
  return project
}

/** Records an action that changes no row, such as an export, in a transaction of its own. */
export function recordAuditAlone(database: Database, entry: AuditEntry): Promise<void> {
  return withAccountRls(database, entry.accountId).sql(step => recordAudit(step, database, entry))
}

const newAuditId = () => `aud_${Bun.randomUUIDv7().replaceAll('-', '')}`

/** Returns the webhook event of an action on a key; null = it has none. A rotation creates one key, and ends the other later. */
function eventOf({ action, target = '', details = {} }: AuditEntry): WebhookEvent | null {
  if (action === 'key.created' || action === 'key.revoked')
    return { type: action, data: { key_id: target, ...details } }
  return action === 'key.rotated' ? { type: 'key.created', data: { key_id: target, ...details } } : null
}

export type AuditFilters = {
  readonly userId?: string | undefined
  readonly actor?: Actor['kind'] | undefined
  readonly action?: AuditAction | undefined
  /** Epoch milliseconds; `to` is exclusive. */
  readonly from?: number | undefined
  readonly to?: number | undefined
}

export type AuditPage = {
  /** ID of the last entry of the previous page; null = the first page. */
  readonly after: string | null
  readonly limit: number
}

/** An entry with the current email address of its user; null = no user, or the user was removed. */
export type ListedAudit = Omit<AuditRow, 'accountId' | 'at'> & {
  /** Epoch milliseconds. */
  readonly atMs: number
  readonly email: string | null
}

/** Returns entries of an account, newest first. */
export function listAudit(
  database: Database,
  accountId: string,
  filters: AuditFilters,
  { after, limit }: AuditPage,
): Promise<ListedAudit[]> {
  const { userId = null, actor = null, action = null, from, to } = filters
  const [fromTime, toTime] = [from, to].map(at => (at === undefined ? null : new Date(at).toISOString()))
  return withAccountRls(database, accountId).sql(
    sql => sql<ListedAudit[]>`
      select log.id, (extract(epoch from log.at) * 1000)::float8 as "atMs", log.actor, log.user_id as "userId", log.address, log.action, log.target, log.details,
        case when users.removed_at is null then users.email end as email
      from audit_log as log left join users on users.id = log.user_id
      where log.account_id = ${accountId}
        and (${after}::text is null or log.id < ${after})
        and (${userId}::text is null or log.user_id = ${userId})
        and (${actor}::text is null or log.actor = ${actor})
        and (${action}::text is null or log.action = ${action})
        and (${fromTime ?? null}::text is null or log.at >= ${fromTime ?? null}::text::timestamptz)
        and (${toTime ?? null}::text is null or log.at < ${toTime ?? null}::text::timestamptz)
      order by log.id desc
      limit ${limit}`,
  )
}

/** Time for one part of a retention: no client waits for it. */
export const retentionDeadlineMs = 30_000

/** Deletes entries that are older than the retention, at most `limit`. Returns their number. */
export async function pruneAudit(database: Database, limit: number): Promise<number> {
  const rows = await database.run(
    ({ sql }) => sql`
      delete from audit_log where id in (
        select id from audit_log where at < clock_timestamp() - make_interval(days => ${auditRetentionDays})
        order by at limit ${limit})
      returning id`,
    retentionDeadlineMs,
  )
  return rows.length
}
