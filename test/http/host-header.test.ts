/** Which hosts are answered, over a real socket: checked before any routing. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { allowedHosts, checkHost } from '../../src/http/host-header.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { exchangeRaw } from '../harness/raw.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(20_000)

let local: Gateway
let open: { readonly port: number }
beforeAll(async () => {
  local = await startGateway()
  open = listening(allowedHosts(null, '0.0.0.0'))
})
afterAll(() => local.stop())

/** The same gateway once more, answering to other hosts. Ends with the process. */
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

describe('a Host that is malformed is refused everywhere', () => {
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

  test('no Host at all is refused too', async () => {
    expect((await get(local, []))[0]).toBe(400)
  })
})

test('whoever asks a gateway at home by another name is told where it answers, and what the operator can do', () => {
  const ask = (hosts: ReadonlySet<string> | null) => () =>
    checkHost(new Request('http://host.docker.internal/healthz', { headers: { host: 'host.docker.internal' } }), hosts)
  expect(ask(allowedHosts(null, '127.0.0.1'))).toThrow(/localhost and 127\.0\.0\.1.*ALLOWED_HOSTS/)
  expect(ask(allowedHosts(['gateway.example'], '127.0.0.1'))).toThrow('Use a name from ALLOWED_HOSTS')
})

test('on loopback only loopback names are answered: a name that rebinds gets 421', async () => {
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

test('no Host moves the path: what is routed is what stands in the request line', async () => {
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

test('no Host moves a request to a protected route: the path decides, for every route and every short host', async () => {
  const paths = new Set(createApp(local.deps).routes.map(({ path }) => path.replace(/:\w+|\*/g, 'x')))
  for (const host of ['x', 'a.b', 'abc'])
    for (const path of paths)
      if (path !== '/')
        expect([host, path, ...(await get(open, [host], `/q${path}`))]).toEqual([host, path, 404, 'not_found'])
})

test('compose.yaml answers loopback names only, unless .env says otherwise', () => {
  const text = readFileSync(join(import.meta.dir, '../../compose.yaml'), 'utf8')
  const [, fallback = ''] = /^ +ALLOWED_HOSTS: \$\{ALLOWED_HOSTS:-(\S+)\}$/m.exec(text) ?? []
  const { allowedHosts: configured } = readConfig({ HOST: '0.0.0.0', ALLOWED_HOSTS: fallback })
  expect([...(allowedHosts(configured, '0.0.0.0') ?? [])].sort()).toEqual(['127.0.0.1', '[::1]', 'localhost'])
})

test('elsewhere any well-formed name is answered, unless ALLOWED_HOSTS says which', async () => {
  expect(await get(open, ['anything.example:8080'])).toEqual([200, null])
  const { allowedHosts: configured } = readConfig({ HOST: '0.0.0.0', ALLOWED_HOSTS: 'API.example.com' })
  const strict = listening(allowedHosts(configured, '0.0.0.0'))
  expect(await get(strict, ['api.EXAMPLE.com:443'])).toEqual([200, null])
  expect(await get(strict, ['localhost'])).toEqual([421, 'forbidden'])
})

test('in the absolute form of a request the Host header alone decides', async () => {
  expect(await get(local, ['evil.example'], 'http://localhost/healthz')).toEqual([421, 'forbidden'])
  // The server drops the target's authority before anyone can see it; it names nothing that is looked at here.
  expect(await get(local, ['localhost'], 'http://evil.example/healthz')).toEqual([200, null])
  expect((await get(local, ['localhost'], 'http://evil.example/nowhere'))[0]).toBe(404)
})

test('the check is made of values: null answers to every name', () => {
  const request = (host: string) => new Request('http://localhost/', { headers: { host } })
  expect(() => checkHost(request('any.example'), null)).not.toThrow()
  expect(allowedHosts(null, '0.0.0.0')).toBeNull()
  expect(allowedHosts(null, '::1')?.has('localhost')).toBe(true)
  expect([...(allowedHosts(['a.example'], '127.0.0.1') ?? [])]).toEqual(['a.example'])
})
