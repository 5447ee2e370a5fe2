/** A TCP proxy on loopback whose connections can be cut, and are refused from then on. */
import { connect, createServer, type Socket } from 'node:net'

export type Proxy = { readonly url: string; readonly port: number; cut(): void; stop(): void }

/** A proxy before `port`, as the address of a Redis. */
export function startProxy(port: number): Proxy {
  const open = new Set<Socket>()
  let isCut = false
  const server = createServer(near => {
    if (isCut) return void near.destroy()
    const far = connect(port, '127.0.0.1')
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
      one.pipe(other)
    }
  })
  server.listen(0, '127.0.0.1')
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
    stop() {
      cut()
      server.close()
    },
  }
}
