/** Who is asking: the API key of a request, and the address it came from. */
import { GatewayError } from '../core/errors.ts'
import type { Caller } from '../core/plans.ts'

/** Recognises keys; answers without a promise where it already knows. Throws 503 for a key it cannot know right now. */
export type KeyDirectory = { find(key: string): Caller | null | Promise<Caller | null> }

/**
 * The caller behind a request's key. Where both headers are sent `Authorization` alone counts: a failed credential is not
 * retried with the other. Wrong, absent, malformed, revoked and expired keys are refused alike.
 */
export async function authenticate(keys: KeyDirectory, headers: Headers): Promise<Caller> {
  const key = presentedKey(headers)
  const caller = key === null ? null : await keys.find(key)
  if (caller === null) throw invalidKey()
  return caller
}

function presentedKey(headers: Headers): string | null {
  const authorization = headers.get('authorization')
  if (authorization === null) return headers.get('x-api-key')
  return /^bearer /i.test(authorization) ? authorization.slice(7).trim() : null
}

function invalidKey(): GatewayError {
  return new GatewayError(
    'invalid_api_key',
    'The API key is missing or not valid. Send it as "Authorization: Bearer <key>" or "x-api-key: <key>".',
    { shouldRetry: false },
  )
}

/**
 * The caller's address: the rightmost `X-Forwarded-For` hop that is not a trusted proxy's, or the socket's own where the
 * peer is none. IPv6 counts by /64, since that is what one subscriber gets.
 */
export function callerAddress(
  socketAddress: string | null,
  forwardedFor: string | null,
  isTrustedProxy: (address: string) => boolean,
): string {
  let address = unmapped(socketAddress ?? '')
  const hops = (forwardedFor ?? '').split(',').map(hop => unmapped(withoutPort(hop.trim())))
  for (let index = hops.length - 1; index >= 0 && isTrustedProxy(address); index -= 1) address = hops[index] || address
  return address.includes(':') ? networkOf(address) : address
}

/** Some proxies write the port too, which is another one for every connection. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}

function unmapped(address: string): string {
  return address.toLowerCase().startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

function networkOf(address: string): string {
  const [head = '', tail = ''] = address.split('::')
  const groups = head.split(':').filter(group => group !== '')
  const rest = tail.split(':').filter(group => group !== '')
  while (groups.length + rest.length < 8 && address.includes('::')) groups.push('0')
  return `${[...groups, ...rest]
    .slice(0, 4)
    .map(group => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
