/** URLs of Redis Sentinels: `redis+sentinel://host:port/name`, or with TLS `rediss+sentinel://`. */

const defaultPort = '26379'

/** Returns true for the URL of a Sentinel. */
export function isSentinelUrl(url: string): boolean {
  return /^rediss?\+sentinel:\/\//.test(url)
}

/** Returns what is wrong with a list of URLs that has a Sentinel's; null = nothing. */
export function sentinelProblem(urls: readonly string[]): string | null {
  const parsed = urls.filter(isSentinelUrl).map(parseSentinelUrl)
  const [first] = parsed
  const isAlike = parsed.length === urls.length && parsed.every(one => one.name === first?.name)
  return isAlike && first?.name !== '' ? null : 'Sentinel URLs must all end with the name of the same primary'
}

/** Returns the parts of a Sentinel's URL: the scheme and credentials of the primary, the Sentinel's own URL, and the name. */
export function parseSentinelUrl(url: string) {
  const scheme = url.startsWith('rediss') ? 'rediss' : 'redis'
  // Hosts are only parsed for known schemes.
  const { username, password, hostname, port, pathname } = new URL(url.replace(/^rediss?\+sentinel:/, 'http:'))
  return {
    scheme,
    credentials: username === '' && password === '' ? '' : `${username}:${password}@`,
    sentinel: `${scheme}://${hostname}:${port || defaultPort}`,
    name: decodeURIComponent(pathname.slice(1)),
  }
}
