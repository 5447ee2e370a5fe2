/**
 * An HTTP reply as data, including faults, and the function that sends it. A fault is a property of a chunk (`broken`),
 * so it survives compression, slicing and every transfer framing.
 */
import { constants, createGzip } from 'node:zlib'
import type { Exchange } from './server.ts'

export type Break = 'fin' | 'rst' | 'hang'

export type Piece = {
  readonly bytes: Uint8Array
  /** Delay in milliseconds before it is written. */
  readonly delayMs: number
  /** Breaks the connection after this many of its bytes. The framing still announces the whole chunk. */
  readonly broken: { readonly afterBytes: number; readonly how: Break } | null
}

export type Pieces = Iterable<Piece> | AsyncIterable<Piece>

export type Framing = 'length' | 'chunked' | 'close'

export type Reply =
  | {
      readonly kind: 'http'
      readonly status: number
      /** Without the framing headers. */
      readonly headers: Readonly<Record<string, string>>
      readonly framing: Framing
      /** Delay in milliseconds before the first byte. */
      readonly headDelayMs: number
      readonly pieces: Pieces
    }
  /** Raw bytes without HTTP; a single `broken` chunk breaks the connection before any response. */
  | { readonly kind: 'raw'; readonly pieces: Pieces }

/** Creates a JSON response. */
export function jsonReply(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  const all = { 'content-type': 'application/json', ...headers }
  return {
    kind: 'http',
    status,
    headers: all,
    framing: 'length',
    headDelayMs: 0,
    pieces: [piece(JSON.stringify(body))],
  }
}

/** Creates a chunk of text or bytes, written at once by default. */
export function piece(content: string | Uint8Array, delayMs = 0): Piece {
  return { bytes: typeof content === 'string' ? Buffer.from(content) : content, delayMs, broken: null }
}

/** Breaks the connection in this way instead of sending more bytes. */
export function breakNow(how: Break): Piece {
  return { bytes: new Uint8Array(0), delayMs: 0, broken: { afterBytes: 0, how } }
}

/** Cuts the bytes into chunks of one size, regardless of events and code points. */
export async function* slicePieces(pieces: Pieces, bytesEach: number): AsyncGenerator<Piece> {
  for await (const { bytes, delayMs, broken } of pieces) {
    const end = broken?.afterBytes ?? bytes.length
    for (let at = 0; at < end; at += bytesEach) {
      yield { bytes: bytes.subarray(at, Math.min(at + bytesEach, end)), delayMs: at === 0 ? delayMs : 0, broken: null }
    }
    if (broken !== null) yield { bytes: bytes.subarray(end), delayMs: 0, broken: { ...broken, afterBytes: 0 } }
  }
}

/** Compresses as a stream and flushes each chunk, so that it is readable on arrival. */
export async function* gzipPieces(pieces: Pieces): AsyncGenerator<Piece> {
  const gzip = createGzip()
  let out: Buffer[] = []
  gzip.on('data', (bytes: Buffer) => out.push(bytes))
  const take = () => {
    const bytes = Buffer.concat(out)
    out = []
    return bytes
  }
  try {
    for await (const { bytes, delayMs, broken } of pieces) {
      const plain = broken === null ? bytes : bytes.subarray(0, broken.afterBytes)
      if (plain.length > 0) gzip.write(plain)
      await new Promise<void>(resolve => gzip.flush(constants.Z_SYNC_FLUSH, () => resolve()))
      const compressed = take()
      yield { bytes: compressed, delayMs, broken: broken && { ...broken, afterBytes: compressed.length } }
    }
    await new Promise<void>(resolve => {
      gzip.once('end', resolve)
      gzip.end()
    })
    yield piece(take())
  } finally {
    gzip.destroy()
  }
}

/**
 * Sends the reply; resolves when it is sent, broken, or the peer has disconnected. Returns whether the connection can
 * be reused.
 */
export async function send(exchange: Exchange, reply: Reply): Promise<'keep' | 'close'> {
  if (reply.kind === 'raw') {
    await sendPieces(exchange, reply.pieces, asIs)
    return 'close'
  }
  if (reply.headDelayMs > 0) await wait(reply.headDelayMs, exchange.gone)
  if (reply.framing === 'length') {
    const pieces = await Array.fromAsync(reply.pieces)
    const total = pieces.reduce((sum, { bytes }) => sum + bytes.length, 0)
    const head = headBytes(reply.status, { ...reply.headers, 'content-length': String(total) })
    const [only] = pieces
    // One write for the usual complete response: a provider's JSON response arrives in one packet too.
    if (pieces.length === 1 && only !== undefined && only.broken === null && only.delayMs === 0) {
      return (await exchange.write(Buffer.concat([head, only.bytes]))) ? 'keep' : 'close'
    }
    if (!(await exchange.write(head))) return 'close'
    return (await sendPieces(exchange, pieces, asIs)) ? 'keep' : 'close'
  }
  const chunked = reply.framing === 'chunked'
  const framingHeader = chunked ? { 'transfer-encoding': 'chunked' } : { connection: 'close' }
  if (!(await exchange.write(headBytes(reply.status, { ...reply.headers, ...framingHeader })))) return 'close'
  if (!(await sendPieces(exchange, reply.pieces, chunked ? asChunk : asIs))) return 'close'
  if (!chunked) return 'close'
  return (await exchange.write(lastChunk)) ? 'keep' : 'close'
}

/** Returns false if the simulator or the peer broke the connection. */
async function sendPieces(exchange: Exchange, pieces: Pieces, frame: (piece: Piece) => Uint8Array): Promise<boolean> {
  let written = 0
  for await (const next of pieces) {
    if (next.delayMs > 0) await wait(next.delayMs, exchange.gone)
    if (exchange.gone.aborted) return false
    const bytes = frame(next)
    if (bytes.length > 0 && !(await exchange.write(bytes))) return false
    if (next.broken !== null) {
      await breakConnection(exchange, next.broken.how)
      return false
    }
    // A long response at full speed would otherwise block the event loop.
    if (++written % 32 === 0) await new Promise(resolve => setImmediate(resolve))
  }
  return true
}

async function breakConnection(exchange: Exchange, how: Break): Promise<void> {
  switch (how) {
    case 'fin':
      return exchange.finish()
    case 'rst':
      return exchange.reset()
    case 'hang':
      return wait(null, exchange.gone)
  }
}

/** Waits `milliseconds` (null: forever), or until the peer disconnects. */
function wait(milliseconds: number | null, gone: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (gone.aborted) return resolve()
    const timer = milliseconds === null ? null : setTimeout(wake, milliseconds)
    gone.addEventListener('abort', wake, { once: true })
    function wake(): void {
      if (timer !== null) clearTimeout(timer)
      gone.removeEventListener('abort', wake)
      resolve()
    }
  })
}

const reasonPhrases: Readonly<Record<number, string>> = { 200: 'OK', 400: 'Bad Request', 401: 'Unauthorized' }

function headBytes(status: number, headers: Readonly<Record<string, string>>): Buffer {
  let head = `HTTP/1.1 ${status} ${reasonPhrases[status] ?? 'Status'}\r\n`
  for (const [name, value] of Object.entries(headers)) head += `${name}: ${value}\r\n`
  return Buffer.from(`${head}\r\n`)
}

const crlf = Buffer.from('\r\n')
const lastChunk = Buffer.from('0\r\n\r\n')

function asIs({ bytes, broken }: Piece): Uint8Array {
  return broken === null ? bytes : bytes.subarray(0, broken.afterBytes)
}

function asChunk({ bytes, broken }: Piece): Uint8Array {
  // An empty chunk would end the body.
  if (bytes.length === 0 || broken?.afterBytes === 0) return new Uint8Array(0)
  const size = Buffer.from(`${bytes.length.toString(16)}\r\n`)
  if (broken === null) return Buffer.concat([size, bytes, crlf])
  return Buffer.concat([size, bytes.subarray(0, broken.afterBytes)])
}
