/** Checks every row of the route table, including future ones. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createApp } from '../src/app.ts'
import { createKey, listKeys, revokeKey } from '../src/console/keys/stores/keys.ts'
import { mintApiKey } from '../src/core/accounts/api-keys.ts'
import { getEndpoints } from '../src/http/endpoints.ts'
import { readDirectives } from '../src/simulator/directives.ts'
import { eventually } from './harness/eventually.ts'
import { type Gateway, startGateway } from './harness/gateway.ts'
import { exchangeRaw, rawText } from './harness/raw.ts'

// Starting a gateway takes seconds when other tests run at the same time.
setDefaultTimeout(240_000)

let gateway: Gateway
let routes: readonly {
  readonly method: string
  readonly path: string
  readonly security: readonly object[] | undefined
}[]
let revoked = ''
beforeAll(async () => {
  gateway = await startGateway({ HOST: '0.0.0.0', TRUSTED_PROXIES: '127.0.0.1' })
  routes = createApp(gateway.deps).routes.map(({ method, path, hooks }) => ({
    method,
    path,
    security: (hooks as { detail?: { security?: object[] } }).detail?.security,
  }))
  revoked = await revokedKey()
})
afterAll(() => gateway.stop())

async function revokedKey(): Promise<string> {
  const { database } = gateway.deps
  const minted = mintApiKey(randomBytes)
  const [first] = await listKeys(database, gateway.accountId)
  if (first === undefined) throw new Error('the first account has a key')
  const now = new Date()
  const id = 'key_revoked'
  const { id: publicId, digest } = minted
  await createKey(database, { ...first, id, name: 'revoked', publicId, digest, createdAt: now, updatedAt: now })
  const request = { method: 'POST', body: '{"prompt":"Hi"}', headers: { 'x-api-key': minted.key } }
  expect((await fetch(`${gateway.url}/api/v1/chat`, request)).status).toBe(200)
  expect(await revokeKey(database, gateway.accountId, id, now)).toBe(true)
  await eventually(async () => (await fetch(`${gateway.url}/api/v1/chat`, request)).status === 401)
  return minted.key
}

test('routes: declare who may call them', () => {
  expect(routes.length).toBeGreaterThanOrEqual(10)
  expect(routes.filter(({ security }) => security === undefined)).toEqual([])
})

const openRoutes = [
  'GET /',
  'GET /api/v1/auth/oidc/callback',
  'GET /api/v1/auth/oidc/logout',
  'GET /api/v1/auth/oidc/start',
  'GET /api/v1/auth/registration',
  'GET /api/v1/models',
  'GET /api/v1/models/health',
  'GET /assets/:name',
  'GET /docs',
  'GET /docs/style.css',
  'GET /health',
  'GET /healthz',
  'GET /openapi.json',
  'GET /readyz',
  'GET /simulator/directives',
  'GET /v1/models',
  'GET /v1/models/*',
  'GET /v1beta/models',
  'GET /v1beta/models/*',
  'OPTIONS /api/v1/chat/enhance',
  'OPTIONS /api/v1/chat/estimate',
  'POST /api/v1/auth/login',
  'POST /api/v1/auth/oidc/session',
  'POST /api/v1/auth/refresh',
  'POST /api/v1/auth/register',
  'POST /api/v1/auth/reset',
  'POST /api/v1/auth/reset/:token',
  'POST /api/v1/auth/verify/:token',
  'POST /api/v1/billing/webhooks/stripe',
  'POST /api/v1/chat/enhance',
  'POST /api/v1/chat/estimate',
  'POST /api/v1/team/invitations/:token/accept',
]

test('routes: require authentication unless listed here', () => {
  const open = routes.filter(({ security }) => security?.length === 0).map(({ method, path }) => `${method} ${path}`)
  expect(open.sort()).toEqual(openRoutes)
})

test('routes: appear in `GET /`, and a wrong method gets the allowed ones', async () => {
  const send = async (path: string, method = 'GET') =>
    (await (await fetch(gateway.url + path, { method })).json()) as {
      readonly endpoints: readonly string[]
      readonly error: { readonly message: string }
    }
  const { endpoints } = await send('/')
  const written = routes.map(
    ({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}').replace('*', '{id}')}`,
  )
  const unnamed = written.filter(endpoint => !endpoints.includes(endpoint) && !endpoint.startsWith('OPTIONS '))
  expect(unnamed).toEqual(['GET /', 'GET /assets/{name}', 'GET /docs/style.css'])
  expect(endpoints.filter(endpoint => !written.includes(endpoint))).toEqual([])
  const keys = 'Method not supported for this path. Use GET /api/v1/keys or POST /api/v1/keys.'
  expect((await send('/api/v1/keys', 'PUT')).error.message).toBe(keys)
  const item =
    'Method not supported for this path. Use GET /api/v1/keys/{id} or PATCH /api/v1/keys/{id} or DELETE /api/v1/keys/{id}.'
  expect((await send('/api/v1/keys/key_1', 'PUT')).error.message).toBe(item)
  const call = 'Method not supported for this path. Use POST /v1beta/{id} or GET /v1beta/models/{id}.'
  expect((await send('/v1beta/models/gateway-ai:generateContent', 'PUT')).error.message).toBe(call)
  expect((await send('/api/v1/nowhere')).error.message).toContain('Unknown path.')
})

test('documented endpoints: exist', () => {
  const root = resolve(import.meta.dir, '..')
  const pages = ['README.md', 'SECURITY.md', ...new Bun.Glob('docs/**/*.md').scanSync(root)]
  const named = pages.flatMap(path =>
    [...readFileSync(resolve(root, path), 'utf8').matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/[^`\s?]*)/g)].map(
      ([, endpoint = '']) => endpoint,
    ),
  )
  const known = new Set(['GET /', ...getEndpoints(routes)])
  expect(named.length).toBeGreaterThan(60)
  expect(named.filter(endpoint => !known.has(endpoint) && !isOfAnother.test(endpoint))).toEqual([])
})

/** Endpoints of OpenAI and LiteLLM that the pages compare with, and the one that is not served. */
const isOfAnother = /^POST \/(v1\/completions|batches)$/

test("unknown path: names the supported API for a client library's request", async () => {
  const told = async (path: string) => {
    const answer = await fetch(gateway.url + path, { method: 'POST', body: '{}' })
    const { error } = (await answer.json()) as { readonly error: { readonly code: string; readonly message: string } }
    expect([answer.status, error.code]).toEqual([404, 'not_found'])
    return error.message
  }
  for (const path of ['/v1/responses/resp_1/cancel', '/v1/responses/resp_1', '/v1/conversations/conv_1'])
    expect(await told(path)).toContain('are not stored here')
  expect(await told('/v1/responses/compact')).toContain('Compaction is not served')
  for (const [path, endpoint] of [
    ['/chat/completions', 'POST /v1/chat/completions'],
    ['/api/v1/chat/completions', 'POST /v1/chat/completions'],
    ['/v1/v1/chat/completions', 'POST /v1/chat/completions'],
    ['/v1//chat/completions/', 'POST /v1/chat/completions'],
    ['/v1/v1/embeddings', 'POST /v1/embeddings'],
    ['/embeddings?beta=true', 'POST /v1/embeddings'],
    ['/openai/v1/moderations', 'POST /v1/moderations'],
    ['/responses', 'POST /v1/responses'],
    ['/models', 'GET /v1/models'],
    ['/v1/v1/models/', 'GET /v1/models'],
    ['/models/openai/gpt-5.5', 'GET /v1/models/{id}'],
  ] as const)
    expect(await told(path)).toBe(
      `Unknown path. The endpoint is ${endpoint}: give the client a base URL that ends in /v1, once.`,
    )
  expect(await told('/v1/completions')).toBe('Text completions are not served. Use POST /v1/chat/completions.')
  expect(await told('/v1/unheard')).toStartWith(
    'Unknown path. The OpenAI-compatible API supports POST /v1/chat/completions, ',
  )
  expect(await told('/v1/embeddings/x'.repeat(300))).toBeString()
})

test('unserved endpoint: gets a sentence of its own, with and without /v1', async () => {
  const told = async (path: string) => {
    const answer = await fetch(gateway.url + path, { method: 'POST', body: '{}' })
    const { error } = (await answer.json()) as { readonly error: { readonly message: string } }
    expect([path, answer.status]).toEqual([path, 404])
    return error.message
  }
  const names =
    'files uploads images/generations images/edits audio/speech audio/transcriptions videos realtime/sessions assistants threads/t/runs vector_stores fine_tuning/jobs batches messages/batches evals containers skills/s agents organization/costs organizations/o rerank complete completions chat/completions/c_1/messages_of conversations'
  for (const name of names.split(' '))
    for (const base of ['/v1/', '/']) {
      const message = await told(base + name)
      expect([name, /^Unknown path/.test(message), /\bnot (?:served|stored)/.test(message)]).toEqual([
        name,
        false,
        true,
      ])
    }
  for (const path of [
    '/v1/projects/p/locations/l/publishers/google/models/gemini-3.8-flash:countTokens',
    '/v1/projects/p/locations/l/publishers/anthropic/models/claude-haiku-5-5:rawPredict',
    '/models/gemini-3.8-flash:generateContent',
  ])
    expect(await told(path)).toContain('served by POST /v1beta/models/{model}:generateContent')
})

test('unknown path: answers in the format of the API that its client speaks', async () => {
  const asked = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(gateway.url + path, { method: 'POST', body: '{}', headers })
    return { body: (await answer.json()) as Record<string, unknown>, id: answer.headers.get('request-id') }
  }
  const version = { 'anthropic-version': '2023-06-01' }
  for (const [path, headers] of [
    ['/v1/messages/batches', {}],
    ['/messages', {}],
    ['/v1/files', version],
    ['/v1/model/no-such-model', version],
    ['/v1/unheard', version],
  ] as const) {
    const { body, id } = await asked(path, headers)
    expect([path, body.type, body.request_id]).toEqual([path, 'error', id])
  }
  for (const [path, headers] of [
    ['/v1/files', {}],
    ['/v1/responses/resp_1', version],
    ['/v1/chat/completions/c', version],
  ] as const) {
    const { body, id } = await asked(path, headers)
    expect([path, body.type, id]).toEqual([path, undefined, null])
  }
})

test('wrong method: a WebSocket on a served path gets 426, so that Codex continues over HTTP', async () => {
  const asked = async (path: string) => {
    const headers = {
      host: 'localhost',
      connection: 'Upgrade, close',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    }
    const answer = await exchangeRaw(gateway.port, rawText(`GET ${path}`, headers, ''), 10_000)
    return [answer?.status, answer?.headers.get('upgrade') ?? null]
  }
  expect(await asked('/v1/responses')).toEqual([426, 'HTTP/1.1'])
  expect(await asked('/v1/responses/')).toEqual([426, 'HTTP/1.1'])
  expect(await asked('/v1/unheard')).toEqual([404, null])
  const plain = await fetch(`${gateway.url}/v1/responses`)
  expect([plain.status, plain.headers.get('allow')]).toEqual([405, 'POST'])
})

test('base URL: answers a client’s probe at once, also with a trailing slash or a query', async () => {
  for (const path of ['/', '/api/hello']) {
    const answer = await fetch(gateway.url + path, { method: 'HEAD' })
    expect([path, answer.status]).toEqual([path, 200])
  }
  for (const path of ['/v1/embeddings/', '/v1/embeddings?beta=true'])
    expect((await gateway.post(path, { model: 'text-embedding-3-small', input: 'Hi' })).status).toBe(200)
})

test('simulator directives: have documentation with a working example', async () => {
  const { usage, data } = (await (await fetch(`${gateway.url}/simulator/directives`)).json()) as {
    readonly usage: string
    readonly data: readonly { readonly name: string }[]
  }
  expect(data.length).toBeGreaterThan(40)
  const examples = readDirectives([usage])
  expect(examples).toMatchObject({ kind: 'read', groups: { length: 3 } })
})

test('simulator routes: exist only in simulated mode', async () => {
  const real = createApp({ ...gateway.deps, simulator: null })
  expect(
    (await real.handle(new Request('http://localhost/simulator/directives', { headers: { host: 'localhost' } })))
      .status,
  ).toBe(404)
  expect((await real.handle(new Request('http://localhost/healthz', { headers: { host: 'localhost' } }))).status).toBe(
    200,
  )
})

const unknown = () => mintApiKey(randomBytes).key
const strangers: Record<string, () => Record<string, string>> = {
  nobody: () => ({}),
  'a malformed key': () => ({ authorization: 'Bearer gw_live_x' }),
  'an unknown key': () => ({ authorization: `Bearer ${unknown()}` }),
  'a revoked key': () => ({ authorization: `Bearer ${revoked}` }),
}
/** An address of its own for each request: refused credentials are counted by address. */
let addresses = 0
const ownAddress = () => {
  addresses += 1
  return { 'x-forwarded-for': `2001:db8:${addresses.toString(16)}::1` }
}

/**
 * Routes that require a key; `http/policies.test.ts` covers sessions. Those in Google's form have errors and a place for the key of their
 * own: `clients/google-genai.test.ts`.
 */
const guarded = () =>
  routes.filter(
    ({ security, path }) =>
      security?.length === 1 && security.some(way => 'apiKey' in way) && !/^\/v1(?:beta|\/models)\//.test(path),
  )

describe('protected route: rejects with one body before reading the request', () => {
  test('without a valid key', async () => {
    const bodies = new Set<string>()
    for (const { method, path } of guarded())
      for (const headers of Object.values(strangers))
        for (const body of ['{', '{"prompt":"Hi"}', '{"temperature":7}']) {
          const answer = await fetch(gateway.url + path, { method, body, headers: { ...headers(), ...ownAddress() } })
          const { error } = (await answer.json()) as { error: Record<string, unknown> }
          expect(answer.status).toBe(401)
          // Anthropic's clients know a request by a header of their own.
          const names = [...answer.headers.keys()]
            .filter(name => name !== 'request-id')
            .sort()
            .join()
          bodies.add(
            JSON.stringify({ ...error, request_id: answer.headers.get('x-request-id') === error.request_id, names }),
          )
        }
    expect([...bodies]).toHaveLength(1)
  })

  test('under every other spelling of its path', async () => {
    const tricks = (path: string) => [
      [`/ab${path}`, 'x'],
      [`/ab${path}`, 'a.b'],
      [`/abc${path}`, 'a'],
      [`${path}/`, 'localhost'],
      [`/public/..${path}`, 'localhost'],
      [`/%2e%2e${path}`, 'localhost'],
      [`/${path}`, 'localhost'],
      [`${path}?x=/healthz`, 'localhost'],
      [`${path}#/healthz`, 'localhost'],
      [path.toUpperCase(), 'localhost'],
      [path.replaceAll('/', '%2f'), 'localhost'],
      [`${path};x`, 'localhost'],
      [`/healthz/..${path}`, 'localhost'],
      [`http://localhost${path}`, 'x'],
    ]
    for (const { method, path } of guarded())
      for (const [target = '', host = ''] of tricks(path)) {
        const headers = {
          host,
          'content-type': 'application/json',
          'content-length': '15',
          connection: 'close',
          ...ownAddress(),
        }
        const answer = await exchangeRaw(gateway.port, rawText(`${method} ${target}`, headers, '{"prompt":"Hi"}'))
        expect([target, host, [400, 401, 403, 404, 405].includes(answer?.status ?? 0)]).toEqual([target, host, true])
      }
  })

  test('for any other method', async () => {
    for (const { path } of guarded())
      for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD']) {
        const answer = await fetch(gateway.url + path, { method, headers: { authorization: `Bearer ${gateway.key}` } })
        expect(answer.status).toBe(405)
        expect(answer.headers.get('allow')).toContain('POST')
        if (method !== 'HEAD') {
          const { error } = (await answer.json()) as { error: Record<string, string> }
          expect([error.type, error.code]).toEqual(['invalid_request_error', 'method_not_allowed'])
          expect(error.message).toContain(`POST ${path}`)
        }
        expect(answer.headers.get('access-control-allow-origin')).toBeNull()
      }
  })
})

test('protected route: limits key guessing per IP address, but not a valid key from there', async () => {
  const own = await startGateway()
  try {
    // Its key was created outside of the gateway, which reads it within 500 ms.
    await own.deps.keys.look()
    const guess = () => own.post('/api/v1/chat', '{', { authorization: `Bearer ${unknown()}` })
    const answers = await Promise.all(Array.from({ length: 130 }, guess))
    const refused = answers.filter(({ status }) => status === 429)
    expect(answers.length - refused.length).toBeWithin(100, 110)
    for (const { headers } of refused) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await refused[0]?.json()).toMatchObject({ error: { type: 'rate_limit_error', code: 'ip_rate_limited' } })
    expect((await own.post('/api/v1/chat', { prompt: 'Hi' })).status).toBe(200)
  } finally {
    await own.stop()
  }
})

test('protected route: ignores a key in the URL', async () => {
  const query = `?api_key=${gateway.key}&key=${gateway.key}&authorization=Bearer%20${gateway.key}`
  for (const { method, path } of guarded())
    expect(
      (await fetch(gateway.url + path + query, { method, body: '{"prompt":"Hi"}', headers: ownAddress() })).status,
    ).toBe(401)
})
