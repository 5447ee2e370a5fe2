import { type Static, Type } from '@sinclair/typebox'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import { webhookEventTypes, webhookFormats } from '../../core/webhooks/events.ts'
import { count, id, list, namedSchema, orNull, text, time } from '../../http/schemas.ts'

export const eventTypeSchema = oneOf(webhookEventTypes)

const fields = {
  id: id('whk'),
  url: text('https://example.com/webhooks'),
  events: Type.Array(eventTypeSchema),
  format: oneOf(webhookFormats),
  enabled: Type.Boolean(),
  disabled_by: orNull(oneOf(['user', 'failures'])),
  disabled_at: orNull(time),
  failing_since: orNull(time),
  created_at: time,
  project_id: { ...orNull(id('prj')), description: 'receives only events of this project; null = all of the account' },
}
export const webhookShape = namedSchema('Webhook', fields)
export const newWebhookShape = namedSchema('NewWebhook', {
  ...fields,
  secret: text('whsec_…', 'signing secret, shown only once'),
})
export const webhooksShape = list(webhookShape)
export type ShownWebhook = Static<typeof webhookShape>

const deliveryShape = namedSchema('WebhookDelivery', {
  id: { ...id('msg'), description: '`webhook-id` of every attempt' },
  type: text('key.created'),
  status: oneOf(['pending', 'delivered', 'failed']),
  attempts: count,
  created_at: time,
  last_attempt_at: orNull(time),
  next_attempt_at: orNull(time),
  response_status: orNull(Type.Integer({ examples: [500] })),
  error: orNull(text('timeout', 'why the last attempt failed; `queue_full` = never attempted')),
  duration_ms: orNull(count),
  body: text('{"type":"key.created",…}', 'body of the request, as text'),
})
export const deliveriesShape = strictObject({
  data: Type.Array(deliveryShape),
  next_cursor: orNull(text('msg_01a2…', 'position of the next page; null = this is the last page')),
})
export type ShownDelivery = Static<typeof deliveryShape>
export const testedShape = strictObject({ id: { ...id('msg'), description: 'ID of the delivery' } })
