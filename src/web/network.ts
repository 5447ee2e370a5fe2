import type { Network } from '../core/ports.ts'
import { systemErrorCode } from '../core/validation/errors.ts'

/** The network of this machine. */
export const systemNetwork: Network = {
  fetch: fetchTwice,
  reaches(url, timeoutMs) {
    const { hostname, port, protocol } = new URL(url)
    return new Promise(resolve => {
      const timer = setTimeout(() => resolve(false), timeoutMs)
      const settle = (reached: boolean) => {
        clearTimeout(timer)
        resolve(reached)
      }
      Bun.connect({
        hostname: hostname.replace(/^\[|\]$/g, ''),
        port: Number(port || (protocol === 'https:' ? 443 : 80)),
        socket: {
          open(socket) {
            socket.end()
            settle(true)
          },
          data() {},
          error: () => settle(false),
          connectError: () => settle(false),
        },
      }).catch(() => settle(false))
    })
  },
}

/** Monotonic milliseconds of the last response per origin, whose connection may be in Bun's pool. */
const respondedAt = new Map<string, number>()
/** Bun closes pooled connections that were idle for this long. */
const pooledMs = 300_000

/**
 * Fetches, and once more on a new connection if a pooled one was closed before any response: the server, or a load
 * balancer before it, closed it while it was idle, and Bun repeats only a GET. A first connection is not repeated,
 * because its server has closed it on purpose, nor is a request whose response has begun.
 */
async function fetchTwice(url: string, init: RequestInit): Promise<Response> {
  await endOfTurn()
  const origin = url.slice(0, url.indexOf('/', 'https://'.length))
  const isPooled = performance.now() - (respondedAt.get(origin) ?? Number.NEGATIVE_INFINITY) < pooledMs
  for (let sent = init; ; sent = { ...init, keepalive: false }) {
    try {
      const response = await fetch(url, sent)
      respondedAt.set(origin, performance.now())
      return response
    } catch (cause) {
      const mayRepeat = sent === init && isPooled && isClosed(cause) && !init.signal?.aborted
      if (!mayRepeat || init.body instanceof ReadableStream) throw cause
      // A server that closes new connections too is down, and gets each request once.
      respondedAt.delete(origin)
    }
  }
}

/** Returns true for a connection that was open and ended. Other failures are those of a new connection. */
const isClosed = (cause: unknown) => /^(?:ECONNRESET|EPIPE|ConnectionClosed)$/.test(systemErrorCode(cause) ?? '')

let turn: Promise<void> | null = null

/**
 * Resolves after all requests that arrived together were handled, for all callers that wait meanwhile: their upstream
 * calls then start together. A single call wakes Bun's HTTP thread, which under load costs more than the call itself.
 */
function endOfTurn(): Promise<void> {
  turn ??= new Promise(resolve =>
    setImmediate(() => {
      turn = null
      resolve()
    }),
  )
  return turn
}
