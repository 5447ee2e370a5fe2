/**
 * An HTTP/1.1 server on a TCP socket of the loopback interface. HTTP libraries prevent misbehavior, so a provider that
 * resets, stalls or announces a wrong length is written byte by byte. The server parses requests, keeps connections
 * alive and counts; its handler decides the replies and faults.
 */
import type { Socket } from 'bun'

export type RawRequest = {
  readonly method: string
  /** As sent, including the query. */
  readonly path: string
  /** Lower-case names; repeated headers joined with `, `. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

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

const recordsKept = 1_000
const maximumHeadBytes = 65_536
const maximumBodyBytes = 64 * 1_048_576
const badRequestBytes = Buffer.from('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')

type Connection = {
  readonly socket: Socket<Connection>
  readonly gone: AbortController
  arrived: Buffer[]
  arrivedBytes: number
  /** Bytes required before the next parse can succeed. */
  neededBytes: number
  serving: boolean
  /** Set while a write waits for the kernel's buffer. */
  resume: (() => void) | null
}

/**
 * Listens on a free port of 127.0.0.1. `handle` resolves to whether the connection can be reused; a rejection resets
 * it. `stop` resets every connection.
 */
export function startServer(handle: (exchange: Exchange) => Promise<'keep' | 'close'>) {
  const connections = new Set<Connection>()
  const records: ExchangeRecord[] = []
  const counts = { connections: 0, requests: 0, aborted: 0 }

  const listener = Bun.listen<Connection>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        const connection: Connection = {
          socket,
          gone: new AbortController(),
          arrived: [],
          arrivedBytes: 0,
          neededBytes: 1,
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

  function openExchange(connection: Connection, request: RawRequest) {
    const index = counts.requests++
    const record: ExchangeRecord = {
      index,
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
      async write(bytes: Uint8Array) {
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
      close(verdict: 'keep' | 'close') {
        end('answered')
        if (verdict === 'close') connection.socket.end()
      },
    }
  }

  return {
    url: `http://127.0.0.1:${listener.port}`,
    stats: (): ServerStats => ({
      openConnections: connections.size,
      ...counts,
      exchanges: records.map(record => ({ ...record })),
    }),
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
  const parsed = parseRequest(buffer)
  if (parsed.kind === 'bad') {
    connection.socket.write(badRequestBytes)
    connection.socket.end()
    return null
  }
  if (parsed.kind === 'partial') {
    connection.arrived = [buffer]
    connection.neededBytes = parsed.needsBytes
    return null
  }
  const rest = buffer.subarray(parsed.usedBytes)
  connection.arrived = rest.length === 0 ? [] : [rest]
  connection.arrivedBytes = rest.length
  connection.neededBytes = 1
  return parsed.request
}

type ParsedRequest =
  | { readonly kind: 'whole'; readonly request: RawRequest; readonly usedBytes: number }
  /** Incomplete: parse again when this many bytes are buffered. */
  | { readonly kind: 'partial'; readonly needsBytes: number }
  | { readonly kind: 'bad' }

/** Never throws: `bad` for other protocols than HTTP/1.1 and for too large requests. */
function parseRequest(buffer: Buffer): ParsedRequest {
  const headEnd = buffer.indexOf('\r\n\r\n')
  if (headEnd > maximumHeadBytes || (headEnd < 0 && buffer.length > maximumHeadBytes)) return { kind: 'bad' }
  if (headEnd < 0) return { kind: 'partial', needsBytes: buffer.length + 1 }

  const [requestLine = '', ...headerLines] = buffer.toString('latin1', 0, headEnd).split('\r\n')
  const [method, path, version] = requestLine.split(' ')
  const headers = parseHeaders(headerLines)
  if (!method || !path || version !== 'HTTP/1.1' || headers === null) return { kind: 'bad' }

  const bodyStart = headEnd + 4
  if (headers['transfer-encoding'] === 'chunked') {
    const chunked = parseChunks(buffer, bodyStart)
    if (chunked === 'bad') return { kind: 'bad' }
    if (chunked === 'partial') return { kind: 'partial', needsBytes: buffer.length + 1 }
    return { kind: 'whole', request: { method, path, headers, body: chunked.body }, usedBytes: chunked.end }
  }
  const length = Number(headers['content-length'] ?? '0')
  if (!Number.isSafeInteger(length) || length < 0 || length > maximumBodyBytes) return { kind: 'bad' }
  const end = bodyStart + length
  if (buffer.length < end) return { kind: 'partial', needsBytes: end }
  return { kind: 'whole', request: { method, path, headers, body: buffer.subarray(bodyStart, end) }, usedBytes: end }
}

function parseHeaders(lines: readonly string[]): Record<string, string> | null {
  const headers: Record<string, string> = Object.create(null)
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon < 1) return null
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const earlier = headers[name]
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`
  }
  return headers
}

function parseChunks(buffer: Buffer, start: number): { body: Uint8Array; end: number } | 'partial' | 'bad' {
  const pieces: Buffer[] = []
  let at = start
  for (;;) {
    const lineEnd = buffer.indexOf('\r\n', at)
    if (lineEnd < 0) return buffer.length - at > 1_024 ? 'bad' : 'partial'
    const size = Number.parseInt(buffer.toString('latin1', at, lineEnd), 16)
    if (!(size >= 0) || lineEnd + size - start > maximumBodyBytes) return 'bad'
    const end = lineEnd + 2 + size
    if (buffer.length < end + 2) return 'partial'
    // Trailers are not supported: no client of these APIs sends any.
    if (size === 0) return { body: Buffer.concat(pieces), end: end + 2 }
    pieces.push(buffer.subarray(lineEnd + 2, end))
    at = end + 2
  }
}
