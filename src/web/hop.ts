/**
 * One request to a URL that a server named in a redirect. The URL is checked like that of a page, and the connection
 * goes to the checked address, so that a name that resolves differently later has no effect.
 */

import { Resolver } from 'node:dns/promises'
import type { Network } from '../core/ports.ts'
import { checkUrl, isPublicAddress } from '../core/validation/public-address.ts'

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

/** Resolves names with public DNS only: no hosts file and no search domain, which would expand short names. */

/** Returns all addresses of a name, IPv4 before IPv6. Rejects if it has none, or on timeout. */
export type Resolve = (host: string) => Promise<readonly string[]>

const tries = 2

/** Creates a resolver that queries `servers` (`address:port`), by default those of the machine. */
export function createResolver(deadlineMs: number, servers?: readonly string[]): Resolve {
  // Both tries end before the deadline.
  const resolver = new Resolver({ timeout: Math.floor((0.9 * deadlineMs) / tries), tries })
  if (servers !== undefined) resolver.setServers([...servers])
  return async host => {
    // Fully qualified, so that no search domain is appended.
    const name = `${host}.`
    const answers = Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = (await within(deadlineMs, answers)).flatMap(answer =>
      answer.status === 'fulfilled' ? answer.value : [],
    )
    if (addresses.length === 0) throw new Error('the name has no address')
    return addresses
  }
}

function within<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const timer = setTimeout(() => reject(new Error('name resolution timed out')), milliseconds)
  work.then(resolve, reject).finally(() => clearTimeout(timer))
  return promise
}
