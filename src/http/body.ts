/** Request bodies, read as text under a cap before anything looks at them. */
import { GatewayError } from '../core/errors.ts'

const megabyte = 1_048_576

/** Bytes. A chat with images may be larger than one of text alone; everything else is small. */
export const bodyLimits = { chat: 2 * megabyte, chatWithImages: 32 * megabyte, other: 262_144 } as const

/** What tells a chat with images from one without, looked for only in bodies over the smaller cap. */
const imageMark = '"image'

/**
 * The body's text. Throws 413 over the cap. The server itself stops reading at `chatWithImages`, whatever the framing; a
 * body between the two caps is let through only where it holds image parts.
 */
export async function readBody(request: Request, limit: number): Promise<string> {
  const declared = Number(request.headers.get('content-length') ?? 0)
  if (declared > bodyLimits.chatWithImages || (limit === bodyLimits.other && declared > limit)) throw tooLarge(limit)
  const text = await request.text()
  // A character is at least a byte: only what may be over needs its bytes counted.
  if (text.length * 3 <= limit || Buffer.byteLength(text) <= limit) return text
  if (limit === bodyLimits.chat && text.includes(imageMark)) return text
  throw tooLarge(limit)
}

/** JSON is the one form taken. An absent content type is forgiven, a wrong one is not. */
export function checkContentType(headers: Headers): void {
  const contentType = headers.get('content-type')
  if (contentType === null || /^application\/(?:[\w.+-]+\+)?json(?:\s*;|$)/i.test(contentType.trim())) return
  throw new GatewayError('invalid_request', 'The body must be JSON: send "content-type: application/json".', {
    param: 'content-type',
  })
}

function tooLarge(limit: number): GatewayError {
  const readable = limit >= megabyte ? `${limit / megabyte} MB` : `${limit / 1024} KB`
  return new GatewayError('body_too_large', `The request body is over ${readable}. Send less text or fewer images.`)
}
