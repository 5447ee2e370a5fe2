/**
 * One upstream call to one candidate: its request, its deadlines, and the reads of its response. Only this file bounds the
 * waits for an upstream: connection, first byte, first content, silence, and the whole request. One timer watches all
 * five: it sleeps until the earliest deadline and checks again.
 */

import type { RequestAbortSignal } from '../core/chat/request-abort.ts'
import type { Clock, Network } from '../core/ports.ts'
import type { Deadlines } from '../core/request/deadlines.ts'
import type { KeyClaim } from '../providers/keys/key-pool.ts'
import type { Access, AdapterRequest, Provider, ProviderFailure, ProviderRequest } from '../providers/provider.ts'
import type { ReceivedAnswer } from '../providers/received-answer.ts'
import { wireToolNames } from '../providers/tool-names.ts'
import { authorizedFetch, CredentialsMissingError } from './authorized-fetch.ts'
import { type BodyReader, bodyReader, upstreamFailure } from './body-reader.ts'
import type { Candidate } from './routing/candidate.ts'

/** Maximum time from the terminal event to the end of the body. */
const maximumLingerMs = 500

type Phase = 'connection' | 'first_byte' | 'first_content' | 'silence' | 'deadline'

export type AttemptDeps = { readonly clock: Clock; readonly network: Network }

export type AttemptOptions = {
  readonly candidate: Candidate
  /** Key of the attempt; absent or null = the provider's only one. */
  readonly claim?: KeyClaim | null
  readonly request: AdapterRequest
  readonly deadlines: Deadlines
  /** Monotonic deadline of the whole request in milliseconds. */
  readonly deadlineAt: number
  readonly signal: RequestAbortSignal
  /** Receives the output. */
  readonly response: ReceivedAnswer
  /** Receives the failure of a key that another one replaces within the attempt. */
  readonly keyFailed?: (failure: ProviderFailure, status: number | null, claim: KeyClaim) => void
}

/** What the loop reads of an attempt, whether it makes one call or several. */
export type OpenAttempt = Pick<UpstreamAttempt, keyof UpstreamAttempt>

/**
 * One call to an upstream. Sends nothing and starts no timer before the first `next`. A class, as is its watch: creating
 * closures per request costs time.
 */
export class UpstreamAttempt {
  /** The credentials that the call uses. */
  readonly access: Access
  /** HTTP status of the response; null = none yet. */
  status: number | null = null
  /** Monotonic milliseconds at which the last `next` ended. */
  arrivedAt = 0
  /** Milliseconds spent waiting for the upstream, without the time in which the client did not read. */
  waitedMs = 0
  private readonly provider: Provider
  private readonly request: ProviderRequest
  private readonly abort = new AbortController()
  private readonly leave = () => this.abort.abort()
  private readonly watch: Watch
  private body: BodyReader | null = null

  constructor(
    private readonly deps: AttemptDeps,
    private readonly options: AttemptOptions,
  ) {
    const { provider, access } = options.candidate.endpoint
    this.access = options.claim?.key.access ?? access
    this.provider = selectProvider(provider, options.request)
    const names = wireToolNames(options.request.request, this.provider)
    const request = names === null ? options.request : { ...options.request, request: names.request }
    this.request = this.provider.toRequest(request, this.access)
    options.response.droppedParameters = this.request.droppedParameters
    options.response.clientNames = names?.own ?? null
    this.watch = new Watch(deps, options, this.request.url, this.leave)
  }

  /** Reads once into the response, possibly nothing. Returns false after the end of the body. Never throws. */
  async next(): Promise<boolean> {
    const { watch } = this
    const since = this.deps.clock.monotonic()
    watch.waits(since)
    try {
      if (this.body === null) this.body = this.bodyOf(await this.send())
      return await this.body.next()
    } catch (cause) {
      const missing = cause instanceof CredentialsMissingError ? cause.failure : null
      this.options.response.fail(watch.failure() ?? missing ?? brokenConnection(this.body))
      return true
    } finally {
      this.arrivedAt = this.deps.clock.monotonic()
      this.waitedMs += this.arrivedAt - since
      watch.rests()
    }
  }

  /** Watches silence from here on, and not the first content. */
  contentArrived(): void {
    this.watch.contentArrived()
  }

  /**
   * Ends the upstream call if it still runs. Always called, also if the body was never read. After a `complete`
   * response it first reads the few bytes after the terminal event, so that the connection can be reused.
   */
  close(complete: boolean): void {
    this.watch.stop()
    this.options.signal.removeEventListener('abort', this.leave)
    if (this.body?.isOver()) return
    // An unread body would keep the upstream generating at the gateway's cost.
    if (!complete || this.body === null) return void this.abort.abort()
    const cancel = this.deps.clock.after(maximumLingerMs, this.leave)
    void this.body.drain().then(cancel, cancel)
  }

  private send(): Response | Promise<Response> {
    const { request, signal } = this.options
    signal.addEventListener('abort', this.leave)
    if (signal.aborted) this.leave()
    const { answered } = this.request
    if (answered !== undefined) return Response.json(answered)
    const init = requestInit(this.request, request.stream, this.abort.signal)
    return authorizedFetch(this.deps.network, this.access, this.request, init)
  }

  private bodyOf(response: Response): BodyReader {
    const { watch } = this
    this.status = response.status
    this.options.claim?.answered(response.headers)
    watch.byteArrived()
    return bodyReader(response, this.options.request, {
      provider: this.provider,
      clock: this.deps.clock,
      byteArrived: () => watch.byteArrived(),
      answer: this.options.response,
    })
  }
}

/** Returns the form of the provider's API that serves this call. */
function selectProvider(provider: Provider, request: AdapterRequest): Provider {
  const { embeddings, decisions } = provider
  if (decisions !== undefined && request.request.dialect === 'decisions') return decisions(request)
  if (request.inputs === undefined || embeddings === undefined) return provider.formFor?.(request) ?? provider
  const toRequest: Provider['toRequest'] = (adapterRequest, access) => embeddings.toRequest(adapterRequest, access)
  const readResponse: Provider['readResponse'] = (body, sink) => {
    const read = embeddings.readVectors(body, request)
    if ('vectors' in read) sink.giveVectors(read)
    else sink.fail(read)
  }
  return { ...provider, toRequest, readResponse }
}

function requestInit(request: ProviderRequest, asStream: boolean, signal: AbortSignal) {
  return {
    method: 'POST',
    // A compressor buffers small events.
    headers: asStream ? { ...request.headers, 'accept-encoding': 'identity' } : request.headers,
    body: request.body,
    signal,
    // A redirect would send the provider's key to its target.
    redirect: 'error',
  } satisfies RequestInit
}

function brokenConnection(body: BodyReader | null): ProviderFailure {
  return body === null
    ? upstreamFailure('connection_failed', 'connection refused or reset')
    : upstreamFailure('truncated', 'connection broke inside the response')
}

/** The timer of one attempt, from its first wait on. Calls `leave` when a wait exceeds its deadline. */
class Watch {
  private readonly firstContentMs: number
  private startedAt = Number.NaN
  private isWaiting = false
  private hasBytes = false
  private hasContent = false
  private stopped = false
  private expired: Phase | null = null
  /** When the upstream last sent bytes, or the gateway last began to wait for them. */
  private quietSince = 0
  // `fetch` does not separate connecting from waiting. Near the connection deadline, a second, bare connection checks
  // whether the host is reachable.
  private probeAt = Number.POSITIVE_INFINITY
  private dueAt = Number.POSITIVE_INFINITY
  private duePhase: Phase = 'deadline'
  private cancel = () => {}

  constructor(
    private readonly deps: AttemptDeps,
    private readonly options: AttemptOptions,
    private readonly url: string,
    private readonly leave: () => void,
  ) {
    const { firstContentMs, firstContentReasoningMs } = options.deadlines
    this.firstContentMs = thinksLong(options.request) ? firstContentReasoningMs : firstContentMs
  }

  /** Silence counts only while the gateway waits for the upstream, since `now`: a slow client makes the gateway read slowly. */
  waits(now: number): void {
    this.isWaiting = true
    this.quietSince = now
    if (!Number.isNaN(this.startedAt)) return
    this.startedAt = now
    this.probeAt = now + this.options.deadlines.connectMs / 2
    this.look(now)
  }

  rests(): void {
    this.isWaiting = false
  }

  byteArrived(): void {
    this.quietSince = this.deps.clock.monotonic()
    if (this.hasBytes) return
    this.hasBytes = true
    // Silence counts from here on and may be due before the next check.
    if (this.quietSince + this.options.deadlines.silenceMs >= this.dueAt) return
    this.cancel()
    this.look(this.quietSince)
  }

  contentArrived(): void {
    this.hasContent = true
  }

  stop(): void {
    this.stopped = true
    this.cancel()
  }

  /** The wait that exceeded its deadline, null = none. */
  failure(): ProviderFailure | null {
    if (this.expired === null) return null
    return this.expired === 'connection'
      ? upstreamFailure('connection_failed', 'no connection within its deadline')
      : upstreamFailure('timeout', `${this.expired} deadline passed`)
  }

  private look(now: number): void {
    this.findDue(now)
    if (this.dueAt <= now && this.duePhase === 'connection') {
      this.probe()
      this.findDue(now)
    }
    if (this.dueAt <= now) return void this.expire(this.duePhase)
    this.cancel = this.deps.clock.after(this.dueAt - now, () => this.look(this.deps.clock.monotonic()))
  }

  /** Finds the wait that is due first; of several, the first one here. */
  private findDue(now: number): void {
    const { startedAt } = this
    const { deadlines, deadlineAt } = this.options
    this.dueAt = deadlineAt
    this.duePhase = 'deadline'
    if (this.hasBytes) this.mayBeDue((this.isWaiting ? this.quietSince : now) + deadlines.silenceMs, 'silence')
    else {
      this.mayBeDue(startedAt + deadlines.firstByteMs, 'first_byte')
      this.mayBeDue(this.probeAt, 'connection')
    }
    if (!this.hasContent) this.mayBeDue(startedAt + this.firstContentMs, 'first_content')
  }

  private mayBeDue(at: number, phase: Phase): void {
    if (at >= this.dueAt) return
    this.dueAt = at
    this.duePhase = phase
  }

  private probe(): void {
    this.probeAt = Number.POSITIVE_INFINITY
    void this.deps.network.reaches(this.url, this.options.deadlines.connectMs / 2).then(isReached => {
      if (!isReached && !this.hasBytes) this.expire('connection')
    })
  }

  private expire(phase: Phase): void {
    if (this.stopped || this.expired !== null) return
    this.expired = phase
    this.leave()
  }
}

function thinksLong({ request: { reasoningEffort } }: AdapterRequest): boolean {
  return reasoningEffort === 'high' || reasoningEffort === 'xhigh' || reasoningEffort === 'max'
}
