/** One upstream call for embeddings: sent once, read whole, with the deadlines of chat requests. */

import type { RequestAbortSignal } from '../../core/chat/request-abort.ts'
import type { Clock, Network } from '../../core/ports.ts'
import type { Deadlines } from '../../core/request/deadlines.ts'
import type { EmbeddingsCall, EmbeddingsResult } from '../../providers/embeddings.ts'
import type { KeyClaim } from '../../providers/keys/key-pool.ts'
import type { ProviderFailure, ProviderRequest } from '../../providers/provider.ts'
import { authorizedFetch, CredentialsMissingError } from '../authorized-fetch.ts'
import type { EmbeddingHost } from './prepare.ts'

export type UpstreamCallDeps = {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  readonly network: Network
  readonly config: { readonly deadlines: Deadlines }
}

export type UpstreamCallResult = {
  readonly result: EmbeddingsResult
  /** HTTP status; null = there was none. */
  readonly status: number | null
  readonly droppedParameters: readonly string[]
}

export type CallOptions = {
  readonly host: EmbeddingHost
  readonly call: EmbeddingsCall
  /** Monotonic milliseconds at which the whole request must be over. */
  readonly deadlineAt: number
  readonly signal: RequestAbortSignal
  /** Key of the call; null = the provider's only one. */
  readonly claim: KeyClaim | null
}

const maximumFailureBytes = 65_536
/** A number of a vector in pretty-printed JSON. */
const maximumNumberBytes = 40
/** Bound for a vector whose length is not configured. */
const longestVector = 16_384

/** Makes one call. Never throws: failures, deadlines and aborts are results too. */
export async function callUpstream(deps: UpstreamCallDeps, options: CallOptions): Promise<UpstreamCallResult> {
  const { host, call, signal, claim } = options
  const request = host.adapter.toEmbeddingsRequest(call, claim?.key.access ?? host.endpoint.access)
  const { droppedParameters } = request
  const abort = new AbortController()
  const leave = () => abort.abort()
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  const watch = watchCall(deps, options, request.url, leave)
  let response: Response | null = null
  try {
    const init = requestInit(request, abort.signal)
    response = await authorizedFetch(deps.network, claim?.key.access ?? host.endpoint.access, request, init)
    claim?.answered(response.headers)
    watch.byteArrived()
    const result = await readResult(options, response, watch.byteArrived)
    return { result, status: response.status, droppedParameters }
  } catch (cause) {
    const broken =
      cause instanceof CredentialsMissingError
        ? cause.failure
        : response === null
          ? upstreamFailure('connection_failed', 'connection refused or reset')
          : upstreamFailure('truncated', 'connection broke inside the response')
    return { result: failed(watch.failure() ?? broken), status: response?.status ?? null, droppedParameters }
  } finally {
    watch.stop()
    signal.removeEventListener('abort', leave)
    // An unread body would keep its connection open.
    abort.abort()
  }
}

function requestInit(request: ProviderRequest, signal: AbortSignal) {
  // A redirect would send the provider's key to its target.
  return { method: 'POST', headers: request.headers, body: request.body, signal, redirect: 'error' } as const
}

async function readResult({ host, call }: CallOptions, response: Response, byteArrived: () => void) {
  if (!response.ok) {
    const text = (await readText(response, maximumFailureBytes, byteArrived)) ?? ''
    return failed(host.endpoint.provider.readFailure(response.status, response.headers, text))
  }
  const length = call.dimensions ?? call.model.dimensions ?? longestVector
  const most = maximumFailureBytes + call.inputs.length * (1_024 + length * maximumNumberBytes)
  const text = await readText(response, most, byteArrived)
  if (text === null) return failed(upstreamFailure('bad_answer', '200 longer than its vectors can be'))
  return host.adapter.readEmbeddings(parsed(text), call)
}

/** Returns the body; null = it is over `most` bytes. */
async function readText({ body, ok }: Response, most: number, byteArrived: () => void): Promise<string | null> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  const pieces: string[] = []
  let bytes = 0
  for await (const piece of body) {
    byteArrived()
    bytes += piece.byteLength
    if (bytes > most) return ok ? null : pieces.join('')
    pieces.push(decoder.decode(piece, { stream: true }))
  }
  return pieces.join('') + decoder.decode()
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function failed(failure: ProviderFailure): EmbeddingsResult {
  return { kind: 'failure', failure }
}

function upstreamFailure(kind: ProviderFailure['kind'], detail: string): ProviderFailure {
  return { kind, blame: 'upstream', retryable: true, retryAfterMs: null, detail }
}

/** Calls `leave` when the connection, its first byte, the next byte or the whole request misses its deadline. */
function watchCall(
  { clock, network, config: { deadlines } }: UpstreamCallDeps,
  { deadlineAt }: CallOptions,
  url: string,
  leave: () => void,
) {
  let expired: ProviderFailure | null = null
  let hasBytes = false
  const expire = (failure: ProviderFailure) => {
    expired ??= failure
    leave()
  }
  const late = (phase: string) => () => expire(upstreamFailure('timeout', `${phase} deadline passed`))
  const cancelWhole = clock.after(Math.max(0, deadlineAt - clock.monotonic()), late('deadline'))
  let cancelSilence = clock.after(deadlines.firstByteMs, late('first_byte'))
  // `fetch` does not separate connecting from waiting, so a second, bare connection checks the host.
  const cancelProbe = clock.after(deadlines.connectMs / 2, () => {
    void network.reaches(url, deadlines.connectMs / 2).then(isReached => {
      if (!isReached && !hasBytes) expire(upstreamFailure('connection_failed', 'no connection within its deadline'))
    })
  })
  let isStopped = false
  return {
    failure: () => expired,
    byteArrived() {
      cancelSilence()
      if (!hasBytes) cancelProbe()
      hasBytes = true
      if (!isStopped) cancelSilence = clock.after(deadlines.silenceMs, late('silence'))
    },
    stop() {
      isStopped = true
      hasBytes = true
      cancelWhole()
      cancelSilence()
      cancelProbe()
    },
  }
}
