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
