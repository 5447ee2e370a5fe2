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
    const { provider } = options.candidate.endpoint
    this.deps = deps
    this.options = options
    this.provider = selectProvider(provider, options.request)
    const names = wireToolNames(options.request.request, this.provider)
    const request = names === null ? options.request : { ...options.request, request: names.request }
    this.request = this.provider.toRequest(request, this.access())
    options.response.droppedParameters = this.request.droppedParameters
    options.response.clientNames = names?.own ?? null
  }

  /** The credentials that the call uses. */
  access(): Access {
    return this.options.claim?.key.access ?? this.options.candidate.endpoint.access
  }

  /** HTTP status of the response; null = none yet. */
  status(): number | null {
    return this.answered
  }

  /** Reads once into the response, possibly nothing. Returns false after the end of the body. Never throws. */
  async next(): Promise<boolean> {
    const { clock } = this.deps
    this.watch ??= new Watch(this.deps, this.options, this.request.url, this.leave)
    const { watch } = this
    const since = clock.monotonic()
    watch.waits(since)
    try {
      this.body ??= await this.send(watch)
      return await this.body.next()
    } catch (cause) {
      const missing = cause instanceof CredentialsMissingError ? cause.failure : null
      this.options.response.fail(watch.failure() ?? missing ?? brokenConnection(this.body))
      return true
    } finally {
      this.arrived = clock.monotonic()
      this.waited += this.arrived - since
      watch.waits(null)
    }
  }

  /** Monotonic milliseconds at which the last `next` ended. */
  arrivedAt(): number {
    return this.arrived
  }

  /** Watches silence from here on, and not the first content. */
  contentArrived(): void {
    this.watch?.contentArrived()
  }

  /** Milliseconds spent waiting for the upstream, without the time in which the client did not read. */
  waitedMs(): number {
    return this.waited
  }

  /**
   * Ends the upstream call if it still runs. Always called, also if the body was never read. After a `complete`
   * response it first reads the few bytes after the terminal event, so that the connection can be reused.
   */
  close(complete: boolean): void {
    this.watch?.stop()
    this.options.signal.removeEventListener('abort', this.leave)
    if (this.body?.isOver()) return
    // An unread body would keep the upstream generating at the gateway's cost.
    if (!complete || this.body === null) return void this.abort.abort()
    const cancel = this.deps.clock.after(maximumLingerMs, this.leave)
    void this.body.drain().then(cancel, cancel)
  }

  private async send(watch: Watch): Promise<BodyReader> {
    const { request, signal, claim } = this.options
    signal.addEventListener('abort', this.leave)
    if (signal.aborted) this.leave()
    const init = requestInit(this.request, request.stream, this.abort.signal)
    const { answered } = this.request
    const response =
      answered === undefined
        ? await authorizedFetch(this.deps.network, this.access(), this.request, init)
        : Response.json(answered)
    this.answered = response.status
    claim?.answered(response.headers)
    watch.byteArrived()
    return bodyReader(response, request, {
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

type Due = { readonly at: number; readonly phase: Phase }

/** Returns the first of two concurrent causes. */
function sooner(due: Due, other: Due): Due {
  return other.at < due.at ? other : due
}

/** Starts the timer of one attempt. Calls `leave` when a wait exceeds its deadline. */
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
  /** When the upstream last sent bytes, or the gateway last began to wait for them. */
  private quietSince: number
  // `fetch` does not separate connecting from waiting. Near the connection deadline, a second, bare connection checks
  // whether the host is reachable.
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
    this.firstContentMs = thinksLong(options.request) ? deadlines.firstContentReasoningMs : deadlines.firstContentMs
    this.quietSince = this.startedAt
    this.probeAt = this.startedAt + deadlines.connectMs / 2
    this.look()
  }

  /**
   * Silence counts only while the gateway waits for the upstream, since `since`: a slow client makes the gateway read
   * slowly.
   */
  waits(since: number | null): void {
    this.isWaiting = since !== null
    if (since !== null) this.quietSince = since
  }

  byteArrived(): void {
    this.quietSince = this.clock.monotonic()
    if (this.hasBytes) return
    this.hasBytes = true
    // Silence counts from here on and may be due before the next check.
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

  /** The wait that exceeded its deadline, null = none. */
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

function thinksLong({ request: { reasoningEffort } }: AdapterRequest): boolean {
  return reasoningEffort === 'high' || reasoningEffort === 'xhigh' || reasoningEffort === 'max'
}
