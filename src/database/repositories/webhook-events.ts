/** Events of an account on their way to its endpoints: stored in the transaction that causes them. */
import { maximumPending, maximumRefused, queueFull } from '../../core/webhooks/endpoints.ts'
import { type WebhookEvent, webhookBody } from '../../core/webhooks/events.ts'
import { type Step, statementIn } from '../statement.ts'

/**
 * Stores one delivery per enabled endpoint of the account that subscribes to the event; none if there is no such
 * endpoint. An endpoint of a project receives only events of that project. `accountId` null = the event concerns all
 * accounts. If an endpoint has the maximum of pending deliveries, the new one is stored as failed: older events keep their
 * promise, the log shows the loss, and a user can send it. Only the newest of these stay, so that they neither fill the
 * table nor hide attempted deliveries. Transactions that run concurrently may exceed each maximum by one.
 */
export async function enqueueEvent(step: Step, accountId: string | null, event: WebhookEvent): Promise<void> {
  const { type, key = null, project = null } = event
  const data = project === null ? event.data : { ...event.data, project_id: project.id, project_name: project.name }
  await statementIn(step)`
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
    on conflict on constraint webhook_deliveries_event do nothing`
}

/** Returns the ID of a delivery, which ascends with time. */
export const newDeliveryId = () => `msg_${Bun.randomUUIDv7().replaceAll('-', '')}`
