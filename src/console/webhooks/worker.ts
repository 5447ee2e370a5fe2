/**
 * Sends stored events to their endpoints. Every gateway runs it; a claim in the database selects one sender per
 * delivery. An event is marked after the receiver accepted it, so a killed process loses none; between the two steps it
 * is sent again, under the same ID.
 */

import { createHmac, randomBytes } from 'node:crypto'
import packageJson from '../../../package.json'
import { startRepeating } from '../../core/jobs/repeating.ts'
import type { Clock, Log } from '../../core/ports.ts'
import { type AttemptResult, slackBody } from '../../core/webhooks/events.ts'
import type { TextSeal } from '../../http/text-seal.ts'
import type { HttpPost } from '../../web/http-post.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type ClaimedDelivery, claimDeliveries, settleDelivery } from './stores/webhooks.ts'

type DeliveryWorkerDeps = {
  readonly claim: (
    at: number,
    options: { readonly leaseMs: number; readonly limit: number },
  ) => Promise<readonly ClaimedDelivery[]>
  readonly settle: (delivery: ClaimedDelivery, result: AttemptResult, at: number) => Promise<string | null>
  readonly post: HttpPost
  readonly seal: Pick<TextSeal, 'open'>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly log: Pick<Log, 'info'>
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
export async function deliverDue(deps: DeliveryWorkerDeps, isClosed: () => boolean): Promise<void> {
  for (let round = 0; round < maximumRounds && !isClosed(); round++) {
    const claimed = await deps.claim(deps.clock.now(), { leaseMs, limit: maximumConcurrent })
    if (claimed.length === 0) return
    await Promise.all(claimed.map(delivery => deliver(deps, delivery)))
  }
}

async function deliver(deps: DeliveryWorkerDeps, delivery: ClaimedDelivery): Promise<void> {
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

async function attempt(
  { post, seal, clock, version }: DeliveryWorkerDeps,
  { id, endpointId, body: stored, format, url, sealedSecret, sealedPreviousSecret }: ClaimedDelivery,
): Promise<Pick<AttemptResult, 'status' | 'error'> & { readonly detail?: string }> {
  const secret = seal.open(endpointId, sealedSecret)
  if (secret === null) return { status: null, error: 'secret_unreadable' }
  const previous = sealedPreviousSecret === null ? null : seal.open(endpointId, sealedPreviousSecret)
  const timestamp = Math.floor(clock.now() / 1000)
  const body = format === 'slack' ? slackBody(stored) : stored
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

/** Signing secrets and signatures in the form of Standard Webhooks (https://www.standardwebhooks.com). */

const prefix = 'whsec_'
const secretBytes = 32

/** Returns a new signing secret: `whsec_` and 256 random bits in Base64. */
export function newSigningSecret(): string {
  return prefix + randomBytes(secretBytes).toString('base64')
}

type Message = {
  readonly id: string
  /** Seconds since the epoch. */
  readonly timestamp: number
  readonly body: string
}

/** Returns the headers of a message, with one signature per secret: after a rotation both are valid for a while. */
export function signedHeaders({ id, timestamp, body }: Message, secrets: readonly string[]): Record<string, string> {
  const signatures = secrets.map(secret => {
    const key = Buffer.from(secret.slice(prefix.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  })
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signatures.join(' ') }
}

type Parts = Pick<ConsoleDeps, 'database' | 'log' | 'timer'> & {
  readonly clock: Clock
  readonly post: HttpPost
  readonly seal: TextSeal
}

const everyMs = 5_000

/** Starts the worker that delivers events. */
export function startWebhooks({ database, clock, log, post, seal, timer }: Parts) {
  const deps: DeliveryWorkerDeps = {
    claim: (at, options) => claimDeliveries(database, at, options),
    settle: (delivery, result, at) => settleDelivery(database, delivery, result, at),
    post,
    seal,
    clock,
    log,
    version: packageJson.version,
  }
  const worker = startRepeating(
    everyMs,
    isClosed => deliverDue(deps, isClosed),
    failures => {
      // Once per minute: other components report an unreachable database too.
      if (failures % 12 === 1) log.warn('webhook_deliveries_failed', { failures })
    },
    timer,
  )
  return {
    seal,
    newSecret: newSigningSecret,
    /** Sends what is due now; a failure is repeated by the next run. */
    wake: () => void worker.run().catch(() => {}),
    worker,
  }
}
