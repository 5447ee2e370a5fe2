/** Single sign-on at a real OpenID provider, step by step: what a browser sends, and what it must not get away with. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { invite } from '../../src/console/auth/stores/invitations.ts'
import { getIsAccount, identifyUser, previewUser } from '../../src/console/auth/stores/single-sign-on.ts'
import { findUser, listUsers, removeUser } from '../../src/console/auth/stores/users.ts'
import { createAccount } from '../../src/database/repositories/accounts.ts'
import { freePort } from '../harness/free-port.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import {
  callbackUrl,
  type IdentityProviderProcess,
  type Jar,
  singleSignOnEnvironment,
  startIdentityProvider,
  target,
  visit,
} from '../harness/identity-provider.ts'
import { sendRequest } from '../harness/users.ts'

// A bound against a hang, for a machine with many other processes.
setDefaultTimeout(240_000)

const person = (email: string, groups: readonly string[], isVerified = true) => ({
  email,
  email_verified: isVerified,
  groups,
})
const users = {
  ada: person('Ada@Corp.example', ['engineers', 'everyone']),
  grace: person('grace@corp.example', ['leads', 'engineers']),
  eve: person('eve@corp.example', ['visitors']),
  mallory: person('local@localhost', ['engineers'], false),
  outsider: person('x@other.example', ['engineers']),
  nobody: { groups: ['engineers'] },
  newcomer: person('new@corp.example', ['engineers']),
}

let port = 0
let provider: IdentityProviderProcess
let gateway: Gateway
beforeAll(async () => {
  port = freePort()
  provider = await startIdentityProvider(port, users)
  gateway = await startGateway(
    {
      ...singleSignOnEnvironment(provider.issuer, port),
      OIDC_ROLES: 'engineers=member, leads=admin',
      OIDC_DOMAINS: 'corp.example',
      OIDC_SESSION_HOURS: '2',
      TRUSTED_PROXIES: '127.0.0.1',
    },
    { port },
  )
})
afterAll(async () => {
  await gateway.stop()
  await provider.stop()
})

const api = (path: string) => `${gateway.url}/api/v1/auth/oidc/${path}`
type SignedIn = { readonly token: string; readonly refresh_token: string; readonly user: Record<string, unknown> }

/** Begins a sign-in; returns the provider's URL. */
const start = async (jar: Jar) => target(await visit(jar, api('start')), gateway.url)

/** Returns the failure that the sign-in page receives after a callback; null = success. */
async function finish(jar: Jar, callback: string): Promise<string | null> {
  const url = target(await visit(jar, callback), callback)
  expect(url).toStartWith(`${gateway.url}/#/sso`)
  return /error=(\w+)$/.exec(url)?.[1] ?? null
}

const session = (jar: Jar) =>
  visit(jar, api('session'), { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })

async function signIn(name: string): Promise<SignedIn> {
  const jar: Jar = new Map()
  expect(await finish(jar, await callbackUrl(jar, await start(jar), name))).toBeNull()
  const response = await session(jar)
  expect(response.status).toBe(200)
  return (await response.json()) as SignedIn
}

describe('single sign-on', () => {
  test('asks with code, PKCE, state and nonce for exactly one redirect URI', async () => {
    const jar: Jar = new Map()
    const response = await visit(jar, api('start?redirect_uri=https://evil.example'))
    const { searchParams, origin } = new URL(target(response, gateway.url))
    expect(origin).toBe(provider.issuer)
    expect(Object.fromEntries(searchParams)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: `${gateway.url}/api/v1/auth/oidc/callback`,
      scope: 'openid email profile',
    })
    for (const name of ['state', 'nonce', 'code_challenge']) expect(searchParams.get(name)).toHaveLength(43)
    expect(response.headers.get('set-cookie')).toMatch(
      /^gateway-sso=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/,
    )
    const values = [...searchParams.values()].join(' ')
    for (const secret of jar.values()) expect(values).not.toContain(secret)
  })

  test('creates a member of the account with the role of its groups, once', async () => {
    const first = await signIn('ada')
    expect(first.user).toMatchObject({ email: 'ada@corp.example', role: 'member' })
    expect((await signIn('ada')).user.id).toBe(first.user.id)
    const { body } = await sendRequest<{ id: string }>(gateway, 'GET', '/api/v1/account', { token: first.token })
    expect(body.id).toBe(gateway.accountId)
    expect((await signIn('grace')).user.role).toBe('admin')
  })

  test('gives a role again that the groups have, whatever it was meanwhile', async () => {
    const { user } = await signIn('grace')
    const { database } = gateway.deps
    await database.run(({ sql }) => sql`update users set role = 'viewer' where id = ${String(user.id)}`)
    expect((await signIn('grace')).user.role).toBe('admin')
  })

  test('limits the session, also when it is refreshed', async () => {
    const { refresh_token: token, user } = await signIn('ada')
    const { database } = gateway.deps
    const bounds = () =>
      database.run(
        ({ sql }) => sql<{ isBound: boolean }[]>`
          select expires_at = ends_at and ends_at = created_at + interval '2 hours' as "isBound" from sessions
          where user_id = ${String(user.id)} order by created_at desc limit 1`,
      )
    expect(await bounds()).toMatchObject([{ isBound: true }])
    const { status } = await sendRequest(gateway, 'POST', '/api/v1/auth/refresh', { body: { refresh_token: token } })
    expect(status).toBe(200)
    expect(await bounds()).toMatchObject([{ isBound: true }])
  })

  test('rejects users without a mapped group, a verified address or an allowed domain', async () => {
    for (const [name, failure] of [
      ['eve', 'no_role'],
      ['mallory', 'email_unverified'],
      ['nobody', 'email_unverified'],
      ['outsider', 'domain_not_allowed'],
    ] as const) {
      const jar: Jar = new Map()
      const callback = await callbackUrl(jar, await start(jar), name)
      expect([name, await finish(jar, callback)]).toEqual([name, failure])
      expect((await session(jar)).status).toBe(401)
    }
  })

  test('rejects a user who was removed, until an invitation', async () => {
    const { user } = await signIn('ada')
    const { database, newId } = gateway.deps
    const [boss] = await listUsers(database, gateway.accountId)
    const owner = boss?.id ?? ''
    expect(await removeUser(database, gateway.accountId, owner, String(user.id))).toBe('done')
    const jar: Jar = new Map()
    expect(await finish(jar, await callbackUrl(jar, await start(jar), 'ada'))).toBe('removed')
    const id = newId('inv')
    const invitation = { id, email: 'ada@corp.example', role: 'viewer', invitedBy: owner, digest: id } as const
    await invite(database, gateway.accountId, { ...invitation, project_id: null, project_role: null })
    const again = await signIn('ada')
    expect(again.user.id).not.toBe(user.id)
    expect(again.user.role).toBe('member')
  })

  test('keeps the last owner, and links an existing user by its verified address', async () => {
    const { database, newId } = gateway.deps
    const [boss] = await listUsers(database, gateway.accountId)
    const arrival = {
      issuer: provider.issuer,
      subject: 'boss',
      accountId: gateway.accountId,
      role: 'member',
      defaultRole: null,
      newUser: { id: newId('usr'), passwordHash: 'x' },
    } as const
    expect(await identifyUser(database, { ...arrival, email: null })).toEqual({ failure: 'email_unverified' })
    const linked = await identifyUser(database, { ...arrival, email: boss?.email ?? '' })
    expect(linked).toEqual({ userId: boss?.id ?? '' })
    // Afterwards the subject identifies the user, whatever its address is.
    expect(await identifyUser(database, { ...arrival, email: null })).toEqual(linked)
    const user = await findUser(database, gateway.accountId, boss?.id ?? '')
    expect(user?.role).toBe('owner')
  })
})

describe('callback', () => {
  test('rejects a changed state, a changed nonce, a missing issuer and another browser', async () => {
    const change = (url: string, name: string, value: string | null) => {
      const changed = new URL(url)
      if (value === null) changed.searchParams.delete(name)
      else changed.searchParams.set(name, value)
      return changed.href
    }
    const cases: readonly (readonly [string, (jar: Jar) => Promise<string | null>])[] = [
      [
        'rejected',
        async jar => finish(jar, change(await callbackUrl(jar, await start(jar), 'ada'), 'state', 'x'.repeat(43))),
      ],
      [
        'rejected',
        async jar => finish(jar, await callbackUrl(jar, change(await start(jar), 'nonce', 'x'.repeat(43)), 'ada')),
      ],
      [
        'rejected',
        async jar =>
          finish(jar, change(await callbackUrl(jar, await start(jar), 'ada'), 'iss', 'https://evil.example')),
      ],
      ['rejected', async jar => finish(jar, change(await callbackUrl(jar, await start(jar), 'ada'), 'iss', null))],
      ['expired', async jar => finish(new Map(), await callbackUrl(jar, await start(jar), 'ada'))],
      ['expired', async jar => finish(jar, api('callback?code=x&state=y'))],
    ]
    for (const [index, [failure, attempt]] of cases.entries())
      expect([index, await attempt(new Map())]).toEqual([index, failure])
  })

  test('works once, and so does the hand-over to the dashboard', async () => {
    const jar: Jar = new Map()
    const callback = await callbackUrl(jar, await start(jar), 'ada')
    const before: Jar = new Map(jar)
    expect(await finish(jar, callback)).toBeNull()
    expect(await finish(before, callback)).toBe('expired')
    const copy: Jar = new Map(jar)
    expect((await session(jar)).status).toBe(200)
    expect((await session(copy)).status).toBe(401)
    expect((await session(jar)).status).toBe(401)
  })

  test('rejects a code that expired at the provider', async () => {
    const jar: Jar = new Map()
    const callback = await callbackUrl(jar, await start(jar), 'ada')
    await provider.moveClock(600)
    expect(await finish(jar, callback)).toBe('expired')
    await provider.moveClock(0)
  })

  test('explains that the user refused, and repeats no text of the provider', async () => {
    const jar: Jar = new Map()
    const authorization = new URL(await start(jar))
    const state = authorization.searchParams.get('state') ?? ''
    const query = new URLSearchParams({
      error: 'access_denied',
      error_description: '<script>canary</script>',
      state,
      iss: provider.issuer,
    })
    expect(await finish(jar, `${api('callback')}?${query}`)).toBe('denied')
    expect(gateway.logLines.join()).toContain('oidc_sign_in_failed')
    expect(gateway.logLines.join()).not.toContain('canary')
  })

  test('rejects pages of other origins at the hand-over', async () => {
    const jar: Jar = new Map()
    expect(await finish(jar, await callbackUrl(jar, await start(jar), 'ada'))).toBeNull()
    const foreign = await visit(jar, api('session'), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'cross-site' },
      body: '{}',
    })
    expect(foreign.status).toBe(403)
    expect((await session(jar)).status).toBe(200)
  })
})

describe('test sign-in', () => {
  /** Returns the query with which a test returns to the settings page. */
  async function tested(name: string): Promise<string> {
    const jar: Jar = new Map()
    const authorization = target(await visit(jar, api('start?test=true')), gateway.url)
    const callback = await callbackUrl(jar, authorization, name)
    const url = target(await visit(jar, callback), callback)
    expect([jar.has(`127.0.0.1:${port} gateway-sso`), (await session(jar)).status]).toEqual([false, 401])
    expect(url).toStartWith(`${gateway.url}/#/settings?`)
    return url.slice(url.indexOf('?'))
  }

  test('shows role or failure of a sign-in, and changes neither users nor sessions', async () => {
    const { database } = gateway.deps
    const counts = () =>
      database.run(
        ({ sql }) => sql`
          select (select count(*) from users)::int as users, (select count(*) from sessions)::int as sessions,
            (select count(*) from user_identities)::int as identities, (select count(*) from audit_log)::int as entries`,
      )
    const before = await counts()
    expect(await tested('grace')).toBe('?sso_test=passed&role=admin')
    expect(await tested('newcomer')).toBe('?sso_test=passed&role=member')
    expect(await tested('eve')).toBe('?sso_test=no_role')
    expect(await tested('outsider')).toBe('?sso_test=domain_not_allowed')
    expect(await counts()).toEqual(before)
    expect(gateway.logLines.join()).toContain('oidc_test_failed')
  })

  test('cannot become a sign-in', async () => {
    const jar: Jar = new Map()
    const authorization = target(await visit(jar, api('start?test=true')), gateway.url)
    const callback = await callbackUrl(jar, authorization, 'grace')
    const url = target(await visit(jar, callback.replace('?', '?test=false&')), callback)
    expect(url).toContain('#/settings?sso_test=')
    expect((await session(jar)).status).toBe(401)
  })
})

test('session: shows whether single sign-on started it', async () => {
  expect(await signIn('ada')).toMatchObject({ single_sign_on: true })
  const { email, password } = gateway.deps.firstAccount ?? { email: '', password: '' }
  const { body } = await sendRequest(gateway, 'POST', '/api/v1/auth/login', { body: { email, password } })
  expect(body.single_sign_on).toBe(false)
})

test('settings: show the owner the configuration and the state of the provider, without the secret', async () => {
  const { email, password } = gateway.deps.firstAccount ?? { email: '', password: '' }
  const { body: boss } = await sendRequest<SignedIn>(gateway, 'POST', '/api/v1/auth/login', {
    body: { email, password },
  })
  const shown = await sendRequest(gateway, 'GET', '/api/v1/auth/oidc/settings', { token: boss.token })
  expect(shown.body).toMatchObject({
    single_sign_on: {
      issuer: provider.issuer,
      client_id: 'gateway',
      redirect_uri: `${gateway.url}/api/v1/auth/oidc/callback`,
      sign_out_uri: `${gateway.url}/`,
      roles: [
        { group: 'engineers', role: 'member' },
        { group: 'leads', role: 'admin' },
      ],
      domains: ['corp.example'],
      only: false,
      provider: { reachable: true, failure: null, can_sign_out: true },
    },
  })
  expect(shown.text).not.toContain('secret')
  const admin = await signIn('grace')
  expect((await sendRequest(gateway, 'GET', '/api/v1/auth/oidc/settings', { token: admin.token })).status).toBe(403)
})

test('sign-out: leads to the provider and back to the dashboard, without an ID token', async () => {
  const url = new URL(target(await visit(new Map(), api('logout')), gateway.url))
  expect(url.origin).toBe(provider.issuer)
  expect(Object.fromEntries(url.searchParams)).toEqual({
    post_logout_redirect_uri: `${gateway.url}/`,
    client_id: 'gateway',
  })
})

// Last: with a second account, single sign-on must name its own.
test('single sign-on: never signs in to a user of another account, nor guesses the account', async () => {
  const { database, newId } = gateway.deps
  const [accountId, createdAt] = [newId('acc'), new Date()]
  await createAccount(
    database,
    { id: accountId, name: 'other', plan: 'evaluation', createdAt },
    {
      id: newId('usr'),
      accountId,
      email: 'bob@corp.example',
      passwordHash: 'x',
      role: 'owner',
      createdAt,
    },
  )
  const newUser = { id: newId('usr'), passwordHash: 'x' }
  const bob = {
    issuer: provider.issuer,
    subject: 'bob',
    email: 'bob@corp.example',
    accountId: gateway.accountId,
    role: 'member',
    defaultRole: null,
    newUser,
  } as const
  expect(await identifyUser(database, bob)).toEqual({ failure: 'other_account' })
  expect(await previewUser(database, bob)).toEqual({ failure: 'other_account' })
  const ambiguous = await identifyUser(database, {
    issuer: provider.issuer,
    subject: 'carol',
    email: 'carol@corp.example',
    accountId: null,
    role: 'member',
    defaultRole: null,
    newUser,
  })
  expect(ambiguous).toEqual({ failure: 'misconfigured' })
  // Nor does an owner see the settings: they belong to none of the accounts.
  expect(await getIsAccount(database, gateway.accountId, null)).toBe(false)
  expect(await getIsAccount(database, gateway.accountId, accountId)).toBe(false)
  expect(await getIsAccount(database, accountId, accountId)).toBe(true)
  // A registration without a confirmed address makes room, in a test as in a sign-in; the test leaves it.
  const registered = () =>
    database.run(
      ({ sql }) =>
        sql`select id from users where account_id = ${accountId} and email = ${bob.email} and removed_at is null`,
    )
  await database.run(({ sql }) => sql`update users set unverified_since = now() where email = ${bob.email}`)
  expect(await previewUser(database, bob)).toEqual({ role: 'member' })
  expect(await registered()).toHaveLength(1)
  expect(await identifyUser(database, bob)).toEqual({ userId: newUser.id })
  expect(await registered()).toHaveLength(0)
})

test.each(['unverified_since = now()', 'email_proven = false'])(
  'single sign-on: takes an address over from a user of another account with %s',
  async state => {
    const { database, newId } = gateway.deps
    const [accountId, createdAt, email] = [newId('acc'), new Date(), `${newId('dan').toLowerCase()}@corp.example`]
    const owner = { id: newId('usr'), accountId, email, passwordHash: 'x', role: 'owner', createdAt } as const
    const account = { id: accountId, name: 'squatter', plan: 'evaluation', createdAt } as const
    await createAccount(database, account, owner)
    await database.run(({ sql }) => sql.unsafe(`update users set ${state} where email = '${email}'`))
    const arrival = {
      issuer: provider.issuer,
      subject: newId('sub'),
      email,
      accountId: gateway.accountId,
      role: 'member',
      defaultRole: null,
      newUser: { id: newId('usr'), passwordHash: 'x' },
    } as const
    expect(await identifyUser(database, arrival)).toEqual({ userId: arrival.newUser.id })
    expect(await findUser(database, accountId, owner.id)).toBeNull()
    // The address is proven now, so no sign-in of another account takes it.
    const elsewhere = { ...arrival, subject: newId('sub'), accountId }
    expect(await identifyUser(database, elsewhere)).toEqual({ failure: 'other_account' })
  },
)
