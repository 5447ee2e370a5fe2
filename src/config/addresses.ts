/** Validates URLs and host names in the configuration, and explains what is wrong with them. */
import { BlockList, isIP } from 'node:net'

/**
 * Returns the problem of a provider's URL; null = valid. Keys are sent to it, so it must be https, or plain http within
 * the machine or the private network.
 */
export function baseUrlProblem(raw: string): string | null {
  if (!URL.canParse(raw)) return 'must be an http(s) URL'
  const url = new URL(raw)
  if (url.username !== '' || url.password !== '') return 'must not contain credentials'
  if (url.protocol === 'https:') return null
  if (url.protocol !== 'http:') return 'must be an http(s) URL'
  return isPrivateHost(url.hostname)
    ? null
    : 'must be https; plain http is allowed only on loopback or private networks'
}

/** Returns true if a host name belongs to the machine or a private network. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (isIP(host) !== 0) return privateNetworks().check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4')
  // Container networks use single labels and private suffixes.
  return host === 'localhost' || !host.includes('.') || /\.(localhost|local|internal|home\.arpa)$/.test(host)
}

function privateNetworks(): BlockList {
  const list = new BlockList()
  for (const [network, prefix] of [
    ['127.0.0.0', 8],
    ['10.0.0.0', 8],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16],
  ] as const)
    list.addSubnet(network, prefix, 'ipv4')
  list.addAddress('::1', 'ipv6')
  list.addSubnet('fc00::', 7, 'ipv6')
  return list
}

const hostName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*\.?$/i

/** Returns true if a server can listen on it: an IP address or a name. */
export function isListenAddress(host: string): boolean {
  return isIP(host) !== 0 || isHostName(host)
}

/** Returns true for a name or address as in a `Host` header without port: IPv6 in brackets. */
export function isAnsweredHost(host: string): boolean {
  return /^\[(.*)\]$/.test(host) ? isIP(host.slice(1, -1)) === 6 : isHostName(host)
}

/** Four numbers are an IPv4 address, which must be valid. */
function isHostName(host: string): boolean {
  return hostName.test(host) && (isIP(host) !== 0 || !/^[\d.]+$/.test(host))
}

/** Returns the origin of a gateway that only this machine's browsers reach; null = it listens elsewhere. */
export function loopbackOrigin(host: string, port: number): string | null {
  if (isIP(host) === 6) return host === '::1' ? `http://[${host}]:${port}` : null
  return host === 'localhost' || /^127\.[\d.]+$/.test(host) ? `http://${host}:${port}` : null
}

/** Returns a function that checks whether an address is in one of these CIDR ranges. Reports invalid ranges. */
export function trustedProxies(cidrs: readonly string[], problems: string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const cidr of cidrs) {
    const [, network = '', bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(cidr) ?? []
    const family = isIP(network)
    const longest = family === 6 ? 128 : 32
    const prefix = bits === undefined ? longest : Number(bits)
    if (family === 0 || prefix > longest) problems.push(`TRUSTED_PROXIES: "${cidr}" is not an address or CIDR range`)
    else list.addSubnet(network, prefix, family === 6 ? 'ipv6' : 'ipv4')
  }
  if (cidrs.length === 0) return () => false
  return address => {
    const family = isIP(address)
    return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }
}

/** Returns a URL to which paths can be appended. */
export function withoutTrailingSlash(url: string): string {
  return url.replace(/\/+$/, '')
}
