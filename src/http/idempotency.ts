/** `Idempotency-Key`: runs a request once, also if a client sends it repeatedly. */
import { createHmac } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { type CompletedUsage, type ErrorCode, GatewayError } from '../core/validation/errors.ts'
import { invalidField } from '../core/validation/validate.ts'
import type { Principal } from './authentication.ts'

export type IdempotencyClaim = {
  readonly accountId: string
  readonly name: string
  readonly requestDigest: string
  /** Identifies the claiming request, so that only it can complete or release the claim. */
  readonly holder: string
  /** Maximum run time. */
  readonly leaseMs: number
}

export type ClaimOutcome =
  /** This request may run. */
  | { readonly outcome: 'taken' }
  | { readonly outcome: 'running' }
  /** The key was used for another request. */
  | { readonly outcome: 'other_request' }
  | {
      readonly outcome: 'completed'
      /** The request that had the effect, if it is in the ledger. */
      readonly resultId: string | null
      readonly usage: CompletedUsage | null
    }

export type IdempotencyResult = { readonly resultId: string | null; readonly usage: CompletedUsage | null }

/** Store of idempotency keys. */
export type IdempotencyStore = {
  /**
   * Claims a key; one of several concurrent requests succeeds. Throws `service_unavailable` if Postgres does not
   * answer.
   */
  claim(claim: IdempotencyClaim): Promise<ClaimOutcome>
  /** Marks a claim as completed. Never throws: a failed write is repeated later. */
  finish(claim: IdempotencyClaim, result: IdempotencyResult): Promise<void>
  /** Releases a claim of a request without effect, so that the next one may run. Never throws. */
  release(claim: IdempotencyClaim): Promise<void>
}

/** A request that may run, once. */
export type IdempotentRun = {
  finish(result: IdempotencyResult): Promise<void>
  /** Releases the key if the request had no effect; does nothing after `finish`. */
  release(): Promise<void>
}

type IdempotentRequest = {
  readonly headers: Headers
  readonly accountId: string
  /** API key or secret of a user. Never stored: without it, a digest reveals nothing about the request. */
  readonly secret: string
  readonly path: string
  readonly body: string
  /** Digest of the request. */
  readonly holder: string
  readonly leaseMs: number
}

const header = 'idempotency-key'
const shape = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/

/** API description for routes that accept the header, with its errors. */
export const idempotencyHeaders = {
  'Idempotency-Key': Type.String({
    pattern: shape.source,
    description: 'runs a request once in 24 hours, also if it is sent repeatedly',
  }),
}
export const onceErrors: readonly ErrorCode[] = ['conflict', 'already_completed']

/**
 * Returns null without an `Idempotency-Key`. Otherwise returns the run if the key is new or its last request had no
 * effect. Throws 409 `conflict` or `already_completed` in all other cases.
 */
export async function claimIdempotencyKey(
  book: IdempotencyStore,
  request: IdempotentRequest,
): Promise<IdempotentRun | null> {
  const given = request.headers.get(header)
  if (given === null) return null
  if (!shape.test(given)) throw invalidField(header, 'must be 1 to 255 printable ASCII characters')
  const { accountId, secret, path, body, holder, leaseMs } = request
  const claim = {
    accountId,
    name: hmac(secret, `name\n${given}`),
    requestDigest: hmac(secret, `request\n${path}\n${body}`),
    holder,
    leaseMs,
  }
  orRefuse(await book.claim(claim))
  let isOver = false
  return {
    async finish(result) {
      isOver = true
      await book.finish(claim, result)
    },
    async release() {
      if (isOver) return
      isOver = true
      await book.release(claim)
    },
  }
}

/**
 * Secrets derived from the session secret for one purpose, so that all gateways of one database agree. During a rotation the
 * previous secret stays in use, because instances that know only that one must derive the same.
 */
export function derivedSecrets(
  gatewaySecret: string,
  purpose: 'idempotency' | 'prompt cache' | 'conversations',
): (of: string) => string {
  return of => hmac(gatewaySecret, `${purpose} of ${of}`)
}

function hmac(secret: string, text: string): string {
  return createHmac('sha256', secret).update(text).digest('hex')
}

function orRefuse(claimed: ClaimOutcome): void {
  switch (claimed.outcome) {
    case 'taken':
      return
    case 'running':
      throw new GatewayError(
        'conflict',
        'A request with this Idempotency-Key is in progress. Retry after the time in the retry-after header.',
        {
          retryAfterMs: 1000,
        },
      )
    case 'other_request':
      throw new GatewayError(
        'conflict',
        'This Idempotency-Key was used with a different request. Send the identical request or a new key.',
        { param: header, shouldRetry: false },
      )
    case 'completed': {
      const { resultId, usage } = claimed
      throw new GatewayError(
        'already_completed',
        'The request with this Idempotency-Key has completed. Responses are not stored; use a new key to run it again.',
        {
          shouldRetry: false,
          completed:
            usage === null ? { requestId: null, resultId, usage } : { requestId: resultId, resultId: null, usage },
        },
      )
    }
    default:
      claimed satisfies never
  }
}

export type OnceDeps = {
  readonly idempotency: IdempotencyStore
  readonly newRequestId: () => string
  /**
   * Returns a user's secret, which cannot be derived from stored or visible values: a user ID is neither secret nor a
   * key.
   */
  readonly getSecret: (userId: string) => string
}

/** Longer than any statement of a session's route may run. */
const sessionLeaseMs = 60_000

/**
 * Runs a request of a signed-in user, once for each of the user's `Idempotency-Key` values. An answer with an ID is the
 * resource that the request created.
 */
export async function runIdempotent<T extends object | null>(
  { idempotency, getSecret, newRequestId }: OnceDeps,
  { principal, request }: { readonly principal: Principal; readonly request: Request },
  body: string,
  work: () => Promise<T>,
): Promise<T> {
  const { headers, method, url } = request
  const once = await claimIdempotencyKey(idempotency, {
    headers,
    accountId: principal.accountId,
    secret: getSecret(principal.userId),
    path: `${method} ${new URL(url).pathname}`,
    body,
    holder: newRequestId(),
    leaseMs: sessionLeaseMs,
  })
  try {
    const answer = await work()
    const resultId = answer !== null && 'id' in answer && typeof answer.id === 'string' ? answer.id : null
    await once?.finish({ resultId, usage: null })
    return answer
  } catch (thrown) {
    // A rejected request has changed nothing. After any other failure the effect is unknown, and the key stays claimed
    // for 1 minute.
    if (thrown instanceof GatewayError && thrown.status < 500) await once?.release()
    throw thrown
  }
}
