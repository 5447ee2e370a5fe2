/** Request bodies, read as text under a cap before anything looks at them. */
import { GatewayError } from '../core/validation/errors.ts'
import type { BodyBudget, BodyHold } from './body-budget.ts'

const megabyte = 1_048_576

/** Bytes. A chat with images may be larger than one of text alone, and so may a list of texts to embed; everything else is small. */
export const bodyLimits = {
  chat: 8 * megabyte,
  chatWithImages: 32 * megabyte,
  embeddings: 8 * megabyte,
  other: 262_144,
} as const

/**
 * Where the server itself hangs up, without the error body of the API. Far above what is read anywhere, so that whoever sends
 * too much is told so in our words; what is over a limit is never held, however long it goes on.
 */
export const serverBodyLimit = 256 * megabyte

/** What tells a chat with images or documents from one without, looked for only in bodies over the smaller cap. */
const attachmentMarks = ['"image', '"input_image', '"file_data"', '"document"']

export type Timer = { after(milliseconds: number, action: () => void): () => void }

/** Reserves what a chat body needs while it is read. */
type Reading = { readonly hold: BodyHold; readonly clock: Timer }

/**
 * The body's text. Throws 413 over the cap, before more than the cap is held; a chat body between the two caps is let
 * through only where it holds image or file parts. Throws what `receiveBody` throws.
 */
export function readBody(request: Request, limit: number, reading: Reading | null = null): Promise<string> {
  return receiveBody(request, limit, reading)()
}

/**
 * Reserves a body before anything is waited for, since the server reads ahead of a handler that waits, as fast as the sender
 * sends. Reserves the declared length; a body without one, or a compressed one, is read from now on, and its decoded bytes are
 * reserved as they arrive. Throws what `BodyHold` throws, 413 if the declared length is over the cap, and 400 for an encoding that
 * is not decoded here. Returns what then reads the text; it must be called, or the reservation released.
 */
export function receiveBody(request: Request, limit: number, reading: Reading | null): () => Promise<string> {
  const most = limit === bodyLimits.chat ? bodyLimits.chatWithImages : limit
  const declared = request.headers.get('content-length')
  if (Number(declared ?? 0) > most) throw tooLarge(limit)
  const encoding = encodingOf(request.headers)
  if (declared !== null && encoding === null) {
    reading?.hold.add(Number(declared), true)
    return () => textOf(request.text(), Number(declared), limit, reading)
  }
  const body = encoding === null ? request.body : decoded(request.body, encoding, most)
  const counted = countedText(body, most, reading?.hold ?? null)
  // Whoever gives up before the text is asked for has another failure to tell.
  counted.catch(() => {})
  return () => textOf(counted, most, limit, reading)
}

async function textOf(
  whole: Promise<string | null>,
  bytes: number,
  limit: number,
  reading: Reading | null,
): Promise<string> {
  let text: string | null
  try {
    text = await (reading === null ? whole : inTime(whole, bytes, reading.clock))
  } catch (thrown) {
    if (thrown instanceof GatewayError) throw thrown
    return brokenOff()
  }
  // No character is more than three bytes: only what may be over needs its bytes counted.
  if (text === null) throw tooLarge(limit)
  if (
    text.length * 3 <= limit ||
    Buffer.byteLength(text) <= limit ||
    (limit === bodyLimits.chat && attachmentMarks.some(mark => text.includes(mark)))
  )
    return text
  throw tooLarge(limit)
}

/** The body byte by byte, for what is signed. Throws 413 over the cap, before more than the cap is held. */
export async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  if (Number(request.headers.get('content-length') ?? 0) > limit) throw tooLarge(limit)
  const pieces: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const piece of request.body ?? []) {
      bytes += piece.byteLength
      if (bytes > limit) break
      pieces.push(piece)
    }
  } catch {
    return brokenOff()
  }
  if (bytes > limit) throw tooLarge(limit)
  return Buffer.concat(pieces)
}

/**
 * Does `work` while the bytes of a small body are reserved, and releases them however it ends. A body that does not say how
 * long it is counts as `limit`. Throws what `BodyHold` throws.
 */
export async function whileHeld<T>(
  { budget, owner }: { readonly budget: BodyBudget; readonly owner: string },
  request: Request,
  limit: number,
  work: () => Promise<T>,
): Promise<T> {
  const declared = request.headers.get('content-length')
  const bytes = declared === null ? (request.body === null ? 0 : limit) : Math.min(Number(declared), limit)
  if (bytes === 0) return work()
  const hold = budget.open(owner)
  try {
    hold.add(bytes, true)
    return await work()
  } finally {
    hold.release()
  }
}

/** A body must arrive within this time plus one second for each 256 KB, or its reservation would outlast a slow sender. */
const arrivalMs = 15_000
const bytesPerSecond = 262_144

/** The text, if it arrives in time. Bun discards what arrives after the refusal. */
function inTime<T>(text: Promise<T>, bytes: number, clock: Timer): Promise<T> {
  const deadlineMs = arrivalMs + Math.ceil((bytes / bytesPerSecond) * 1000)
  return new Promise((resolve, reject) => {
    const cancel = clock.after(deadlineMs, () => reject(tooSlow(deadlineMs)))
    text.then(
      value => {
        cancel()
        resolve(value)
      },
      cause => {
        cancel()
        reject(cause)
      },
    )
  })
}

function tooSlow(deadlineMs: number): GatewayError {
  const seconds = Math.round(deadlineMs / 1000)
  return new GatewayError(
    'invalid_request',
    `The request body did not arrive within ${seconds} s. Send it again over a faster connection.`,
  )
}

/** The encodings of compressed bodies that are decoded: what agents' clients send. */
const encodings: ReadonlyMap<string, 'gzip' | 'zstd'> = new Map([
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['zstd', 'zstd'],
])

/** How a body is compressed; null = it is not. Throws 400 for an encoding that is not decoded here. */
function encodingOf(headers: Headers): 'gzip' | 'zstd' | null {
  const sent = headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  if (sent === '' || sent === 'identity') return null
  const encoding = encodings.get(sent)
  if (encoding !== undefined) return encoding
  throw new GatewayError(
    'invalid_request',
    'The encoding of the body is not supported: send it uncompressed, or with `content-encoding: gzip` or `zstd`.',
    { param: 'content-encoding' },
  )
}

/**
 * The decoded bytes of a compressed body. It is decoded piece by piece as it is read, so that a small body that decodes to
 * gigabytes stops at the reader's cap. Of the compressed bytes themselves at most `most` are taken.
 */
async function* decoded(
  body: ReadableStream<Uint8Array> | null,
  encoding: 'gzip' | 'zstd',
  most: number,
): AsyncGenerator<Uint8Array, void, void> {
  if (body === null) return
  let taken = 0
  const counted = new TransformStream<Uint8Array, Uint8Array<ArrayBuffer>>({
    transform(piece, controller) {
      taken += piece.byteLength
      if (taken > most) controller.error(new Error('more compressed bytes than a body may have'))
      else controller.enqueue(new Uint8Array(piece))
    },
  })
  try {
    yield* body.pipeThrough(counted).pipeThrough(new DecompressionStream(encoding))
  } catch {
    throw new GatewayError(
      'invalid_request',
      `The body cannot be decoded as ${encoding}. Send it again, or uncompressed without \`content-encoding\`.`,
      { param: 'content-encoding' },
    )
  }
}

/** A body that does not say how long it is, read as it comes; null = over `most` bytes. */
async function countedText(
  body: AsyncIterable<Uint8Array> | null,
  most: number,
  hold: BodyHold | null,
): Promise<string | null> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  const pieces: string[] = []
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.byteLength
    if (bytes > most) return null
    hold?.add(piece.byteLength, false)
    pieces.push(decoder.decode(piece, { stream: true }))
  }
  return pieces.join('') + decoder.decode()
}

/** Whoever sent half a body is mostly gone, and it is no failure of ours. */
function brokenOff(): never {
  throw new GatewayError('invalid_request', 'The request body ended before it was complete. Send it again.')
}

const json = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i
/** What JSON is written in, and a part of it; read as another encoding, a text would silently be another one. */
const foreignCharset = /;\s*charset\s*=(?![\s"]*(?:utf-?8|(?:us-)?ascii)\b)/i

/** JSON in UTF-8 is the one form taken. An absent content type is left to the caller, a wrong one is refused. */
export function checkContentType(headers: Headers): void {
  const contentType = headers.get('content-type')
  if (contentType !== null && (!json.test(contentType.trim()) || foreignCharset.test(contentType))) throw notJson()
}

/** A body that is not said to be JSON. */
export function notJson(): GatewayError {
  return new GatewayError('invalid_request', 'The body must be JSON: send "content-type: application/json".', {
    param: 'content-type',
  })
}

function tooLarge(limit: number): GatewayError {
  const readable = limit >= megabyte ? `${limit / megabyte} MB` : `${limit / 1024} KB`
  return new GatewayError('body_too_large', `The request body is over ${readable}. Send less text or fewer images.`)
}
