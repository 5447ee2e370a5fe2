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
type WebhookEventType = (typeof webhookEventTypes)[number]

/** `standard`: Standard Webhooks; `slack`: one sentence as `text`, as Slack, Mattermost and others receive it. */
export const webhookFormats = ['standard', 'slack'] as const
export type WebhookFormat = (typeof webhookFormats)[number]

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

/** Returns the body of a stored event's request for Slack. An event without a sentence is its type with its values. */
export function slackBody(body: string): string {
  const { type, data }: { type: string; data: WebhookEvent['data'] } = JSON.parse(body)
  const values = Object.entries(data).map(([name, value]) => `${name}: ${value}`)
  const sentence = typeof data.text === 'string' && data.text !== '' ? data.text : [type, ...values].join(', ')
  // The three characters that Slack reads as markup.
  return JSON.stringify({ text: sentence.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;') })
}

/** Rules of webhook endpoints and of the attempts to deliver an event. */

/** Maximum endpoints per account. */
export const maximumEndpoints = 10
/** Maximum pending deliveries per endpoint: an event beyond it is stored as failed with `queueFull`. */
export const maximumPending = 1_000
/** Maximum deliveries with `queueFull` per endpoint: the oldest of them make room in the log. */
export const maximumRefused = 100
/** Error of a delivery that was never attempted, because too many others were pending. */
export const queueFull = 'queue_full'

const [second, minute, hour] = [1_000, 60_000, 3_600_000]

/** Milliseconds after each failed attempt, one day in total. There is one attempt more than entries. */
export const retryWaitsMs: readonly number[] = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  hour,
  2 * hour,
  4 * hour,
  8 * hour,
  8 * hour,
]

/** An endpoint without a success for this long is disabled when a delivery has used up its attempts. */
export const disabledAfterMs = 20 * hour

/** `unreachable` is also the error of a URL that the gateway does not call, such as a name of the internal network. */
type DeliveryError = 'unreachable' | 'timeout' | 'redirected' | 'status' | 'secret_unreadable'

/** Result of one attempt. */
export type AttemptResult = {
  /** HTTP status; null = no response. */
  readonly status: number | null
  /** Null = delivered. */
  readonly error: DeliveryError | null
  readonly durationMs: number
}

/** Returns the wait before the next attempt in milliseconds; null = there is none. */
export function nextAttemptMs(attempts: number, { status }: AttemptResult): number | null {
  // 410 Gone: the receiver asks for no further event.
  return status === 410 ? null : (retryWaitsMs[attempts - 1] ?? null)
}

/** Returns why a URL must not be an endpoint; null = it may. `privateAllowed` for development and internal receivers. */
export function endpointUrlProblem(
  text: string,
  isPublicUrl: (text: string) => boolean,
  privateAllowed: boolean,
): string | null {
  if (!URL.canParse(text)) return 'must be a URL, such as `https://example.com/webhooks`'
  const { protocol, username, password } = new URL(text)
  if (username !== '' || password !== '') return 'must not contain a user name or password'
  if (privateAllowed) return protocol === 'https:' || protocol === 'http:' ? null : 'must begin with `https://`'
  if (protocol !== 'https:') return 'must begin with `https://`'
  return isPublicUrl(text) ? null : 'must be a host of the public internet on port 443'
}
