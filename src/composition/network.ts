import type { Network } from '../core/ports/network.ts'

/** The real network. */
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
 * Resolves once whatever came in together has been seen to, for all who ask meanwhile: their calls then leave together. One
 * that leaves alone wakes Bun's HTTP thread for itself, which under load costs more than the call.
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
