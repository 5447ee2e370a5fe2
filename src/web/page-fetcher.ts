/**
 * Fetches pages whose URLs are in a prompt: from the public web only (`core/validation/public-address.ts`), redirect by redirect, with
 * limits on time and size, and parsed in a separate thread. Every failure is one of four codes after a multiple of 100
 * ms, so that clients cannot probe what exists at an address.
 */
import type { IncomingMessage } from 'node:http'
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { LeftOutCode, OmittedSource, WebDocument } from '../core/chat/web-sources.ts'
import { countIfAllowed, createSlidingWindows, type RateCounter } from '../core/limits/rate-limits.ts'
import type { Clock } from '../core/ports.ts'
import type { ServiceDeadlines } from '../core/request/deadlines.ts'
import { type AllowedUrl, checkUrl, isPublicAddress } from '../core/validation/public-address.ts'
import type { Resolve } from './hop.ts'
import { findKind, getContent } from './page/content.ts'
import { PageFailure } from './page/failure.ts'
import type { ReadText } from './page/html.ts'
import { type Dial, httpGet } from './page/http-get.ts'
import { createParserPool } from './page/parser-pool.ts'

export type PageFetcher = {
  /** Rejects only if `signal` aborts. An omitted page costs nothing. */
  read(
    url: string,
    request: { readonly accountId: string; readonly signal: AbortSignal },
  ): Promise<WebDocument | OmittedSource>
  close(): void
}

export type PageReaderOptions = {
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'sleep'>
  readonly resolve: Resolve
  /** Returns true if the operator's blocklist contains the URL in any notation. */
  readonly isListed: (url: string) => boolean
  /** For tests: another address to dial instead of the checked one. */
  readonly dial?: Dial
  readonly maximumCharacters: number
  readonly deadlines: Pick<
    ServiceDeadlines,
    'pageMs' | 'pageConnectMs' | 'pageFirstByteMs' | 'pageParsingMs' | 'parserStartMs'
  >
}

const maximumRedirects = 3
const accountPerMinute = 30
const hostPerMinute = 10
const minuteMs = 60_000
/** Accounts and hosts whose last minute is remembered. */
const maximumNames = 10_000
const maximumRunning = 64
const failureStepMs = 100

/** Creates a page fetcher. Its threads start with the first page; `close` stops them. */
export function createPageReader(options: PageReaderOptions): PageFetcher {
  const { clock, maximumCharacters } = options
  // Reads more than is kept, because invisible text does not count.
  const enoughCharacters = 2 * maximumCharacters
  const readers = createParserPool({ enoughCharacters, deadlines: options.deadlines })
  const accounts = createSlidingWindows({ allowed: accountPerMinute, windowMs: minuteMs, names: maximumNames })
  const hosts = createSlidingWindows({ allowed: hostPerMinute, windowMs: minuteMs, names: maximumNames })
  let running = 0

  const fetchPage = async (url: string, accountId: string, signal: AbortSignal): Promise<WebDocument> => {
    if (running >= maximumRunning) throw new PageFailure('too_slow', 'too many concurrent pages')
    if (countIfAllowed(accounts, accountId, clock.now()) > 0)
      throw new PageFailure('refused', 'too many pages for the account')
    running += 1
    try {
      const { response, at } = await follow(options, vet(options, url), hosts, signal)
      const bytes = await readPageBody(response, signal)
      const content = getContent(bytes, response.headers['content-type'])
      const read: ReadText =
        content.kind === 'html' || content.kind === 'pdf'
          ? await readers.read(content, accountId)
          : { title: '', text: content.text.slice(0, enoughCharacters) }
      if (read.text.trim() === '') throw new PageFailure('unreadable', 'no readable text')
      return { url: at.href, title: read.title || at.hostname, text: read.text }
    } finally {
      running -= 1
    }
  }

  return {
    async read(url, { accountId, signal }) {
      const startedAt = clock.monotonic()
      const late = AbortSignal.timeout(options.deadlines.pageMs)
      const either = AbortSignal.any([signal, late])
      try {
        return await untilAborted(either, fetchPage(url, accountId, either))
      } catch (cause) {
        signal.throwIfAborted()
        const elapsedMs = clock.monotonic() - startedAt
        await clock.sleep(failureStepMs - (elapsedMs % failureStepMs))
        return { url, code: late.aborted ? 'too_slow' : getCode(cause) }
      }
    },
    close: readers.close,
  }
}

function getCode(cause: unknown): LeftOutCode {
  return cause instanceof PageFailure ? cause.code : 'unreadable'
}

/** Resolves with the work or rejects on abort, whichever is first. Later failures of the work are ignored. */
function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const abort = () => reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  return promise
}

function vet({ isListed }: PageReaderOptions, url: string, base?: URL): AllowedUrl {
  const vetted = checkUrl(url, base)
  if (vetted === null) throw new PageFailure('refused', 'not a URL of the public web')
  if (isListed(vetted.url.href)) throw new PageFailure('refused', 'on the blocklist')
  return vetted
}

/** Returns the page at the end of its redirects, each checked like the first URL. */
async function follow(
  options: PageReaderOptions,
  first: AllowedUrl,
  hosts: RateCounter,
  signal: AbortSignal,
): Promise<{ readonly response: IncomingMessage; readonly at: URL }> {
  let target = first
  for (let hop = 0; hop <= maximumRedirects; hop++) {
    if (countIfAllowed(hosts, target.host, options.clock.now()) > 0)
      throw new PageFailure('refused', 'too many pages of this host')
    const response = await send(options, target, signal)
    const { statusCode = 0, headers } = response
    const isRedirect = [301, 302, 303, 307, 308].includes(statusCode) && headers.location !== undefined
    if (!isRedirect && statusCode === 200 && findKind(headers['content-type']) !== null)
      return { response, at: target.url }
    response.destroy()
    if (statusCode === 200) throw new PageFailure('unreadable', 'unsupported content type')
    if (!isRedirect) throw new PageFailure('unreachable', `answered with ${statusCode}`)
    target = vet(options, headers.location ?? '', target.url)
  }
  throw new PageFailure('unreachable', 'redirected too often')
}

/** Dials at most one address per family. All are checked together: one non-public address disqualifies the name. */
async function send(options: PageReaderOptions, target: AllowedUrl, signal: AbortSignal): Promise<IncomingMessage> {
  const { resolve, dial = vetted => vetted, deadlines } = options
  const addresses = target.isLiteral ? [target.host] : await resolve(target.host).catch(() => [])
  // The same error as for an unknown name; otherwise clients could find out which names the internal network resolves.
  if (addresses.length === 0 || !addresses.every(isPublicAddress)) throw unknownName()
  const families = [addresses.find(address => !address.includes(':')), addresses.find(address => address.includes(':'))]
  let failure: unknown = unknownName()
  for (const address of families) {
    if (address === undefined) continue
    signal.throwIfAborted()
    try {
      return await httpGet(target, address, { dial, signal, deadlines })
    } catch (cause) {
      failure = cause
      if (!(cause instanceof PageFailure) || cause.code !== 'unreachable') throw cause
    }
  }
  throw failure
}

function unknownName(): PageFailure {
  return new PageFailure('unreachable', 'the name has no public address')
}

/** Reads the decompressed body of a page within limits, and stops at the first one that is exceeded. */

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
function readPageBody(response: IncomingMessage, signal: AbortSignal): Promise<Buffer> {
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
