/**
 * Which addresses callers may name: the public web on its two ports. The text of an address is judged here, without DNS:
 * who fetches a page resolves its name and judges the result too; who forwards an address to a provider does not (ADR 0005).
 */
import ipaddr from 'ipaddr.js'

/** An address that may be fetched as far as its text says. */
export type AllowedUrl = {
  readonly url: URL
  /** Lower case, no trailing dot, no brackets. */
  readonly host: string
  readonly port: 80 | 443
  /** The host is an IP address itself, a public one: nothing is left to resolve. */
  readonly isLiteral: boolean
}

const maximumUrlCharacters = 2048
const maximumHostCharacters = 253

/**
 * What an address says, judged; null = it is never fetched. `base` is the page that redirects to it, `maximumCharacters` the
 * longest address taken.
 */
export function checkUrl(text: string, base?: URL, maximumCharacters = maximumUrlCharacters): AllowedUrl | null {
  if (text.length > maximumCharacters || !URL.canParse(text, base?.href)) return null
  // What follows is the parser's reading, so that no other spelling of a host gets past it.
  const url = new URL(text, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null
  if (url.username !== '' || url.password !== '' || url.href.length > maximumCharacters) return null
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  if (port !== 80 && port !== 443) return null
  // Its secure page sent us to one that anybody on the way can write.
  if (base?.protocol === 'https:' && url.protocol === 'http:') return null
  url.hash = ''
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (ipaddr.isValid(host)) return isPublicAddress(host) ? { url, host, port, isLiteral: true } : null
  return isPublicName(host) ? { url, host, port, isLiteral: false } : null
}

const privateSuffixes = ['.local', '.internal', '.localhost', '.home.arpa']
const nameShape = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})+$/

/** A name of several labels that the public DNS can know. After URL parsing, so IDNA and case are done with. */
function isPublicName(host: string): boolean {
  if (host.length > maximumHostCharacters || !nameShape.test(host)) return false
  return !privateSuffixes.some(suffix => `.${host}`.endsWith(suffix))
}

/** Where a cloud's virtual machines find its agent: public by its number, and reachable from inside only. */
const deniedByName = new Set(['168.63.129.16'])
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')
/** Within it, and routed nowhere: the former 6bone, and what is kept for documentation (RFC 9637). */
const unrouted = [ipaddr.IPv6.parseCIDR('3ffe::/16'), ipaddr.IPv6.parseCIDR('3fff::/20')]

/** Whether an IP address is one of the public internet. IPv4 inside IPv6 is judged as what it is. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast' || deniedByName.has(address.toString())) return false
  if (address instanceof ipaddr.IPv4) return true
  // Outside this block lie addresses that no range is named for, such as the deprecated `::127.0.0.1`.
  return address.match(globalUnicast) && !unrouted.some(block => address.match(block))
}

/** Signed addresses of object stores are long: a session token alone takes about 1,000 characters. */
const maximumForwardedCharacters = 8_192

/**
 * The address in the form in which an upstream may be asked to fetch it, or unchanged where it holds the data itself; null
 * where it may not be fetched. Normalized, so that no parser finds another host in it than this one did.
 */
export function forwardableAddress(text: string): string | null {
  if (/^data:/i.test(text)) return text
  return checkUrl(text, undefined, maximumForwardedCharacters)?.url.href ?? null
}
