/**
 * Decides which URLs clients may use: the public web on its two ports. Checks only the text, without DNS. The page
 * fetcher also resolves and checks the name; URLs that are forwarded to a provider are not resolved (ADR 0005).
 */
import ipaddr from 'ipaddr.js'

/** A URL that may be fetched as far as its text shows. */
export type AllowedUrl = {
  readonly url: URL
  /** Lower case, no trailing dot, no brackets. */
  readonly host: string
  readonly port: 80 | 443
  /** The host is a public IP address, so it needs no resolution. */
  readonly isLiteral: boolean
}

const maximumUrlCharacters = 2048
const maximumHostCharacters = 253

/**
 * Checks a URL; null = it must not be fetched. `base` is the page that redirects to it, `maximumCharacters` the maximum
 * length.
 */
export function checkUrl(text: string, base?: URL, maximumCharacters = maximumUrlCharacters): AllowedUrl | null {
  if (text.length > maximumCharacters || !URL.canParse(text, base?.href)) return null
  // All checks use the parser's result, so that no alternative spelling of a host passes.
  const url = new URL(text, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null
  if (url.username !== '' || url.password !== '' || url.href.length > maximumCharacters) return null
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  if (port !== 80 && port !== 443) return null
  // A redirect from https to http would allow tampering on the network.
  if (base?.protocol === 'https:' && url.protocol === 'http:') return null
  url.hash = ''
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (ipaddr.isValid(host)) return isPublicAddress(host) ? { url, host, port, isLiteral: true } : null
  return isPublicName(host) ? { url, host, port, isLiteral: false } : null
}

const privateSuffixes = ['.local', '.internal', '.localhost', '.home.arpa']
const nameShape = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})+$/

/**
 * Returns true for a name of several labels that public DNS can resolve. Called after URL parsing, which handles IDNA
 * and case.
 */
function isPublicName(host: string): boolean {
  if (host.length > maximumHostCharacters || !nameShape.test(host)) return false
  return !privateSuffixes.some(suffix => `.${host}`.endsWith(suffix))
}

/** Azure's host agent: a public IP address that is only reachable from inside its virtual machines. */
const deniedByName = new Set(['168.63.129.16'])
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')
/** Unrouted parts of the global range: the former 6bone, and documentation (RFC 9637). */
const unrouted = [ipaddr.IPv6.parseCIDR('3ffe::/16'), ipaddr.IPv6.parseCIDR('3fff::/20')]

/** Returns true for a public internet address. IPv4 inside IPv6 is checked as IPv4. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast' || deniedByName.has(address.toString())) return false
  if (address instanceof ipaddr.IPv4) return true
  // Addresses outside this block have no named range, such as the deprecated `::127.0.0.1`.
  return address.match(globalUnicast) && !unrouted.some(block => address.match(block))
}

/** Signed object-store URLs are long: a session token takes about 1,000 characters. */
const maximumForwardedCharacters = 8_192

/**
 * Returns a URL in the form that an upstream may fetch, or unchanged if it is a `data:` URL; null if it must not be
 * fetched. Normalized, so that other parsers find the same host.
 */
export function forwardableAddress(text: string): string | null {
  if (/^data:/i.test(text)) return text
  return checkUrl(text, undefined, maximumForwardedCharacters)?.url.href ?? null
}
