/**
 * A scripted provider on raw TCP: per request, a test specifies the bytes, the framing and where the connection breaks.
 * It keeps its own ledger, so that a test can compare the gateway's usage with what was sent.
 */
import {
  type Break,
  breakNow,
  type Framing,
  gzipPieces,
  type Piece,
  type Pieces,
  piece,
  send,
  slicePieces,
} from '../../src/simulator/reply.ts'
import { startServer } from '../../src/simulator/server.ts'
import { eventually } from './eventually.ts'

export type UpstreamRequest = {
  readonly method: string
  /** As sent, including the query. */
  readonly path: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Index of the request on this upstream, from 0. */
  readonly index: number
}

export type UpstreamAnswer = {
  /** Default: 200. */
  readonly status?: number
  /** Without the framing headers. */
  readonly headers?: Readonly<Record<string, string>>
  /** Default: `length`. `none`: only the chunks, without status line and headers. */
  readonly framing?: Framing | 'none'
  readonly gzip?: boolean
  /** Each is written separately; a `Piece` may have a delay. */
  readonly pieces?: Iterable<string | Uint8Array | Piece> | AsyncIterable<string | Uint8Array | Piece>
  /** Writes the body in chunks of this size instead. */
  readonly pieceBytes?: number
  /** Delay in milliseconds before the status line. */
  readonly headDelayMs?: number
  /** Breaks the connection after this many bytes of the body as sent (compressed ones with `gzip`). */
  readonly cutAt?: number
  /** How it breaks there; default: `fin`. */
  readonly end?: Break
}

export type LedgerEntry = UpstreamRequest & {
  /** Milliseconds of `performance.now()`. */
  readonly startedAt: number
  /** Including head and framing. */
  readonly bytesSent: number
  readonly outcome: 'open' | 'answered' | 'broken' | 'aborted'
  /** When the peer disconnected before its response was complete, in milliseconds of `performance.now()`. */
  readonly abortedAt: number | null
}

export type Upstream = {
  /** `http://127.0.0.1:port`, without a trailing slash. */
  readonly url: string
  /** The newest 1,000 requests, oldest first. */
  ledger(): readonly LedgerEntry[]
  openConnections(): number
  /** Number of accepted connections. */
  connections(): number
  /** Resolves when the condition is true, checked every 2 ms; rejects like `eventually`. */
  until(condition: (ledger: readonly LedgerEntry[]) => boolean, withinMs?: number): Promise<void>
  stop(): void
}

/** Starts an upstream on a free loopback port. A script that throws resets the connection. */
export function startUpstream(
  script: (request: UpstreamRequest) => UpstreamAnswer | Promise<UpstreamAnswer>,
): Upstream {
  const requests = new Map<number, UpstreamRequest>()
  const server = startServer(async exchange => {
    const { method, path, headers, body } = exchange.request
    const request = { method, path, headers, body: new TextDecoder().decode(body), index: exchange.index }
    requests.set(exchange.index, request)
    requests.delete(exchange.index - 1_000)
    return send(exchange, asReply(await script(request)))
  })

  const ledger = () =>
    server.stats().exchanges.flatMap(({ index, startedAt, bytesSent, outcome, endedAt }): LedgerEntry[] => {
      const request = requests.get(index)
      const abortedAt = outcome === 'aborted' ? endedAt : null
      return request === undefined ? [] : [{ ...request, startedAt, bytesSent, outcome, abortedAt }]
    })

  return {
    url: server.url,
    ledger,
    openConnections: () => server.stats().openConnections,
    connections: () => server.stats().connections,
    until: (condition, withinMs) => eventually(() => condition(ledger()), withinMs, 2),
    stop: server.stop,
  }
}

/** Returns a response that replays recorded bytes, truncated after `cutAt` of them. */
export function replay(
  bytes: Uint8Array,
  options: {
    readonly contentType: string
    readonly framing: Framing
    readonly cutAt?: number
    readonly end?: Break
    readonly gzip?: boolean
    readonly status?: number
    /** Size of the chunks; default: everything at once. */
    readonly pieceBytes?: number
  },
): UpstreamAnswer {
  const { contentType, ...rest } = options
  return { headers: { 'content-type': contentType }, pieces: [bytes], ...rest }
}

/** Returns a JSON response. */
export function jsonAnswer(
  body: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): UpstreamAnswer {
  return { status, headers: { 'content-type': 'application/json', ...headers }, pieces: [JSON.stringify(body)] }
}

/** Accepts the request and never responds. */
export const silence: UpstreamAnswer = { framing: 'none', cutAt: 0, end: 'hang' }

function asReply(answer: UpstreamAnswer): Parameters<typeof send>[1] {
  const { status = 200, headers = {}, framing = 'length', headDelayMs = 0 } = answer
  let pieces: Pieces = asPieces(answer.pieces ?? [])
  if (answer.gzip) pieces = gzipPieces(pieces)
  if (answer.pieceBytes !== undefined) pieces = slicePieces(pieces, answer.pieceBytes)
  if (answer.cutAt !== undefined) pieces = cutPieces(pieces, answer.cutAt, answer.end ?? 'fin')
  if (framing === 'none') return { kind: 'raw', pieces }
  const allHeaders = answer.gzip ? { ...headers, 'content-encoding': 'gzip' } : headers
  return { kind: 'http', status, headers: allHeaders, framing, headDelayMs, pieces }
}

async function* asPieces(pieces: NonNullable<UpstreamAnswer['pieces']>): AsyncGenerator<Piece> {
  for await (const next of pieces) {
    yield typeof next === 'string' || next instanceof Uint8Array ? piece(next) : next
  }
}

/**
 * Breaks the connection after `atBytes` bytes of the body in its current form (compress first to count compressed
 * bytes).
 */
async function* cutPieces(pieces: Pieces, atBytes: number, how: Break): AsyncGenerator<Piece> {
  let sent = 0
  let done = false
  for await (const next of pieces) {
    const breaks: boolean = !done && sent + next.bytes.length >= atBytes
    yield breaks ? { ...next, broken: { afterBytes: atBytes - sent, how } } : next
    done ||= breaks
    sent += next.bytes.length
  }
  if (!done) yield breakNow(how)
}
