/**
 * One call to one candidate: the request, the clock that runs while it is awaited, and its answer read piece by piece.
 *
 * Every wait for an upstream is bounded here and nowhere else: connection, first byte, first content, silence, and the
 * whole request's deadline. One timer watches all five: it sleeps until the earliest could be due and looks again.
 */

import type { RequestAbortSignal } from '../core/chat/request-abort.ts'
import type { Clock } from '../core/ports/clock.ts'
import type { Network } from '../core/ports/network.ts'
import type { Deadlines } from '../core/request/deadlines.ts'
import type { AnswerPart, Provider, ProviderAsk, ProviderFailure, ProviderRequest } from '../providers/provider.ts'
import { type BodyReader, bodyReader } from './body-reader.ts'
import type { Candidate } from './routing/candidate.ts'

export type UpstreamAttempt = {
  readonly droppedParameters: readonly string[]
  /** HTTP status of the answer, null while there is none. */
  status(): number | null
  /** Parts of the next piece that arrived (perhaps none of them content); null once the body is over. Never throws. */
  next(): Promise<readonly AnswerPart[] | null>
  /** When the last `next` was over, in monotonic milliseconds. */
  arrivedAt(): number
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

export type AttemptDeps = { readonly clock: Clock; readonly network: Network }

type AttemptOptions = {
  readonly candidate: Candidate
  readonly ask: ProviderAsk
  readonly deadlines: Deadlines
  /** Monotonic milliseconds at which the whole request must be over. */
  readonly deadlineAt: number
  readonly signal: RequestAbortSignal
}

/** Prepares a call. Nothing is sent, and no clock runs, before the first `next`. */
export function startAttempt(deps: AttemptDeps, options: AttemptOptions): UpstreamAttempt {
  return new OwnAttempt(deps, options)
}

/** A class, as its watch is: what each request makes of functions is felt. */
class OwnAttempt implements UpstreamAttempt {
  readonly droppedParameters: readonly string[]
  private readonly deps: AttemptDeps
  private readonly options: AttemptOptions
  private readonly provider: Provider
  private readonly request: ProviderRequest
  private readonly abort = new AbortController()
  private readonly leave = () => this.abort.abort()
  private watch: Watch | null = null
  private body: BodyReader | null = null
  private answered: number | null = null
  private waited = 0
  private arrived = 0

  constructor(deps: AttemptDeps, options: AttemptOptions) {
    const { provider, access } = options.candidate.endpoint
    this.deps = deps
    this.options = options
    this.provider = provider.formFor?.(options.ask) ?? provider
    this.request = this.provider.toRequest(options.ask, access)
    this.droppedParameters = this.request.droppedParameters
  }

  status(): number | null {
    return this.answered
  }

  async next(): Promise<readonly AnswerPart[] | null> {
    const { clock } = this.deps
    this.watch ??= new Watch(this.deps, this.options, this.request.url, this.leave)
    const { watch } = this
    const since = clock.monotonic()
    watch.waits(since)
    try {
      this.body ??= await this.send(watch)
      return await this.body.next()
    } catch {
      return [{ type: 'failure', failure: watch.failure() ?? brokenConnection(this.body) }]
    } finally {
      this.arrived = clock.monotonic()
      this.waited += this.arrived - since
      watch.waits(null)
    }
  }

  arrivedAt(): number {
    return this.arrived
  }

  contentArrived(): void {
    this.watch?.contentArrived()
  }

  waitedMs(): number {
    return this.waited
  }

  close(complete: boolean): void {
    this.watch?.stop()
    this.options.signal.removeEventListener('abort', this.leave)
    if (this.body?.isOver()) return
    // An unread body would keep the upstream producing, and us paying.
    if (!complete || this.body === null) return void this.abort.abort()
    const cancel = this.deps.clock.after(maximumLingerMs, this.leave)
    void this.body.drain().then(cancel, cancel)
  }

  private async send(watch: Watch): Promise<BodyReader> {
    const { ask, signal } = this.options
    signal.addEventListener('abort', this.leave)
    if (signal.aborted) this.leave()
    const init = requestInit(this.request, ask.stream, this.abort.signal)
    const response = await this.deps.network.fetch(this.request.url, init)
    this.answered = response.status
    watch.byteArrived()
    return bodyReader(response, ask, {
      provider: this.provider,
      clock: this.deps.clock,
      byteArrived: () => watch.byteArrived(),
    })
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

/** The clock of one attempt, running from now on. Calls `leave` when a wait runs out. */
class Watch {
  private readonly clock: Clock
  private readonly network: Network
  private readonly deadlines: Deadlines
  private readonly url: string
  private readonly leave: () => void
  private readonly deadlineAt: number
  private readonly startedAt: number
  private readonly firstContentMs: number
  private isWaiting = true
  private hasBytes = false
  private hasContent = false
  private stopped = false
  private expired: Phase | null = null
  /** When the upstream last gave a sign of life, or we last began to wait for one. */
  private quietSince: number
  // `fetch` does not tell connecting from waiting: late in the connection's time a second, bare connection asks the question.
  private probeAt: number
  private lookAt = Number.POSITIVE_INFINITY
  private cancel = () => {}

  constructor({ clock, network }: AttemptDeps, options: AttemptOptions, url: string, leave: () => void) {
    const { deadlines, deadlineAt } = options
    this.clock = clock
    this.network = network
    this.deadlines = deadlines
    this.url = url
    this.leave = leave
    this.deadlineAt = deadlineAt
    this.startedAt = clock.monotonic()
    this.firstContentMs = thinksLong(options.ask) ? deadlines.firstContentReasoningMs : deadlines.firstContentMs
    this.quietSince = this.startedAt
    this.probeAt = this.startedAt + deadlines.connectMs / 2
    this.look()
  }

  /** Silence is the upstream's only while we wait for it, `since` when: a caller who reads slowly makes us read slowly. */
  waits(since: number | null): void {
    this.isWaiting = since !== null
    if (since !== null) this.quietSince = since
  }

  byteArrived(): void {
    this.quietSince = this.clock.monotonic()
    if (this.hasBytes) return
    this.hasBytes = true
    // From here on silence counts, which may be due before the next look.
    if (this.quietSince + this.deadlines.silenceMs >= this.lookAt) return
    this.cancel()
    this.look()
  }

  contentArrived(): void {
    this.hasContent = true
  }

  stop(): void {
    this.stopped = true
    this.cancel()
  }

  /** Which wait ran out, null while none did. */
  failure(): ProviderFailure | null {
    if (this.expired === null) return null
    return this.expired === 'connection'
      ? upstreamFailure('connection_failed', 'no connection within its deadline')
      : upstreamFailure('timeout', `${this.expired} deadline passed`)
  }

  private look(): void {
    const now = this.clock.monotonic()
    let due = this.nextDue(now)
    if (due.at <= now && due.phase === 'connection') {
      this.probe()
      due = this.nextDue(now)
    }
    if (due.at <= now) return void this.expire(due.phase)
    this.lookAt = due.at
    this.cancel = this.clock.after(due.at - now, () => this.look())
  }

  private nextDue(now: number): Due {
    const { deadlines, startedAt } = this
    const silence = (this.isWaiting ? this.quietSince : now) + deadlines.silenceMs
    const alive: Due = this.hasBytes
      ? { at: silence, phase: 'silence' }
      : sooner(
          { at: startedAt + deadlines.firstByteMs, phase: 'first_byte' },
          { at: this.probeAt, phase: 'connection' },
        )
    const due = sooner({ at: this.deadlineAt, phase: 'deadline' }, alive)
    return this.hasContent ? due : sooner(due, { at: startedAt + this.firstContentMs, phase: 'first_content' })
  }

  private probe(): void {
    this.probeAt = Number.POSITIVE_INFINITY
    void this.network.reaches(this.url, this.deadlines.connectMs / 2).then(isReached => {
      if (!isReached && !this.hasBytes) this.expire('connection')
    })
  }

  private expire(phase: Phase): void {
    if (this.stopped || this.expired !== null) return
    this.expired = phase
    this.leave()
  }
}

function thinksLong({ ask: { reasoningEffort } }: ProviderAsk): boolean {
  return reasoningEffort === 'high' || reasoningEffort === 'xhigh' || reasoningEffort === 'max'
}
