/** Requests that a browser sends for a page: pages of other origins cannot change state. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { mailSubject } from '../../src/console/auth/stores/sessions.ts'
import { isForeignPage } from '../../src/http/pages.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { createKeyFor, fromAnotherIp, owner, type Person, sendRequest, signIn } from '../harness/users.ts'

setDefaultTimeout(240_000)

let gateway: Gateway
let person: Person
let key = ''
beforeAll(async () => {
  gateway = await startGateway({
    TRUSTED_PROXIES: '127.0.0.1',
    HOST: '0.0.0.0',
    PUBLIC_URL: 'https://gateway.example.com',
    ALLOWED_HOSTS: '127.0.0.1, localhost, other-name.example.com',
  })
  person = await owner(gateway)
  key = (await createKeyFor(gateway, person)).key
})
afterAll(() => gateway.stop())

type Failure = { readonly error: { readonly code: string; readonly param: string | null } }
type Route = { readonly method: string; readonly path: string; readonly pages: unknown; readonly takesBody: boolean }

/** Routes that may change state. */
function changing(): Route[] {
  return createApp(gateway.deps)
    .routes.map(({ method, path, hooks }) => {
      const detail: Record<string, unknown> = hooks.detail ?? {}
      const told = detail['x-reference']
      const takesBody = typeof told === 'object' && told !== null && 'body' in told
      return { method, path, pages: detail['x-pages'], takesBody }
    })
    .filter(({ method }) => !['GET', 'HEAD', 'OPTIONS'].includes(method))
}

const isRefusedPage = ({ status, body }: { readonly status: number; readonly body: Partial<Failure> }) =>
  status === 403 && body.error?.code === 'forbidden' && body.error.param === 'origin'

const foreign: readonly Record<string, string>[] = [
  { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { origin: 'http://127.0.0.1' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
  { 'sec-fetch-site': 'nonsense' },
]

describe('page of another origin', () => {
  test('gets 403 from every route that changes state, except those whose policy names other pages', async () => {
    const open: string[] = []
    for (const { method, path, pages } of changing()) {
      const target = path.replace(/:\w+/g, 'usr_missing')
      for (const headers of foreign) {
        const token = path.includes('/insights/') || !path.startsWith('/api/v1/chat') ? person.token : key
        const answer = await sendRequest<Failure>(gateway, method, target, {
          token,
          body: {},
          headers: { ...fromAnotherIp(), ...headers },
        })
        if (pages === undefined)
          expect([method, path, headers, isRefusedPage(answer)]).toEqual([method, path, headers, true])
        else if (!isRefusedPage(answer)) open.push(`${method} ${path}`)
      }
    }
    expect([...new Set(open)].sort()).toEqual([
      'POST /api/v1/billing/webhooks/stripe',
      'POST /api/v1/chat',
      'POST /api/v1/chat/enhance',
      'POST /api/v1/chat/estimate',
      'POST /api/v1/route',
      'POST /v1/chat/completions',
      'POST /v1/decisions',
      'POST /v1/embeddings',
      'POST /v1/messages',
      'POST /v1/messages/count_tokens',
      'POST /v1/models/*',
      'POST /v1/moderations',
      'POST /v1/responses',
      'POST /v1/responses/input_tokens',
      'POST /v1beta/*',
    ])
    // No change happened: the requests met logout, keys, team and the account's name.
    expect((await sendRequest(gateway, 'GET', '/api/v1/account', { token: person.token })).status).toBe(200)
  })

  test('causes no sign-in lockout, with any content type or none', async () => {
    const victim = await owner(gateway)
    const home = fromAnotherIp()
    const body = JSON.stringify({ email: victim.email, password: 'not the password' })
    for (let count = 0; count < 15; count++) {
      const headers = { ...home, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
      expect(isRefusedPage(await sendRequest<Failure>(gateway, 'POST', '/api/v1/auth/login', { body, headers }))).toBe(
        true,
      )
      const untyped = await fetch(`${gateway.url}/api/v1/auth/login`, {
        method: 'POST',
        headers: home,
        body: new TextEncoder().encode(body),
      })
      expect(untyped.status).toBe(400)
    }
    const subject = mailSubject(victim.email)
    const rows = await gateway.deps.database.run(
      ({ sql }) => sql`select 1 from sign_in_failures where subject = ${subject}`,
    )
    expect(rows).toHaveLength(0)
    expect(await signIn(gateway, victim, home)).not.toBeNull()
  })

  test('calls free endpoints and reads the response', async () => {
    for (const [path, body] of [
      ['/api/v1/chat/estimate', { messages: [{ role: 'user', content: 'Hello' }] }],
      ['/api/v1/chat/enhance', { prompt: 'write a function' }],
    ] as const) {
      const headers = { ...fromAnotherIp(), origin: 'https://page.example', 'sec-fetch-site': 'cross-site' }
      const answer = await sendRequest<Failure>(gateway, 'POST', path, { body, headers })
      expect(answer.status).toBe(200)
      expect([path, answer.headers.get('access-control-allow-origin')]).toEqual([path, '*'])
    }
  })
})

describe('own page or program', () => {
  test('passes behind proxies that keep or rewrite the Host', async () => {
    const port = new URL(gateway.url).port
    const { email, password } = await owner(gateway)
    for (const headers of [
      {},
      { 'sec-fetch-site': 'same-origin', origin: 'https://page-in-front.example' },
      { 'sec-fetch-site': 'none' },
      { origin: `http://127.0.0.1:${port}` },
      { origin: 'https://gateway.example.com' },
      { origin: 'https://other-name.example.com' },
    ]) {
      const answer = await sendRequest(gateway, 'POST', '/api/v1/auth/login', {
        body: { email, password },
        headers: { ...fromAnotherIp(), ...headers },
      })
      expect([headers, answer.status]).toEqual([headers, 200])
    }
  })

  test('passes with a key, whatever the origin', async () => {
    const headers = { origin: 'chrome-extension://abcdef', 'sec-fetch-site': 'cross-site' }
    const answer = await sendRequest(gateway, 'POST', '/api/v1/chat', { token: key, body: { prompt: 'Hi' }, headers })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, null])
  })
})

test('every route with a body: rejects a body whose content type is not JSON', async () => {
  const types = [undefined, 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']
  for (const { method, path, pages, takesBody } of changing()) {
    if (pages !== undefined || !takesBody) continue
    for (const type of types) {
      const response = await fetch(gateway.url + path.replace(/:\w+/g, 'usr_missing'), {
        method,
        headers: {
          authorization: `Bearer ${person.token}`,
          ...fromAnotherIp(),
          ...(type === undefined ? {} : { 'content-type': type }),
        },
        body: new TextEncoder().encode('{"confirm":true}'),
      })
      const text = await response.text()
      // Some routes look up the path's resource first.
      if (response.status === 404) continue
      expect([method, path, type, response.status, text.includes('"param":"content-type"')]).toEqual([
        method,
        path,
        type,
        400,
        true,
      ])
    }
  }
})

describe('isForeignPage', () => {
  const own = { publicUrl: 'https://gateway.example.com', hosts: ['named.example.com', 'localhost'] }
  test.each<[Record<string, string>, boolean]>([
    [{ host: 'a.example:80', origin: 'http://A.example' }, false],
    [{ host: 'a.example', origin: 'https://a.example:8443' }, true],
    [{ host: 'a.example', origin: 'https://a.example.evil.example' }, true],
    [{ host: 'a.example', origin: 'https://user@a.example@evil.example' }, true],
    [{ host: 'a.example', origin: 'file://' }, true],
    [{ host: 'a.example', origin: '' }, true],
    [{ host: '', origin: 'https://evil.example' }, true],
    [{ host: 'inner:3000', origin: 'https://named.example.com' }, false],
    [{ host: 'inner:3000', origin: 'https://named.example.com:444' }, true],
    [{ host: 'inner:3000', origin: 'https://gateway.example.com' }, false],
    [{ host: 'inner:3000', origin: 'https://gateway.example.com', 'sec-fetch-site': 'cross-site' }, true],
    [{ host: 'inner:3000', 'sec-fetch-site': 'same-origin', origin: 'https://front.example' }, false],
    [{ host: 'localhost:3000', origin: 'http://localhost' }, true],
    [{ host: 'inner:3000' }, false],
  ])('%j: %p', (headers, expected) => {
    expect(isForeignPage(new Headers(headers), own)).toBe(expected)
  })
})
