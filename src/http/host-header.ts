/**
 * Which `Host` is answered, checked before any routing: Elysia finds the path by searching the whole URL, so a crafted
 * host could move it, and a name that rebinds to loopback must not reach a gateway that listens there.
 */
import { GatewayError } from '../core/validation/errors.ts'

/** One name or address with an optional port; no userinfo, path, list, or space. */
const wellFormed = /^(?:\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9._-]{0,252}))(?::\d{1,5})?$/i

const port = /:\d+$/

const loopback = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Whether names beyond loopback are answered at all, given where the server listens. */
export function allowedHosts(configured: readonly string[] | null, listensOn: string): ReadonlySet<string> | null {
  if (configured !== null) return new Set(configured)
  return loopback.has(listensOn) || listensOn === '::1' ? loopback : null
}

/** The `Host` that passed last, and the set it passed: nearly every request names the same one. */
let passed: { readonly host: string; readonly allowed: ReadonlySet<string> | null } | null = null

/** Throws unless the request has exactly one well-formed `Host` that is answered here (null = any). */
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

const loopbackOnlyMessage =
  'This gateway listens on its own machine alone and answers there, as localhost or 127.0.0.1. Under another name it does once ALLOWED_HOSTS has it.'
const hostNotAllowedMessage = 'This gateway does not answer under that host name. Use one of ALLOWED_HOSTS.'
