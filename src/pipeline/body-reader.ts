import type { Clock } from '../core/ports/clock.ts'
import { parseUntrustedJson } from '../core/validation/untrusted-json.ts'
import type { AnswerPart, Provider, ProviderAsk, StreamReader } from '../providers/provider.ts'
import { createEventSplitter, type EventSplitter, EventTooLongError, InvalidFrameError } from '../providers/sse.ts'

/** Reads an upstream's body; the provider's adapter interprets its bytes. */
export type BodyReader = {
  next(): Promise<readonly AnswerPart[] | null>
  isOver(): boolean
  /** Reads and discards the remaining bytes. */
  drain(): Promise<void>
}

type BodyReaderOptions = {
  readonly provider: Provider
  readonly clock: Pick<Clock, 'after'>
  /** Called for each read of a whole body. */
  readonly byteArrived: () => void
}

/** Maximum bytes of a JSON response: an output of 128,000 tokens has about 1 MB. */
const maximumAnswerBytes = 8 * 1_048_576
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
  { ask, stream }: ProviderAsk,
  { provider, clock, byteArrived }: BodyReaderOptions,
): BodyReader {
  const contentType = response.headers.get('content-type') ?? ''
  if (!response.ok)
    return wholeBody(
      () => readBeginning(response, clock),
      text => [{ type: 'failure', failure: provider.readFailure(response.status, response.headers, text) }],
    )
  if (contentType.includes('json') || (!stream && !contentType.includes('event-stream')))
    return wholeBody(
      () => readText(response, maximumAnswerBytes, byteArrived),
      text => provider.readResponse(parseUntrustedJson(text)),
    )
  if (contentType.includes('html'))
    return wholeBody(
      async () => cut(''),
      () => [badAnswer('an HTML page')],
    )
  return eventBody(response, provider.streamReader(ask.choices), (provider.createSplitter ?? createEventSplitter)())
}

/** The bytes that were read, and whether they are the whole body. */
type BodyText = { readonly text: string; readonly isWhole: boolean }

const whole = (text: string): BodyText => ({ text, isWhole: true })
const cut = (text: string): BodyText => ({ text, isWhole: false })

function wholeBody(take: () => Promise<BodyText>, read: (text: string) => readonly AnswerPart[]): BodyReader {
  let over = false
  return {
    isOver: () => over,
    drain: () => Promise.reject(new Error('a whole body is read at once')),
    async next() {
      if (over) return null
      const { text, isWhole } = await take()
      over = isWhole
      return read(text)
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

/**
 * Maximum bytes of a stream parsed per turn of the event loop. A read can hold 0.5 MB; parsing 50 of them in one turn
 * would delay all other requests by 0.5 s.
 */
const maximumParsedBytes = 8_192

const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

function eventBody(response: Response, reader: StreamReader, splitter: EventSplitter): BodyReader {
  const pieces = response.body?.getReader() ?? null
  let over = false
  /** Bytes that were read and not parsed yet. */
  let rest: Uint8Array | null = null
  const read = (events: ReturnType<EventSplitter['push']>): AnswerPart[] => {
    const parts: AnswerPart[] = []
    for (const event of events) for (const part of reader.read(event)) parts.push(part)
    return parts
  }
  return {
    isOver: () => over,
    async drain() {
      while (pieces !== null && !(await pieces.read()).done);
    },
    async next() {
      if (over) return null
      if (rest !== null) await nextTurn()
      const bytes = rest ?? (await pieces?.read())?.value
      if (bytes === undefined) {
        over = true
        return [...read(splitter.finish()), ...reader.finish()]
      }
      rest = bytes.length > maximumParsedBytes ? bytes.subarray(maximumParsedBytes) : null
      try {
        return read(splitter.push(rest === null ? bytes : bytes.subarray(0, maximumParsedBytes)))
      } catch (cause) {
        if (cause instanceof EventTooLongError) return [badAnswer('an event over the size limit')]
        if (cause instanceof InvalidFrameError) return [badAnswer(cause.message)]
        throw cause
      }
    },
  }
}

function badAnswer(detail: string): AnswerPart {
  return {
    type: 'failure',
    failure: { kind: 'bad_answer', blame: 'upstream', retryable: true, retryAfterMs: null, detail },
  }
}
