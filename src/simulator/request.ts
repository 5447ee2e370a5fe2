/** Parses one HTTP/1.1 request from the front of a buffer. Pure: `server.ts` owns the socket. */

export type RawRequest = {
  readonly method: string
  /** As sent, including the query. */
  readonly path: string
  /** Lower-case names; repeated headers joined with `, `. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

type ParsedRequest =
  | { readonly kind: 'whole'; readonly request: RawRequest; readonly usedBytes: number }
  /** Incomplete: parse again when this many bytes are buffered. */
  | { readonly kind: 'partial'; readonly needsBytes: number; readonly awaitsContinue: boolean }
  | { readonly kind: 'bad' }

const maximumHeadBytes = 65_536
export const maximumBodyBytes = 64 * 1_048_576

const bad: ParsedRequest = { kind: 'bad' }

/** Never throws: `bad` for other protocols than HTTP/1.1 and for too large requests. */
export function readRequest(buffer: Buffer): ParsedRequest {
  const headEnd = buffer.indexOf('\r\n\r\n')
  if (headEnd > maximumHeadBytes || (headEnd < 0 && buffer.length > maximumHeadBytes)) return bad
  if (headEnd < 0) return { kind: 'partial', needsBytes: buffer.length + 1, awaitsContinue: false }

  const [requestLine = '', ...headerLines] = buffer.toString('latin1', 0, headEnd).split('\r\n')
  const [method, path, version] = requestLine.split(' ')
  const headers = readHeaders(headerLines)
  if (!method || !path || version !== 'HTTP/1.1' || headers === null) return bad

  const bodyStart = headEnd + 4
  const awaitsContinue = headers.expect === '100-continue'
  if (headers['transfer-encoding'] === 'chunked') {
    const chunked = readChunks(buffer, bodyStart)
    if (chunked === 'bad') return bad
    if (chunked === 'partial') return { kind: 'partial', needsBytes: buffer.length + 1, awaitsContinue }
    return { kind: 'whole', request: { method, path, headers, body: chunked.body }, usedBytes: chunked.end }
  }
  const length = Number(headers['content-length'] ?? '0')
  if (!Number.isSafeInteger(length) || length < 0 || length > maximumBodyBytes) return bad
  const end = bodyStart + length
  if (buffer.length < end) return { kind: 'partial', needsBytes: end, awaitsContinue }
  return { kind: 'whole', request: { method, path, headers, body: buffer.subarray(bodyStart, end) }, usedBytes: end }
}

function readHeaders(lines: readonly string[]): Record<string, string> | null {
  const headers: Record<string, string> = Object.create(null)
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon < 1) return null
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const earlier = headers[name]
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`
  }
  return headers
}

function readChunks(buffer: Buffer, start: number): { body: Uint8Array; end: number } | 'partial' | 'bad' {
  const pieces: Buffer[] = []
  let at = start
  for (;;) {
    const lineEnd = buffer.indexOf('\r\n', at)
    if (lineEnd < 0) return buffer.length - at > 1_024 ? 'bad' : 'partial'
    const size = Number.parseInt(buffer.toString('latin1', at, lineEnd), 16)
    if (!(size >= 0) || lineEnd + size - start > maximumBodyBytes) return 'bad'
    const end = lineEnd + 2 + size
    if (buffer.length < end + 2) return 'partial'
    // Trailers are not supported: no client of these three APIs sends any.
    if (size === 0) return { body: Buffer.concat(pieces), end: end + 2 }
    pieces.push(buffer.subarray(lineEnd + 2, end))
    at = end + 2
  }
}
