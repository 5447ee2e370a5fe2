import { maximumVectorBytes } from '../core/chat/embeddings.ts'
import { gridMs } from '../core/chat/stream-pacing.ts'
import type { Clock } from '../core/ports.ts'
import { parseUntrustedJson } from '../core/validation/untrusted-json.ts'
import type { AdapterRequest, Provider, ProviderFailure, StreamReader } from '../providers/provider.ts'
import type { ReceivedAnswer } from '../providers/received-answer.ts'
import {
  type EventSplitter,
  EventTooLongError,
  InvalidFrameError,
  maximumEventCharacters,
  SseSplitter,
} from '../providers/sse.ts'

/** Reads an upstream's body into a response; the provider's adapter interprets its bytes. */
export type BodyReader = {
  /** Reads once. Returns false after the end of the body. */
  next(): Promise<boolean>
  isOver(): boolean
  /** Reads and discards the remaining bytes. */
  drain(): Promise<void>
}

type BodyReaderOptions = {
  readonly provider: Provider
  readonly clock: Pick<Clock, 'after' | 'monotonic'>
  /** Called for each read of a whole body. */
  readonly byteArrived: () => void
  readonly answer: ReceivedAnswer
}

/** A body up to this size arrives in a few packets and needs no timer between them. */
const maximumAtOnceBytes = 65_536
/** Maximum bytes and time for the body of an error: its status is known, and another candidate may be called. */
const maximumFailureBytes = 65_536
const maximumFailureMs = 2_000

/**
 * Chooses the reader by the response, not by the request: servers return JSON for a stream and errors with status 200.
 */
export function bodyReader(
  response: Response,
  { request, stream, model, inputs }: AdapterRequest,
  { provider, clock, byteArrived, answer }: BodyReaderOptions,
): BodyReader {
  const contentType = response.headers.get('content-type') ?? ''
  if (!response.ok)
    return wholeBody(
      () => readBeginning(response, clock),
      text => answer.fail(provider.readFailure(response.status, response.headers, text)),
    )
  if (contentType.includes('json') || (!stream && !contentType.includes('event-stream'))) {
    const length = request.embedding?.dimensions ?? model.embedding?.dimensions ?? null
    const vectorBytes = maximumFailureBytes + (inputs?.length ?? 0) * maximumVectorBytes(length)
    return wholeBody(
      () => readText(response, inputs === undefined ? maximumEventCharacters : vectorBytes, byteArrived),
      text => provider.readResponse(inputs === undefined ? parseUntrustedJson(text) : parseVectors(text), answer),
    )
  }
  if (contentType.includes('html'))
    return wholeBody(
      async () => cut(''),
      () => answer.fail(upstreamFailure('bad_answer', 'an HTML page')),
    )
  const stepMs = request.stream === null ? wholeStepMs : gridMs
  return new EventBody(response, provider, { choices: request.choices, stepMs, clock, answer })
}

/** Parses vectors, of which no number is sent on as written: keeping each number's text would take a second. */
function parseVectors(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The bytes that were read, and whether they are the whole body. */
type BodyText = { readonly text: string; readonly isWhole: boolean }

const whole = (text: string): BodyText => ({ text, isWhole: true })
const cut = (text: string): BodyText => ({ text, isWhole: false })

function wholeBody(take: () => Promise<BodyText>, read: (text: string) => void): BodyReader {
  let over = false
  return {
    isOver: () => over,
    drain: () => Promise.reject(new Error('a whole body is read at once')),
    async next() {
      if (over) return false
      const { text, isWhole } = await take()
      over = isWhole
      read(text)
      return true
    },
  }
}

/** Returns the body as text; discards bytes past `maximumBytes`. */
async function readText(response: Response, maximumBytes: number, byteArrived: () => void): Promise<BodyText> {
  const declared = Number(response.headers.get('content-length') ?? Number.NaN)
  if (declared <= Math.min(maximumBytes, maximumAtOnceBytes) && response.headers.get('content-encoding') === null)
    return whole(await response.text())
  if (response.body === null) return whole('')
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const piece of response.body) {
    byteArrived()
    bytes += piece.byteLength
    if (bytes > maximumBytes) return cut('')
    text += decoder.decode(piece, { stream: true })
  }
  return whole(text + decoder.decode())
}

/** Returns the body of an error within its bounds; a truncated one up to its end. */
async function readBeginning({ body }: Response, clock: BodyReaderOptions['clock']): Promise<BodyText> {
  if (body === null) return whole('')
  const pieces = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  let cancel = () => {}
  const late = new Promise<null>(resolve => {
    cancel = clock.after(maximumFailureMs, () => resolve(null))
  })
  try {
    while (bytes < maximumFailureBytes) {
      const piece = await Promise.race([pieces.read(), late])
      if (piece === null) break
      if (piece.done) return whole(text)
      text += decoder.decode(piece.value.subarray(0, maximumFailureBytes - bytes), { stream: true })
      bytes += piece.value.byteLength
    }
    return cut(text)
  } catch {
    return cut(text)
  } finally {
    cancel()
  }
}

/** For a JSON client: as often as the first checkpoint is due. */
const wholeStepMs = 250

/**
 * Maximum bytes of a stream parsed per turn of the event loop. A read can hold 0.5 MB; parsing 50 of them in one turn
 * would delay all other requests by 0.5 s.
 */
const maximumParsedBytes = 8_192

/**
 * Reads an event stream. Joins reads within one step, because each batch runs through moderation and delivery, which costs
 * more than its parsing. A stream's step is the grid of its writes (`gridMs`); a JSON client reads nothing before the end, so
 * its step is longer. The first content, tool calls and the end never wait. Reads only while `next` is pending.
 */
class EventBody implements BodyReader {
  private readonly splitter: EventSplitter
  private readonly pieces: { read(): Promise<{ readonly value?: Uint8Array | undefined }> } | null
  private readonly reader: StreamReader
  private readonly stepMs: number
  private readonly clock: BodyReaderOptions['clock']
  private readonly answer: ReceivedAnswer
  private over = false
  private isReading = false
  /** Bytes that were read and not parsed yet. */
  private rest: Uint8Array | null = null
  private bytes = 0
  private hasContent = false
  private releasedAt = Number.NEGATIVE_INFINITY
  private broken: { readonly cause: unknown } | null = null
  private waiting: PromiseWithResolvers<boolean> | null = null
  private cancelRelease: (() => void) | null = null

  constructor(
    { body }: Response,
    provider: Provider,
    {
      choices,
      stepMs,
      clock,
      answer,
    }: Pick<BodyReaderOptions, 'clock' | 'answer'> & { readonly choices: number; readonly stepMs: number },
  ) {
    this.stepMs = stepMs
    this.pieces = body?.getReader() ?? null
    this.reader = provider.streamReader(choices)
    this.splitter = provider.createSplitter?.() ?? new SseSplitter()
    this.clock = clock
    this.answer = answer
  }

  isOver(): boolean {
    return this.over
  }

  async drain(): Promise<void> {
    while (this.pieces !== null && (await this.pieces.read()).value !== undefined);
  }

  next(): Promise<boolean> {
    const hasArrived = this.answer.arrived !== 'nothing'
    if (this.over && !hasArrived) return Promise.resolve(false)
    this.waiting = Promise.withResolvers()
    const { promise } = this.waiting
    if (hasArrived) this.releaseOrWait()
    else if (this.broken !== null) this.waiting.reject(this.broken.cause)
    else this.readOn()
    return promise
  }

  private readOn(): void {
    if (this.isReading) return
    this.isReading = true
    if (this.rest !== null) setImmediate(this.arrived, { value: this.rest })
    else if (this.pieces === null) this.arrived({})
    else this.pieces.read().then(this.arrived, this.broke)
  }

  private readonly arrived = ({ value }: { readonly value?: Uint8Array | undefined }): void => {
    this.isReading = false
    try {
      if (value === undefined) this.end()
      else this.parse(value)
    } catch (cause) {
      const isTooLong = cause instanceof EventTooLongError
      if (!isTooLong && !(cause instanceof InvalidFrameError)) {
        this.broke(cause)
        return
      }
      this.answer.fail(upstreamFailure('bad_answer', isTooLong ? 'an event over the size limit' : cause.message))
    }
    this.releaseOrWait()
  }

  private readonly broke = (cause: unknown): void => {
    this.isReading = false
    this.broken = { cause }
    // Received output is billed, so it precedes the failure.
    if (this.answer.arrived !== 'nothing') this.releaseOrWait()
    else this.waiting?.reject(cause)
  }

  private parse(bytes: Uint8Array): void {
    this.rest = bytes.length > maximumParsedBytes ? bytes.subarray(maximumParsedBytes) : null
    const now = this.rest === null ? bytes : bytes.subarray(0, maximumParsedBytes)
    this.bytes += now.length
    this.splitter.push(now, this.reader, this.answer)
    const { buffer, byteOffset } = bytes
    // The last part of a large read. The collector would free it long after many others.
    if (this.rest === null && byteOffset >= maximumParsedBytes && buffer instanceof ArrayBuffer) buffer.transfer(0)
  }

  private end(): void {
    this.over = true
    this.splitter.finish(this.reader, this.answer)
    this.reader.finish(this.answer)
  }

  /** Ends the pending `next` if it is due, and otherwise reads on until then. */
  private releaseOrWait(): void {
    if (this.waiting === null) return
    const { arrived } = this.answer
    const now = this.clock.monotonic()
    const { stepMs } = this
    // JSON clients share no grid: they would all be served in the same millisecond.
    const from = stepMs === gridMs ? Math.floor(this.releasedAt / gridMs) * gridMs : this.releasedAt
    const dueAt = from + stepMs
    const mayWait = arrived === 'text' && this.hasContent && now < dueAt && !this.over && this.broken === null
    if (!mayWait || this.bytes >= maximumParsedBytes) {
      this.release()
      return
    }
    this.cancelRelease ??= this.clock.after(Math.ceil(dueAt - now), this.release)
    this.readOn()
  }

  private readonly release = (): void => {
    this.cancelRelease?.()
    this.cancelRelease = null
    const { waiting, answer } = this
    if (answer.arrived !== 'nothing') {
      this.hasContent = true
      this.releasedAt = this.clock.monotonic()
      answer.arrived = 'nothing'
    }
    this.bytes = 0
    this.waiting = null
    waiting?.resolve(true)
  }
}

export function upstreamFailure(kind: ProviderFailure['kind'], detail: string): ProviderFailure {
  return { kind, blame: 'upstream', retryable: true, retryAfterMs: null, detail }
}
