/** A TCP proxy in front of Postgres that stores what clients send, so that tests see which keys were queried. */
import { connect, createServer, type Socket } from 'node:net'

export type PostgresTap = {
  readonly url: string
  /** Returns how many of these texts were sent since the last `forget`. */
  getCount(texts: readonly string[]): number
  forget(): void
  stop(): void
}

/** Starts a proxy in front of the server at `url`. */
export function startPostgresTap(url: string): PostgresTap {
  const { port } = new URL(url)
  const open = new Set<Socket>()
  let sent: Buffer[] = []
  const server = createServer(near => {
    const far = connect(Number(port), '127.0.0.1')
    near.on('data', bytes => void sent.push(Buffer.from(bytes)))
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        open.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  server.listen(0, '127.0.0.1')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the tap does not listen')
  const tapped = new URL(url)
  tapped.port = String(address.port)
  return {
    url: tapped.href,
    getCount(texts) {
      const all = Buffer.concat(sent).toString('latin1')
      return texts.filter(text => all.includes(text)).length
    },
    forget() {
      sent = []
    },
    stop() {
      for (const socket of open) socket.destroy()
      server.close()
    },
  }
}
