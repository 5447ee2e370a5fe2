/**
 * A TCP proxy on loopback whose address is known before its targets, like a public address. Its connections can be cut
 * and then refused, and it can add latency.
 */
import { connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'

export type TcpProxy = {
  /** As the URL of a Redis. */
  readonly url: string
  readonly port: number
  /** Ends all connections. */
  drop(): void
  /** The same, and refuses new ones. */
  cut(): void
  /** Leads new connections to these ports in turn. */
  leadTo(...ports: readonly number[]): void
  stop(): void
}

/** Passes everything on with a delay, in order. */
function delay(milliseconds: number): Transform {
  return new Transform({
    highWaterMark: 1_048_576,
    transform(bytes, _, done) {
      setTimeout(() => this.push(bytes), milliseconds)
      done()
    },
    flush: done => void setTimeout(done, milliseconds),
  })
}

/** Starts a proxy in front of `port`, null = none yet; adds `roundTripMs` per round trip. Listens `at` a port or any. */
export function startProxy(port: number | null, { roundTripMs = 0, at = 0 } = {}): TcpProxy {
  const open = new Set<Socket>()
  let isCut = false
  let targets: readonly number[] = port === null ? [] : [port]
  let turn = 0
  const server = createServer(near => {
    const target = targets[turn++ % targets.length]
    if (isCut || target === undefined) return void near.destroy()
    const far = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from.setNoDelay(true)
      from.on('error', () => {})
      from.on('close', () => {
        open.delete(from)
        to.destroy()
      })
      if (roundTripMs === 0) from.pipe(to)
      else from.pipe(delay(roundTripMs / 2)).pipe(to)
    }
  })
  server.listen(at, '127.0.0.1')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy does not listen')
  const drop = () => {
    for (const socket of open) socket.destroy()
  }
  const cut = () => {
    isCut = true
    drop()
  }
  return {
    url: `redis://127.0.0.1:${address.port}`,
    port: address.port,
    drop,
    cut,
    leadTo(...ports) {
      targets = ports
    },
    stop() {
      cut()
      server.close()
    },
  }
}
