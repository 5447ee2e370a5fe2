/** Resolves names with public DNS only: no hosts file and no search domain, which would expand short names. */
import { Resolver } from 'node:dns/promises'

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
