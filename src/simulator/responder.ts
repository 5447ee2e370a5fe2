/** Answers one request in a wire format, modified and broken as the directives request. */
import type { Clock } from '../core/ports.ts'
import { createRecentMap } from '../core/text/recent-map.ts'
import { type Directives, findDirectives, readDirectives } from './directives.ts'
import { countUsage, createOutput } from './output.ts'
import { createPromptCaches } from './prompt-cache.ts'
import {
  type Break,
  breakNow,
  gzipPieces,
  jsonReply,
  type Piece,
  type Pieces,
  piece,
  type Reply,
  slicePieces,
} from './reply.ts'
import type { RawRequest } from './server.ts'
import {
  type Failure,
  type FailureKind,
  type Frame,
  isWireObject,
  type Mint,
  mistake,
  readKey,
  type SimulatedError,
  type SimulatedFormat,
  type SimulatedResponse,
  slices,
  type WireObject,
} from './wire-format.ts'

/** Maximum delay steps of a JSON response. */
const maximumPaced = 30_000
const jsonPieceCharacters = 64

type Body = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: Pieces
  readonly streamed: boolean
}

export type SimulatorParts = {
  /** `now` in epoch milliseconds, used for creation times. */
  readonly clock: Pick<Clock, 'now'>
  /** In [0, 1). Only IDs are random, never output. */
  readonly random: () => number
}

const maximumKeys = 10_000

/** Creates the function that answers requests in a wire format; null = no format has this path. */
export function createResponder({ clock, random }: SimulatorParts) {
  const mint = createMint(random)
  const uses = createRecentMap<number>(maximumKeys)
  const countUse = (key: string) => {
    const count = (uses.get(key) ?? 0) + 1
    uses.set(key, count)
    return count
  }
  const usePromptCache = createPromptCaches(clock)

  return (request: RawRequest, format: SimulatedFormat | null): Reply => {
    if (format === null) return jsonReply(404, {})
    const createdAt = Math.floor(clock.now() / 1_000)
    const common = format.headers({ mint, createdAt })
    const refuse = (message: string, status = 400) =>
      writeError(format, format.failure(mistake(message, null, status), mint), common)
    if (request.method !== 'POST') return refuse(`Not allowed to ${request.method} on ${request.path}.`, 405)
    const body = parseObject(request.body)
    if (body === null) return refuse('We could not parse the JSON body of your request: a JSON object is expected.')
    const read = format.read(request, body, mint)
    if (read.kind === 'refusal') return writeError(format, read, common)

    const { question } = read
    const { provider } = format
    const groups = readDirectives(question.userTexts)
    if (groups.kind === 'problem') return refuse(groups.message)
    const place = { provider, model: question.model, apiKey: readKey(request) }
    const directed = findDirectives(groups.groups, place, countUse)
    const outputs = Array.from({ length: question.choices }, (_, choice) => createOutput(question, directed, choice))
    return createReply(format, {
      question,
      directives: directed,
      outputs,
      usage: countUsage(question, directed, outputs, tokens => usePromptCache(provider, request, body, tokens)),
      served: directed.served ?? question.model,
      createdAt,
      mint,
      chunkCharacters: directed.chunk ?? format.chunkCharacters,
    })
  }
}

/** Returns the response in this provider's format, complete or broken. */
function createReply(format: SimulatedFormat, turn: SimulatedResponse): Reply {
  const { directives, question } = turn
  const delayMs = directives.slow_headers_ms ?? 0
  const raw = (...pieces: Piece[]): Reply => ({ kind: 'raw', pieces })
  if (directives.hang) return raw(breakNow('hang'))
  if (directives.cut) return raw({ ...breakNow('fin'), delayMs })
  if (directives.reset) return raw({ ...breakNow('rst'), delayMs })
  return frame(createBody(format, turn), directives, question.stream ? delayMs : delayMs + timeStream(format, turn))
}

/** Returns an error without a directive. */
function writeError(format: SimulatedFormat, error: SimulatedError, common: Readonly<Record<string, string>>): Reply {
  return frame(createErrorBody(format, error, common), {}, 0)
}

function createBody(format: SimulatedFormat, turn: SimulatedResponse): Body {
  const { directives, question } = turn
  const common = format.headers(turn)
  const failure = readFailure(directives)
  if (failure !== null) {
    const error = format.failure(failure, turn.mint)
    // Google blocks a prompt with status 200, which is an event in a stream.
    if (error.status !== 200 || !question.stream) return createErrorBody(format, error, common)
    const event = frameWriter(format, turn)({ part: 'closing', name: null, data: JSON.stringify(error.body) })
    const headers = { ...common, 'content-type': format.streamType }
    const pieces = question.events ? [piece(event)] : [piece(event), piece(']')]
    return { status: 200, headers, pieces, streamed: true }
  }
  if (directives.html) {
    const page = '<!doctype html><html><title>Simulated</title><h1>Bad gateway</h1></html>\n'
    const headers = { 'content-type': 'text/html; charset=utf-8' }
    return { status: 200, headers, pieces: [piece(page)], streamed: false }
  }
  if (!question.stream) {
    const headers = { ...common, 'content-type': format.jsonType }
    return { status: 200, headers, pieces: jsonPieces(format, turn), streamed: false }
  }
  const type = question.events ? format.streamType : format.jsonType
  const headers = { ...common, 'content-type': type, 'cache-control': 'no-cache' }
  return { status: 200, headers, pieces: streamPieces(format, turn), streamed: true }
}

function createErrorBody(
  format: SimulatedFormat,
  error: SimulatedError,
  common: Readonly<Record<string, string>>,
): Body {
  const headers = { ...common, ...error.headers, 'content-type': format.jsonType }
  return { status: error.status, headers, pieces: [piece(JSON.stringify(error.body))], streamed: false }
}

function readFailure(directives: Directives): Failure | null {
  const failure = (kind: FailureKind, status: number): Failure => ({
    ...mistake(`Simulated failure with status ${status}.`, null, status, kind),
    retryAfterSeconds: directives.retry_after ?? null,
  })
  if (directives.quota) return failure('quota', 429)
  if (directives.context_overflow) return failure('context_overflow', 400)
  if (directives.content_block) return failure('content_block', 400)
  if (directives.model_missing) return failure('model_missing', 404)
  return directives.status === undefined || directives.status === 200 ? null : failure('by_status', directives.status)
}

/** Adds framing and the faults that do not depend on content. */
function frame(body: Body, directives: Directives, headDelayMs: number): Reply {
  const zipped = directives.gzip ? gzipPieces(body.pieces) : body.pieces
  return {
    kind: 'http',
    status: body.status,
    headers: directives.gzip ? { ...body.headers, 'content-encoding': 'gzip' } : body.headers,
    framing: directives.framing ?? (body.streamed ? 'chunked' : 'length'),
    headDelayMs,
    pieces: directives.slice === undefined ? zipped : slicePieces(zipped, Math.max(1, directives.slice)),
  }
}

/** Returns the delay of a JSON response, which arrives when its stream would have ended. */
function timeStream(format: SimulatedFormat, turn: SimulatedResponse): number {
  const { directives } = turn
  const firstMs = directives.first_ms ?? 0
  if (directives.pace_ms === undefined || readFailure(directives) !== null) return firstMs
  const contents = Iterator.from(format.frames(turn)).filter(({ part }) => part === 'content')
  return firstMs + directives.pace_ms * contents.take(maximumPaced).reduce(sum => sum + 1, 0)
}

function* jsonPieces(format: SimulatedFormat, turn: SimulatedResponse): Generator<Piece> {
  const { directives } = turn
  const text = JSON.stringify(format.completion(turn))
  if (directives.error_after !== undefined) return yield piece(format.errorFrame(turn.mint).data)
  if (directives.malformed_after !== undefined) return yield piece(text.slice(0, Math.ceil(text.length / 2)))
  const breaking = readBreak(directives)
  if (breaking === null) return yield piece(text)
  let sent = 0
  for (const part of slices(text, directives.chunk ?? jsonPieceCharacters)) {
    yield sent++ === breaking.after ? { ...piece(part), broken: { afterBytes: 0, how: breaking.how } } : piece(part)
  }
  if (sent <= breaking.after) yield breakNow(breaking.how)
}

function* streamPieces(format: SimulatedFormat, turn: SimulatedResponse): Generator<Piece> {
  const { directives } = turn
  const pace = directives.pace_ms ?? 0
  const breaking = readBreak(directives)
  const write = frameWriter(format, turn)
  let contents = 0
  let struck = false

  for (const frame of format.frames(turn)) {
    if (frame.part === 'closing' && directives.no_terminal) break
    const isContent = frame.part === 'content'
    const strikes = (after: number | undefined) =>
      !struck && after !== undefined && (isContent ? contents === after : frame.part === 'closing')
    let { data } = frame
    let broken: Piece['broken'] = null
    if (strikes(directives.error_after)) return yield piece(write(format.errorFrame(turn.mint)), pace)
    if (strikes(directives.malformed_after)) {
      struck = true
      data = data.slice(0, Math.ceil(data.length / 2))
    } else if (breaking !== null && strikes(breaking.after)) {
      struck = true
      broken = { afterBytes: 0, how: breaking.how }
    }
    const delayMs = isContent ? (contents === 0 ? (directives.first_ms ?? 0) : pace) : 0
    yield { bytes: write({ ...frame, data }), delayMs, broken }
    if (isContent) contents++
  }
  if (!turn.question.events) yield piece(']')
}

function readBreak(directives: Directives): { readonly after: number; readonly how: Break } | null {
  if (directives.cut_after !== undefined) return { after: directives.cut_after, how: 'fin' }
  if (directives.reset_after !== undefined) return { after: directives.reset_after, how: 'rst' }
  return directives.hang_after === undefined ? null : { after: directives.hang_after, how: 'hang' }
}

/** Returns a writer of frames: those of the format, or the elements of Google's JSON array. */
function frameWriter(format: SimulatedFormat, turn: SimulatedResponse): (frame: Frame) => Uint8Array {
  let elements = 0
  return frame => {
    if (turn.question.events) return format.encode(frame)
    return Buffer.from(`${elements++ === 0 ? '[' : ',\r\n'}${frame.data}`)
  }
}

function parseObject(body: Uint8Array): WireObject | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body))
    return isWireObject(value) ? value : null
  } catch {
    return null
  }
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function createMint(random: () => number): Mint {
  return (prefix, length) => {
    let id = prefix
    for (let index = 0; index < length; index++) id += alphabet[Math.floor(random() * alphabet.length)]
    return id
  }
}
