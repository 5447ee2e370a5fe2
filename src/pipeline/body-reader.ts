import type { Clock } from '../core/ports/clock.ts'
import { parseUntrustedJson } from '../core/validation/untrusted-json.ts'
import type { AnswerPart, Provider, ProviderAsk, StreamReader } from '../providers/provider.ts'
import { createEventSplitter, EventTooLongError } from '../providers/sse.ts'

/** Reads an upstream's body; what its bytes mean is its provider's to say. */
export type BodyReader = {
  next(): Promise<readonly AnswerPart[] | null>
  isOver(): boolean
  /** Reads what is left and throws it away. */
  drain(): Promise<void>
}

type BodyReaderOptions = {
  readonly provider: Provider
  readonly clock: Pick<Clock, 'after'>
  /** Called for each piece of a whole body. */
  readonly byteArrived: () => void
}

/** Longest JSON answer read, in bytes: a 128,000 token answer is about 1 MB. */
const maximumAnswerBytes = 8 * 1_048_576
/** A body this short comes in a few packets, so that no clock need run between them. */
const maximumAtOnceBytes = 65_536
/** How much of a refusal's body is read to tell why, and for how long: its status is here, and another may be asked. */
const maximumFailureBytes = 65_536
const maximumFailureMs = 2_000

/** Chooses how to read by what came, not by what was asked for: servers answer a stream with JSON and errors with 200. */
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
  return eventBody(response, provider.streamReader(ask.choices))
}

/** What was read of a body, and whether that is all of it. */
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

/** The body as text; nothing of it past `maximumBytes`. */
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

/** As much of a refusal's body as comes within its bounds; one that breaks ends where it broke. */
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
 * Bytes of a stream that are parsed in one turn of the event loop. A read holds up to half a megabyte where the upstream is faster
 * than we are: parsed at once, fifty such streams would keep everybody else waiting for half a second.
 */
const maximumParsedBytes = 8_192

const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

function eventBody(response: Response, reader: StreamReader): BodyReader {
  const splitter = createEventSplitter()
  const pieces = response.body?.getReader() ?? null
  let over = false
  /** What was read and is not parsed yet. */
  let rest: Uint8Array | null = null
  const read = (events: ReturnType<typeof splitter.push>): AnswerPart[] => {
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
