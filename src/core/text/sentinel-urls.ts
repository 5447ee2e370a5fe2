/**
 * URLs of Redis Sentinels: `redis+sentinel://user:password@host:port/name?sentinel_username=…&sentinel_password=…`, or with TLS
 * `rediss+sentinel://`. User and password are those of the Redis servers. The first URL's credentials apply to all.
 */

const defaultPort = '26379'

type Sentinels = {
  /** URL of each Sentinel, with the credentials of the Sentinels. */
  readonly urls: readonly string[]
  /** Name of the primary. */
  readonly name: string
  /** URL of the primary up to its host. */
  readonly primaryPrefix: string
}

type Parsed = {
  readonly scheme: 'redis' | 'rediss'
  readonly host: string
  readonly name: string
  /** `user:password@`, percent-encoded; empty = none. */
  readonly login: string
  readonly sentinelLogin: string
}

class SentinelUrlError extends Error {}

/** Returns true for the URL of a Sentinel. */
export function isSentinelUrl(url: string): boolean {
  return /^rediss?\+sentinel:\/\//.test(url)
}

/** Returns what is wrong with a list of URLs that has a Sentinel's; null = nothing. */
export function sentinelProblem(urls: readonly string[]): string | null {
  try {
    parseSentinelUrls(urls)
    return null
  } catch (cause) {
    if (cause instanceof SentinelUrlError) return cause.message
    throw cause
  }
}

/** Returns the Sentinels of a list of URLs. Throws for a list in which `sentinelProblem` finds one. */
export function parseSentinelUrls(urls: readonly string[]): Sentinels {
  if (!urls.every(isSentinelUrl))
    throw new SentinelUrlError('Sentinel URLs must not be mixed with URLs of other servers')
  const parsed = urls.map(parse)
  const [first] = parsed
  if (first === undefined || first.name === '' || parsed.some(({ name }) => name !== first.name))
    throw new SentinelUrlError('Sentinel URLs must all end with the name of the same primary')
  if (parsed.some(({ scheme }) => scheme !== first.scheme))
    throw new SentinelUrlError('Sentinel URLs must all use TLS (rediss+sentinel://), or none of them')
  const isSame = (own: string, applied: string) => own === '' || own === applied
  if (!parsed.every(item => isSame(item.login, first.login) && isSame(item.sentinelLogin, first.sentinelLogin)))
    throw new SentinelUrlError(
      'the credentials of the first Sentinel URL apply to all; the others must repeat them or have none',
    )
  return {
    urls: parsed.map(({ host }) => `${first.scheme}://${first.sentinelLogin}${host}`),
    name: first.name,
    primaryPrefix: `${first.scheme}://${first.login}`,
  }
}

function parse(url: string): Parsed {
  // Hosts are only parsed for known schemes.
  const parsed = URL.parse(url.replace(/^rediss?\+sentinel:/, 'http:'))
  if (parsed === null) throw new SentinelUrlError('a Sentinel URL has no valid host')
  const { username, password, hostname, port, pathname, search, hash } = parsed
  for (const text of [username, password]) decoded(text)
  // The end of a password with a `#` of its own.
  if (hash !== '') throw notEncoded()
  const name = decoded(pathname.slice(1))
  if (name.includes('/'))
    throw new SentinelUrlError('a Sentinel URL must end with the name of the primary; only database 0 is supported')
  return {
    scheme: url.startsWith('rediss') ? 'rediss' : 'redis',
    host: `${hostname}:${port || defaultPort}`,
    name,
    login: username === '' && password === '' ? '' : `${username}:${password}@`,
    sentinelLogin: sentinelLoginIn(search),
  }
}

/** Returns the login of Sentinels that a query gives. A `+` stands for itself, and for no blank as in forms. */
function sentinelLoginIn(search: string): string {
  const given = new Map<string, string>()
  for (const pair of search.slice(1).split('&').filter(Boolean)) {
    const [name = '', ...value] = pair.split('=')
    if (!/^sentinel_(username|password)$/.test(name) || given.has(name))
      throw new SentinelUrlError(
        'a Sentinel URL accepts only sentinel_username and sentinel_password after "?", each once',
      )
    given.set(name, encodeURIComponent(decoded(value.join('='))))
  }
  if (given.size === 0) return ''
  const [username = '', password = ''] = [given.get('sentinel_username'), given.get('sentinel_password')]
  if (password === '') throw new SentinelUrlError('sentinel_password is missing or empty')
  return `${username}:${password}@`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw notEncoded()
  }
}

const notEncoded = () =>
  new SentinelUrlError('special characters in names and passwords must be percent-encoded, such as %23 for #')
