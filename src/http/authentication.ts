/** Identifies the client: the API key or the session of a request, and its IP address. */

import { createHmac } from 'node:crypto'
import { jwt } from '@elysiajs/jwt'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import ipaddr from 'ipaddr.js'
import { SignJWT } from 'jose'
import { getDigest, keyPrefix, newToken, parseApiKey, type RandomBytes } from '../core/accounts/api-keys.ts'
import type { ManagementScope, ProjectRole, Role } from '../core/accounts/roles.ts'
import type { Caller } from '../core/limits/plans.ts'
import type { RateLimiter } from '../core/limits/rate-limits.ts'
import type { Clock } from '../core/ports.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { strictObject } from '../core/validation/validate.ts'
import { geminiPath, googleKeyHeader } from './endpoints.ts'
import { ipRateLimitedError } from './rate-limits.ts'

/** Finds the account of an API key. */
export type KeyLookup = {
  /**
   * Like `find`, but returns null at once for a key that is not in memory: the store is only queried for keys that
   * certainly exist.
   */
  recall(key: string): Caller | null | Promise<Caller | null>
  /**
   * Returns the caller of a key; null if it is malformed, unknown, revoked or expired. Known keys are answered at once,
   * also while the store is unavailable. Rejects with `service_unavailable` if a key cannot be looked up now.
   */
  find(key: string): Caller | null | Promise<Caller | null>
  /** Returns true if the key was valid and has expired, after `find` returned null. */
  isExpired(key: string): boolean
}

export type Callers = {
  /**
   * Returns the caller of a request's key, of the first valid one if both headers have a key of the gateway. Wrong,
   * missing, malformed and revoked keys get the same error; only who holds the whole key learns that it has expired. A
   * key that is not in memory uses up one of its IP address's failed credentials before the store query; throws
   * `ip_rate_limited` if the address has none left.
   */
  authenticate(headers: Headers, address: () => string): Caller | Promise<Caller>
  /**
   * For open routes: returns the caller if memory has the key, otherwise null. Looks up each request once, also after
   * `authenticate`.
   */
  recall(headers: Headers): Caller | null | Promise<Caller | null>
}

/** `strangers` counts unknown credentials per IP address. */
export function createCallers(keys: KeyLookup, strangers: RateLimiter): Callers {
  /** Pending lookups by key: concurrent requests with one key cost their IP address one lookup. */
  const running = new Map<string, Promise<Caller>>()
  const lookUp = (key: string | null, address: string): Promise<Caller> => {
    const same = key === null ? undefined : running.get(key)
    if (same !== undefined) return same
    const caller = findCounted(key, address)
    if (key === null) return caller
    running.set(key, caller)
    return caller.finally(() => running.delete(key))
  }
  const findCounted = async (key: string | null, address: string): Promise<Caller> => {
    const waitMs = await strangers.take(address)
    // A retry with the same credential would fail again.
    if (waitMs > 0) throw ipRateLimitedError(waitMs, false)
    const caller = key === null ? null : await keys.find(key)
    if (caller !== null) return caller
    throw key !== null && keys.isExpired(key) ? expiredKey() : invalidKey()
  }
  const getCaller = (key: string | null, address: () => string): Caller | Promise<Caller> => {
    const caller = key === null ? null : keys.recall(key)
    if (caller === null) return lookUp(key, address())
    return caller instanceof Promise ? caller.then(item => item ?? lookUp(key, address())) : caller
  }
  /** By request: the response headers need the caller that the handler has authenticated. */
  const known = new WeakMap<Headers, Caller>()
  const remembered = <T extends Caller | null>(headers: Headers, caller: T): T => {
    if (caller !== null) known.set(headers, caller)
    return caller
  }
  return {
    authenticate(headers, address) {
      const [key, other] = readApiKeys(headers)
      const caller = getCaller(key ?? null, address)
      const found =
        other === undefined || !(caller instanceof Promise)
          ? caller
          : caller.catch(error => (isInvalidKey(error) ? getCaller(other, address) : Promise.reject(error)))
      return found instanceof Promise ? found.then(item => remembered(headers, item)) : remembered(headers, found)
    },
    recall(headers) {
      const before = known.get(headers)
      if (before !== undefined) return before
      const key = hasApiKey(headers) ? readApiKey(headers) : null
      const caller = key === null ? null : keys.recall(key)
      return caller instanceof Promise ? caller.then(item => remembered(headers, item)) : remembered(headers, caller)
    },
  }
}

/** For open routes: throws 401 for a malformed key. Only memory decides there whether a well-formed key is valid. */
export function refuseMalformed(headers: Headers): void {
  const key = hasApiKey(headers) ? readApiKey(headers) : null
  if (key !== null && parseApiKey(key) === null) throw invalidKey()
}

/**
 * Returns whether a request shows an API key, for routes that accept keys and sessions. A session token has another
 * form.
 */
export function hasApiKey(headers: Headers): boolean {
  const key = readApiKey(headers)
  return key !== null && (!headers.has('authorization') || key.startsWith(keyPrefix))
}

/** Returns the API key of a request, the first if both headers have one; null = none. */
export function readApiKey(headers: Headers): string | null {
  return readApiKeys(headers)[0] ?? null
}

/**
 * Returns the keys that may be the client's. Claude Code sends its session of claude.ai in `Authorization` beside a key
 * in `x-api-key`, or a key of Anthropic beside a key of the gateway: a foreign credential counts only if there is no key
 * of the gateway.
 */
function readApiKeys(headers: Headers): readonly string[] {
  const authorization = headers.get('authorization')
  const other = headers.get('x-api-key') ?? headers.get(googleKeyHeader)
  if (authorization === null) return other === null ? [] : [other]
  const first = bearer.test(authorization) ? authorization.slice(7).trim() : null
  if (other?.startsWith(keyPrefix)) return first?.startsWith(keyPrefix) && first !== other ? [first, other] : [other]
  return first === null ? [] : [first]
}

/** Moves the key that Google's clients may send in the query into its header: nothing else reads it from an address. */
export function adoptQueryKey({ url, headers }: Pick<Request, 'url' | 'headers'>): void {
  const key = url.includes('key=') && geminiPath.test(url) ? URL.parse(url)?.searchParams.get('key') : null
  if (key != null && !headers.has(googleKeyHeader)) headers.set(googleKeyHeader, key)
}

const bearer = /^bearer /i

function isInvalidKey(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'invalid_api_key'
}

function invalidKey(): GatewayError {
  return new GatewayError(
    'invalid_api_key',
    'Missing or invalid API key. Send it as "Authorization: Bearer <key>" or "x-api-key: <key>".',
    { shouldRetry: false },
  )
}

function expiredKey(): GatewayError {
  const message = 'This API key has expired. Create a new key, or ask an owner or admin of the account for one.'
  return new GatewayError('invalid_api_key', message, { shouldRetry: false })
}

/** A signed-in user. */
export type Principal = {
  readonly accountId: string
  readonly userId: string
  readonly sessionId: string
  readonly email: string
  readonly role: Role
  /** Roles in projects, by the project's ID. */
  readonly projects: ReadonlyMap<string, ProjectRole>
  /** The email address is not confirmed yet. */
  readonly isUnverified: boolean
  /** The account requires two-factor sign-in, and the user has not set it up. */
  readonly mustSetUpTwoFactor: boolean
  /** The session was started by single sign-on. */
  readonly isSingleSignOn: boolean
  /** The management key that acts for the user; null = the user's own session. */
  readonly managementKey: { readonly name: string; readonly scopes: readonly ManagementScope[] } | null
}

/** Finds the user of a session; the result is at most 0.5 s old. Throws 503 if the store is unavailable. */
type SessionLookup = {
  find(name: string): Promise<Principal | null>
  isKnownKey(digest: string): boolean
}

type SessionAuthentication = {
  readonly tokens: Pick<Tokens, 'verify'>
  readonly sessions: SessionLookup
  /** Counts management keys that are not in memory, per IP address. */
  readonly strangers: RateLimiter
}

/**
 * Returns the user of a request's session token or management key. Only `Authorization` carries it: an API key is not
 * accepted, nor a cookie, which browsers send automatically. All invalid tokens get the same error.
 */
export async function authenticateSession(
  { tokens, sessions, strangers }: SessionAuthentication,
  headers: Headers,
  address: () => string,
): Promise<Principal> {
  const authorization = headers.get('authorization') ?? ''
  const token = bearer.test(authorization) ? authorization.slice(7).trim() : ''
  if (isManagementKey(token)) {
    const digest = getDigest(token)
    const waitMs = sessions.isKnownKey(digest) ? 0 : await strangers.take(address())
    if (waitMs > 0) throw ipRateLimitedError(waitMs, false)
    const holder = await sessions.find(digest)
    if (holder === null) throw unknownManagementKey()
    return holder
  }
  const claims = token === '' ? null : await tokens.verify(token)
  const holder = claims === null ? null : await sessions.find(claims.sessionId)
  if (claims === null || holder === null || holder.userId !== claims.userId) throw invalidToken()
  return holder
}

const managementPrefix = 'gw_manage_'
const managementShape = /^gw_manage_[\w-]{43}$/

/** Returns a new management key: 256 random bits. */
export function mintManagementKey(randomBytes: RandomBytes): string {
  return newToken(managementPrefix, randomBytes)
}

function isManagementKey(text: string): boolean {
  return text.startsWith(managementPrefix) && managementShape.test(text)
}

/** Error for every invalid session token and refresh token. */
export function invalidToken(): GatewayError {
  return new GatewayError(
    'invalid_token',
    'Missing, expired or invalid session token or management key. Sign in, or send a valid one as "Authorization: Bearer <token>".',
    { shouldRetry: false },
  )
}

function unknownManagementKey(): GatewayError {
  const message = 'This management key is unknown, expired or revoked. Create a new one, or ask an owner or admin.'
  return new GatewayError('invalid_api_key', message, { shouldRetry: false })
}

type Claims = { readonly userId: string; readonly sessionId: string }

export type Tokens = {
  /** Returns a session token that is valid for 15 minutes. */
  sign(claims: Claims): Promise<{ readonly token: string; readonly expiresAt: Date }>
  /** Returns the claims of a valid token; null for a foreign token, an expired one, or one without a required claim. */
  verify(token: string): Promise<Claims | null>
  /** Returns the successor of a refresh token: always the same value, which cannot be computed without the secret. */
  nextRefreshToken(token: string): string
}

const sessionSeconds = 15 * 60
const leewaySeconds = 30
const maximumTokenCharacters = 2048
const [issuer, audience] = ['gateway-ai', 'gateway-ai/session']
const pinned = {
  algorithms: ['HS256'],
  requiredClaims: ['sub', 'sid', 'iat', 'exp', 'iss', 'aud'],
  maxTokenAge: sessionSeconds,
  clockTolerance: leewaySeconds,
  issuer,
  audience,
}

/**
 * Claims of a session token. Both IDs reach Postgres, which rejects a text with a NUL; only the characters of the
 * gateway's own IDs pass. The library limits the age of a token but not its `exp`, so the lifetime is compared as well.
 */
const ownId = Type.String({ pattern: '^[\\w.-]{1,128}$' })
const claimsSchema = Type.Object({ sub: ownId, sid: ownId, iat: Type.Number(), exp: Type.Number() })

/**
 * Session tokens under `secret`; `previousSecret` only verifies. This replaces the plugin's own functions: they accept
 * tokens without expiry and other algorithms, and sign by the machine's clock only. Throws if a secret is shorter than
 * 32 bytes.
 */
export function createTokens(options: {
  readonly secret: string
  readonly previousSecret: string | null
  readonly clock: Pick<Clock, 'now'>
}): Tokens {
  const { secret, previousSecret, clock } = options
  const own = getKey(secret)
  const keys = new Map([own, ...(previousSecret === null ? [] : [getKey(previousSecret)])].map(key => [key.id, key]))

  return {
    async sign({ userId, sessionId }) {
      const issuedAt = Math.floor(clock.now() / 1000)
      const expiresAt = issuedAt + sessionSeconds
      const claims = { sub: userId, sid: sessionId, iat: issuedAt, exp: expiresAt, iss: issuer, aud: audience }
      const token = await new SignJWT(claims)
        .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: own.id })
        .sign(own.bytes)
      return { token, expiresAt: new Date(expiresAt * 1000) }
    },
    async verify(token) {
      const key = keys.get(keyIdIn(token) ?? '')
      if (key === undefined) return null
      const claims: unknown = await key.jwt.verify(token, { ...pinned, currentDate: new Date(clock.now()) })
      if (!Value.Check(claimsSchema, claims) || claims.exp - claims.iat > sessionSeconds) return null
      return { userId: claims.sub, sessionId: claims.sid }
    },
    nextRefreshToken: token =>
      refreshPrefix + createHmac('sha256', `refresh ${secret}`).update(token).digest('base64url'),
  }
}

const refreshPrefix = 'gw_refresh_'
const refreshShape = /^gw_refresh_[\w-]{43}$/

/** Returns a first refresh token: 256 random bits. */
export function firstRefreshToken(randomBytes: RandomBytes): string {
  return newToken(refreshPrefix, randomBytes)
}

/** Returns whether a text has the form of a refresh token. Does not check its validity. */
export function isRefreshToken(text: string): boolean {
  return refreshShape.test(text)
}

function getKey(secret: string) {
  if (Buffer.byteLength(secret) < 32) throw new Error('a session secret must be at least 32 bytes long')
  const id = getDigest(`key id of ${secret}`).slice(0, 16)
  const plugin = jwt({ name: 'jwt', secret, alg: 'HS256', kid: id, iss: issuer, aud: audience })
  return { id, jwt: plugin.decorator.jwt, bytes: Buffer.from(secret) }
}

/** Returns the key ID of a token; null unless the gateway wrote its header. */
function keyIdIn(token: string): string | null {
  if (token.length > maximumTokenCharacters) return null
  try {
    const header: unknown = JSON.parse(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString())
    return Value.Check(headerSchema, header) ? header.kid : null
  } catch {
    return null
  }
}

const headerSchema = strictObject({
  alg: Type.Literal('HS256'),
  typ: Type.Literal('JWT'),
  kid: Type.String({ minLength: 16, maxLength: 16 }),
})

/**
 * Returns the client's IP address: the rightmost `X-Forwarded-For` hop that is not a trusted proxy, or the socket's
 * address if the peer is not a proxy. A hop that is no address ends the search: the address of the proxy that reports it counts,
 * because the client may have written all to its left. IPv6 counts by /64, the network of one subscriber.
 */
export function callerAddress(
  socketAddress: string | null,
  forwardedFor: string | null,
  isTrustedProxy: (address: string) => boolean,
): string {
  let address = parsedAddress((socketAddress ?? '').replace(/%.*$/, ''))
  const hops = (forwardedFor ?? '').split(',')
  for (
    let hop = hops.pop();
    hop !== undefined && address !== null && isTrustedProxy(address.toString());
    hop = hops.pop()
  ) {
    const reported = parsedAddress(withoutPort(hop.trim()))
    if (reported === null) break
    address = reported
  }
  if (address === null) return ''
  return address instanceof ipaddr.IPv6 ? getNetwork(address) : address.toString()
}

/** Some proxies append the port, which differs per connection. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}

/** Returns an address in its usual form, IPv4 in IPv6 as IPv4; null if the text is no address. */
function parsedAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  const isAddress = ipaddr.IPv4.isValidFourPartDecimal(text) || (!text.includes('%') && ipaddr.IPv6.isValid(text))
  return isAddress ? ipaddr.process(text) : null
}

function getNetwork({ parts }: ipaddr.IPv6): string {
  return `${parts
    .slice(0, 4)
    .map(part => part.toString(16))
    .join(':')}::/64`
}
