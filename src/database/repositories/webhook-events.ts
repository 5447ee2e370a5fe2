/** Events of an account on their way to its endpoints: stored in the transaction that causes them. */
import { type WebhookEvent, webhookBody } from '../../core/webhooks/events.ts'
import { type Step, statementIn } from '../statement.ts'

/**
 * Stores one delivery per enabled endpoint of the account that subscribes to the event; none if there is no such
 * endpoint. `accountId` null = the event concerns all accounts.
 */
export async function enqueueEvent(step: Step, accountId: string | null, event: WebhookEvent): Promise<void> {
  const { type, data, key = null } = event
  await statementIn(step)`
    insert into webhook_deliveries (id, account_id, endpoint_id, type, event_key, body)
    select ${`${newDeliveryId()}_`} || row_number() over (order by id), account_id, id, ${type}, ${key},
      ${webhookBody(type, Date.now(), data)}
    from webhook_endpoints
    where (${accountId}::text is null or account_id = ${accountId}) and disabled_at is null and ${type} = any(events)
    on conflict on constraint webhook_deliveries_event do nothing`
}

/** Returns the ID of a delivery, which ascends with time. */
export const newDeliveryId = () => `msg_${Bun.randomUUIDv7().replaceAll('-', '')}`
