/**
 * Sends stored events to their endpoints. Every gateway runs it; a claim in the database selects one sender per
 * delivery. An event is marked after the receiver accepted it, so a killed process loses none; between the two steps it
 * is sent again, under the same ID.
 */

import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import packageJson from '../../../package.json'
import { type RepeatTimer, startRepeating } from '../../core/jobs/repeating.ts'
import type { Clock, Log } from '../../core/ports.ts'
import type { AttemptResult } from '../../core/webhooks/events.ts'
import type { Database } from '../../database/database.ts'
import type { HttpPost } from '../../web/http-post.ts'
import { claimDeliveries, settleDelivery } from './stores/webhooks.ts'

type Delivery = {
  readonly id: string
  readonly endpointId: string
  readonly body: string
  readonly attempts: number
  readonly url: string
  readonly sealedSecret: string
  readonly sealedPreviousSecret: string | null
}

type DeliveryWorkerDeps<D extends Delivery> = {
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

/**
 * Encrypts signing secrets for the database, so that a copy of it signs nothing. The key is derived from the session
 * secret; secrets that were sealed under the previous session secret remain readable until it is removed.
 */

export type SecretSeal = {
  /** Returns the sealed secret of one endpoint. */
  seal(endpointId: string, secret: string): string
  /** Returns the secret; null if it was sealed for another endpoint, or under an unknown session secret. */
  open(endpointId: string, sealed: string): string | null
  /** Returns the secret sealed under the current session secret; null if it is already, or cannot be read. */
  reseal(endpointId: string, sealed: string): string | null
}

const nonceBytes = 12
const tagBytes = 16

export function createSecretSeal(secret: string, previousSecret: string | null): SecretSeal {
  const key = keyOf(secret)
  const previousKey = previousSecret === null ? null : keyOf(previousSecret)
  const openPrevious = (endpointId: string, bytes: Buffer) =>
    previousKey === null ? null : opened(previousKey, endpointId, bytes)
  return {
    seal: (endpointId, text) => sealed(key, endpointId, text),
    open(endpointId, text) {
      const bytes = Buffer.from(text, 'base64url')
      return opened(key, endpointId, bytes) ?? openPrevious(endpointId, bytes)
    },
    reseal(endpointId, text) {
      const bytes = Buffer.from(text, 'base64url')
      if (opened(key, endpointId, bytes) !== null) return null
      const secretText = openPrevious(endpointId, bytes)
      return secretText === null ? null : sealed(key, endpointId, secretText)
    },
  }
}

function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'gateway-ai webhook secrets', 32))
}

function sealed(key: Buffer, endpointId: string, text: string): string {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(endpointId))
  const parts = [cipher.update(text, 'utf8'), cipher.final()]
  return Buffer.concat([nonce, ...parts, cipher.getAuthTag()]).toString('base64url')
}

function opened(key: Buffer, endpointId: string, bytes: Buffer): string | null {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
    decipher.setAAD(Buffer.from(endpointId)).setAuthTag(bytes.subarray(-tagBytes))
    return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    return null
  }
}

type Parts = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly post: HttpPost
  readonly seal: SecretSeal
  readonly timer: RepeatTimer
}

const everyMs = 5_000

/** Starts the worker that delivers events. */
export function startWebhooks({ database, clock, log, post, seal, timer }: Parts) {
  const deps = {
    claim: (at: number, options: Parameters<typeof claimDeliveries>[2]) => claimDeliveries(database, at, options),
    settle: (...[delivery, result, at]: Parameters<typeof settleDelivery> extends [unknown, ...infer R] ? R : never) =>
      settleDelivery(database, delivery, result, at),
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
