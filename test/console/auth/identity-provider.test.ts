/** The client of the identity provider against a provider that misbehaves. */
import { describe, expect, test } from 'bun:test'
import { createIdentityProvider } from '../../../src/console/auth/identity-provider.ts'
import { type SingleSignOnConfig, SingleSignOnError } from '../../../src/core/accounts/single-sign-on.ts'
import { patient } from '../../harness/patience.ts'

const issuer = 'https://login.example.com'
const config: SingleSignOnConfig = {
  issuer,
  clientId: 'gateway',
  clientSecret: 'secret',
  redirectUri: 'https://gateway.example.com/api/v1/auth/oidc/callback',
  scope: 'openid email',
  label: 'Example',
  accountId: null,
  groupsClaim: 'groups',
  roles: new Map(),
  defaultRole: null,
  domains: null,
  trustsEmail: false,
  isOnly: false,
  sessionHours: 24,
}
const metadata = {
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/keys`,
}
const secrets = { state: 'state', nonce: 'nonce', verifier: 'v'.repeat(43) }

/** A client whose provider answers by `answer`; `calls` counts its requests. */
function client(answer: (url: string, init: RequestInit) => Response | Promise<Response>) {
  let [calls, now] = [0, 0]
  const provider = createIdentityProvider(config, {
    network: {
      async fetch(url, init) {
        calls++
        return answer(url, init)
      },
    },
    clock: { monotonic: () => now, now: () => now },
    timeoutMs: patient.identityProviderMs,
  })
  const wait = (ms: number) => {
    now += ms
  }
  return { provider, calls: () => calls, wait }
}

const getFailure = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (thrown: unknown) => (thrown instanceof SingleSignOnError ? thrown.failure : 'another error'),
  )

describe('identity provider', () => {
  test.each([
    ['another issuer', () => Response.json({ ...metadata, issuer: 'https://evil.example' }), 'rejected'],
    ['an error', () => new Response('down', { status: 503 }), 'unavailable'],
    ['a page', () => new Response('<html>', { headers: { 'content-type': 'text/html' } }), 'rejected'],
    [
      'text that is not JSON',
      () => new Response('{', { headers: { 'content-type': 'application/json' } }),
      'unavailable',
    ],
    ['more than 256 KB', () => Response.json({ ...metadata, x: 'x'.repeat(300_000) }), 'unavailable'],
    ['a redirect', () => Response.redirect('https://evil.example/', 302), 'unavailable'],
  ] as const)('fails if the metadata are %s', async (_, answer, failure) => {
    expect(await getFailure(client(answer).provider.signInUrl(secrets))).toBe(failure)
  })

  test('fails if it cannot be reached', async () => {
    const broken = client(() => Promise.reject(new Error('ECONNREFUSED')))
    expect(await getFailure(broken.provider.signInUrl(secrets))).toBe('unavailable')
  })

  test('bounds every call in time and follows no redirect', async () => {
    const seen: RequestInit[] = []
    const { provider } = client((_, init) => {
      seen.push(init)
      return Response.json(metadata)
    })
    await provider.signInUrl(secrets)
    expect(seen.map(({ redirect, signal }) => [redirect, signal instanceof AbortSignal])).toEqual([['manual', true]])
  })

  test('asks for the metadata every 10 minutes, and keeps older ones during an outage', async () => {
    let isAway = false
    const tested = client(() => (isAway ? new Response('', { status: 500 }) : Response.json(metadata)))
    await tested.provider.signInUrl(secrets)
    await tested.provider.signInUrl(secrets)
    expect(tested.calls()).toBe(1)
    isAway = true
    tested.wait(600_000)
    expect(await tested.provider.signInUrl(secrets)).toStartWith(`${issuer}/authorize?`)
    expect(tested.calls()).toBe(2)
  })

  test('reports the state of the metadata since its first check, and checks at most every 10 s', async () => {
    let isAway = false
    const tested = client(() =>
      isAway
        ? new Response('', { status: 503 })
        : Response.json({ ...metadata, end_session_endpoint: `${issuer}/end` }),
    )
    const up = { error: null, canSignOut: true }
    expect(await tested.provider.status()).toEqual({ ...up, sinceMs: 0, checkedAtMs: 0 })
    isAway = true
    tested.wait(9_999)
    expect(await tested.provider.status()).toEqual({ ...up, sinceMs: 0, checkedAtMs: 0 })
    expect(tested.calls()).toBe(1)
    tested.wait(1)
    const down = {
      error: { failure: 'unavailable', detail: 'OAUTH_RESPONSE_IS_NOT_CONFORM' },
      canSignOut: true,
    } as const
    expect(await tested.provider.status()).toEqual({ ...down, sinceMs: 10_000, checkedAtMs: 10_000 })
    tested.wait(10_000)
    expect(await tested.provider.status()).toEqual({ ...down, sinceMs: 10_000, checkedAtMs: 20_000 })
    // Sign-ins continue with the older metadata.
    expect(await getFailure(tested.provider.signInUrl(secrets))).toBeNull()
    isAway = false
    tested.wait(10_000)
    expect(await tested.provider.status()).toEqual({ ...up, sinceMs: 30_000, checkedAtMs: 30_000 })
  })

  test('offers a sign-out page only if the provider has one, and sends only client ID and return URI', async () => {
    const home = 'https://gateway.example.com/'
    expect(await client(() => Response.json(metadata)).provider.signOutUrl(home)).toBeNull()
    const offered = client(() => Response.json({ ...metadata, end_session_endpoint: `${issuer}/end` }))
    expect(await offered.provider.signOutUrl(home)).toBe(
      `${issuer}/end?${new URLSearchParams({ post_logout_redirect_uri: home, client_id: 'gateway' })}`,
    )
  })

  test('asks once for concurrent sign-ins, and again after a failure', async () => {
    let isAway = true
    const tested = client(() => (isAway ? new Response('', { status: 500 }) : Response.json(metadata)))
    const attempts = () => Promise.all(Array.from({ length: 20 }, () => getFailure(tested.provider.signInUrl(secrets))))
    expect([new Set(await attempts()), tested.calls()]).toEqual([new Set(['unavailable']), 1])
    isAway = false
    expect([new Set(await attempts()), tested.calls()]).toEqual([new Set([null]), 2])
  })

  test.each([
    [{ error: 'invalid_grant' }, 400, 'expired'],
    [{ error: 'invalid_client', error_description: 'canary' }, 401, 'misconfigured'],
    [{}, 500, 'unavailable'],
    [{ access_token: 'a', token_type: 'Bearer' }, 200, 'rejected'],
    [{ access_token: 'a', token_type: 'Bearer', id_token: 'a.b.c' }, 200, 'unavailable'],
  ])('explains the token response %j with status %i', async (body, status, failure) => {
    const { provider } = client(url =>
      url.endsWith('/token') ? Response.json(body, { status }) : Response.json(metadata),
    )
    expect(await getFailure(provider.getClaims('?code=c&state=state', secrets))).toBe(failure)
  })

  test('accepts no unsigned and no foreign ID token', async () => {
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss: issuer, sub: 's', aud: 'gateway', nonce: 'nonce', iat: now, exp: now + 60 }
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const keys = () => crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])
    const [published, foreign] = [await keys(), await keys()]
    const signed = async (payload: object, { privateKey } = published) => {
      const text = `${part({ alg: 'ES256', kid: 'k' })}.${part(payload)}`
      const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, privateKey, Buffer.from(text))
      return `${text}.${Buffer.from(signature).toString('base64url')}`
    }
    const jwk = await crypto.subtle.exportKey('jwk', published.publicKey)
    const supported = { ...metadata, id_token_signing_alg_values_supported: ['ES256'] }
    const getClaims = (token: string) => {
      const { provider } = client(url => {
        if (url.endsWith('/token')) return Response.json({ access_token: 'a', token_type: 'Bearer', id_token: token })
        if (url.endsWith('/keys')) return Response.json({ keys: [{ ...jwk, kid: 'k', alg: 'ES256', use: 'sig' }] })
        return Response.json(supported)
      })
      return provider.getClaims('?code=c&state=state', secrets)
    }
    expect(await getClaims(await signed(claims))).toMatchObject({ sub: 's', iss: issuer })
    for (const token of [
      `${part({ alg: 'none' })}.${part(claims)}.`,
      await signed(claims, foreign),
      await signed({ ...claims, aud: 'another client' }),
      await signed({ ...claims, iss: 'https://evil.example' }),
      await signed({ ...claims, nonce: 'another' }),
      await signed({ ...claims, exp: now - 3600 }),
    ])
      expect(await getFailure(getClaims(token))).toBe('rejected')
  })
})
