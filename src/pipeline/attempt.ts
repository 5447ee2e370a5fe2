/**
 * One call to one candidate: the request, the clock that runs while it is awaited, and its answer read piece by piece.
 *
 * Every wait for an upstream is bounded here and nowhere else: connection, first byte, first content, silence, and the
 * whole request's deadline. One timer watches all five: it sleeps until the earliest could be due and looks again.
 */

import type { Deadlines } from '../config.ts'
import type { EndingSignal } from '../core/ending.ts'
import type { Clock } from '../deps/clock.ts'
import type { Network } from '../deps/network.ts'
import type { AnswerPart, ProviderAsk, ProviderFailure, ProviderRequest, StreamReader } from '../providers/provider.ts'
import { createEventSplitter, EventTooLongError } from '../providers/sse.ts'
import type { Candidate } from './candidate.ts'

export type UpstreamAttempt = {
  readonly droppedParameters: readonly string[]
  /** HTTP status of the answer, null while there is none. */
  status(): number | null
  /** Parts of the next piece that arrived (perhaps none of them content); null once the body is over. Never throws. */
  next(): Promise<readonly AnswerPart[] | null>
  /** From here on silence is what is watched, not the first content. */
  contentArrived(): void
  /** Milliseconds spent so far in waiting for the upstream, not for whoever reads the answer. */
  waitedMs(): number
  /**
   * Ends the upstream call if it still runs. Always called, also on paths that never read the body. After a `complete`
   * answer the few bytes behind its terminal event are read off first, so that the connection can be used again.
   */
  close(complete: boolean): void
}

/** Longest JSON answer read, in bytes: a 128,000 token answer is about 1 MB. */
const maximumAnswerBytes = 8 * 1_048_576
/** A body this short comes in a few packets, so that no clock need run between them. */
const maximumAtOnceBytes = 65_536
/** How much of a refusal's body is read to tell why, and for how long: its status is here, and another may be asked. */
const maximumFailureBytes = 65_536
const maximumFailureMs = 2_000

/** How long the end of a body may take to follow its terminal event. */
const maximumLingerMs = 500

type Phase = 'connection' | 'first_byte' | 'first_content' | 'silence' | 'deadline'

/** Prepares a call. Nothing is sent, and no clock runs, before the first `next`. */
export function startAttempt(
  deps: { readonly clock: Clock; readonly network: Network },
  options: {
    readonly candidate: Candidate
    readonly ask: ProviderAsk
    readonly deadlines: Deadlines
    /** Monotonic milliseconds at which the whole request must be over. */
    readonly deadlineAt: number
    readonly signal: EndingSignal
  },
): UpstreamAttempt {
  const { candidate, ask, signal } = options
  const { provider, access } = candidate.endpoint
  const request = provider.toRequest(ask, access)
  const abort = new AbortController()
  const leave = () => abort.abort()
  let watch: Watch | null = null
  let body: BodyReader | null = null
  let status: number | null = null
  let waitedMs = 0

  const send = async (watch: Watch): Promise<BodyReader> => {
    signal.addEventListener('abort', leave)
    if (signal.aborted) leave()
    const response = await deps.network.fetch(request.url, requestInit(request, ask.stream, abort.signal))
    status = response.status
    watch.byteArrived()
    return readerFor(response, ask, provider, deps.clock, watch.byteArrived)
  }

  return {
    droppedParameters: request.droppedParameters,
    status: () => status,
    async next() {
      watch ??= startWatch(deps, { ...options, url: request.url, expire: leave })
      watch.waits(true)
      const since = deps.clock.monotonic()
      try {
        body ??= await send(watch)
        return await body.next()
      } catch {
        return [{ type: 'failure', failure: watch.failure() ?? brokenConnection(body) }]
      } finally {
        watch.waits(false)
        waitedMs += deps.clock.monotonic() - since
      }
    },
    contentArrived: () => watch?.contentArrived(),
    waitedMs: () => waitedMs,
    close(complete) {
      watch?.stop()
      signal.removeEventListener('abort', leave)
      if (body?.isOver()) return
      // An unread body would keep the upstream producing, and us paying.
      if (!complete || body === null) return abort.abort()
      const cancel = deps.clock.after(maximumLingerMs, leave)
      void body.drain().then(cancel, cancel)
    },
  }
}

function requestInit(request: ProviderRequest, asStream: boolean, signal: AbortSignal): RequestInit {
  return {
    method: 'POST',
    // A compressor holds small events back until it has enough of them.
    headers: asStream ? { ...request.headers, 'accept-encoding': 'identity' } : request.headers,
    body: request.body,
    signal,
    // A redirect would carry the provider's key to wherever it points.
    redirect: 'error',
  }
}

type BodyReader = {
  next(): Promise<readonly AnswerPart[] | null>
  isOver(): boolean
  /** Reads what is left and throws it away. */
  drain(): Promise<void>
}

/** Chooses how to read by what came, not by what was asked for: servers answer a stream with JSON and errors with 200. */
function readerFor(
  response: Response,
  { ask, stream }: ProviderAsk,
  provider: Candidate['endpoint']['provider'],
  clock: Clock,
  byteArrived: () => void,
): BodyReader {
  const contentType = response.headers.get('content-type') ?? ''
  if (!response.ok)
    return wholeBody(
      () => readBeginning(response, clock),
      text => [{ type: 'failure', failure: provider.readFailure(response.status, response.headers, text) }],
    )
  if (contentType.includes('json') || (!stream && !contentType.includes('event-stream')))
    return wholeBody(
      () => readText(response, maximumAnswerBytes, byteArrived),
      text => provider.readResponse(parsed(text)),
    )
  if (contentType.includes('html'))
    return wholeBody(
      async () => cut(''),
      () => [badAnswer('an HTML page')],
    )
  return eventBody(response, provider.streamReader(ask.choices), byteArrived)
}

/** What was read of a body, and whether that is all of it. */
type BodyText = { readonly text: string; readonly isWhole: boolean }

const whole = (text: string): BodyText => ({ text, isWhole: true })
const cut = (text: string): BodyText => ({ text, isWhole: false })

function wholeBody(take: () => Promise<BodyText>, read: (text: string) => readonly AnswerPart[]): BodyReader {
  let over = false
  return {
    isOver: () => over,
    drain: () => Promise.reject(new Error('a whole body is read at once')),
    async next() {
      if (over) return null
      const { text, isWhole } = await take()
      over = isWhole
      return read(text)
    },
  }
}

/** The body as text; nothing of it past `maximumBytes`. */
async function readText(response: Response, maximumBytes: number, byteArrived: () => void): Promise<BodyText> {
  const declared = Number(response.headers.get('content-length') ?? Number.NaN)
  if (declared <= Math.min(maximumBytes, maximumAtOnceBytes) && response.headers.get('content-encoding') === null)
    return whole(await response.text())
  if (response.body === null) return whole('')
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const piece of response.body) {
    byteArrived()
    bytes += piece.byteLength
    if (bytes > maximumBytes) return cut('')
    text += decoder.decode(piece, { stream: true })
  }
  return whole(text + decoder.decode())
}

/** As much of a refusal's body as comes within its bounds; one that breaks ends where it broke. */
async function readBeginning({ body }: Response, clock: Clock): Promise<BodyText> {
  if (body === null) return whole('')
  const pieces = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  let cancel = () => {}
  const late = new Promise<null>(resolve => {
    cancel = clock.after(maximumFailureMs, () => resolve(null))
  })
  try {
    while (bytes < maximumFailureBytes) {
      const piece = await Promise.race([pieces.read(), late])
      if (piece === null) break
      if (piece.done) return whole(text)
      text += decoder.decode(piece.value.subarray(0, maximumFailureBytes - bytes), { stream: true })
      bytes += piece.value.byteLength
    }
    return cut(text)
  } catch {
    return cut(text)
  } finally {
    cancel()
  }
}

function eventBody(response: Response, reader: StreamReader, byteArrived: () => void): BodyReader {
  const splitter = createEventSplitter()
  const pieces = response.body?.getReader() ?? null
  let over = false
  const read = (events: ReturnType<typeof splitter.push>): AnswerPart[] => {
    const parts: AnswerPart[] = []
    for (const event of events) for (const part of reader.read(event)) parts.push(part)
    return parts
  }
  return {
    isOver: () => over,
    async drain() {
      while (pieces !== null && !(await pieces.read()).done);
    },
    async next() {
      if (over) return null
      const piece = pieces === null ? { done: true as const, value: undefined } : await pieces.read()
      if (piece.done) {
        over = true
        return [...read(splitter.finish()), ...reader.finish()]
      }
      byteArrived()
      try {
        return read(splitter.push(piece.value))
      } catch (cause) {
        if (cause instanceof EventTooLongError) return [badAnswer('an event over the size limit')]
        throw cause
      }
    },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function badAnswer(detail: string): AnswerPart {
  return {
    type: 'failure',
    failure: { kind: 'bad_answer', blame: 'upstream', retryable: true, retryAfterMs: null, detail },
  }
}

function brokenConnection(body: BodyReader | null): ProviderFailure {
  return body === null
    ? upstreamFailure('connection_failed', 'connection refused or reset')
    : upstreamFailure('truncated', 'connection broke inside the answer')
}

function upstreamFailure(kind: ProviderFailure['kind'], detail: string): ProviderFailure {
  return { kind, blame: 'upstream', retryable: true, retryAfterMs: null, detail }
}

type Due = { readonly at: number; readonly phase: Phase }

/** Of two at once the first. */
function sooner(one: Due, other: Due): Due {
  return other.at < one.at ? other : one
}

type Watch = {
  /** Silence is the upstream's only while we wait for it: a caller who reads slowly makes us read slowly. */
  waits(isWaiting: boolean): void
  byteArrived(): void
  contentArrived(): void
  stop(): void
  /** Which wait ran out, null while none did. */
  failure(): ProviderFailure | null
}

/** The clock of one attempt, running from now on. */
function startWatch(
  deps: { readonly clock: Clock; readonly network: Network },
  options: {
    readonly url: string
    readonly ask: ProviderAsk
    readonly deadlines: Deadlines
    readonly deadlineAt: number
    readonly expire: () => void
  },
): Watch {
  const { clock, network } = deps
  const { deadlines, deadlineAt } = options
  const startedAt = clock.monotonic()
  const effort = options.ask.ask.reasoningEffort
  const thinksLong = effort === 'high' || effort === 'xhigh' || effort === 'max'
  const firstContentMs = thinksLong ? deadlines.firstContentReasoningMs : deadlines.firstContentMs
  let isWaiting = true
  let hasBytes = false
  let hasContent = false
  let stopped = false
  let expired: Phase | null = null
  /** When the upstream last gave a sign of life, or we last began to wait for one. */
  let quietSince = startedAt
  // `fetch` does not tell connecting from waiting: late in the connection's time a second, bare connection asks the question.
  let probeAt = startedAt + deadlines.connectMs / 2
  let lookAt = Number.POSITIVE_INFINITY
  let cancel = () => {}

  const nextDue = (now: number): Due => {
    const silence = (isWaiting ? quietSince : now) + deadlines.silenceMs
    const alive: Due = hasBytes
      ? { at: silence, phase: 'silence' }
      : sooner({ at: startedAt + deadlines.firstByteMs, phase: 'first_byte' }, { at: probeAt, phase: 'connection' })
    const due = sooner({ at: deadlineAt, phase: 'deadline' }, alive)
    return hasContent ? due : sooner(due, { at: startedAt + firstContentMs, phase: 'first_content' })
  }
  const expire = (phase: Phase) => {
    if (stopped || expired !== null) return
    expired = phase
    options.expire()
  }
  const probe = () => {
    probeAt = Number.POSITIVE_INFINITY
    void network.reaches(options.url, deadlines.connectMs / 2).then(isReached => {
      if (!isReached && !hasBytes) expire('connection')
    })
  }
  const look = () => {
    const now = clock.monotonic()
    let due = nextDue(now)
    if (due.at <= now && due.phase === 'connection') {
      probe()
      due = nextDue(now)
    }
    if (due.at <= now) return expire(due.phase)
    lookAt = due.at
    cancel = clock.after(due.at - now, look)
  }
  look()

  return {
    waits(waiting) {
      isWaiting = waiting
      if (waiting) quietSince = clock.monotonic()
    },
    byteArrived() {
      quietSince = clock.monotonic()
      if (hasBytes) return
      hasBytes = true
      // From here on silence counts, which may be due before the next look.
      if (quietSince + deadlines.silenceMs >= lookAt) return
      cancel()
      look()
    },
    contentArrived() {
      hasContent = true
    },
    stop() {
      stopped = true
      cancel()
    },
    failure() {
      if (expired === null) return null
      return expired === 'connection'
        ? upstreamFailure('connection_failed', 'no connection within its deadline')
        : upstreamFailure('timeout', `${expired} deadline passed`)
    },
  }
}
