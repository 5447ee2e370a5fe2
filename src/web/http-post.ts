/**
 * One POST to a URL that a user configured. The URL is checked like that of a page, every address of its name must be
 * public, and the connection goes to a checked address. No redirect is followed, and the response body is not read.
 */
import { type RequestOptions, request as requestPlain } from 'node:http'
import { request as requestSecure } from 'node:https'
import { checkUrl, isPublicAddress } from '../core/validation/public-address.ts'
import type { Resolve } from './hop.ts'
import { type Dial, pinned } from './page/http-get.ts'

type PostOptions = {
  readonly resolve: Resolve
  /** Accepts `http://`, every port and every address: for development and receivers in the operator's network. */
  readonly privateAllowed: boolean
  readonly dial?: Dial
}

type PostFailure = 'unreachable' | 'timeout' | 'redirected'
/**
 * A status, or why there is none. `detail` is for the operator's log only: a URL that the gateway does not call fails like an
 * unreachable one, so that users cannot find out which names the operator's network resolves.
 */
type PostResult =
  | { readonly status: number }
  | { readonly failure: PostFailure; readonly detail?: 'url_not_allowed' | 'unknown_name' | 'address_not_public' }

/** Sends `body` and resolves with the status, or the reason for none. Never rejects. */
export type HttpPost = (
  url: string,
  message: { readonly headers: Readonly<Record<string, string>>; readonly body: string; readonly timeoutMs: number },
) => Promise<PostResult>

export function createHttpPost({ resolve, privateAllowed, dial = same => same }: PostOptions): HttpPost {
  return async (text, message) => {
    if (!privateAllowed && checkUrl(text) === null) return { failure: 'unreachable', detail: 'url_not_allowed' }
    const url = new URL(text)
    // Fails closed: an endpoint that was stored while private hosts were allowed gets no plain-text request later.
    if (!privateAllowed && url.protocol !== 'https:') return { failure: 'unreachable', detail: 'url_not_allowed' }
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
    if (privateAllowed) return send(url, message, {})
    const addresses = isLiteral(host) ? [host] : await resolve(host).catch(() => [])
    const [address] = addresses
    if (address === undefined) return { failure: 'unreachable', detail: 'unknown_name' }
    if (!addresses.every(isPublicAddress)) return { failure: 'unreachable', detail: 'address_not_public' }
    const way = dial({ address, port })
    return send(url, message, {
      port: way.port,
      lookup: pinned(way.address),
      ...(isLiteral(host) ? { host: way.address } : { servername: host }),
      ...(way.certificateAuthority === undefined ? {} : { ca: way.certificateAuthority }),
    })
  }
}

const isLiteral = (host: string) => host.includes(':') || /^[\d.]+$/.test(host)

function send(
  url: URL,
  { headers, body, timeoutMs }: Parameters<HttpPost>[1],
  way: RequestOptions & { servername?: string; ca?: string },
): Promise<PostResult> {
  const { promise, resolve } = Promise.withResolvers<PostResult>()
  const isSecure = url.protocol === 'https:'
  const call = (isSecure ? requestSecure : requestPlain)({
    // One connection per request: a kept one would skip the lookup next time.
    agent: false,
    method: 'POST',
    host: url.hostname.replace(/^\[|\]$/g, ''),
    ...(url.port === '' ? {} : { port: url.port }),
    path: url.pathname + url.search,
    headers: { ...headers, host: url.host, 'content-length': String(Buffer.byteLength(body)), connection: 'close' },
    ...way,
  })
  const timer = setTimeout(() => {
    resolve({ failure: 'timeout' })
    call.destroy()
  }, timeoutMs)
  call.once('response', response => {
    const { statusCode = 0 } = response
    const isRedirect = statusCode >= 300 && statusCode < 400
    resolve(isRedirect ? { failure: 'redirected' } : { status: statusCode })
    response.destroy()
  })
  // Stays registered, so that a later failure is not an uncaught exception.
  call.on('error', () => resolve({ failure: 'unreachable' }))
  call.end(body)
  return promise.finally(() => clearTimeout(timer))
}
