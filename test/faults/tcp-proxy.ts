/** A TCP proxy on loopback whose connections can be cut and then refused. It can add latency. */
import { connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'

export type Proxy = {
  readonly url: string
  readonly port: number
  cut(): void
  leadTo(port: number): void
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

/** Starts a proxy in front of `port`, as the URL of a Redis; adds `roundTripMs` per round trip. Listens `at` a port or any. */
export function startProxy(port: number, { roundTripMs = 0, at = 0 } = {}): Proxy {
  const open = new Set<Socket>()
  let isCut = false
  let target = port
  const server = createServer(near => {
    if (isCut) return void near.destroy()
    const far = connect(target, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one)
      one.setNoDelay(true)
      one.on('error', () => {})
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
      if (roundTripMs === 0) one.pipe(other)
      else one.pipe(delay(roundTripMs / 2)).pipe(other)
    }
  })
  server.listen(at, '127.0.0.1')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy does not listen')
  const cut = () => {
    isCut = true
    for (const socket of open) socket.destroy()
  }
  return {
    url: `redis://127.0.0.1:${address.port}`,
    port: address.port,
    cut,
    /** Cuts all connections and leads new ones to another port. */
    leadTo(other) {
      target = other
      for (const socket of open) socket.destroy()
    },
    stop() {
      cut()
      server.close()
    },
  }
}
