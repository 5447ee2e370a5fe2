/** Reads the decompressed body of a page within limits, and stops at the first one that is exceeded. */
import type { IncomingMessage } from 'node:http'
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { PageFailure } from './failure.ts'

const maximumWireBytes = 1 << 20
const maximumBytes = 2 << 20
/** Text rarely compresses to less than a tenth; a ratio of 20 is made on purpose. */
const maximumRatio = 20
/** A small page may consist of blanks only. */
const ratioFromBytes = 128 << 10

/**
 * Returns the complete body. Throws `PageFailure`: `unreadable` beyond a limit or in an unknown encoding, `unreachable`
 * if it is truncated.
 */
export function readPageBody(response: IncomingMessage, signal: AbortSignal): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const decoder = findDecoder(response.headers['content-encoding'])
  if (decoder === undefined) return refused(response, 'unsupported encoding')
  if (Number(response.headers['content-length'] ?? 0) > maximumWireBytes) return refused(response, 'too large')

  const pieces: Buffer[] = []
  let wireBytes = 0
  let bytes = 0
  const fail = (code: PageFailure['code'], message: string) => {
    reject(new PageFailure(code, message))
    response.destroy()
    decoder?.destroy()
  }
  const take = (piece: Buffer) => {
    bytes += piece.length
    if (bytes > maximumBytes) fail('unreadable', 'too large once decompressed')
    else if (bytes > ratioFromBytes && bytes > wireBytes * maximumRatio)
      fail('unreadable', 'compression ratio too high')
    else pieces.push(piece)
  }
  const finish = () => resolve(Buffer.concat(pieces))
  const abort = () => fail('too_slow', 'aborted')

  response.on('data', (piece: Buffer) => {
    wireBytes += piece.length
    if (wireBytes > maximumWireBytes) fail('unreadable', 'too large')
    else if (decoder === null) take(piece)
    else if (!decoder.write(piece)) {
      response.pause()
      decoder.once('drain', () => response.resume())
    }
  })
  response.once('end', () => (decoder === null ? finish() : decoder.end()))
  response.on('error', cause => fail('unreachable', cause.message))
  response.once('aborted', () => fail('unreachable', 'truncated'))
  // A response that is aborted between two chunks emits no error.
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  decoder?.on('data', take)
  decoder?.once('end', finish)
  decoder?.on('error', cause => fail('unreadable', cause.message))
  return promise.finally(() => signal.removeEventListener('abort', abort))
}

/** Null = not encoded; undefined = an unsupported encoding. */
function findDecoder(coding = 'identity'): Transform | null | undefined {
  switch (coding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return null
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'deflate':
      return createInflate()
    case 'br':
      return createBrotliDecompress()
    default:
      return undefined
  }
}

function refused(response: IncomingMessage, message: string): Promise<never> {
  response.destroy()
  return Promise.reject(new PageFailure('unreadable', message))
}
