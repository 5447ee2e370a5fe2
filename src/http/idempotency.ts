/** `Idempotency-Key`: a request that is sent twice under one name is run once. */
import { createHmac } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { type CompletedUsage, type ErrorCode, GatewayError } from '../core/validation/errors.ts'
import { invalidField } from '../core/validation/validate.ts'
import type { Principal } from './authentication.ts'
import { bodyLimits, readBody } from './body.ts'

/** What a gateway remembers of such requests. `claim` throws `service_unavailable` where it cannot know. */
export type IdempotencyStore = {
  claim(claim: Claim): Promise<Claimed>
  finish(claim: Claim, result: Result): Promise<void>
  release(claim: Claim): Promise<void>
}

type Claim = {
  readonly accountId: string
  readonly name: string
  readonly requestDigest: string
  readonly holder: string
  readonly leaseMs: number
}
type Claimed =
  | { readonly outcome: 'taken' | 'running' | 'other_request' }
  | { readonly outcome: 'completed'; readonly resultId: string | null; readonly usage: CompletedUsage | null }
type Result = { readonly resultId: string | null; readonly usage: CompletedUsage | null }

/** A request that may run, once. */
export type IdempotentRun = {
  finish(result: Result): Promise<void>
  /** Nothing came of it; without effect once it is finished. */
  release(): Promise<void>
}

type IdempotentRequest = {
  readonly headers: Headers
  readonly accountId: string
  /** A key's own text, or a user's secret. It is stored nowhere: without it nobody can tell from a digest what was asked. */
  readonly secret: string
  readonly path: string
  readonly body: string
  /** Of the request itself. */
  readonly holder: string
  readonly leaseMs: number
}

const header = 'idempotency-key'
const shape = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/

/** What a route that takes the header says of it, and of what it then refuses. */
export const idempotencyHeaders = {
  'Idempotency-Key': Type.String({
    pattern: shape.source,
    description: 'of a request that is to be done once in 24 hours, however often it is sent',
  }),
}
export const onceErrors: readonly ErrorCode[] = ['conflict', 'already_completed']

/**
 * Null where the caller gave no `Idempotency-Key`. Else the request is the first of its name, or the last one came to
 * nothing; otherwise throws 409 `conflict` or `already_completed`.
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
 * Secrets of users, derived from the gateway's own, so that all gateways of one database agree. While the gateway's secret is
 * rotated the previous one goes on counting: gateways that know only it must find what the others remember.
 */
export function userSecrets(gatewaySecret: string): (userId: string) => string {
  return userId => hmac(gatewaySecret, `idempotency of ${userId}`)
}

function hmac(secret: string, text: string): string {
  return createHmac('sha256', secret).update(text).digest('hex')
}

function orRefuse(claimed: Claimed): void {
  switch (claimed.outcome) {
    case 'taken':
      return
    case 'running':
      throw new GatewayError(
        'conflict',
        'A request under this Idempotency-Key is still running. Wait for its answer.',
        {
          retryAfterMs: 1000,
        },
      )
    case 'other_request':
      throw new GatewayError(
        'conflict',
        'This Idempotency-Key was used for another request. Send the same body, or choose a new key.',
        { param: header, shouldRetry: false },
      )
    case 'completed': {
      const { resultId, usage } = claimed
      throw new GatewayError(
        'already_completed',
        'The request under this Idempotency-Key has been carried out. Answers are not kept; to ask once more, choose a new key.',
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

/** What is done, and the id of what was made by it. */
export type IdempotentResult = { readonly answer: Response; readonly resultId: string | null }

export type OnceDeps = {
  readonly idempotency: IdempotencyStore
  readonly newRequestId: () => string
  /** A user's secret, which nobody can derive from what is stored or shown: a user's id is neither secret nor a key. */
  readonly secretOf: (userId: string) => string
}

/** Longer than any statement of a session's route may take. */
const sessionLeaseMs = 60_000

/** Carries out what somebody signed in asks for, once for each `Idempotency-Key` of theirs. */
export async function runIdempotent<T extends SignedIn>(
  deps: OnceDeps,
  call: T,
  work: (call: T) => Promise<IdempotentResult>,
) {
  const { principal, request } = call
  if (!request.headers.has(header)) return (await work(call)).answer
  const { headers, method, url } = request
  const body = await readBody(request, bodyLimits.other)
  const once = await claimIdempotencyKey(deps.idempotency, {
    headers,
    accountId: principal.accountId,
    secret: deps.secretOf(principal.userId),
    path: `${method} ${new URL(url).pathname}`,
    body,
    holder: deps.newRequestId(),
    leaseMs: sessionLeaseMs,
  })
  try {
    const { answer, resultId } = await work({ ...call, request: new Request(url, { method, headers, body }) })
    await once?.finish({ resultId, usage: null })
    return answer
  } catch (thrown) {
    // What was refused has changed nothing. Of anything else nobody knows: the name stays taken for a minute.
    if (thrown instanceof GatewayError && thrown.status < 500) await once?.release()
    throw thrown
  }
}

type SignedIn = { readonly principal: Principal; readonly request: Request }
