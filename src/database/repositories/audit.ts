/**
 * The audit log: who changed what in an account. An entry is written in the transaction of its change, so that neither
 * exists without the other. The database refuses updates, and deletes younger than a year.
 */
import type { TransactionSql } from 'postgres'
import type { Actor, AuditAction, AuditEntry } from '../../core/audit/audit.ts'
import {
  type EventProject,
  maximumPending,
  maximumRefused,
  queueFull,
  type WebhookEvent,
  webhookBody,
} from '../../core/webhooks/events.ts'
import type { Database } from '../database.ts'
import { type Step, statementIn, withAccountRls } from '../statement.ts'

/** How long entries are kept: more than the year that the database enforces. */
const auditRetentionDays = 400

/**
 * Records one action in the transaction `step` that performs it. The actor is the database's (`actingAs`); without one,
 * the gateway itself acted.
 */
export async function recordAudit(step: Step, { actor }: Pick<Database, 'actor'>, entry: AuditEntry): Promise<void> {
  const { accountId, action, target = null } = entry
  const { kind, userId, address, managementKey } =
    actor?.kind === 'user' ? actor : { kind: actor?.kind ?? 'system', userId: null, address: null }
  const by = managementKey === undefined ? {} : { management_key: managementKey }
  const details = { ...entry.details, ...by }
  await statementIn(step)`
    insert into audit_log (id, account_id, actor, user_id, address, action, target, details)
    values (${newAuditId()}, ${accountId}, ${kind}, ${userId}, ${address}, ${action}, ${target},
      ${JSON.stringify(details)}::text::jsonb)`
  const event = findEvent(entry)
  if (event !== null) await enqueueEvent(step, accountId, { ...event, project: await projectOfKey(step, target) })
}

/**
 * Changes something of an account and records it, in one transaction. `change` returns the entry, or why it changed nothing,
 * which is the result.
 */
export function changeAudited<Problem extends string>(
  database: Database,
  accountId: string,
  change: (step: TransactionSql) => Promise<Omit<AuditEntry, 'accountId'> | Problem>,
): Promise<'done' | Problem> {
  return withAccountRls(database, accountId).sql(async step => {
    const changed = await change(step)
    if (typeof changed === 'string') return changed
    await recordAudit(step, database, { ...changed, accountId })
    return 'done'
  })
}

/** Returns the project of a key; null = none. */
async function projectOfKey(step: Step, keyId: string | null): Promise<EventProject | null> {
  const [project = null] = (await statementIn(step)`
    select projects.id, projects.name from api_keys join projects on projects.id = project_id
    where api_keys.id = ${keyId}`) as readonly EventProject[]
  return project
}

/** Records an action that changes no row, such as an export, in a transaction of its own. */
export async function recordAuditAlone(database: Database, entry: AuditEntry): Promise<void> {
  await changeAudited(database, entry.accountId, async () => entry)
}

const newAuditId = () => `aud_${Bun.randomUUIDv7().replaceAll('-', '')}`

/** Returns the webhook event of an action on a key; null = it has none. A rotation creates one key, and ends the other later. */
function findEvent({ action, target = '', details = {} }: AuditEntry): WebhookEvent | null {
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

type AuditPage = {
  /** ID of the last entry of the previous page; null = the first page. */
  readonly after: string | null
  readonly limit: number
}

/** An entry in its API form, with the current email address of its user; null = no user, or the user was removed. */
export type ListedAudit = Pick<AuditEntry, 'action'> & {
  id: string
  at: string
  actor: { type: 'user' | 'cli' | 'system'; user_id: string | null; email: string | null }
  /** Network address of the client, an IPv6 address as its network; null = none. */
  address: string | null
  target: string | null
  details: Record<string, string | number | boolean | null>
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
      select log.id, iso_time(log.at) as at, log.address, log.action, log.target, log.details,
        json_build_object('type', log.actor, 'user_id', log.user_id,
          'email', case when users.removed_at is null then users.email end) as actor
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

/** Events of an account on their way to its endpoints: stored in the transaction that causes them. */

/**
 * Stores one delivery per enabled endpoint of the account that subscribes to the event; none if there is no such
 * endpoint. An endpoint of a project receives only events of that project. `accountId` null = the event concerns all
 * accounts. If an endpoint has the maximum of pending deliveries, the new one is stored as failed: older events keep their
 * promise, the log shows the loss, and a user can send it. Only the newest of these stay, so that they neither fill the
 * table nor hide attempted deliveries. Transactions that run concurrently may exceed each maximum by one. Returns the number of
 * stored deliveries.
 */
export async function enqueueEvent(step: Step, accountId: string | null, event: WebhookEvent): Promise<number> {
  const { type, key = null, project = null } = event
  const data = project === null ? event.data : { ...event.data, project_id: project.id, project_name: project.name }
  const stored = (await statementIn(step)`
    with queues as (
      select endpoint.id, endpoint.account_id, is_full
      from webhook_endpoints as endpoint cross join lateral (
        select count(*) >= ${maximumPending} as is_full from (
          select from webhook_deliveries where endpoint_id = endpoint.id and status = 'pending'
          limit ${maximumPending}) as pending) as queue
      where (${accountId}::text is null or account_id = ${accountId}) and disabled_at is null and ${type} = any(events)
        and (project_id is null or project_id = ${project?.id ?? null}::text)),
    dropped as (
      delete from webhook_deliveries where id in (
        select refused.id from queues cross join lateral (
          select id from webhook_deliveries
          where endpoint_id = queues.id and status = 'failed' and error = ${queueFull}
          order by id desc offset ${maximumRefused - 1} for update skip locked) as refused
        where is_full))
    insert into webhook_deliveries (id, account_id, endpoint_id, type, event_key, body, status, error)
    select ${`${newDeliveryId()}_`} || row_number() over (order by id), account_id, id, ${type}, ${key},
      ${webhookBody(type, Date.now(), data)}, case when is_full then 'failed' else 'pending' end,
      case when is_full then ${queueFull} end
    from queues
    on conflict on constraint webhook_deliveries_event do nothing
    returning id`) as readonly unknown[]
  return stored.length
}

/** Returns the ID of a delivery, which ascends with time. */
export const newDeliveryId = () => `msg_${Bun.randomUUIDv7().replaceAll('-', '')}`
