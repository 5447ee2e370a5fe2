/**
 * One chat exchange, the same for both endpoints: who asks, what they ask, and the answer in the endpoint's own face, as
 * one JSON body or as a stream.
 */
import type { ChatEvents, ChatRequest, ResponseStart, ResponseSummary, StreamMode } from '../core/chat/chat.ts'
import { createRequestAbort, type RequestAbort, type RequestAbortSignal } from '../core/chat/request-abort.ts'
import { type CollectedResponse, createResponseCollector } from '../core/chat/response-collector.ts'
import type { Caller, QuotaStatus } from '../core/limits/plans.ts'
import type { TraceParent } from '../core/text/traceparent.ts'
import { hasClientEffect, toCompletedUsage, type UsageRecord } from '../core/usage/usage-record.ts'
import { errorBody, GatewayError, withParam } from '../core/validation/errors.ts'
import { parseJson } from '../core/validation/validate.ts'
import { readApiKey } from './authentication.ts'
import { bodyLimits, checkContentType, receiveBody } from './body.ts'
import type { BodyBudget, BodyHold } from './body-budget.ts'
import { errorResponse, toGatewayError } from './error-response.ts'
import { type HeaderPairs, writeCaller, writeOpening, writeOutputCap, writePairs, writeReceipt } from './headers.ts'
import { claimIdempotencyKey, type IdempotencyStore, type IdempotentRun } from './idempotency.ts'
import { type StreamFormat, streamHeaders, streamResponse } from './sse-response.ts'
import type { StartQueue } from './start-queue.ts'

/** A request as an endpoint understood it, and how that endpoint frames the answer. */
type ParsedChatRequest = {
  readonly ask: ChatRequest
  /** Fields of the ask that the caller wrote under another name; errors use the caller's. */
  readonly spelling: Readonly<Record<string, string>>
  readonly stream: (requestId: string) => StreamFormat
  readonly body: (answer: CollectedResponse, opening: ResponseStart, receipt: ResponseSummary) => object
  /** `body` reads the events of the answer in their order. */
  readonly keepsEvents?: boolean
}

/** What a dialect's parser may look at beside the parsed body. */
export type RequestSource = {
  readonly headers: Headers
  /** The body's text as it came. */
  readonly text: string
  readonly accountId: string
}

/** One API form: how its requests are read, and how its refusals are written. */
export type ChatEndpoint = {
  /** Reads a parsed body. Throws `GatewayError` naming the field at fault. */
  readonly parse: (body: unknown, source: RequestSource) => ParsedChatRequest
  /** A refusal before the status is sent; absent = the API's own error body. */
  readonly refusal?: Refusal
  /** Adds the headers by which clients of this form know the request and the account's limits. */
  readonly addHeaders?: (headers: Headers, requestId: string, quota: QuotaStatus | null) => void
}

/** Writes a refusal in one API form. */
export type Refusal = (error: GatewayError, requestId: string) => Response

type ChatHandlerDeps = {
  readonly answer: (caller: Caller, ask: ChatRequest, request: ActiveRequest) => ChatEvents
  /** The trace that a request says it is part of. */
  readonly traceOf: (headers: Headers) => TraceParent | null
  /** `over` hears once `events` have ended. */
  readonly pace: (events: ChatEvents, mode: StreamMode, over: () => void) => ChatEvents
  /** Throws 401, or 429 and 503 where the key cannot be looked up now. */
  readonly callerOf: (request: Request) => Caller | Promise<Caller>
  readonly idempotency: IdempotencyStore
  /** No request runs for longer. */
  readonly longestMs: number
  readonly clock: { monotonic(): number; after(milliseconds: number, action: () => void): () => void }
  readonly meter: { standing(accountId: string, limits: Caller['limits']): QuotaStatus | null }
  /** Lets `meter` know how the caller's account stands. Never throws. */
  readonly look: (caller: Caller, requestId: string) => Promise<void>
  readonly budget: { warningOf(caller: Caller): string | null }
  /** Headers announcing that the serving model is on its way out. */
  readonly deprecation: (model: string) => HeaderPairs | null
  readonly inFlight: InFlight
  readonly startQueue: StartQueue
  /** Called for each request that is rejected because the process is overloaded. */
  readonly rejected: (error: GatewayError) => void
  readonly bodies: BodyBudget
  readonly logFailure: (requestId: string, error: GatewayError) => void
  /** What a caller is told in place of `error`: addresses that are refused again and again are told to slow down. */
  readonly refused: (error: GatewayError, address: () => string) => Promise<GatewayError>
}

/** A request that is being answered. */
type ActiveRequest = {
  readonly id: string
  readonly signal: RequestAbortSignal
  readonly trace: TraceParent | null
  /** Awaited once its usage record is durable, before its caller sees the end. */
  readonly settled?: (record: UsageRecord) => Promise<void>
}

/** The requests now being answered, so that a draining process can end those that run too long. */
type InFlight = { add(ending: RequestAbort): void; delete(ending: RequestAbort): void }

/** What a chat route needs beside the exchange itself. */
export type ChatRouteDeps = ChatHandlerDeps & {
  readonly newRequestId: () => string
  readonly connectionOf: (request: Request) => Connection
}

/** What a request's connection is asked for. */
type Connection = {
  /** From here on silence is bounded by the gateway's own deadlines. */
  liftIdleTimeout(): void
  /** The answer is made: what was lifted would stay so for as long as the connection does. */
  setIdleTimeout(): void
  /** The caller's, IPv6 by network. */
  address(): string
}

/**
 * Answers one chat request when the process has time for it. Never throws: every failure before the status is a refusal with the
 * API's error body. A rejection at once is no promise: under overload they are most of what the process answers.
 */
export function handleChat(
  deps: ChatRouteDeps,
  endpoint: ChatEndpoint,
  request: Request,
): Response | Promise<Response> {
  const start = deps.startQueue.enter(() => mayWait(request.headers))
  if (start === true) return answered(deps, endpoint, request)
  if (start === false) return rejected(deps, endpoint)
  return start.then(mayStart => (mayStart ? answered(deps, endpoint, request) : rejected(deps, endpoint)))
}

/** Counts and builds a rejection. Under overload they are most of what the process answers, so the text is put together here. */
export function rejected(
  { rejected: count, newRequestId }: Pick<ChatRouteDeps, 'rejected' | 'newRequestId'>,
  endpoint: Pick<ChatEndpoint, 'refusal'> | null = null,
): Response {
  count(overloaded)
  const requestId = newRequestId()
  if (endpoint?.refusal !== undefined) return endpoint.refusal(overloaded, requestId)
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

async function answered(deps: ChatRouteDeps, endpoint: ChatEndpoint, request: Request): Promise<Response> {
  const [requestId, connection] = [deps.newRequestId(), deps.connectionOf(request)]
  let caller: Caller | null = null
  let spoken: ParsedChatRequest | null = null
  /** Lives for as long as anything of the body may: until the answer has ended. */
  let hold: BodyHold | null = null
  let isRefused = false
  try {
    const asking = deps.callerOf(request)
    // A body that has no room is refused before it is known who sends it, unless memory knows.
    if (asking instanceof Promise) asking.catch(() => {})
    else caller = asking
    hold = deps.bodies.open(caller?.accountId ?? null)
    const receive = receiveBody(request, bodyLimits.chat, { hold, clock: deps.clock })
    if (caller === null) {
      caller = await asking
      hold.assign(caller.accountId)
    }
    checkContentType(request.headers)
    const text = await receive()
    const { headers } = request
    spoken = endpoint.parse(parseJson(text), { headers, text, accountId: caller.accountId })
    const ending = abortWith(request.signal)
    const once = request.headers.has('idempotency-key')
      ? await claimed(deps, request, { accountId: caller.accountId, body: text, holder: requestId })
      : null
    const running = { id: requestId, signal: ending.signal, trace: deps.traceOf(request.headers) }
    // Strangers and slow senders live under the server's short idle timeout; from here on the deadlines are ours.
    connection.liftIdleTimeout()
    const { ask } = spoken
    const events =
      once === null ? deps.answer(caller, ask, running) : answeredOnce(deps, { caller, ask, running }, once)
    const { release } = hold
    const over = () => {
      deps.inFlight.delete(ending)
      release()
      connection.setIdleTimeout()
    }
    deps.inFlight.add(ending)
    if (ask.stream !== null) {
      const paced = deps.pace(events, ask.stream, over)
      const streamed = await streamedAnswer(deps, paced, { spoken, caller, requestId, ending })
      return withOwnHeaders(deps, endpoint, streamed, { requestId, caller })
    }
    try {
      const whole = await wholeAnswer(deps, events, spoken, caller)
      return withOwnHeaders(deps, endpoint, whole, { requestId, caller })
    } finally {
      over()
    }
  } catch (thrown) {
    isRefused = true
    const error = spelt(await deps.refused(toGatewayError(thrown), connection.address), spoken?.spelling ?? {})
    // A caller who left is nobody's failure, and nobody reads the answer.
    if (!request.signal.aborted) deps.logFailure(requestId, error)
    if (caller !== null && isUnseen(deps, caller, error)) await deps.look(caller, requestId)
    const refusal = (endpoint.refusal ?? errorResponse)(error, requestId)
    writeCaller(refusal.headers, deps, caller)
    return withOwnHeaders(deps, endpoint, refusal, { requestId, caller })
  } finally {
    // What is refused may still arrive until the refusal is sent.
    if (isRefused) hold?.release()
  }
}

/** Aborts when the caller leaves; a draining process may abort it too. */
function abortWith(signal: AbortSignal): RequestAbort {
  const ending = createRequestAbort()
  signal.addEventListener('abort', () => ending.abort(), { once: true })
  if (signal.aborted) ending.abort()
  return ending
}

/** The response with what clients of its API form read beside the gateway's own headers. */
function withOwnHeaders(
  { meter }: Pick<ChatHandlerDeps, 'meter'>,
  { addHeaders }: ChatEndpoint,
  response: Response,
  { requestId, caller }: { readonly requestId: string; readonly caller: Caller | null },
): Response {
  addHeaders?.(response.headers, requestId, caller === null ? null : meter.standing(caller.accountId, caller.limits))
  return response
}

/** The body of a request that waits arrives all the same: a large one, or one of unknown length, is held only once it is reserved. */
function mayWait(headers: Headers): boolean {
  const declared = headers.get('content-length')
  return declared !== null && Number(declared) <= bodyLimits.other
}

const placeOfId = '<request id>'
/** Made once: a stack for each would be the largest part of what a rejection costs. */
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

/** A request that carries an `Idempotency-Key`, where it may run. */
function claimed(
  { idempotency, longestMs }: ChatHandlerDeps,
  { headers, method, url }: Request,
  rest: { readonly accountId: string; readonly body: string; readonly holder: string },
): Promise<IdempotentRun | null> {
  const path = `${method} ${new URL(url).pathname}`
  const secret = readApiKey(headers) ?? ''
  return claimIdempotencyKey(idempotency, { ...rest, headers, secret, path, leaseMs: longestMs + marginMs })
}

/** Settling, and an end that nobody fetches, take a while too. */
const marginMs = 60_000

async function* answeredOnce(
  deps: ChatHandlerDeps,
  request: { readonly caller: Caller; readonly ask: ChatRequest; readonly running: ActiveRequest },
  once: IdempotentRun,
): ChatEvents {
  const { caller, ask, running } = request
  const settled = async (record: UsageRecord) => {
    if (hasClientEffect(record)) await once.finish({ resultId: running.id, usage: toCompletedUsage(record) })
  }
  try {
    yield* deps.answer(caller, ask, { ...running, settled })
  } finally {
    // What had no effect may be run once more.
    await once.release()
  }
}

/** True where the answer would lack the account's standing, and asking for it is not what has just failed. */
function isUnseen({ meter }: ChatHandlerDeps, { accountId, limits }: Caller, error: GatewayError): boolean {
  return error.status !== 503 && meter.standing(accountId, limits) === null
}

/** The error about the field as the caller wrote it. */
function spelt(error: GatewayError, spelling: ParsedChatRequest['spelling']): GatewayError {
  const { param } = error
  // A caller may name a field `constructor`.
  const written = param !== null && Object.hasOwn(spelling, param) ? spelling[param] : undefined
  return written === undefined ? error : withParam(error, written)
}

async function wholeAnswer(
  deps: ChatHandlerDeps,
  events: ChatEvents,
  spoken: ParsedChatRequest,
  caller: Caller,
): Promise<Response> {
  const fold = createResponseCollector(spoken.keepsEvents)
  let opening: ResponseStart | null = null
  let receipt: ResponseSummary | null = null
  for await (const batch of events)
    for (const event of batch) {
      if (event.type === 'opened') opening = event.opening
      else if (event.type === 'done') receipt = event.receipt
      else fold.add(event)
    }
  if (opening === null || receipt === null)
    throw new GatewayError('upstream_failed', 'The answer broke off. Ask again.')
  const headers = headersOf(deps, jsonHeaders, { requestId: opening.requestId, opening, caller })
  writeReceipt(headers, receipt)
  return new Response(JSON.stringify(spoken.body(fold.result(), opening, receipt)), { headers })
}

const jsonHeaders = new Headers({ 'content-type': 'application/json', 'cache-control': 'no-store' })

/** An answer's headers, behind those of its kind; `opening` is null where the status goes before anything is known. */
function headersOf(
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

function streamedAnswer(
  deps: ChatHandlerDeps,
  events: ChatEvents,
  request: {
    readonly spoken: ParsedChatRequest
    readonly caller: Caller
    readonly requestId: string
    readonly ending: RequestAbort
  },
): Promise<Response> {
  const { spoken, caller, requestId, ending } = request
  return streamResponse({
    events,
    face: spoken.stream(requestId),
    abort: () => ending.abort(),
    clock: deps.clock,
    headers: opening => {
      const headers = headersOf(deps, streamHeaders, { requestId, opening, caller })
      // Whether the answer will end at it is not known yet.
      if (opening?.outputCap !== undefined) writeOutputCap(headers, opening.outputCap)
      return headers
    },
    toError: thrown => {
      const error = toGatewayError(thrown)
      deps.logFailure(requestId, error)
      return error
    },
  })
}
