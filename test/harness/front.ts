/** A TCP front end for a gateway, whose address is known before the gateway starts, like a public address. */
import { connect, createServer, type Socket } from 'node:net'

export type Front = {
  readonly url: string
  /** Sets the loopback ports for new connections, which take turns. */
  leadTo(...ports: readonly number[]): void
  stop(): void
}

export function startFront(): Front {
  const open = new Set<Socket>()
  let targets: readonly number[] = []
  let turn = 0
  const server = createServer(near => {
    const target = targets[turn++ % targets.length]
    if (target === undefined) return void near.destroy()
    const far = connect(target, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one)
      one.on('error', () => {})
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  })
  server.listen(0, '127.0.0.1')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the front does not listen')
  return {
    url: `http://127.0.0.1:${address.port}`,
    leadTo(...ports) {
      targets = ports
    },
    stop() {
      for (const socket of open) socket.destroy()
      server.close()
    },
  }
}
