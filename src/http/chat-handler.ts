/**
 * Handles one request, a chat or embeddings, for every dialect: authenticates, parses, and sends the response in the dialect's format, as
 * one JSON body or as a stream.
 */

import type { ChatRequest, StreamMode } from '../core/chat/chat.ts'
import type {
  ResponseOutput,
  ResponsePart,
  ResponseStart,
  ResponseSummary,
  TextChannel,
} from '../core/chat/chat-events.ts'
import { createRequestAbort, type RequestAbort, type RequestAbortSignal } from '../core/chat/request-abort.ts'
import type { BodyWriter } from '../core/chat/response-collector.ts'
import type { Ticker } from '../core/chat/stream-pacing.ts'
import type { Caller, QuotaStatus } from '../core/limits/plans.ts'
import type { Clock } from '../core/ports.ts'
import type { TraceParent } from '../core/text/traceparent.ts'
import { toCompletedUsage } from '../core/usage/money.ts'
import type { RejectedFacts } from '../core/usage/rejection.ts'
import { hasClientEffect, type UsageRecord } from '../core/usage/usage-record.ts'
import { errorBody, GatewayError, withParam } from '../core/validation/errors.ts'
import { parseJson } from '../core/validation/validate.ts'
import { readApiKey } from './authentication.ts'
import { bodyLimits, checkContentType, keptTimeoutSeconds, receiveBody } from './body.ts'
import type { BodyBudget, BodyHold } from './body-budget.ts'
import { errorResponse, toBilledError, toGatewayError } from './error-response.ts'
import {
  type HeaderPairs,
  type QuotaHeaderDeps,
  writeCaller,
  writeOpening,
  writeOutputCap,
  writePairs,
  writeReceipt,
} from './headers.ts'
import { claimIdempotencyKey, type IdempotencyStore, type IdempotentRun } from './idempotency.ts'
import { endInTime, readTimeout } from './request-timeout.ts'
import { StreamDelivery, type StreamFormat, streamHeaders } from './sse-response.ts'
import type { StartQueue } from './start-queue.ts'

/** A parsed request, and the dialect's format of its response. */
type ParsedChatRequest = {
  readonly request: ChatRequest
  /** Fields that the client sent under another name; errors use the client's name. */
  readonly spelling: Readonly<Record<string, string>>
  /** Absent = the dialect has no streams. */
  readonly stream?: (requestId: string) => StreamFormat
  readonly whole: (requestId: string) => BodyWriter
  /**
   * Bytes of the response in memory, which count as a part of the request's body until the body is `over`; absent = few, and
   * `over` has no effect.
   */
  readonly heldBytes?: number
}

/** Input of a dialect's parser besides the parsed body. */
export type RequestSource = {
  readonly headers: Headers
  /** Raw text of the body. */
  readonly text: string
  readonly accountId: string
}

/** One dialect: how to parse its requests and write its errors. */
export type ChatEndpoint = {
  readonly dialect: ChatRequest['dialect']
  /** Maximum bytes and JSON values of a body; absent = those of a chat. */
  readonly limits?: { readonly bytes: number; readonly values: number }
  /** Parses a body and, for API forms that name the model there, the address. Throws `GatewayError` with the invalid field. */
  readonly parse: (body: unknown, source: RequestSource, url: string) => ParsedChatRequest
  /** Writes an error before the status is sent; absent = the API's own error body. */
  readonly refusal?: Refusal
  /** Adds the dialect's headers for the request ID and the account's limits. */
  readonly addHeaders?: (headers: Headers, requestId: string, quota: QuotaStatus | null) => void
}

/** Writes an error in one dialect. */
export type Refusal = (error: GatewayError, requestId: string) => Response

type ChatHandlerDeps = Pick<QuotaHeaderDeps, 'meter' | 'look' | 'budget'> & {
  /** Writes the response; fulfilled when it has ended and its usage record is durable. */
  readonly answer: (caller: Caller, chatRequest: ChatRequest, request: ActiveRequest) => Promise<void>
  /** Trace context of a request. */
  readonly findTrace: (headers: Headers) => TraceParent | null
  /** Paces all streams. */
  readonly ticker: Ticker
  /** Throws 401, or 429 and 503 if the key cannot be looked up now. */
  readonly getCaller: (request: Request) => Caller | Promise<Caller>
  readonly idempotency: IdempotencyStore
  /** Maximum duration of a request. */
  readonly longestMs: number
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  /** Returns headers that announce the deprecation of the serving model. */
  readonly deprecation: (model: string) => HeaderPairs | null
  readonly inFlight: InFlight
  readonly startQueue: StartQueue
  /** Called for each request that is rejected because the process is overloaded. */
  readonly rejected: (error: GatewayError) => void
  readonly bodies: BodyBudget
  readonly logFailure: (requestId: string, error: GatewayError) => void
  /** Records a request that was rejected before admission. */
  readonly recordRejection: (facts: RejectedFacts) => void
  /**
   * Returns the error that the client receives in place of `error`: an IP address with many failures receives a rate
   * limit error.
   */
  readonly refused: (error: GatewayError, address: () => string) => Promise<GatewayError>
}

/** A request in progress. */
type ActiveRequest = {
  readonly id: string
  readonly signal: RequestAbortSignal
  /** Receives the response. */
  readonly output: ResponseOutput
  readonly headers: Headers
  readonly trace: TraceParent | null
  /** Called when the request is admitted: from then on it has a usage record. */
  readonly admitted?: () => void
  /** Awaited when the usage record is durable, before the client receives the end. */
  readonly settled?: (record: UsageRecord) => Promise<void>
}

/** Requests in progress, so that a draining process can abort those that run too long. */
type InFlight = { add(ending: RequestAbort): void; delete(ending: RequestAbort): void }

/** Dependencies of a chat route besides the request itself. */
export type ChatRouteDeps = ChatHandlerDeps & {
  readonly newRequestId: () => string
  /** Sets the server's idle timeout of the request's connection; 0 = none. */
  readonly setIdleTimeout: (request: Request, seconds: number) => void
  /** IP address of the client; IPv6 by network. */
  readonly getAddress: (request: Request) => string
}

/**
 * Answers one chat request when the process has capacity. Never throws: every failure before the status becomes an API
 * error. An immediate rejection is not a promise: under overload most responses are rejections.
 */
export function handleChat(
  deps: ChatRouteDeps,
  endpoint: ChatEndpoint,
  request: Request,
): Response | Promise<Response> {
  const receivedAt = deps.clock.monotonic()
  const start = deps.startQueue.enter(request.headers, receivedAt)
  if (start === true) return new Exchange(deps, endpoint, request, receivedAt).respond()
  if (start === false) return rejected(deps, endpoint)
  return start.then(mayStart =>
    mayStart ? new Exchange(deps, endpoint, request, receivedAt).respond() : rejected(deps, endpoint),
  )
}

/**
 * Counts and builds a rejection. The text is concatenated here, because under overload most responses are rejections.
 */
function rejected({ rejected: count, newRequestId }: ChatRouteDeps, { refusal }: ChatEndpoint): Response {
  count(overloaded)
  const requestId = newRequestId()
  if (refusal !== undefined) return refusal(overloaded, requestId)
  return new Response(overloadedBody.before + requestId + overloadedBody.after, {
    status: overloaded.status,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-request-id': requestId,
      'retry-after': '1',
      'retry-after-ms': '1000',
    },
  })
}

/** A request that was authenticated, received and parsed. `once`: the claim of its `Idempotency-Key`; null = it has none. */
type AcceptedRequest = {
  readonly caller: Caller
  readonly spoken: ParsedChatRequest
  readonly once: IdempotentRun | null
}

/** One request from its authentication to its response: what the steps share is in one object. */
class Exchange {
  readonly requestId: string
  readonly ending = createRequestAbort()
  caller: Caller | null = null
  spoken: ParsedChatRequest | null = null
  body: unknown
  /** Held until the response has ended: parts of the body may be in use until then. */
  hold: BodyHold | null = null
  isAdmitted = false
  cancelTimeout: (() => void) | null = null

  constructor(
    readonly deps: ChatRouteDeps,
    readonly endpoint: ChatEndpoint,
    readonly request: Request,
    /** Monotonic milliseconds. */
    readonly receivedAt: number,
  ) {
    this.requestId = deps.newRequestId()
  }

  async respond(): Promise<Response> {
    const { deps, endpoint, request } = this
    try {
      const asking = deps.getCaller(request)
      // A body without capacity is rejected before authentication, unless memory has the key.
      if (asking instanceof Promise) asking.catch(() => {})
      else this.caller = asking
      const hold = deps.bodies.open(this.caller?.accountId ?? null)
      this.hold = hold
      const receive = receiveBody(request, endpoint.limits?.bytes ?? bodyLimits.chat, { hold, clock: deps.clock })
      const caller = this.caller ?? (await asking)
      if (this.caller === null) hold.assign(caller.accountId)
      this.caller = caller
      checkContentType(request.headers)
      const text = await receive()
      this.body = parseJson(text, endpoint.limits?.values)
      const source = { headers: request.headers, text, accountId: caller.accountId }
      const spoken = endpoint.parse(this.body, source, request.url)
      this.spoken = spoken
      if (spoken.heldBytes !== undefined) hold.add(spoken.heldBytes, true)
      const timeoutMs = readTimeout(request.headers)
      this.hearDisconnect()
      const once = request.headers.has('idempotency-key') ? await claimed(this, caller, text) : null
      // Unauthenticated and slow clients have the server's short idle timeout; from here on the gateway's deadlines apply.
      deps.setIdleTimeout(request, 0)
      if (timeoutMs !== null) this.cancelTimeout = endInTime(this, timeoutMs)
      deps.inFlight.add(this.ending)
      const accepted = { caller, spoken, once }
      const { stream: mode } = spoken.request
      const streamFormat = mode === null ? undefined : spoken.stream?.(this.requestId)
      const isWhole = mode === null || streamFormat === undefined
      return this.withOwnHeaders(await (isWhole ? this.whole(accepted) : this.streamed(accepted, streamFormat, mode)))
    } catch (thrown) {
      return this.refuse(thrown)
    }
  }

  /** Aborts on a client disconnect; a draining process aborts too. */
  private hearDisconnect(): void {
    const { signal } = this.request
    signal.addEventListener('abort', () => this.ending.abort())
    if (signal.aborted) this.ending.abort()
  }

  /** Runs the request, which writes its response to `output`. */
  private async answer({ caller, spoken, once }: AcceptedRequest, output: ResponseOutput): Promise<void> {
    const { request, heldBytes } = spoken
    const { deps, requestId, ending } = this
    const { headers } = this.request
    try {
      const running: ActiveRequest = {
        id: requestId,
        signal: ending.signal,
        output,
        headers,
        trace: deps.findTrace(headers),
        admitted: () => {
          this.isAdmitted = true
        },
      }
      if (once === null) await deps.answer(caller, request, running)
      else await answerOnce(deps, { caller, request, running }, once)
    } finally {
      this.cancelTimeout?.()
      deps.inFlight.delete(ending)
      if (heldBytes === undefined) this.hold?.release()
      // Otherwise the idle timeout would stay disabled for the life of the connection.
      deps.setIdleTimeout(this.request, keptTimeoutSeconds)
    }
  }

  /** Returns the response after the whole output. */
  private async whole(accepted: AcceptedRequest): Promise<Response> {
    const { caller, spoken } = accepted
    const writer = spoken.whole(this.requestId)
    const output = new WholeOutput(writer)
    try {
      await this.answer(accepted, output)
      const { opening, receipt } = output
      if (opening === null || receipt === null)
        throw new GatewayError('upstream_failed', 'The response was interrupted. Send the request again.')
      const headers = getHeaders(this.deps, jsonHeaders, { requestId: opening.requestId, opening, caller })
      writeReceipt(headers, receipt)
      if (opening.vectors !== undefined && receipt.estimated) headers.set('x-gateway-estimated', 'true')
      const body = writer.body(opening, receipt, () => this.hold?.release())
      const isText = typeof body === 'string' || body instanceof ReadableStream
      return new Response(isText ? body : JSON.stringify(body), { headers })
    } catch (thrown) {
      throw output.opening === null ? thrown : toBilledError(thrown)
    }
  }

  /** Returns the response as soon as the stream begins. */
  private streamed(accepted: AcceptedRequest, streamFormat: StreamFormat, mode: StreamMode): Promise<Response> {
    const { deps, requestId, ending } = this
    const { caller } = accepted
    const delivery = new StreamDelivery({
      streamFormat,
      mode,
      abort: () => ending.abort(),
      clock: deps.clock,
      ticker: deps.ticker,
      headers: opening => {
        const headers = getHeaders(deps, streamHeaders, { requestId, opening, caller })
        if (streamFormat.contentType !== undefined) headers.set('content-type', streamFormat.contentType)
        // The gateway does not know yet whether the output will end at the cap.
        if (opening?.outputCap !== undefined) writeOutputCap(headers, opening.outputCap)
        return headers
      },
      toError: thrown => {
        const error = toGatewayError(thrown)
        deps.logFailure(requestId, error)
        this.noteFailure(error)
        return error
      },
    })
    this.answer(accepted, delivery).then(
      () => delivery.end(),
      (thrown: unknown) => delivery.end({ thrown }),
    )
    return delivery.response()
  }

  /** Returns the response for a failure before the status. */
  private async refuse(thrown: unknown): Promise<Response> {
    const { deps, endpoint, request, requestId, caller, spoken } = this
    try {
      const refused = await deps.refused(toGatewayError(thrown), () => deps.getAddress(request))
      const error = spelt(refused, spoken?.spelling ?? {})
      // A client disconnect is not a failure, and the response has no reader.
      if (!request.signal.aborted) deps.logFailure(requestId, error)
      this.noteFailure(error)
      if (caller !== null && isUnseen(deps, caller, error)) await deps.look(caller, requestId)
      const refusal = (endpoint.refusal ?? errorResponse)(error, requestId)
      writeCaller(refusal.headers, deps, caller)
      return this.withOwnHeaders(refusal)
    } finally {
      // The body of a rejected request may still arrive until the rejection is sent.
      this.hold?.release()
    }
  }

  private noteFailure(error: GatewayError): void {
    const { deps, requestId, caller, body, endpoint } = this
    if (this.isAdmitted || caller === null) return
    const { accountId, keyId } = caller
    const latencyMs = deps.clock.monotonic() - this.receivedAt
    deps.recordRejection({ requestId, accountId, keyId, dialect: endpoint.dialect, body, error, latencyMs })
  }

  /** Adds the dialect's headers to the response. */
  private withOwnHeaders(response: Response): Response {
    const { deps, endpoint, requestId, caller } = this
    endpoint.addHeaders?.(
      response.headers,
      requestId,
      caller === null ? null : deps.meter.quotaStatus(caller.accountId, caller.limits),
    )
    return response
  }
}

/** Keeps what the headers of a response contain that is sent at once. */
class WholeOutput implements ResponseOutput {
  /** Null = nothing arrived. */
  opening: ResponseStart | null = null
  /** Null = the response did not end. */
  receipt: ResponseSummary | null = null

  constructor(private readonly writer: BodyWriter) {}

  text(channel: TextChannel, text: string): void {
    this.writer.text(channel, text)
  }

  add(part: ResponsePart): void {
    if (part.type === 'opened') this.opening = part.opening
    else if (part.type === 'done') this.receipt = part.receipt
    this.writer.add(part)
  }

  flush(): null {
    return null
  }
}

const placeOfId = '<request id>'
/** Created once: a stack trace would be the largest cost of a rejection. */
const overloaded = new GatewayError(
  'service_unavailable',
  'The gateway is overloaded. Retry after the time in `retry-after`.',
  {
    retryAfterMs: 1000,
    detail: 'overloaded',
  },
)

const [before = '', after = ''] = JSON.stringify(errorBody(overloaded, placeOfId)).split(placeOfId)
const overloadedBody = { before, after }

/** Returns the idempotent request if it may run; null without an `Idempotency-Key`. */
function claimed(
  { deps, request, requestId: holder }: Pick<Exchange, 'deps' | 'request' | 'requestId'>,
  { accountId }: Caller,
  body: string,
): Promise<IdempotentRun | null> {
  const { headers, method, url } = request
  const path = `${method} ${new URL(url).pathname}`
  const secret = readApiKey(headers) ?? ''
  const leaseMs = deps.longestMs + marginMs
  return claimIdempotencyKey(deps.idempotency, { headers, accountId, body, holder, secret, path, leaseMs })
}

/** Extends the claim: settlement and an unread end take time too. */
const marginMs = 60_000

async function answerOnce(
  deps: ChatHandlerDeps,
  request: { readonly caller: Caller; readonly request: ChatRequest; readonly running: ActiveRequest },
  once: IdempotentRun,
): Promise<void> {
  const { caller, request: chatRequest, running } = request
  const settled = async (record: UsageRecord) => {
    if (hasClientEffect(record)) await once.finish({ resultId: running.id, usage: toCompletedUsage(record) })
  }
  try {
    await deps.answer(caller, chatRequest, { ...running, settled })
  } finally {
    // A request without effect may run again.
    await once.release()
  }
}

/** Returns true if the response would lack the quota status and loading it was not the failure. */
function isUnseen({ meter }: ChatHandlerDeps, { accountId, limits }: Caller, error: GatewayError): boolean {
  return error.status !== 503 && meter.quotaStatus(accountId, limits) === null
}

/** Returns the error with the field name that the client sent. */
function spelt(error: GatewayError, spelling: ParsedChatRequest['spelling']): GatewayError {
  const { param } = error
  // Guards against a field named `constructor`.
  const written = param !== null && Object.hasOwn(spelling, param) ? spelling[param] : undefined
  return written === undefined ? error : withParam(error, written)
}

const jsonHeaders = new Headers({ 'content-type': 'application/json', 'cache-control': 'no-store' })

/**
 * Returns the response headers, after those of its kind; `opening` is null if the status is sent before the first
 * event.
 */
function getHeaders(
  deps: ChatHandlerDeps,
  ofKind: Headers,
  answer: { readonly requestId: string; readonly opening: ResponseStart | null; readonly caller: Caller },
): Headers {
  const { requestId, opening, caller } = answer
  const headers = new Headers(ofKind)
  headers.set('x-request-id', requestId)
  if (opening !== null) {
    writeOpening(headers, opening)
    const deprecation = deps.deprecation(opening.model)
    if (deprecation !== null) writePairs(headers, deprecation)
  }
  writeCaller(headers, deps, caller)
  return headers
}
