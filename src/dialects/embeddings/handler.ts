/** Handles HTTP requests for embeddings with the same guarantees as chat: key, limits, body limits, idempotency, drain. */

import { createRequestAbort } from '../../core/chat/request-abort.ts'
import type { EmbeddingsRequest } from '../../core/embeddings/embeddings-request.ts'
import type { Caller } from '../../core/limits/plans.ts'
import { tagsOfHeaders } from '../../core/request/tags.ts'
import { usdText } from '../../core/usage/money.ts'
import { hasClientEffect, toCompletedUsage, type UsageRecord } from '../../core/usage/usage-record.ts'
import { parseJson } from '../../core/validation/validate.ts'
import { readApiKey } from '../../http/authentication.ts'
import { bodyLimits, checkContentType, receiveBody } from '../../http/body.ts'
import type { BodyHold } from '../../http/body-budget.ts'
import { type ChatRouteDeps, rejected } from '../../http/chat-handler.ts'
import { errorResponse, toBilledError, toGatewayError } from '../../http/error-response.ts'
import { writeCaller, writeOpening } from '../../http/headers.ts'
import { claimIdempotencyKey } from '../../http/idempotency.ts'
import { endInTime, readTimeout } from '../../http/request-timeout.ts'
import type { ActiveEmbeddings, Embeddings } from '../../request/embeddings/embed.ts'
import { embeddingsBody, toResponseBody } from './reply.ts'
import { readEmbeddingsRequest } from './request.ts'

export type EmbeddingsRouteDeps = Omit<ChatRouteDeps, 'answer' | 'pace' | 'deprecation'> & {
  readonly embed: (caller: Caller, request: EmbeddingsRequest, active: ActiveEmbeddings) => Promise<Embeddings>
}

/** Maximum JSON values of a body. One upstream call accepts 300,000 token IDs. */
const maximumValues = 524_288
/** Bytes of one number of a vector in memory. */
const numberBytes = 8
/**
 * Bytes that vectors count for at most. The largest have 50 MB, more than an account may hold, and still must be served: two such
 * responses at a time.
 */
const mostVectorBytes = 16 * 1_048_576
/** Time added to the idempotency lease for settlement and for a client that reads slowly. */
const marginMs = 60_000

/** Returns the response of one request. Never throws: a failure is a response with the API's error body. */
export function handleEmbeddings(deps: EmbeddingsRouteDeps, request: Request): Response | Promise<Response> {
  // The body of a queued request still arrives. A large body is not accepted before its bytes are reserved.
  const receivedAt = deps.clock.monotonic()
  const start = deps.startQueue.enter(() => {
    const declared = request.headers.get('content-length')
    return declared !== null && Number(declared) <= bodyLimits.other
  })
  if (start === true) return respond(deps, request, receivedAt)
  if (start === false) return rejected(deps)
  return start.then(mayStart => (mayStart ? respond(deps, request, receivedAt) : rejected(deps)))
}

/** Facts about a request that its error response needs. */
type Known = { caller: Caller | null; hold: BodyHold | null; body: unknown; isAdmitted: boolean; isAnswered: boolean }

async function respond(deps: EmbeddingsRouteDeps, request: Request, receivedAt: number): Promise<Response> {
  const requestId = deps.newRequestId()
  const known: Known = { caller: null, hold: null, body: undefined, isAdmitted: false, isAnswered: false }
  try {
    const { caller, text } = await receive(deps, request, known)
    known.body = parseJson(text, maximumValues)
    const asked = readEmbeddingsRequest(known.body)
    const admitted = () => {
      known.isAdmitted = true
    }
    const answered = () => {
      known.isAnswered = true
    }
    const { hold } = known
    const reserveNumbers = (numbers: number) => hold?.add(Math.min(numbers * numberBytes, mostVectorBytes), true)
    const timeoutMs = readTimeout(request.headers)
    const running = { caller, asked, text, requestId, reserveNumbers, timeoutMs, receivedAt, admitted, answered }
    const embeddings = await embedOnce(deps, request, running)
    // The vectors stay in memory until the client has read them.
    return toResponse(deps, { caller, asked, over: () => hold?.release() }, embeddings)
  } catch (thrown) {
    known.hold?.release()
    const failure = known.isAnswered ? toBilledError(thrown) : toGatewayError(thrown)
    const error = await deps.refused(failure, deps.connectionOf(request).address)
    // A client disconnect is not a failure, and nothing reads the response.
    if (!request.signal.aborted) deps.logFailure(requestId, error)
    const { caller } = known
    if (caller !== null && !known.isAdmitted) {
      const { accountId, keyId } = caller
      const latencyMs = deps.clock.monotonic() - receivedAt
      deps.recordRejection({
        requestId,
        accountId,
        keyId,
        dialect: 'embeddings',
        body: known.body,
        error,
        latencyMs,
      })
    }
    if (caller !== null && error.status !== 503 && deps.meter.standing(caller.accountId, caller.limits) === null)
      await deps.look(caller, requestId)
    const response = errorResponse(error, requestId)
    writeCaller(response.headers, deps, caller)
    return response
  }
}

/** Authenticates the request and reads its body. The body's bytes are reserved before the authentication ends. */
async function receive(deps: EmbeddingsRouteDeps, request: Request, known: Known) {
  const asking = deps.callerOf(request)
  if (asking instanceof Promise) asking.catch(() => {})
  else known.caller = asking
  const hold = deps.bodies.open(known.caller?.accountId ?? null)
  known.hold = hold
  const read = receiveBody(request, bodyLimits.embeddings, { hold, clock: deps.clock })
  const caller = await asking
  if (known.caller === null) hold.assign(caller.accountId)
  known.caller = caller
  checkContentType(request.headers)
  return { caller, text: await read() }
}

type Running = {
  readonly caller: Caller
  readonly asked: EmbeddingsRequest
  readonly text: string
  readonly requestId: string
  readonly reserveNumbers: (numbers: number) => void
  /** Null = the client sets none. */
  readonly timeoutMs: number | null
  /** Monotonic milliseconds. */
  readonly receivedAt: number
  /** Called when the request is admitted. */
  readonly admitted: () => void
  /** Called when all vectors arrived. */
  readonly answered: () => void
}

/** Embeds under the request's `Idempotency-Key`, if any. Aborts when the client disconnects or the process stops. */
async function embedOnce(deps: EmbeddingsRouteDeps, request: Request, running: Running): Promise<Embeddings> {
  const { caller, asked, text, requestId, reserveNumbers, timeoutMs, receivedAt, admitted, answered } = running
  const ending = createRequestAbort()
  request.signal.addEventListener('abort', () => ending.abort(), { once: true })
  if (request.signal.aborted) ending.abort()
  const once = request.headers.has('idempotency-key')
    ? await claimIdempotencyKey(deps.idempotency, {
        headers: request.headers,
        accountId: caller.accountId,
        secret: readApiKey(request.headers) ?? '',
        path: `${request.method} ${new URL(request.url).pathname}`,
        body: text,
        holder: requestId,
        leaseMs: deps.longestMs + marginMs,
      })
    : null
  const settled = async (record: UsageRecord) => {
    if (hasClientEffect(record)) await once?.finish({ resultId: requestId, usage: toCompletedUsage(record) })
  }
  const connection = deps.connectionOf(request)
  // From here on only the gateway's own deadlines apply.
  connection.liftIdleTimeout()
  const { clock } = deps
  const cancelTimeout = timeoutMs === null ? null : endInTime(ending, { clock, timeoutMs, receivedAt })
  deps.inFlight.add(ending)
  try {
    return await deps.embed(caller, asked, {
      id: requestId,
      signal: ending.signal,
      trace: deps.traceOf(request.headers),
      tags: tagsOfHeaders(request.headers),
      reserveNumbers,
      admitted,
      answered,
      settled,
    })
  } finally {
    cancelTimeout?.()
    deps.inFlight.delete(ending)
    connection.setIdleTimeout()
    // A request without an effect can run again.
    await once?.release()
  }
}

function toResponse(
  deps: EmbeddingsRouteDeps,
  { caller, asked, over }: { readonly caller: Caller; readonly asked: EmbeddingsRequest; readonly over: () => void },
  embeddings: Embeddings,
): Response {
  const { requestId, billedMicrocents, estimated, vectors, inputTokens } = embeddings
  const headers = new Headers({ 'content-type': 'application/json', 'cache-control': 'no-store' })
  headers.set('x-request-id', requestId)
  writeOpening(headers, { ...embeddings, enhanced: null })
  headers.set('x-gateway-cost-usd', usdText(billedMicrocents))
  if (estimated) headers.set('x-gateway-estimated', 'true')
  writeCaller(headers, deps, caller)
  return new Response(toResponseBody(embeddingsBody(asked, vectors, inputTokens), over), { headers })
}
