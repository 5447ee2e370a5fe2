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
import type { AnswerPart, ProviderAsk, ProviderFailure, ProviderRequest } from '../providers/provider.ts'
import { type BodyReader, bodyReader } from './body-reader.ts'
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
    return bodyReader(response, ask, provider, deps.clock, watch.byteArrived)
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
