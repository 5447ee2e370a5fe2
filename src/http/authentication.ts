/** Who is asking: the API key or the session of a request, and the address it came from. */
import { createHmac } from 'node:crypto'
import { jwt } from '@elysiajs/jwt'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { SignJWT } from 'jose'
import { digestOf, keyPrefix, parseApiKey, type RandomBytes } from '../core/accounts/api-keys.ts'
import type { Role } from '../core/accounts/roles.ts'
import type { Caller } from '../core/limits/plans.ts'
import type { RateLimiter } from '../core/limits/rate-limits.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { ipRateLimitedError } from './ip-rate-limit.ts'

/** Recognises keys. */
export type KeyDirectory = {
  /**
   * The caller behind a key that this process knows, from memory. A promise only for a key that certainly exists; null for
   * every other one, without asking a store.
   */
  recall(key: string): Caller | null | Promise<Caller | null>
  /** The caller behind any key; asks a store. Throws 503 for a key it cannot know right now. */
  find(key: string): Caller | null | Promise<Caller | null>
}

export type Callers = {
  /**
   * The caller behind a request's key. Where both headers are sent `Authorization` alone counts: a failed credential is not
   * retried with the other. Wrong, absent, malformed, revoked and expired keys are refused alike. A key that is not in
   * memory costs its address one of its refused credentials before a store is asked; throws `ip_rate_limited` if it has none.
   */
  authenticate(headers: Headers, address: () => string): Caller | Promise<Caller>
  /** For open routes: the caller if memory knows the key, else null. Looks up each request once, also after `authenticate`. */
  recall(headers: Headers): Caller | null | Promise<Caller | null>
}

/** `strangers` counts, by address, credentials that this process does not know. */
export function createCallers(keys: KeyDirectory, strangers: RateLimiter): Callers {
  /** Lookups under way by key: requests that arrive together with one key cost their address one lookup. */
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
    // The same credential would be refused again.
    if (waitMs > 0) throw ipRateLimitedError(waitMs, false)
    const caller = key === null ? null : await keys.find(key)
    if (caller === null) throw invalidKey()
    return caller
  }
  /** By request: the headers of a response need the caller that its handler has authenticated. */
  const known = new WeakMap<Headers, Caller>()
  const remembered = <T extends Caller | null>(headers: Headers, caller: T): T => {
    if (caller !== null) known.set(headers, caller)
    return caller
  }
  return {
    authenticate(headers, address) {
      const key = readApiKey(headers)
      const caller = key === null ? null : keys.recall(key)
      if (caller !== null && !(caller instanceof Promise)) return remembered(headers, caller)
      const found = caller === null ? lookUp(key, address()) : caller.then(one => one ?? lookUp(key, address()))
      return found.then(one => remembered(headers, one))
    },
    recall(headers) {
      const before = known.get(headers)
      if (before !== undefined) return before
      const key = hasApiKey(headers) ? readApiKey(headers) : null
      const caller = key === null ? null : keys.recall(key)
      return caller instanceof Promise ? caller.then(one => remembered(headers, one)) : remembered(headers, caller)
    },
  }
}

/** For open routes: throws 401 for a key that cannot be one. Whether any other is valid only memory may say there. */
export function refuseMalformed(headers: Headers): void {
  const key = hasApiKey(headers) ? readApiKey(headers) : null
  if (key !== null && parseApiKey(key) === null) throw invalidKey()
}

/** Whether a request, of those that take either, shows a key: a session token comes in `Authorization` and looks otherwise. */
export function hasApiKey(headers: Headers): boolean {
  const key = readApiKey(headers)
  return key !== null && (!headers.has('authorization') || key.startsWith(keyPrefix))
}

/** The key that a request shows; null = none. */
export function readApiKey(headers: Headers): string | null {
  const authorization = headers.get('authorization')
  if (authorization === null) return headers.get('x-api-key')
  return bearer.test(authorization) ? authorization.slice(7).trim() : null
}

const bearer = /^bearer /i

function invalidKey(): GatewayError {
  return new GatewayError(
    'invalid_api_key',
    'The API key is missing or not valid. Send it as "Authorization: Bearer <key>" or "x-api-key: <key>".',
    { shouldRetry: false },
  )
}

/** Somebody signed in. */
export type Principal = {
  readonly accountId: string
  readonly userId: string
  readonly sessionId: string
  readonly email: string
  readonly role: Role
  /** The email address waits for its confirmation. */
  readonly isUnverified: boolean
}

/** Knows who a session speaks for, half a second old at most. Throws 503 where it cannot know. */
export type SessionDirectory = {
  find(sessionId: string): Promise<Principal | null>
}

/**
 * The user behind a request's session token. It comes in `Authorization` alone: a key is never taken in its place, nor a
 * cookie, which a browser would send without being asked. Whatever is wrong with it is refused alike.
 */
export async function authenticateSession(
  tokens: Pick<Tokens, 'verify'>,
  sessions: SessionDirectory,
  headers: Headers,
): Promise<Principal> {
  const authorization = headers.get('authorization') ?? ''
  const claims = bearer.test(authorization) ? await tokens.verify(authorization.slice(7).trim()) : null
  const holder = claims === null ? null : await sessions.find(claims.sessionId)
  if (claims === null || holder === null || holder.userId !== claims.userId) throw invalidToken()
  return holder
}

/** Every refused session and refresh token gets this. */
export function invalidToken(): GatewayError {
  return new GatewayError(
    'invalid_token',
    'The session is missing, over or not valid. Sign in, and send the token as "Authorization: Bearer <token>".',
    { shouldRetry: false },
  )
}

type Claims = { readonly userId: string; readonly sessionId: string }

export type Tokens = {
  /** A session token of 15 minutes. */
  sign(claims: Claims): Promise<{ readonly token: string; readonly expiresAt: Date }>
  /** What a token of ours says; null for any other, an old one, or one that lacks a claim. */
  verify(token: string): Promise<Claims | null>
  /** The refresh token that follows this one: always the same, and known to nobody without the secret. */
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
 * Claims of a session token. Both ids reach Postgres, which refuses a text with a NUL: only the characters of our own ids
 * pass. The library limits the age of a token but not its `exp`, so the lifetime is compared as well.
 */
const ownId = Type.String({ pattern: '^[\\w.-]{1,128}$' })
const claimsSchema = Type.Object({ sub: ownId, sid: ownId, iat: Type.Number(), exp: Type.Number() })

/**
 * Session tokens under `secret`; `previousSecret` only verifies. The one use of the plugin, whose defaults take tokens that
 * never expire and algorithms that we do not sign with, and which signs by no clock but the machine's: that its library does
 * here. Throws where a secret is shorter than 32 bytes.
 */
export function createTokens(options: {
  readonly secret: string
  readonly previousSecret: string | null
  readonly clock: { now(): number }
}): Tokens {
  const { secret, previousSecret, clock } = options
  const own = keyOf(secret)
  const keys = new Map([own, ...(previousSecret === null ? [] : [keyOf(previousSecret)])].map(key => [key.id, key]))

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

/** A first refresh token: 256 random bits. */
export function firstRefreshToken(randomBytes: RandomBytes): string {
  return refreshPrefix + Buffer.from(randomBytes(32)).toString('base64url')
}

/** Whether a text has the form of a refresh token; says nothing of whether it is one. */
export function isRefreshToken(text: string): boolean {
  return refreshShape.test(text)
}

function keyOf(secret: string) {
  if (Buffer.byteLength(secret) < 32) throw new Error('a session secret must be at least 32 bytes long')
  const id = digestOf(`key id of ${secret}`).slice(0, 16)
  const plugin = jwt({ name: 'jwt', secret, alg: 'HS256', kid: id, iss: issuer, aud: audience })
  return { id, jwt: plugin.decorator.jwt, bytes: Buffer.from(secret) }
}

/** The key that a token names; null unless its header is one that we write. */
function keyIdIn(token: string): string | null {
  if (token.length > maximumTokenCharacters) return null
  try {
    const header: unknown = JSON.parse(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url').toString())
    return Value.Check(headerSchema, header) ? header.kid : null
  } catch {
    return null
  }
}

const headerSchema = Type.Object(
  { alg: Type.Literal('HS256'), typ: Type.Literal('JWT'), kid: Type.String({ minLength: 16, maxLength: 16 }) },
  { additionalProperties: false },
)

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
