/** Events that webhooks deliver. Their bodies contain no secret and no prompt content. */

export const webhookEventTypes = [
  'budget.reached',
  'key.created',
  'key.revoked',
  'model.deprecated',
  'model.unhealthy',
  'invoice.issued',
  'alert.fired',
  'alert.resolved',
] as const
export type WebhookEventType = (typeof webhookEventTypes)[number]

/** Type of the event that a test of an endpoint sends. It is not in the list: no endpoint subscribes to it. */
export const testEventType = 'webhook.test'

/** Project that an event concerns. */
export type EventProject = { readonly id: string; readonly name: string }

export type WebhookEvent = {
  readonly type: WebhookEventType
  readonly data: Readonly<Record<string, string | number | boolean | null>>
  /** Project of its key or alert; absent or null = none. */
  readonly project?: EventProject | null
  /** Several gateways may report the event: it is delivered once per key; absent = reported once. */
  readonly key?: string
}

/** Body of an event's request, in the form of Standard Webhooks. `at` in epoch milliseconds. */
export function webhookBody(type: string, at: number, data: WebhookEvent['data']): string {
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
}
