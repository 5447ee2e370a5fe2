/**
 * One request to a URL that a server named in a redirect. The URL is checked like that of a page, and the connection
 * goes to the checked address, so that a name that resolves differently later has no effect.
 */
import type { Network } from '../core/ports.ts'
import { checkUrl, isPublicAddress } from '../core/validation/public-address.ts'
import type { Resolve } from './resolve.ts'

type HopDeps = {
  readonly fetch: Network['fetch']
  readonly resolve: Resolve
  /** For tests, whose servers are local: another address to dial, and the certificate authority to trust there. */
  readonly dial?: (origin: URL) => { readonly origin: string; readonly certificateAuthority?: string }
}

/** Requests `location`, named by `base`. Rejects if it is not a URL of the public web. Follows no further redirect. */
type Hop = (location: string, base: URL, signal: AbortSignal) => Promise<Response>

/** Creates a hop over `fetch`. */
export function createHop({ fetch, resolve, dial }: HopDeps): Hop {
  return async (location, base, signal) => {
    const vetted = checkUrl(location, base)
    if (vetted === null) throw refused()
    const addresses = vetted.isLiteral ? [vetted.host] : await resolve(vetted.host)
    const [address] = addresses
    if (address === undefined || !addresses.every(isPublicAddress)) throw refused()
    const pinned = new URL(vetted.url)
    pinned.hostname = address.includes(':') ? `[${address}]` : address
    const way = dial?.(pinned) ?? { origin: pinned.origin }
    return fetch(way.origin + pinned.pathname + pinned.search, {
      redirect: 'manual',
      signal,
      // Name and certificate remain those of the host.
      headers: { host: vetted.url.host },
      ...(vetted.isLiteral
        ? {}
        : {
            tls: {
              serverName: vetted.host,
              ...(way.certificateAuthority === undefined ? {} : { ca: way.certificateAuthority }),
            },
          }),
    })
  }
}

function refused(): Error {
  return new Error('redirected to a URL outside the public web')
}
