/**
 * Sends one GET over its own connection to the one checked address: Node's lookup when dialing returns only that
 * address, while name and certificate remain the host's.
 */
import { type IncomingMessage, type RequestOptions, request as requestPlain } from 'node:http'
import { request as requestSecure } from 'node:https'
import { isIP } from 'node:net'
import type { ServiceDeadlines } from '../../core/request/deadlines.ts'
import type { AllowedUrl } from '../../core/validation/public-address.ts'
import { PageFailure } from './failure.ts'

export type Endpoint = { readonly address: string; readonly port: number }

/** For tests, whose servers are local: another address to dial, and the certificate authority to trust there. */
export type Dial = (vetted: Endpoint) => Endpoint & { readonly certificateAuthority?: string }

type HttpGetOptions = {
  readonly dial: Dial
  readonly signal: AbortSignal
  readonly deadlines: Pick<ServiceDeadlines, 'pageConnectMs' | 'pageFirstByteMs'>
}

/** Maximum 1xx responses, which a server could send without end. */
const maximumHints = 8

/** No key, cookie or client data: only the user agent and the accepted formats. */
const headers = {
  'user-agent': 'Mozilla/5.0 (compatible; gateway-ai/1.5; reads the pages that a user asks about)',
  accept: 'text/html, text/plain, application/json, application/pdf',
  'accept-encoding': 'gzip, deflate, br',
  connection: 'close',
}

/** Resolves with the response headers; the body is unread. Aborting `signal` ends it at any time. */
export function httpGet(
  { url, host, port, isLiteral }: AllowedUrl,
  address: string,
  { dial, signal, deadlines }: HttpGetOptions,
): Promise<IncomingMessage> {
  const isSecure = url.protocol === 'https:'
  const way = dial({ address, port })
  const options: RequestOptions & { servername?: string; ca?: string } = {
    // One connection per hop: a kept one would skip the lookup next time.
    agent: false,
    host: isLiteral ? way.address : host,
    port: way.port,
    path: url.pathname + url.search,
    headers: { ...headers, host: url.host },
    signal,
    lookup: pinned(way.address),
    ...(isSecure && !isLiteral ? { servername: host } : {}),
    ...(way.certificateAuthority === undefined ? {} : { ca: way.certificateAuthority }),
  }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const call = (isSecure ? requestSecure : requestPlain)(options)
  const giveUp = () => {
    reject(new PageFailure('too_slow', 'connection or response timed out'))
    call.destroy()
  }
  let timer = setTimeout(giveUp, deadlines.pageConnectMs)
  call.once('socket', socket =>
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      timer = setTimeout(giveUp, deadlines.pageFirstByteMs)
    }),
  )
  let hints = 0
  call.on('information', () => {
    hints += 1
    if (hints <= maximumHints) return
    reject(new PageFailure('unreachable', 'only 1xx responses'))
    call.destroy()
  })
  call.once('response', resolve)
  // Stays registered, so that a later failure is not an uncaught exception.
  call.on('error', cause => reject(new PageFailure('unreachable', cause.message)))
  call.end()
  return promise.finally(() => clearTimeout(timer))
}

/** Returns a lookup that resolves every name to one address. */
export function pinned(address: string): RequestOptions['lookup'] {
  const family = isIP(address)
  return (_host, options, callback) => {
    if (options.all) callback(null, [{ address, family }])
    else callback(null, address, family)
  }
}
