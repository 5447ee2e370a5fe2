/**
 * Sends stored events to their endpoints. Every gateway runs it; a claim in the database selects one sender per
 * delivery. An event is marked after the receiver accepted it, so a killed process loses none; between the two steps it
 * is sent again, under the same ID.
 */
import type { AttemptResult } from '../../core/webhooks/endpoints.ts'
import type { HttpPost } from '../../web/http-post.ts'
import type { SecretSeal } from './secret-seal.ts'
import { signedHeaders } from './signature.ts'

type Delivery = {
  readonly id: string
  readonly endpointId: string
  readonly body: string
  readonly attempts: number
  readonly url: string
  readonly sealedSecret: string
  readonly sealedPreviousSecret: string | null
}

export type DeliveryWorkerDeps<D extends Delivery> = {
  readonly claim: (at: number, options: { readonly leaseMs: number; readonly limit: number }) => Promise<readonly D[]>
  readonly settle: (delivery: D, result: AttemptResult, at: number) => Promise<string | null>
  readonly post: HttpPost
  readonly seal: Pick<SecretSeal, 'open'>
  readonly clock: { now(): number; monotonic(): number }
  readonly log: { info(event: string, fields?: Record<string, string | number | null>): void }
  readonly version: string
}

/** Time for a receiver to respond. */
const timeoutMs = 10_000
/** Longer than an attempt with its two database writes. */
const leaseMs = 60_000
const maximumConcurrent = 16
const failureStepMs = 100
const maximumRounds = 100

/** Sends everything that is due. Stops early when `isClosed()` returns true. */
export async function deliverDue<D extends Delivery>(
  deps: DeliveryWorkerDeps<D>,
  isClosed: () => boolean,
): Promise<void> {
  for (let round = 0; round < maximumRounds && !isClosed(); round++) {
    const claimed = await deps.claim(deps.clock.now(), { leaseMs, limit: maximumConcurrent })
    if (claimed.length === 0) return
    await Promise.all(claimed.map(delivery => deliver(deps, delivery)))
  }
}

async function deliver<D extends Delivery>(deps: DeliveryWorkerDeps<D>, delivery: D): Promise<void> {
  const { clock, log, settle } = deps
  const startedAt = clock.monotonic()
  const { detail, ...outcome } = await attempt(deps, delivery)
  const elapsedMs = clock.monotonic() - startedAt
  // Without a response the exact time could tell a name of the internal network from an unknown one.
  const stepMs = outcome.status === null ? failureStepMs : 1
  const result = { ...outcome, durationMs: Math.ceil(elapsedMs / stepMs) * stepMs }
  const state = await settle(delivery, result, clock.now())
  if (state === 'failed' || state === 'disabled')
    log.info(state === 'failed' ? 'webhook_delivery_failed' : 'webhook_endpoint_disabled', {
      endpoint_id: delivery.endpointId,
      attempts: delivery.attempts,
      error: result.error,
      ...(detail === undefined ? {} : { detail }),
    })
}

async function attempt<D extends Delivery>(
  { post, seal, clock, version }: DeliveryWorkerDeps<D>,
  { id, endpointId, body, url, sealedSecret, sealedPreviousSecret }: D,
): Promise<Pick<AttemptResult, 'status' | 'error'> & { readonly detail?: string }> {
  const secret = seal.open(endpointId, sealedSecret)
  if (secret === null) return { status: null, error: 'secret_unreadable' }
  const previous = sealedPreviousSecret === null ? null : seal.open(endpointId, sealedPreviousSecret)
  const timestamp = Math.floor(clock.now() / 1000)
  const headers = {
    'content-type': 'application/json',
    'user-agent': `gateway-ai/${version}`,
    ...signedHeaders({ id, timestamp, body }, previous === null ? [secret] : [secret, previous]),
  }
  const answer = await post(url, { headers, body, timeoutMs })
  if ('failure' in answer) {
    const { failure: error, detail } = answer
    return { status: null, error, ...(detail === undefined ? {} : { detail }) }
  }
  return { status: answer.status, error: answer.status >= 200 && answer.status < 300 ? null : 'status' }
}
