/** Reads request bodies as text, with a size limit. */

import type { Caller } from '../core/limits/plans.ts'
import type { Clock } from '../core/ports.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { wellFormedJson } from '../core/validation/untrusted-json.ts'
import type { BodyBudget, BodyHold } from './body-budget.ts'

const megabyte = 1_048_576

/** Maximum bytes. Only chat bodies with images and lists of texts to embed may be large. */
export const bodyLimits = {
  chat: 8 * megabyte,
  chatWithImages: 32 * megabyte,
  embeddings: 8 * megabyte,
  other: 262_144,
} as const

/**
 * Size at which the server closes the connection without an API error. It is far above all limits here, so that clients
 * receive the API's own error. Bytes over a limit are never stored.
 */
const serverBodyLimit = 256 * megabyte

/**
 * Seconds that a connection may be idle before a request on it shows a valid key. Authenticated requests lift the
 * limit.
 */
export const strangerTimeoutSeconds = 10
/** The same after a response, until the client's next request; a vanished client must not hold its connection. */
export const keptTimeoutSeconds = 60

/** Limits of the server itself. They are fixed when it is created. */
export const serverLimits = { maxRequestBodySize: serverBodyLimit, idleTimeout: strangerTimeoutSeconds }

/** Marks a chat body with images or documents; searched only in bodies over the smaller limit. */
const attachmentMarks = ['"image', '"input_image', '"file_data"', '"document"']

type Timer = Pick<Clock, 'after'>

/** Reserves the bytes of a chat body while it is read. */
type BodyWatch = { readonly hold: Pick<BodyHold, 'add'>; readonly clock: Timer }

/**
 * Returns the body's text without unpaired surrogates. Throws 413 over the limit before more than the limit is stored. A chat body between the two
 * limits passes only with image or file parts. Throws as `receiveBody` does.
 */
export function readBody(request: Request, limit: number): Promise<string> {
  return receiveBody(request, limit, null)()
}

/**
 * Reserves a body before the first wait, since the server reads ahead of a waiting handler at the sender's speed.
 * Reserves the declared length. A body without one, or a compressed one, is read immediately, and its decoded bytes are
 * reserved as they arrive. Throws as `BodyHold` does, 413 if the declared length is over the limit, and 400 for an
 * unsupported encoding. Returns the function that reads the text; call it or release the reservation.
 */
export function receiveBody(request: Request, limit: number, watch: BodyWatch | null): () => Promise<string> {
  const most = limit === bodyLimits.chat ? bodyLimits.chatWithImages : limit
  const declared = request.headers.get('content-length')
  if (Number(declared ?? 0) > most) throw tooLarge(limit)
  const encoding = findEncoding(request.headers)
  if (declared !== null && encoding === null) {
    watch?.hold.add(Number(declared), true)
    return () => getText(request.text(), Number(declared), limit, watch)
  }
  const body = encoding === null ? request.body : decoded(request.body, encoding, most)
  const counted = countedText(body, most, watch?.hold ?? null)
  // A caller that fails before it reads the text reports its own error.
  counted.catch(() => {})
  return () => getText(counted, most, limit, watch)
}

/** Maximum time for a body, plus 1 s per 256 KB. Otherwise a slow sender would keep its reservation. */
const arrivalMs = 15_000
const bytesPerSecond = 262_144

/** Returns the text if it is within the limit and arrives in time. Bun discards bytes that arrive after the rejection. */
function getText(
  whole: Promise<string | null>,
  bytes: number,
  limit: number,
  watch: BodyWatch | null,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const deadlineMs = arrivalMs + Math.ceil((bytes / bytesPerSecond) * 1000)
  const cancel = watch?.clock.after(deadlineMs, () => reject(tooSlow(deadlineMs)))
  whole.then(
    text => {
      cancel?.()
      if (text !== null && isWithin(text, limit)) resolve(wellFormedJson(text))
      else reject(tooLarge(limit))
    },
    (cause: unknown) => {
      cancel?.()
      reject(cause instanceof GatewayError ? cause : brokenOff())
    },
  )
  return promise
}

/** A character has at most three UTF-8 bytes, so only texts near the limit need an exact count. */
function isWithin(text: string, limit: number): boolean {
  if (text.length * 3 <= limit || Buffer.byteLength(text) <= limit) return true
  return limit === bodyLimits.chat && attachmentMarks.some(mark => text.includes(mark))
}

/** Returns the body's bytes, for signed requests. Throws 413 over the limit before more than the limit is stored. */
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
    throw brokenOff()
  }
  if (bytes > limit) throw tooLarge(limit)
  return Buffer.concat(pieces)
}

/**
 * Runs `work` while the bytes of a small body are reserved, and then always releases them. A body without a declared
 * length counts as `limit`. Throws as `BodyHold` does.
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

export type HeldBodyDeps = {
  /** Throws 401, or 429 and 503 if the key cannot be looked up now. */
  readonly getCaller: (request: Request) => Caller | Promise<Caller>
  readonly bodies: BodyBudget
  readonly clock: Timer
}

/**
 * Answers a chat body that needs no model, and holds its bytes until then. `admit` checks the limits of the caller before the body
 * is read. If the budget of bodies has no room, the request is rejected before it is authenticated.
 */
export async function answerHeld<T>(
  { getCaller, bodies, clock }: HeldBodyDeps,
  request: Request,
  {
    admit,
    answer,
  }: {
    readonly admit: (caller: Caller) => Promise<void>
    readonly answer: (text: string, caller: Caller) => T | Promise<T>
  },
): Promise<T> {
  const asking = getCaller(request)
  const known = asking instanceof Promise ? null : asking
  if (asking instanceof Promise) asking.catch(() => {})
  const hold = bodies.open(known?.accountId ?? null)
  try {
    const read = receiveBody(request, bodyLimits.chat, { hold, clock })
    const caller = await asking
    if (known === null) hold.assign(caller.accountId)
    await admit(caller)
    checkContentType(request.headers)
    return await answer(await read(), caller)
  } finally {
    hold.release()
  }
}

function tooSlow(deadlineMs: number): GatewayError {
  const seconds = Math.round(deadlineMs / 1000)
  return new GatewayError(
    'invalid_request',
    `The request body did not arrive within ${seconds} s. Send it again over a faster connection.`,
  )
}

/** Supported encodings of compressed bodies: those that coding agents send. */
const encodings: ReadonlyMap<string, 'gzip' | 'zstd'> = new Map([
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['zstd', 'zstd'],
])

/** Returns the encoding of a body; null = uncompressed. Throws 400 for an unsupported encoding. */
function findEncoding(headers: Headers): 'gzip' | 'zstd' | null {
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
 * Returns the decoded bytes of a compressed body. Decoding follows the reader, so that a small body that expands to
 * gigabytes stops at the reader's limit. Reads at most `most` compressed bytes.
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

/** Reads a body without a declared length; null = over `most` bytes. */
async function countedText(
  body: AsyncIterable<Uint8Array> | null,
  most: number,
  hold: BodyWatch['hold'] | null,
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

/** The sender of a truncated body has usually disconnected, which is not a gateway failure. */
function brokenOff(): GatewayError {
  return new GatewayError('invalid_request', 'The request body was truncated. Send it again.')
}

const json = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i
/** Matches every charset except UTF-8 and ASCII, its subset: other charsets would decode to a wrong text. */
const foreignCharset = /;\s*charset\s*=(?![\s"]*(?:utf-?8|(?:us-)?ascii)\b)/i

/** Only JSON in UTF-8 is accepted. The caller decides about a missing content type; a wrong one is rejected. */
export function checkContentType(headers: Headers): void {
  const contentType = headers.get('content-type')
  if (contentType !== null && (!json.test(contentType.trim()) || foreignCharset.test(contentType))) throw notJson()
}

/** Error for a body whose content type is not JSON. */
export function notJson(): GatewayError {
  return new GatewayError('invalid_request', 'The body must be JSON: send "content-type: application/json".', {
    param: 'content-type',
  })
}

function tooLarge(limit: number): GatewayError {
  const readable = limit >= megabyte ? `${limit / megabyte} MB` : `${limit / 1024} KB`
  return new GatewayError('body_too_large', `The request body exceeds ${readable}. Send less text or fewer images.`)
}
