/** Messages between processes of this machine over a Unix socket: one JSON text per line, many lines per write. */
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Socket } from 'bun'

type Peer<Out> = {
  /** Sends a message together with all other messages of this turn of the event loop. Never throws. */
  send(message: Out): void
  close(): void
}

type PeerHandlers<In> = {
  receive(message: In): void
  /** Called when either side has closed the connection. */
  closed(): void
}

type Line = { readonly peer: Wire; handlers: { receive(text: string): void; closed(): void } | null }

/** Maximum bytes that wait for a peer that does not read; beyond it the connection is closed. */
const maximumOutgoingBytes = 256 << 20

/** Both directions of one socket. */
class Wire {
  private waiting: string[] = []
  private outgoing: Buffer[] = []
  private outgoingBytes = 0
  private isScheduled = false
  private isClosed = false
  private partial = ''
  private readonly decoder = new TextDecoder()

  constructor(private readonly socket: Socket<Line>) {}

  send(text: string): void {
    if (this.isClosed) return
    this.waiting.push(text)
    if (this.isScheduled) return
    this.isScheduled = true
    setImmediate(() => this.flushTurn())
  }

  /** Returns the complete lines that end in `bytes`. */
  getLines(bytes: Uint8Array): string[] {
    const lines = (this.partial + this.decoder.decode(bytes, { stream: true })).split('\n')
    this.partial = lines.pop() ?? ''
    return lines
  }

  drain(): void {
    for (let bytes = this.outgoing[0]; bytes !== undefined && !this.isClosed; bytes = this.outgoing[0]) {
      const taken = Math.max(0, this.socket.write(bytes))
      this.outgoingBytes -= taken
      if (taken < bytes.length) {
        this.outgoing[0] = bytes.subarray(taken)
        return
      }
      this.outgoing.shift()
    }
  }

  ended(): void {
    this.isClosed = true
    this.waiting = []
    this.outgoing = []
  }

  close(): void {
    if (this.isClosed) return
    this.flushTurn()
    this.socket.end()
  }

  private flushTurn(): void {
    this.isScheduled = false
    if (this.isClosed || this.waiting.length === 0) return
    const bytes = Buffer.from(`${this.waiting.join('\n')}\n`)
    this.waiting = []
    this.outgoing.push(bytes)
    this.outgoingBytes += bytes.length
    if (this.outgoingBytes > maximumOutgoingBytes) this.socket.terminate()
    // Appended to the waiting bytes, because writing it now would change the order.
    else if (this.outgoing.length === 1) this.drain()
  }
}

const socketHandlers = {
  data(socket: Socket<Line>, bytes: Uint8Array) {
    for (const line of socket.data.peer.getLines(bytes)) socket.data.handlers?.receive(line)
  },
  drain: (socket: Socket<Line>) => socket.data.peer.drain(),
  close: (socket: Socket<Line>) => over(socket),
  error: (socket: Socket<Line>) => over(socket),
}

function over(socket: Socket<Line>): void {
  const { peer, handlers } = socket.data
  peer.ended()
  socket.data.handlers = null
  handlers?.closed()
}

function getPeer<In, Out>(socket: Socket<Line>, open: (peer: Peer<Out>) => PeerHandlers<In>): Peer<Out> {
  const wire = new Wire(socket)
  const peer: Peer<Out> = { send: message => wire.send(JSON.stringify(message)), close: () => wire.close() }
  socket.data = { peer: wire, handlers: null }
  const { receive, closed } = open(peer)
  socket.data.handlers = { receive: text => receive(JSON.parse(text)), closed }
  return peer
}

/** Listens on `path` for processes of this user only. Returns a function that stops listening. */
export function listenLocally<In, Out>(path: string, open: (peer: Peer<Out>) => PeerHandlers<In>): () => void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  rmSync(path, { force: true })
  const listener = Bun.listen<Line>({
    unix: path,
    socket: { ...socketHandlers, open: socket => void getPeer(socket, open) },
  })
  chmodSync(path, 0o600)
  return () => {
    listener.stop(true)
    rmSync(path, { force: true })
  }
}

/** Connects to the listener on `path`. Rejects if there is no listener. */
export async function connectLocally<In, Out>(
  path: string,
  open: (peer: Peer<Out>) => PeerHandlers<In>,
): Promise<Peer<Out>> {
  const { promise, resolve } = Promise.withResolvers<Peer<Out>>()
  await Bun.connect<Line>({ unix: path, socket: { ...socketHandlers, open: socket => resolve(getPeer(socket, open)) } })
  return promise
}
