import type { Network } from '../core/ports/network.ts'

/** The network of this machine. */
export const systemNetwork: Network = {
  fetch: (url, init) => endOfTurn().then(() => fetch(url, init)),
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
