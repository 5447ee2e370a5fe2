/** Builds the reply to one request: the provider's response, modified and broken as the directives request. */
import type { Directives } from './directives.ts'
import {
  type Break,
  breakNow,
  cutPieces,
  gzipPieces,
  type Piece,
  type Pieces,
  piece,
  type Reply,
  slicePieces,
} from './reply.ts'
import {
  type Failure,
  type FailureKind,
  type Frame,
  mistake,
  type SimulatedError,
  type SimulatedFormat,
  type SimulatedResponse,
  slices,
} from './wire-format.ts'

const megabyte = 1_048_576
/** Far more than a gateway accepts, but small enough to hold in memory if the length is announced. */
const maximumMegabytes = 1_024
/** Maximum delay steps of a JSON response. */
const maximumPaced = 30_000
const jsonPieceCharacters = 64

type Body = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: Pieces
  readonly streamed: boolean
}

/** Returns the response in this provider's format, complete or broken. */
export function replyTo(face: SimulatedFormat, turn: SimulatedResponse): Reply {
  const { directives } = turn
  const broken = brokenBeforeHead(directives)
  if (broken !== null) return broken
  return framed(bodyOf(face, turn), directives, turn.question.stream ? delayOf(directives) : wholeDelay(face, turn))
}

/** Returns an error without a directive. */
export function refusalReply(
  face: SimulatedFormat,
  refusal: SimulatedError,
  common: Readonly<Record<string, string>>,
): Reply {
  return framed(refusalBody(face, refusal, common), {}, 0)
}

function brokenBeforeHead(directives: Directives): Reply | null {
  const raw = (...pieces: Piece[]): Reply => ({ kind: 'raw', pieces })
  const first = (how: Break): Piece => ({ ...breakNow(how), delayMs: delayOf(directives) })
  if (directives.hang) return raw(breakNow('hang'))
  if (directives.cut) return raw(first('fin'))
  if (directives.reset) return raw(first('rst'))
  if (directives.garbage)
    return raw(piece('\u0000\u0001SSH-2.0-simulated\r\n\r\n', delayOf(directives)), breakNow('fin'))
  return null
}

function bodyOf(face: SimulatedFormat, turn: SimulatedResponse): Body {
  const { directives, question } = turn
  const common = face.headers(turn)
  const failure = failureAsked(directives)
  if (failure !== null) {
    const refusal = face.failure(failure, turn.mint)
    // Google blocks a prompt with status 200, which is an event in a stream.
    if (refusal.status !== 200 || !question.stream) return refusalBody(face, refusal, common)
    const event = frameWriter(face, turn)({ part: 'closing', name: null, data: JSON.stringify(refusal.body) })
    return {
      status: 200,
      headers: { ...common, 'content-type': face.streamType },
      pieces: question.events ? [piece(event)] : [piece(event), piece(']')],
      streamed: true,
    }
  }
  if (directives.html) {
    const page = '<!doctype html><html><title>Simulated</title><h1>Bad gateway</h1></html>\n'
    return {
      status: 200,
      headers: { 'content-type': 'text/html; charset=utf-8' },
      pieces: [piece(page)],
      streamed: false,
    }
  }
  if (directives.error_200) {
    const failed = face.failure({ ...mistake('simulated failure'), kind: 'by_status', status: 503 }, turn.mint)
    return { ...refusalBody(face, failed, common), status: 200 }
  }
  if (directives.bomb_mb !== undefined) {
    return {
      status: 200,
      headers: { ...common, 'content-type': face.jsonType },
      pieces: spaces(directives.bomb_mb),
      streamed: true,
    }
  }
  if (!question.stream) {
    return {
      status: 200,
      headers: { ...common, 'content-type': face.jsonType },
      pieces: jsonPieces(face, turn),
      streamed: false,
    }
  }
  const type = question.events ? face.streamType : face.jsonType
  const headers = { ...common, 'content-type': type, 'cache-control': 'no-cache' }
  return { status: 200, headers, pieces: streamPieces(face, turn), streamed: true }
}

function refusalBody(face: SimulatedFormat, refusal: SimulatedError, common: Readonly<Record<string, string>>): Body {
  const headers = { ...common, ...refusal.headers, 'content-type': face.jsonType }
  return { status: refusal.status, headers, pieces: [piece(JSON.stringify(refusal.body))], streamed: false }
}

function failureAsked(directives: Directives): Failure | null {
  const ask = (kind: FailureKind, status: number): Failure => ({
    kind,
    status,
    message: `Simulated failure with status ${status}.`,
    param: null,
    retryAfterSeconds: directives.retry_after ?? null,
  })
  if (directives.quota) return ask('quota', 429)
  if (directives.context_overflow) return ask('context_overflow', 400)
  if (directives.content_block) return ask('content_block', 400)
  if (directives.model_missing) return ask('model_missing', 404)
  return directives.status === undefined || directives.status === 200 ? null : ask('by_status', directives.status)
}

/** Adds framing and the faults that do not depend on content. */
function framed(body: Body, directives: Directives, headDelayMs: number): Reply {
  const zipped = directives.gzip || directives.bomb_mb !== undefined
  let pieces = zipped ? gzipPieces(body.pieces) : body.pieces
  if (directives.slice !== undefined) pieces = slicePieces(pieces, Math.max(1, directives.slice))
  if (directives.cut_bytes !== undefined) pieces = cutPieces(pieces, directives.cut_bytes, 'fin')
  if (directives.reset_bytes !== undefined) pieces = cutPieces(pieces, directives.reset_bytes, 'rst')
  return {
    kind: 'http',
    status: body.status,
    headers: zipped ? { ...body.headers, 'content-encoding': 'gzip' } : body.headers,
    framing: directives.framing ?? (body.streamed ? 'chunked' : 'length'),
    headDelayMs,
    pieces,
  }
}

function delayOf(directives: Directives): number {
  return directives.slow_headers_ms ?? 0
}

/** Returns the delay of a JSON response, which arrives when its stream would have ended. */
function wholeDelay(face: SimulatedFormat, turn: SimulatedResponse): number {
  const { directives } = turn
  const before = delayOf(directives) + (directives.first_ms ?? 0)
  if (directives.pace_ms === undefined || failureAsked(directives) !== null) return before
  return (
    before +
    directives.pace_ms *
      Iterator.from(face.frames(turn))
        .filter(frame => frame.part === 'content')
        .take(maximumPaced)
        .reduce(sum => sum + 1, 0)
  )
}

function* jsonPieces(face: SimulatedFormat, turn: SimulatedResponse): Generator<Piece> {
  const { directives } = turn
  const text = JSON.stringify(face.completion(turn))
  if (directives.huge_line !== undefined) yield* spaces(directives.huge_line)
  if (directives.error_after !== undefined) return yield piece(face.errorFrame(turn.mint).data)
  if (directives.malformed_after !== undefined) return yield piece(text.slice(0, Math.ceil(text.length / 2)))
  if (directives.bad_utf8_after !== undefined)
    return yield piece(Buffer.concat([Buffer.from(text.slice(0, 20)), notUtf8]))
  const breaking = breakAsked(directives)
  if (breaking === null) return yield piece(text)
  let sent = 0
  for (const part of slices(text, directives.chunk ?? jsonPieceCharacters)) {
    yield sent++ === breaking.after ? { ...piece(part), broken: { afterBytes: 0, how: breaking.how } } : piece(part)
  }
  if (sent <= breaking.after) yield breakNow(breaking.how)
}

const notUtf8 = new Uint8Array([0xff, 0xfe, 0xc3, 0x28])

function* streamPieces(face: SimulatedFormat, turn: SimulatedResponse): Generator<Piece> {
  const { directives } = turn
  const pace = directives.pace_ms ?? 0
  const breaking = breakAsked(directives)
  const write = frameWriter(face, turn)
  let contents = 0
  let struck = false

  for (const frame of framesOf(face, turn)) {
    const isContent = frame.part === 'content'
    const strikes = (after: number | undefined) =>
      !struck && after !== undefined && (isContent ? contents === after : frame.part === 'closing')
    let bytes = write(frame)
    let broken: Piece['broken'] = null
    if (contents === 0 && isContent && directives.huge_line !== undefined) {
      yield* hugeLine(face, directives.huge_line)
    }
    if (strikes(directives.error_after)) return yield piece(write(face.errorFrame(turn.mint)), pace)
    if (strikes(directives.malformed_after)) {
      struck = true
      bytes = write({ ...frame, data: frame.data.slice(0, Math.ceil(frame.data.length / 2)) })
    } else if (strikes(directives.bad_utf8_after)) {
      struck = true
      bytes = Buffer.concat([
        Buffer.from('data: {"simulated":"'),
        notUtf8,
        Buffer.from(`"}${face.lineEnd}${face.lineEnd}`),
      ])
    } else if (strikes(breaking?.after)) {
      struck = true
      broken = breaking === null ? null : { afterBytes: 0, how: breaking.how }
    }
    const delayMs = isContent ? (contents === 0 ? (directives.first_ms ?? 0) : pace) : 0
    yield { bytes, delayMs, broken }
    if (isContent) contents++
  }
  if (!turn.question.events) yield piece(']')
}

function breakAsked(directives: Directives): { readonly after: number; readonly how: Break } | null {
  if (directives.cut_after !== undefined) return { after: directives.cut_after, how: 'fin' }
  if (directives.reset_after !== undefined) return { after: directives.reset_after, how: 'rst' }
  return directives.hang_after === undefined ? null : { after: directives.hang_after, how: 'hang' }
}

/** Yields the frames with pings and unknown frames inserted and the end omitted, as requested. */
function* framesOf(face: SimulatedFormat, turn: SimulatedResponse): Generator<Frame | CommentFrame> {
  const { directives } = turn
  let pings = directives.pings ?? 0
  let held: Frame | null = null
  for (const frame of face.frames(turn)) {
    if (frame.part === 'closing' && directives.no_terminal) return
    for (; frame.part !== 'opening' && pings > 0; pings--) yield face.ping ?? comment
    if (directives.comments) yield comment
    if (directives.unknown_events) yield face.unknownFrame
    if (held !== null) yield held
    held = directives.no_done ? frame : null
    if (held === null) yield frame
  }
}

type CommentFrame = Frame & { readonly comment: true }
const comment: CommentFrame = { part: 'opening', name: null, data: ': simulated keep-alive', comment: true }

/** Returns a writer of frames: events with the format's line ends, or the elements of Google's JSON array. */
function frameWriter(face: SimulatedFormat, turn: SimulatedResponse): (frame: Frame | CommentFrame) => Uint8Array {
  const ends = { lf: ['\n'], crlf: ['\r\n'], cr: ['\r'], mixed: ['\n', '\r\n', '\r'] }
  const chosen = turn.directives.line_ends === undefined ? [face.lineEnd] : ends[turn.directives.line_ends]
  let lines = 0
  const end = () => chosen[lines++ % chosen.length] ?? '\n'
  let elements = 0
  return frame => {
    if (face.encode !== undefined) return 'comment' in frame ? new Uint8Array(0) : face.encode(frame)
    if (!turn.question.events) return Buffer.from(`${elements++ === 0 ? '[' : ',\r\n'}${frame.data}`)
    if ('comment' in frame) return Buffer.from(`${frame.data}${end()}${blankLine(chosen, end)}`)
    const name = frame.name === null ? '' : `event: ${frame.name}${end()}`
    return Buffer.from(`${name}data: ${frame.data}${end()}${blankLine(chosen, end)}`)
  }
}

/** CR followed by LF would be one line end instead of two, so mixed line ends are drawn again. */
function blankLine(chosen: readonly string[], end: () => string): string {
  return chosen.length === 1 ? end() : '\n\n'
}

function* hugeLine(face: SimulatedFormat, megabytes: number): Generator<Piece> {
  yield piece('data: {"simulated":"')
  yield* spaces(megabytes)
  yield piece(`"}${face.lineEnd}${face.lineEnd}`)
}

const spaceBytes = new Uint8Array(65_536).fill(0x20)

function* spaces(megabytes: number): Generator<Piece> {
  const all = Math.min(megabytes, maximumMegabytes) * megabyte
  for (let sent = 0; sent < all; sent += spaceBytes.length) yield piece(spaceBytes)
}
