/**
 * Checks the `Host` header before routing. Elysia searches the whole URL for the path, so a crafted host could change
 * it; and a name that rebinds to loopback must not reach a gateway that listens there.
 */
import { GatewayError } from '../core/validation/errors.ts'

/** One name or address with an optional port; without userinfo, path, list or space. */
const wellFormed = /^(?:\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9._-]{0,252}))(?::\d{1,5})?$/i

const port = /:\d+$/

const loopback = new Set(['localhost', '127.0.0.1', '[::1]'])

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
