/**
 * Webhook endpoints of accounts, and their deliveries: claimed by one sender, settled after the attempt. A sender that
 * is killed in between leaves a claim that expires, so the event is sent again under the same ID.
 */
import {
  type AttemptResult,
  disabledAfterMs,
  maximumEndpoints,
  nextAttemptMs,
  type WebhookFormat,
} from '../../../core/webhooks/events.ts'
import type { Database } from '../../../database/database.ts'
import { changeAudited, recordAudit } from '../../../database/repositories/audit.ts'
import { withAccountRls } from '../../../database/statement.ts'
import type { ShownWebhook } from '../schemas.ts'

/** Returns an account's endpoints, oldest first. */
export function listEndpoints(database: Database, accountId: string, id: string | null = null) {
  return withAccountRls(database, accountId).sql(
    sql => sql<ShownWebhook[]>`
      select id, url, array_to_json(events) as events, format, disabled_at is null as enabled, disabled_by,
        iso_time(disabled_at) as disabled_at, iso_time(failing_since) as failing_since, iso_time(created_at) as created_at,
        project_id
      from webhook_endpoints
      where account_id = ${accountId} and (${id}::text is null or id = ${id})
      order by webhook_endpoints.created_at, id`,
  )
}

type NewEndpoint = Pick<ShownWebhook, 'id' | 'url' | 'events' | 'format' | 'project_id'> & {
  readonly sealedSecret: string
}

/** Stores an endpoint. `full` = the account has the maximum number of them. */
export function addEndpoint(database: Database, accountId: string, endpoint: NewEndpoint): Promise<'done' | 'full'> {
  const { id, url, events, format, sealedSecret, project_id: projectId } = endpoint
  return changeAudited<'full'>(database, accountId, async step => {
    await step`select 1 from accounts where id = ${accountId} for no key update`
    const rows = await step`
      insert into webhook_endpoints (id, account_id, url, events, format, secret, project_id, created_at)
      select ${id}, ${accountId}, ${url}, ${textArray(events)}::text::text[], ${format}, ${sealedSecret}, ${projectId},
        clock_timestamp()
      where (select count(*) from webhook_endpoints where account_id = ${accountId}) < ${maximumEndpoints}
      returning id`
    if (rows.length === 0) return 'full'
    const details = { url: auditedUrl(endpoint), events: events.join(', '), format, project_id: projectId ?? undefined }
    return { action: 'webhook.created', target: id, details }
  })
}

type EndpointChange = {
  readonly [Name in 'url' | 'events' | 'enabled' | 'project_id']?: ShownWebhook[Name] | undefined
}

/** Changes an endpoint. Enabling it lets its pending deliveries continue. */
export function changeEndpoint(
  database: Database,
  accountId: string,
  id: string,
  { url, events, enabled, project_id: projectId }: EndpointChange,
): Promise<'done' | 'not_found'> {
  return changeAudited<'not_found'>(database, accountId, async step => {
    const [changed] = await step<Audited[]>`
      update webhook_endpoints set
        url = coalesce(${url ?? null}, url),
        events = coalesce(${events === undefined ? null : textArray(events)}::text::text[], events),
        disabled_at = case ${enabled ?? null}::boolean when true then null when false
          then coalesce(disabled_at, clock_timestamp()) else disabled_at end,
        disabled_by = case ${enabled ?? null}::boolean when true then null when false
          then coalesce(disabled_by, 'user') else disabled_by end,
        project_id = case when ${projectId !== undefined}::boolean then ${projectId ?? null} else project_id end,
        failing_since = case when ${enabled ?? null}::boolean then null else failing_since end
      where id = ${id} and account_id = ${accountId} returning url, format`
    if (changed === undefined) return 'not_found'
    const named = url === undefined ? undefined : auditedUrl(changed)
    const details = { url: named, events: events?.join(', '), enabled, project_id: projectId }
    return { action: 'webhook.changed', target: id, details }
  })
}

/** Deletes an endpoint with its deliveries. */
export function deleteEndpoint(database: Database, accountId: string, id: string): Promise<'done' | 'not_found'> {
  return changeAudited<'not_found'>(database, accountId, async step => {
    const [deleted] = await step<Audited[]>`
      delete from webhook_endpoints where id = ${id} and account_id = ${accountId} returning url, format`
    if (deleted === undefined) return 'not_found'
    return { action: 'webhook.deleted', target: id, details: { url: auditedUrl(deleted) } }
  })
}

/** Replaces the signing secret; the old one signs too for `overlapSeconds`. */
export function rotateSecret(
  database: Database,
  accountId: string,
  id: string,
  { sealedSecret, overlapSeconds }: { readonly sealedSecret: string; readonly overlapSeconds: number },
): Promise<'done' | 'not_found'> {
  return changeAudited<'not_found'>(database, accountId, async step => {
    const rows = await step`
      update webhook_endpoints set previous_secret = secret, secret = ${sealedSecret},
        previous_until = clock_timestamp() + make_interval(secs => ${overlapSeconds})
      where id = ${id} and account_id = ${accountId} returning id`
    if (rows.length === 0) return 'not_found'
    return { action: 'webhook.secret_rotated', target: id, details: { overlap_seconds: overlapSeconds } }
  })
}

/** A delivery that this process may send. */
export type ClaimedDelivery = {
  readonly id: string
  readonly accountId: string
  readonly endpointId: string
  /** The stored body, in the form of Standard Webhooks. */
  readonly body: string
  readonly format: WebhookFormat
  /** Attempts, including this one. */
  readonly attempts: number
  readonly url: string
  readonly sealedSecret: string
  /** Null = no rotation overlaps now. */
  readonly sealedPreviousSecret: string | null
}

/**
 * Claims the oldest due delivery of each enabled endpoint, at most `limit`. Other senders cannot claim them for
 * `leaseMs`, after which those of a killed sender are due again. One per endpoint. Endpoints that
 * fail come last, because each of their attempts may last until the deadline.
 */
export async function claimDeliveries(
  database: Database,
  at: number,
  { leaseMs, limit }: { readonly leaseMs: number; readonly limit: number },
): Promise<ClaimedDelivery[]> {
  // The database counts microseconds: a delivery stored within the millisecond of the caller's clock is due.
  const [now = '', leaseEnd = ''] = [at + 1, at + leaseMs].map(time => new Date(time).toISOString())
  return database.run(
    ({ sql }) => sql<ClaimedDelivery[]>`
      with due as (
        select id from webhook_deliveries
        where status = 'pending' and due_at <= ${now}::text::timestamptz and id in (
          select distinct on (endpoint_id) waiting.id
          from webhook_deliveries as waiting join webhook_endpoints on webhook_endpoints.id = endpoint_id
          where status = 'pending' and due_at <= ${now}::text::timestamptz and disabled_at is null
          order by endpoint_id, due_at, waiting.id)
        order by (select failing_since is not null from webhook_endpoints as failing where failing.id = endpoint_id), due_at
        limit ${limit} for update skip locked),
      claimed as (
        update webhook_deliveries as delivery
        set due_at = ${leaseEnd}::text::timestamptz, attempts = least(delivery.attempts + 1, 1000),
          attempted_at = ${now}::text::timestamptz
        from due where delivery.id = due.id
        returning delivery.*)
      select claimed.id, claimed.account_id as "accountId", endpoint_id as "endpointId", body, attempts, url, format,
        secret as "sealedSecret",
        case when previous_until > ${now}::text::timestamptz then previous_secret end as "sealedPreviousSecret"
      from claimed join webhook_endpoints as endpoint on endpoint.id = endpoint_id`,
  )
}

/**
 * Writes the result of an attempt. Disables the endpoint if it asks for that (410), or if the delivery has used up its
 * attempts and none of the endpoint succeeded meanwhile. A secret that the gateway cannot read is not its failure. Returns the new state; null if another sender has claimed it.
 */
export function settleDelivery(
  database: Database,
  { id, accountId, endpointId, attempts }: ClaimedDelivery,
  result: AttemptResult,
  at: number,
): Promise<'delivered' | 'pending' | 'failed' | 'disabled' | null> {
  const waitMs = result.error === null ? null : nextAttemptMs(attempts, result)
  const status = result.error === null ? 'delivered' : waitMs === null ? 'failed' : 'pending'
  const [now = '', due = ''] = [at, at + (waitMs ?? 0)].map(time => new Date(time).toISOString())
  return database.run(({ sql }) =>
    sql.begin(async step => {
      // Locked before the delivery, like a deletion does, so that the two cannot deadlock.
      await step`select 1 from webhook_endpoints where id = ${endpointId} for no key update`
      const settled = await step`
        update webhook_deliveries set status = ${status}, due_at = ${due}::text::timestamptz,
          response_status = ${result.status}, error = ${result.error}, duration_ms = ${result.durationMs}
        where id = ${id} and status = 'pending' and attempts = ${attempts} returning id`
      if (settled.length === 0) return null
      if (status === 'delivered') {
        await step`
          update webhook_endpoints set failing_since = null where id = ${endpointId} and failing_since is not null`
        return status
      }
      if (result.error === 'secret_unreadable') return status
      await step`
        update webhook_endpoints set failing_since = ${now}::text::timestamptz
        where id = ${endpointId} and failing_since is null`
      if (status === 'pending') return status
      const limit = new Date(result.status === 410 ? at : at - disabledAfterMs).toISOString()
      const disabled = await step`
        update webhook_endpoints set disabled_at = ${now}::text::timestamptz, disabled_by = 'failures'
        where id = ${endpointId} and disabled_at is null and failing_since <= ${limit}::text::timestamptz returning id`
      if (disabled.length === 0) return status
      await recordAudit(step, {}, { accountId, action: 'webhook.disabled', target: endpointId })
      return 'disabled'
    }),
  )
}

/**
 * Seals the secrets of all endpoints again after a change of the session secret. `reseal` returns null for a secret that
 * needs no change.
 */
export async function resealSecrets(
  database: Database,
  reseal: (endpointId: string, sealed: string) => string | null,
): Promise<void> {
  const rows = await database.run(
    ({ sql }) => sql<{ id: string; secret: string; previous: string | null }[]>`
      select id, secret, previous_secret as previous from webhook_endpoints`,
  )
  for (const { id, secret, previous } of rows) {
    const [next, nextPrevious] = [reseal(id, secret), previous === null ? null : reseal(id, previous)]
    if (next === null && nextPrevious === null) continue
    await database.run(
      ({ sql }) => sql`
        update webhook_endpoints set secret = ${next ?? secret}, previous_secret = ${nextPrevious ?? previous}
        where id = ${id} and secret = ${secret}`,
    )
  }
}

type Audited = Pick<ShownWebhook, 'url' | 'format'>

/** Returns the part of a URL that the audit log names: a query may contain a token, and the path for Slack is one. */
function auditedUrl({ url, format }: Audited): string {
  const { origin, pathname } = new URL(url)
  return format === 'slack' ? origin : origin + pathname
}

/** Returns a Postgres array literal of event names, which contain no special characters. */
const textArray = (names: readonly string[]) => `{${names.join(',')}}`
