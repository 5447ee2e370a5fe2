/**
 * Decides which web pages may call a route. Browsers send requests for any page, so a route that changes state rejects
 * pages of other origins. `Sec-Fetch-Site`, which no page can set, decides; `Origin` decides for browsers without it.
 * Programs send neither and always pass.
 */
import { GatewayError } from '../core/validation/errors.ts'

/** Origins of the gateway's own pages, besides the `Host` of the request. */
type OwnAddresses = {
  /** An origin, as in `https://gateway.example.com`. */
  readonly publicUrl: string | null
  /** Allowed host names without a port, if the operator set any. */
  readonly hosts: readonly string[] | null
}

/** Requests of other origins' pages: detected once on arrival, rejected by the policy of the route. */
const foreign = new WeakSet<Request>()
const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Marks a request that can change state and comes from a page of another origin. */
export function markForeignPage(request: Request, own: OwnAddresses): void {
  if (!readingMethods.has(request.method) && isForeignPage(request.headers, own)) foreign.add(request)
}

/** Check for routes whose policy excludes pages of other origins. Throws `forbidden` for a marked request. */
export function refuseForeignPage({ request }: { readonly request: Request }): void {
  if (foreign.has(request))
    throw new GatewayError(
      'forbidden',
      'Pages of other origins cannot call this endpoint. Call it from the gateway’s own pages, or from a server.',
      { param: 'origin', shouldRetry: false },
    )
}

/** Names that all programs of a machine share, so they do not identify the owner of a page. */
const loopback = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Returns whether the headers are those of a page of another origin. */
export function isForeignPage(headers: Headers, { publicUrl, hosts }: OwnAddresses): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site !== 'same-origin' && site !== 'none'
  const origin = headers.get('origin')
  if (origin === null || origin === publicUrl) return false
  // A sandboxed frame sends `null`, which names no origin.
  if (!URL.canParse(origin)) return true
  const { protocol, host, hostname, port } = new URL(origin)
  const asked = `${protocol}//${headers.get('host') ?? ''}`
  // Parsed by the same parser, so that default ports and upper case make no difference.
  if (URL.canParse(asked) && new URL(asked).host === host && host !== '') return false
  return port !== '' || hosts === null || loopback.has(hostname) || !hosts.includes(hostname)
}

/**
 * Checks the `Host` header before routing. Elysia searches the whole URL for the path, so a crafted host could change
 * it; and a name that rebinds to loopback must not reach a gateway that listens there.
 */

/** One name or address with an optional port; without userinfo, path, list or space. */
const wellFormed = /^(?:\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9._-]{0,252}))(?::\d{1,5})?$/i

const port = /:\d+$/

/** Whether names beyond loopback are accepted; depends on the address that the server listens on. */
export function allowedHosts(configured: readonly string[] | null, listensOn: string): ReadonlySet<string> | null {
  if (configured !== null) return new Set(configured)
  return loopback.has(listensOn) || listensOn === '::1' ? loopback : null
}

/** The last accepted `Host` and its set: nearly every request has the same one. */
let passed: { readonly host: string; readonly allowed: ReadonlySet<string> | null } | null = null

/** Throws unless the request has exactly one well-formed and allowed `Host` (null = all are allowed). */
export function checkHost(request: Request, allowed: ReadonlySet<string> | null): void {
  const host = request.headers.get('host')
  if (host !== null && host === passed?.host && allowed === passed.allowed) return
  if (host === null || !wellFormed.test(host))
    throw new GatewayError('invalid_request', 'The Host header must name exactly one host.', { param: 'host' })
  const name = host.replace(port, '').toLowerCase()
  if (allowed !== null && !allowed.has(name))
    throw new GatewayError('misdirected', allowed === loopback ? loopbackOnlyMessage : hostNotAllowedMessage)
  passed = { host, allowed }
}

const loopbackOnlyMessage = 'This gateway accepts only localhost and 127.0.0.1. Add other host names to ALLOWED_HOSTS.'
const hostNotAllowedMessage = 'Host name not allowed. Use a name from ALLOWED_HOSTS.'

/** Browser restrictions for the gateway's pages: no resources of other origins, and no embedding in frames. */
export const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'strict-transport-security': 'max-age=63072000; includeSubDomains',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
} as const
