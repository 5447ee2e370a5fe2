/** Request bodies, read as text under a cap before anything looks at them. */
import { GatewayError } from '../core/errors.ts'

const megabyte = 1_048_576

/** Bytes. A chat with images may be larger than one of text alone; everything else is small. */
export const bodyLimits = { chat: 2 * megabyte, chatWithImages: 32 * megabyte, other: 262_144 } as const

/**
 * Where the server itself hangs up, without the contract's envelope. Far above what is read anywhere, so that whoever sends
 * too much is told so in our words; what is over a limit is never held, however long it goes on.
 */
export const serverBodyLimit = 256 * megabyte

/** What tells a chat with images or documents from one without, looked for only in bodies over the smaller cap. */
const attachmentMarks = ['"image', '"file_data"']

/**
 * The body's text. Throws 413 over the cap, before more than the cap is held; a chat body between the two caps is let
 * through only where it holds image or file parts.
 */
export async function readBody(request: Request, limit: number): Promise<string> {
  const most = limit === bodyLimits.chat ? bodyLimits.chatWithImages : limit
  const declared = request.headers.get('content-length')
  if (Number(declared ?? 0) > most) throw tooLarge(limit)
  let text: string | null
  try {
    text = declared === null ? await countedText(request, most) : await request.text()
  } catch {
    return brokenOff()
  }
  // No character is more than three bytes: only what may be over needs its bytes counted.
  if (text === null) throw tooLarge(limit)
  if (
    text.length * 3 <= limit ||
    Buffer.byteLength(text) <= limit ||
    (most > limit && attachmentMarks.some(mark => text.includes(mark)))
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

/** A body that does not say how long it is, read as it comes; null = over `most` bytes. */
async function countedText({ body }: Request, most: number): Promise<string | null> {
  if (body === null) return ''
  const decoder = new TextDecoder()
  const pieces: string[] = []
  let bytes = 0
  for await (const piece of body) {
    bytes += piece.byteLength
    if (bytes > most) return null
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

/** JSON is the one form taken, in UTF-8 and as it is. An absent content type is forgiven, a wrong one is not. */
export function checkContentType(headers: Headers): void {
  const contentType = headers.get('content-type')
  if (contentType !== null && (!json.test(contentType.trim()) || foreignCharset.test(contentType)))
    throw new GatewayError('invalid_request', 'The body must be JSON: send "content-type: application/json".', {
      param: 'content-type',
    })
  const encoding = headers.get('content-encoding')
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity')
    throw new GatewayError('invalid_request', 'The body must not be compressed: leave `content-encoding` out.', {
      param: 'content-encoding',
    })
}

function tooLarge(limit: number): GatewayError {
  const readable = limit >= megabyte ? `${limit / megabyte} MB` : `${limit / 1024} KB`
  return new GatewayError('body_too_large', `The request body is over ${readable}. Send less text or fewer images.`)
}
