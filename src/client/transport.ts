/** One request to a gateway: credentials, deadlines, and trying again where that can help. */

import { ApiError, ConnectionError, type GatewayError, TimeoutError } from './errors.ts'
import { toError } from './to-error.ts'

/** What may be said of any call beside what it asks. */
export type CallOptions = {
  /** Ends the call; it then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds: of a whole answer, 630,000 unless told; of a stream, every wait for something to arrive, 60,000. */
  readonly timeoutMs?: number | undefined
  /** Tries after the first, 2 unless told. */
  readonly maxRetries?: number | undefined
  /** The same for every try of one request; made up unless told. */
  readonly idempotencyKey?: string | undefined
}

export type TransportOptions = {
  readonly apiKey?: string | undefined
  /** A token, or what fetches one when it is needed: they last 15 minutes. */
  readonly sessionToken?: string | (() => string | Promise<string>) | undefined
  /** Where the gateway answers, `http://127.0.0.1:3000` unless told. */
  readonly baseUrl?: string | undefined
  readonly timeoutMs?: number | undefined
  readonly maxRetries?: number | undefined
  /** In place of the platform's own. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
}

/** `key` falls back to the session where there is no key; `nobody` sends no credential at all. */
export type Credential = 'key' | 'session' | 'either' | 'nobody'

export type Outgoing = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly credential: Credential
  readonly body?: object
}

/** An answer that began well. `within` bounds each further wait for it, `close` gives it up. */
export type Incoming = {
  readonly response: Response
  within<T>(promise: Promise<T>): Promise<T>
  close(): void
}

export type Transport = {
  /** The answer's JSON; undefined where it has none. */
  json(outgoing: Outgoing, options: CallOptions): Promise<unknown>
  /** The answer once its status is there. */
  open(outgoing: Outgoing, options: CallOptions): Promise<Incoming>
}

const wholeAnswerMs = 630_000
const silenceMs = 60_000
const defaultRetries = 2
const [firstDelayMs, longestDelayMs] = [500, 8_000]
/** Whoever is told to wait longer than this is told so at once. */
const longestWaitSeconds = 60

/** A transport to one gateway. Errors are those of `errors.ts`, or the reason of the caller's own signal. */
export function createTransport(options: TransportOptions): Transport {
  const base = (options.baseUrl ?? 'http://127.0.0.1:3000').replace(/\/+$/, '')
  const send = options.fetch ?? ((url: string, init: RequestInit) => fetch(url, init))

  const attempt = async (outgoing: Outgoing, call: CallOptions, headers: Record<string, string>, waitMs: number) => {
    const { method, path, body } = outgoing
    const wait = createWait(waitMs, call.signal)
    try {
      const response = await wait.within(
        send(base + path, {
          method,
          headers,
          signal: wait.signal,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }),
      )
      if (response.ok) return { response, within: wait.within, close: wait.close }
      const failure = toError(response.status, parsed(await wait.within(response.text())), response.headers)
      wait.close()
      throw failure
    } catch (cause) {
      wait.close()
      throw cause
    }
  }

  const open = async (outgoing: Outgoing, call: CallOptions, defaultMs: number): Promise<Incoming> => {
    const headers = {
      ...(await credentials(options, outgoing.credential)),
      ...(outgoing.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(outgoing.credential === 'key' ? { 'idempotency-key': call.idempotencyKey ?? randomKey() } : {}),
    }
    const retries = call.maxRetries ?? options.maxRetries ?? defaultRetries
    const waitMs = call.timeoutMs ?? options.timeoutMs ?? defaultMs
    for (let tried = 0; ; tried++)
      try {
        return await attempt(outgoing, call, headers, waitMs)
      } catch (cause) {
        const delay = tried < retries ? delayAfter(cause, tried) : null
        if (delay === null) throw cause
        await sleep(delay, call.signal)
      }
  }

  return {
    open: (outgoing, call) => open(outgoing, call, silenceMs),
    async json(outgoing, call) {
      const { response, within, close } = await open(outgoing, call, wholeAnswerMs)
      try {
        return answered(await within(response.text()))
      } finally {
        close()
      }
    },
  }
}

async function credentials(
  { apiKey, sessionToken }: TransportOptions,
  credential: Credential,
): Promise<Record<string, string>> {
  const usesKey = credential === 'key' || (credential === 'either' && apiKey !== undefined)
  if (credential === 'nobody') return {}
  const token = usesKey ? apiKey : typeof sessionToken === 'function' ? await sessionToken() : sessionToken
  return token === undefined ? {} : { authorization: `Bearer ${token}` }
}

/** Milliseconds to wait before the next try; null = none would help. */
function delayAfter(cause: unknown, tried: number): number | null {
  const backoff = Math.min(longestDelayMs, firstDelayMs * 2 ** tried)
  // Half of it at least, and never in step with others.
  const jittered = backoff / 2 + (Math.random() * backoff) / 2
  if (cause instanceof TimeoutError) return null
  if (cause instanceof ConnectionError) return jittered
  if (!(cause instanceof ApiError) || !isWorthRetrying(cause)) return null
  if (cause.retryAfter === null) return jittered
  return cause.retryAfter > longestWaitSeconds ? null : cause.retryAfter * 1000 + (Math.random() * backoff) / 4
}

function isWorthRetrying({ status, shouldRetry }: ApiError): boolean {
  return shouldRetry ?? (status === 408 || status === 429 || status >= 500)
}

type Wait = {
  readonly signal: AbortSignal
  within<T>(promise: Promise<T>): Promise<T>
  close(): void
}

/** Bounds each wait of one try, and ends it all when the caller says so. */
function createWait(milliseconds: number, caller: AbortSignal | undefined): Wait {
  const abort = new AbortController()
  const leave = () => abort.abort()
  if (caller?.aborted) leave()
  caller?.addEventListener('abort', leave, { once: true })
  return {
    signal: abort.signal,
    async within(promise) {
      let late = false
      const timer = setTimeout(() => {
        late = true
        abort.abort()
      }, milliseconds)
      try {
        return await promise
      } catch (cause) {
        if (caller?.aborted) throw caller.reason
        throw late ? lateness(milliseconds) : broken(cause)
      } finally {
        clearTimeout(timer)
      }
    },
    close() {
      caller?.removeEventListener('abort', leave)
      abort.abort()
    },
  }
}

function lateness(milliseconds: number): GatewayError {
  return new TimeoutError(`The gateway said nothing for ${milliseconds} ms.`)
}

function broken(cause: unknown): GatewayError {
  return new ConnectionError('The gateway cannot be reached, or the connection broke.', { cause })
}

function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, milliseconds)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}

/** Works where `randomUUID` does not: pages that came over plain http. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
}

/** Whatever else than JSON says 200, a page in the gateway's place perhaps, has not answered. */
function answered(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ConnectionError('What answered is no gateway: see `baseUrl`.', { cause })
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
