/** The delivery log of webhook endpoints: test events, redeliveries, pages and their retention. */
import { maximumPending, testEventType, webhookBody } from '../../../core/webhooks/events.ts'
import type { Database } from '../../../database/database.ts'
import { changeAudited, newDeliveryId, recordAudit, retentionDeadlineMs } from '../../../database/repositories/audit.ts'
import { type Step, statementIn, withAccountRls } from '../../../database/statement.ts'
import type { ShownDelivery } from '../schemas.ts'

/** Why an endpoint takes no delivery that a user requests. */
export type QueueProblem = 'disabled' | 'queue_full'

/**
 * Stores a test event for one endpoint. Returns its delivery ID, or a problem; `disabled` also if there is no such
 * endpoint.
 */
export function enqueueTest(
  database: Database,
  accountId: string,
  id: string,
): Promise<{ readonly id: string } | QueueProblem> {
  const delivery = newDeliveryId()
  return withAccountRls(database, accountId).sql(async step => {
    const problem = await queueProblem(step, accountId, id)
    if (problem !== null) return problem
    await step`
      insert into webhook_deliveries (id, account_id, endpoint_id, type, body)
      values (${delivery}, ${accountId}, ${id}, ${testEventType}, ${webhookBody(testEventType, Date.now(), { test: true })})`
    await recordAudit(step, database, { accountId, action: 'webhook.tested', target: id })
    return { id: delivery }
  })
}

/**
 * Makes a settled delivery pending again, with its ID, its body and all attempts. Returns `done`, or the reason against
 * it.
 */
export function redeliver(
  database: Database,
  accountId: string,
  { endpointId, id }: { readonly endpointId: string; readonly id: string },
): Promise<'done' | 'not_found' | 'pending' | QueueProblem> {
  return changeAudited<'not_found' | 'pending' | QueueProblem>(database, accountId, async step => {
    // Locked before the delivery, like a deletion does, so that the two cannot deadlock.
    const problem = await queueProblem(step, accountId, endpointId)
    const [found] = await step<{ status: string }[]>`
      select status from webhook_deliveries
      where id = ${id} and endpoint_id = ${endpointId} and account_id = ${accountId} for update`
    if (found === undefined) return 'not_found'
    if (found.status === 'pending') return 'pending'
    if (problem !== null) return problem
    await step`
      update webhook_deliveries set status = 'pending', attempts = 0, due_at = clock_timestamp() where id = ${id}`
    return { action: 'webhook.redelivered', target: endpointId, details: { id } }
  })
}

/** Locks the endpoint, so that requests for deliveries count one after another. */
async function queueProblem(step: Step, accountId: string, id: string): Promise<QueueProblem | null> {
  const [endpoint] = (await statementIn(step)`
    select disabled_at is not null as "isDisabled", (
      select count(*)::int from webhook_deliveries where endpoint_id = webhook_endpoints.id and status = 'pending'
    ) as pending
    from webhook_endpoints where id = ${id} and account_id = ${accountId} for no key update`) as readonly {
    isDisabled: boolean
    pending: number
  }[]
  if (endpoint === undefined || endpoint.isDisabled) return 'disabled'
  return endpoint.pending < maximumPending ? null : 'queue_full'
}

/** Returns deliveries of an endpoint, newest first. `after` = ID of the last one of the previous page. */
export function listDeliveries(
  database: Database,
  accountId: string,
  endpointId: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<ShownDelivery[]> {
  return withAccountRls(database, accountId).sql(
    sql => sql<ShownDelivery[]>`
      select id, type, status, attempts, response_status, error, duration_ms, body, iso_time(created_at) as created_at,
        iso_time(attempted_at) as last_attempt_at, case when status = 'pending' then iso_time(due_at) end as next_attempt_at
      from webhook_deliveries
      where account_id = ${accountId} and endpoint_id = ${endpointId} and (${after}::text is null or id < ${after})
      order by id desc limit ${limit}`,
  )
}

const keptDays = 30
const keptPerEndpoint = 1_000

/** Deletes settled deliveries that are older than 30 days or beyond 1,000 per endpoint, at most `limit` of them. */
export async function pruneDeliveries(database: Database, limit: number): Promise<number> {
  const rows = await database.run(
    ({ sql }) => sql`
      delete from webhook_deliveries where id in (
        select id from (
          select id, status, created_at, row_number() over (partition by endpoint_id order by id desc) as place
          from webhook_deliveries) as placed
        where status <> 'pending' and (place > ${keptPerEndpoint}
          or created_at < clock_timestamp() - make_interval(days => ${keptDays}))
        limit ${limit})
      returning id`,
    retentionDeadlineMs,
  )
  return rows.length
}
