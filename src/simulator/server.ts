/**
 * An HTTP/1.1 server on a TCP socket of the loopback interface. HTTP libraries prevent misbehavior, so a provider that
 * resets, stalls or announces a wrong length is written byte by byte. The server parses requests, keeps connections
 * alive and counts; its handler decides the replies and faults.
 */
import type { Socket } from 'bun'
import { maximumBodyBytes, type RawRequest, readRequest } from './request.ts'

/** One request with its connection. */
export type Exchange = {
  readonly request: RawRequest
  /** Index of the request on this server, from 0. */
  readonly index: number
  /** Aborts when the peer has closed or reset the connection. */
  readonly gone: AbortSignal
  /**
   * Resolves to true when the kernel has accepted all bytes (so it waits for a slow peer), to false if the peer has
   * disconnected.
   */
  write(bytes: Uint8Array): Promise<boolean>
  /** Closes the connection normally (FIN), whatever length was announced. */
  finish(): void
  /** Resets the connection (RST). */
  reset(): void
}

/** Log entry of one request. Times are milliseconds of `performance.now()`. */
type ExchangeRecord = {
  readonly index: number
  readonly method: string
  readonly path: string
  readonly startedAt: number
  bytesSent: number
  /** `answered` and `broken` are caused by the simulator, `aborted` by the peer. */
  outcome: 'open' | 'answered' | 'broken' | 'aborted'
  endedAt: number | null
}

export type ServerStats = {
  readonly openConnections: number
  /** Number of accepted connections: fewer than `requests` means that some were reused. */
  readonly connections: number
  readonly requests: number
  readonly aborted: number
  /** The newest 1,000, oldest first. */
  readonly exchanges: readonly Readonly<ExchangeRecord>[]
}

type RawServer = {
  readonly port: number
  stats(): ServerStats
  /** Resets every connection and frees the port. */
  stop(): void
}

type ServerOptions = {
  /** 0 = any free port. */
  readonly port: number
  /** Resolves to whether the connection can be reused. A rejection resets it. */
  readonly handle: (exchange: Exchange) => Promise<'keep' | 'close'>
}

const recordsKept = 1_000
const continueBytes = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')
const badRequestBytes = Buffer.from('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')

type Connection = {
  readonly socket: Socket<Connection>
  readonly gone: AbortController
  arrived: Buffer[]
  arrivedBytes: number
  /** Bytes required before the next parse can succeed. */
  neededBytes: number
  continued: boolean
  serving: boolean
  /** Set while a write waits for the kernel's buffer. */
  resume: (() => void) | null
}

/** Listens on 127.0.0.1. Throws if the port is in use. */
export function startServer({ port, handle }: ServerOptions): RawServer {
  const connections = new Set<Connection>()
  const records: ExchangeRecord[] = []
  const counts = { connections: 0, requests: 0, aborted: 0 }

  const listener = Bun.listen<Connection>({
    hostname: '127.0.0.1',
    port,
    socket: {
      open(socket) {
        const connection: Connection = {
          socket,
          gone: new AbortController(),
          arrived: [],
          arrivedBytes: 0,
          neededBytes: 1,
          continued: false,
          serving: false,
          resume: null,
        }
        socket.data = connection
        connections.add(connection)
        counts.connections++
      },
      data({ data: connection }, bytes) {
        connection.arrived.push(bytes)
        connection.arrivedBytes += bytes.length
        if (connection.arrivedBytes > 2 * maximumBodyBytes) connection.socket.terminate()
        else void serve(connection)
      },
      drain({ data: connection }) {
        connection.resume?.()
      },
      end({ data: connection }) {
        connection.socket.end()
        leave(connection)
      },
      error() {},
      close({ data: connection }) {
        leave(connection)
      },
    },
  })

  function leave(connection: Connection): void {
    connections.delete(connection)
    connection.gone.abort()
    connection.resume?.()
  }

  async function serve(connection: Connection): Promise<void> {
    if (connection.serving) return
    connection.serving = true
    try {
      for (let request = takeRequest(connection); request !== null; request = takeRequest(connection)) {
        const exchange = openExchange(connection, request)
        const verdict = await handle(exchange).catch(() => 'failed' as const)
        if (verdict === 'failed') exchange.reset()
        else exchange.close(verdict)
        if (verdict !== 'keep') break
      }
    } finally {
      connection.serving = false
    }
  }

  function openExchange(
    connection: Connection,
    request: RawRequest,
  ): Exchange & { close(verdict: 'keep' | 'close'): void } {
    const index = counts.requests++
    const record: ExchangeRecord = {
      index,
      method: request.method,
      path: request.path,
      startedAt: performance.now(),
      bytesSent: 0,
      outcome: 'open',
      endedAt: null,
    }
    records.push(record)
    if (records.length > recordsKept) records.shift()

    function end(outcome: 'answered' | 'broken' | 'aborted'): void {
      connection.gone.signal.removeEventListener('abort', aborted)
      if (record.outcome !== 'open') return
      record.outcome = outcome
      record.endedAt = performance.now()
      if (outcome === 'aborted') counts.aborted++
    }
    const aborted = () => end('aborted')
    connection.gone.signal.addEventListener('abort', aborted)

    return {
      request,
      index,
      gone: connection.gone.signal,
      async write(bytes) {
        const written = await writeAll(connection, bytes)
        record.bytesSent += written
        return written === bytes.length
      },
      finish() {
        end('broken')
        connection.socket.end()
      },
      reset() {
        end('broken')
        connection.socket.terminate()
      },
      close(verdict) {
        end('answered')
        if (verdict === 'close') connection.socket.end()
      },
    }
  }

  return {
    port: listener.port,
    stats: () => ({ openConnections: connections.size, ...counts, exchanges: records.map(record => ({ ...record })) }),
    stop() {
      listener.stop(true)
    },
  }
}

/** Writes until everything is accepted or the peer disconnects; returns the accepted bytes. */
async function writeAll(connection: Connection, bytes: Uint8Array): Promise<number> {
  let sent = 0
  while (!connection.gone.signal.aborted) {
    sent += Math.max(0, connection.socket.write(bytes.subarray(sent)))
    if (sent >= bytes.length) break
    await new Promise<void>(resolve => {
      connection.resume = resolve
    })
    connection.resume = null
  }
  return sent
}

function takeRequest(connection: Connection): RawRequest | null {
  if (connection.arrivedBytes < connection.neededBytes || connection.gone.signal.aborted) return null
  const [only] = connection.arrived
  const buffer = connection.arrived.length === 1 && only !== undefined ? only : Buffer.concat(connection.arrived)
  const reading = readRequest(buffer)
  if (reading.kind === 'bad') {
    connection.socket.write(badRequestBytes)
    connection.socket.end()
    return null
  }
  if (reading.kind === 'partial') {
    if (reading.awaitsContinue && !connection.continued) connection.socket.write(continueBytes)
    connection.continued = reading.awaitsContinue
    connection.arrived = [buffer]
    connection.neededBytes = reading.needsBytes
    return null
  }
  const rest = buffer.subarray(reading.usedBytes)
  connection.arrived = rest.length === 0 ? [] : [rest]
  connection.arrivedBytes = rest.length
  connection.neededBytes = 1
  connection.continued = false
  return reading.request
}
