/**
 * A scripted provider on raw TCP: a test says, request by request, which bytes go out, how they are framed, where the
 * connection breaks. It keeps its own ledger, so that a test can compare what the gateway says with what was sent.
 */
import {
  type Break,
  cutPieces,
  type Framing,
  gzipPieces,
  type Piece,
  type Pieces,
  piece,
  send,
  slicePieces,
} from '../../src/simulator/reply.ts'
import { startServer } from '../../src/simulator/server.ts'

export type UpstreamRequest = {
  readonly method: string
  /** As sent, query included. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Counts this upstream's requests from 0. */
  readonly index: number
}

export type UpstreamAnswer = {
  /** 200 unless given. */
  readonly status?: number
  /** Without those of the framing. */
  readonly headers?: Readonly<Record<string, string>>
  /** `length` unless given. `none`: the pieces are all there is, no status line, no headers. */
  readonly framing?: Framing | 'none'
  readonly gzip?: boolean
  /** Each written by itself; a `Piece` may wait before it is written. */
  readonly pieces?: Iterable<string | Uint8Array | Piece> | AsyncIterable<string | Uint8Array | Piece>
  /** Writes the body in pieces of so many bytes instead. */
  readonly pieceBytes?: number
  /** Milliseconds before the status line. */
  readonly headDelayMs?: number
  /** Breaks after so many bytes of the body, counted as they are sent (compressed ones, with `gzip`). */
  readonly cutAt?: number
  /** How it breaks there: `fin` unless given. */
  readonly end?: Break
}

export type LedgerEntry = UpstreamRequest & {
  /** Milliseconds of `performance.now()`. */
  readonly startedAt: number
  /** Head and framing included. */
  readonly bytesSent: number
  readonly outcome: 'open' | 'answered' | 'broken' | 'aborted'
  /** When the peer was seen to leave before its answer was complete, in milliseconds of `performance.now()`. */
  readonly abortedAt: number | null
}

export type Upstream = {
  /** `http://127.0.0.1:port`, without a trailing slash. */
  readonly url: string
  /** The newest 1,000 requests, oldest first. */
  ledger(): readonly LedgerEntry[]
  openConnections(): number
  /** Connections ever accepted. */
  connections(): number
  /** Resolves when the condition holds, looked at every 2 ms; rejects after `withinMs`. */
  until(condition: (ledger: readonly LedgerEntry[]) => boolean, withinMs?: number): Promise<void>
  stop(): void
}

/** Starts one on a free loopback port. A script that throws resets the connection. */
export function startUpstream(
  script: (request: UpstreamRequest) => UpstreamAnswer | Promise<UpstreamAnswer>,
): Upstream {
  const requests = new Map<number, UpstreamRequest>()
  const server = startServer({
    port: 0,
    async handle(exchange) {
      const { method, path, headers, body } = exchange.request
      const request = { method, path, headers, body: new TextDecoder().decode(body), index: exchange.index }
      requests.set(exchange.index, request)
      requests.delete(exchange.index - 1_000)
      return send(exchange, asReply(await script(request)))
    },
  })

  const ledger = () =>
    server.stats().exchanges.flatMap(({ index, startedAt, bytesSent, outcome, endedAt }): LedgerEntry[] => {
      const request = requests.get(index)
      const abortedAt = outcome === 'aborted' ? endedAt : null
      return request === undefined ? [] : [{ ...request, startedAt, bytesSent, outcome, abortedAt }]
    })

  return {
    url: `http://127.0.0.1:${server.port}`,
    ledger,
    openConnections: () => server.stats().openConnections,
    connections: () => server.stats().connections,
    async until(condition, withinMs = 2_000) {
      const deadline = performance.now() + withinMs
      while (!condition(ledger())) {
        if (performance.now() > deadline)
          throw new Error(`not so within ${withinMs} ms: ${JSON.stringify(ledger().slice(-3))}`)
        await Bun.sleep(2)
      }
    },
    stop: server.stop,
  }
}

/** The answer that plays recorded bytes back, broken off after `cutAt` of them. */
export function replay(
  bytes: Uint8Array,
  options: {
    readonly contentType: string
    readonly framing: Framing
    readonly cutAt?: number
    readonly end?: Break
    readonly gzip?: boolean
    readonly status?: number
    /** Size of the pieces; all at once unless given. */
    readonly pieceBytes?: number
  },
): UpstreamAnswer {
  const { contentType, ...rest } = options
  return { headers: { 'content-type': contentType }, pieces: [bytes], ...rest }
}

/** A JSON answer. */
export function jsonAnswer(
  body: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): UpstreamAnswer {
  return { status, headers: { 'content-type': 'application/json', ...headers }, pieces: [JSON.stringify(body)] }
}

/** Accepts the request and never answers. */
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
