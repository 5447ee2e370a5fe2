/**
 * Which web pages may call a route. A browser sends requests of any page, so a route that changes something rejects those of
 * other origins. What the browser itself says (`Sec-Fetch-Site`, which no page can set) decides; browsers that do not say it
 * are judged by `Origin`. Programs send neither and are not concerned.
 */
import { GatewayError } from '../core/validation/errors.ts'

/** Where this gateway's own pages are, beside the `Host` of the request. */
type OwnAddresses = {
  /** An origin, as in `https://gateway.example.com`. */
  readonly publicUrl: string | null
  /** Host names without a port, if the operator named any. */
  readonly hosts: readonly string[] | null
}

/** Requests of other origins' pages: judged once, when they come in, for the policy of the route that they meet. */
const foreign = new WeakSet<Request>()
const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Marks a request that would change something and was sent by a page of another origin. */
export function markForeignPage(request: Request, own: OwnAddresses): void {
  if (!readingMethods.has(request.method) && isForeignPage(request.headers, own)) foreign.add(request)
}

/** The check of a route whose policy does not name other pages. Throws `forbidden` for a marked request. */
export function refuseForeignPage({ request }: { readonly request: Request }): void {
  if (foreign.has(request))
    throw new GatewayError(
      'forbidden',
      'Pages of other origins cannot call this endpoint. Call it from the gateway’s own pages, or from a server.',
      { param: 'origin', shouldRetry: false },
    )
}

/** Names that every program of a machine shares: they say nothing of whose page it is. */
const loopback = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Whether headers are those of a request that a page of another origin sent. */
export function isForeignPage(headers: Headers, { publicUrl, hosts }: OwnAddresses): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site !== 'same-origin' && site !== 'none'
  const origin = headers.get('origin')
  if (origin === null || origin === publicUrl) return false
  // A sandboxed frame sends `null`, which names no origin.
  if (!URL.canParse(origin)) return true
  const { protocol, host, hostname, port } = new URL(origin)
  const asked = `${protocol}//${headers.get('host') ?? ''}`
  // Through the same parser, so that a default port or capitals make no difference.
  if (URL.canParse(asked) && new URL(asked).host === host && host !== '') return false
  return port !== '' || hosts === null || loopback.has(hostname) || !hosts.includes(hostname)
}
