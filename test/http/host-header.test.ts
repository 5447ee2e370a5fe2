/** Which hosts are accepted, over a real socket: checked before routing. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { allowedHosts, checkHost } from '../../src/http/pages.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { exchangeRaw } from '../harness/raw.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

let local: Gateway
let open: { readonly port: number }
beforeAll(async () => {
  local = await startGateway()
  open = listening(allowedHosts(null, '0.0.0.0'))
})
afterAll(() => local.stop())

/** The same gateway with other allowed hosts. Ends with the process. */
function listening(hosts: ReadonlySet<string> | null): { readonly port: number } {
  const { server } = createApp({ ...local.deps, allowedHosts: hosts }).listen({ port: 0, hostname: '127.0.0.1' })
  return { port: server?.port ?? 0 }
}

const get = async (gateway: { readonly port: number }, hosts: readonly string[], target = '/healthz') => {
  const lines = hosts.map(host => `host:${host}\r\n`).join('')
  const answer = await exchangeRaw(gateway.port, `GET ${target} HTTP/1.1\r\n${lines}connection: close\r\n\r\n`)
  const { error } = JSON.parse(answer?.body || '{}') as { error?: { code: string; type: string } }
  return [answer?.status, error?.code ?? null]
}

describe('malformed Host', () => {
  test.each([
    ['two', [' localhost', ' localhost']],
    ['two in one', [' localhost, localhost']],
    ['empty', ['']],
    ['only spaces', ['   ']],
    ['userinfo', [' user@localhost']],
    ['userinfo with a password', [' a:b@localhost']],
    ['a path', [' localhost/v1']],
    ['a query', [' localhost?x']],
    ['a fragment', [' localhost#x']],
    ['a backslash', [' localhost\\x']],
    ['a space', [' local host']],
    ['a scheme', [' http://localhost']],
    ['a bad port', [' localhost:port']],
    ['a port too many', [' localhost:1:2']],
    ['an open bracket', [' [::1']],
    ['253 characters too many', [` ${'a'.repeat(506)}`]],
  ])('%s', async (_name, hosts) => {
    for (const gateway of [local, open]) expect(await get(gateway, hosts)).toEqual([400, 'invalid_request'])
  })

  test('gets an error also when it is missing', async () => {
    expect((await get(local, []))[0]).toBe(400)
  })
})

test('checkHost: names the loopback addresses and ALLOWED_HOSTS when a loopback gateway gets another host', () => {
  const send = (hosts: ReadonlySet<string> | null) => () =>
    checkHost(new Request('http://host.docker.internal/healthz', { headers: { host: 'host.docker.internal' } }), hosts)
  expect(send(allowedHosts(null, '127.0.0.1'))).toThrow(/localhost and 127\.0\.0\.1.*ALLOWED_HOSTS/)
  expect(send(allowedHosts(['gateway.example'], '127.0.0.1'))).toThrow('Use a name from ALLOWED_HOSTS')
})

test('loopback gateway: answers 421 for a name that rebinds', async () => {
  for (const host of ['localhost', 'LOCALHOST', '127.0.0.1', `127.0.0.1:${local.port}`, '[::1]', '[::1]:3000'])
    expect([host, ...(await get(local, [host]))]).toEqual([host, 200, null])
  for (const host of [
    'evil.example',
    'localhost.evil.example',
    'x',
    '127.0.0.2',
    '0.0.0.0',
    '127.1',
    'localhost.',
    '[::]',
  ])
    expect([host, ...(await get(local, [host]))]).toEqual([host, 421, 'forbidden'])
})

/** Hosts in which a search for the path could find a slash too early or too late. */
const oddHosts = [
  'x',
  'a.b',
  'abc',
  'x:1',
  '[::]',
  'a',
  'x/healthz',
  'a/b/c/d/healthz',
  '/healthz',
  'x\\healthz',
  'x?/healthz',
]

test('Host header: never changes the path, which is that of the request line', async () => {
  for (const host of oddHosts)
    for (const [target, path] of [
      ['/ab/healthz', '/ab/healthz'],
      ['/a/healthz?x=/healthz', '/a/healthz'],
      ['//healthz', '//healthz'],
      ['http://y/ab/healthz', '/ab/healthz'],
    ] as const) {
      const [status] = await get(open, [host], target)
      expect([host, path, status === 404 || status === 400]).toEqual([host, path, true])
    }
  for (const host of ['x', 'a.b', 'abc', 'x:1']) expect(await get(open, [host])).toEqual([200, null])
})

test('Host header: never moves a request to a protected route, for every route and every short host', async () => {
  const paths = new Set(createApp(local.deps).routes.map(({ path }) => path.replace(/:\w+|\*/g, 'x')))
  for (const host of ['x', 'a.b', 'abc'])
    for (const path of paths)
      if (path !== '/') {
        // Google's form of errors has the status as its code.
        const code = path.startsWith('/v1beta') ? 404 : 'not_found'
        expect([host, path, ...(await get(open, [host], `/q${path}`))]).toEqual([host, path, 404, code])
      }
})

test('compose.yaml: accepts loopback names only, unless .env overrides it', () => {
  const text = readFileSync(join(import.meta.dir, '../../compose.yaml'), 'utf8')
  const [, fallback = ''] = /^ +ALLOWED_HOSTS: \$\{ALLOWED_HOSTS:-(\S+)\}$/m.exec(text) ?? []
  const { allowedHosts: configured } = readConfig({ HOST: '0.0.0.0', ALLOWED_HOSTS: fallback })
  expect([...(allowedHosts(configured, '0.0.0.0') ?? [])].sort()).toEqual(['127.0.0.1', '[::1]', 'localhost'])
})

test('public gateway: accepts every well-formed name unless ALLOWED_HOSTS restricts it', async () => {
  expect(await get(open, ['anything.example:8080'])).toEqual([200, null])
  const { allowedHosts: configured } = readConfig({ HOST: '0.0.0.0', ALLOWED_HOSTS: 'API.example.com' })
  const strict = listening(allowedHosts(configured, '0.0.0.0'))
  expect(await get(strict, ['api.EXAMPLE.com:443'])).toEqual([200, null])
  expect(await get(strict, ['localhost'])).toEqual([421, 'forbidden'])
})

test('request in absolute form: uses only the Host header', async () => {
  expect(await get(local, ['evil.example'], 'http://localhost/healthz')).toEqual([421, 'forbidden'])
  // The server drops the target's authority before the gateway sees it.
  expect(await get(local, ['localhost'], 'http://evil.example/healthz')).toEqual([200, null])
  expect((await get(local, ['localhost'], 'http://evil.example/nowhere'))[0]).toBe(404)
})

test('checkHost: accepts every name when the set is null', () => {
  const request = (host: string) => new Request('http://localhost/', { headers: { host } })
  expect(() => checkHost(request('any.example'), null)).not.toThrow()
  expect(allowedHosts(null, '0.0.0.0')).toBeNull()
  expect(allowedHosts(null, '::1')?.has('localhost')).toBe(true)
  expect([...(allowedHosts(['a.example'], '127.0.0.1') ?? [])]).toEqual(['a.example'])
})
