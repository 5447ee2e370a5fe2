/** Blocklists over real sockets: allowed and forbidden redirects of their server. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openBlocklist } from '../../../../src/text/moderation/layers/blocklist.ts'
import { createHop } from '../../../../src/web/hop.ts'

const certificates = `${import.meta.dir}/../../../web/certificates`
const publicAddress = '93.184.216.34'
let canary: Bun.Server<undefined>
let configured: Bun.Server<undefined>
let elsewhere: Bun.Server<undefined>
let canaryHits = 0
let certificateAuthority = ''
/** Redirects of the configured server by path. */
const redirects = new Map<string, string>()

beforeAll(async () => {
  canary = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch() {
      canaryHits++
      return new Response('canary.example\n')
    },
  })
  configured = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname } = new URL(request.url)
      const location = redirects.get(pathname)
      if (location !== undefined) return new Response(null, { status: 302, headers: { location } })
      return new Response('own.example\n')
    },
  })
  elsewhere = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    tls: { key: Bun.file(`${certificates}/server.key`), cert: Bun.file(`${certificates}/server.pem`) },
    fetch(request) {
      const { pathname } = new URL(request.url)
      const location = redirects.get(pathname)
      if (location !== undefined) return new Response(null, { status: 307, headers: { location } })
      return new Response(
        `${request.headers.get('host') === 'secure.example.com' ? 'public.example' : 'wrong.example'}\n`,
      )
    },
  })
  certificateAuthority = await Bun.file(`${certificates}/authority.pem`).text()
})
afterAll(() => Promise.all([canary, configured, elsewhere].map(server => server.stop(true))))

/** Reads the list at a path of the configured server; names resolve to `addresses`. */
async function read(path: string, addresses: readonly string[] = [publicAddress]) {
  const warnings: string[] = []
  const fetched: string[] = []
  const send = (url: string, init: RequestInit) => {
    fetched.push(new URL(url).host)
    return fetch(url, init)
  }
  const hop = createHop({
    fetch: send,
    resolve: async () => addresses,
    dial: ({ protocol, hostname, origin }) =>
      hostname === publicAddress && protocol === 'https:'
        ? { origin: `https://127.0.0.1:${elsewhere.port}`, certificateAuthority }
        : { origin },
  })
  const list = openBlocklist(
    {
      fetch: send,
      hop,
      after: () => () => {},
      log: { info() {}, warn: (_, fields) => void warnings.push(String(fields?.detail)) },
    },
    { sources: [`http://127.0.0.1:${configured.port}${path}`], reloadMs: 1_000, allow: [] },
  )
  await list.ready
  list.close()
  const names = ['own.example', 'public.example', 'wrong.example', 'canary.example'].filter(list.isBlocked)
  return { names, warnings, fetched }
}

test('blocklist download: follows a redirect within the configured origin, private as it is', async () => {
  redirects.set('/moved', '/list').set('/twice', `http://127.0.0.1:${configured.port}/moved`)
  expect((await read('/moved')).names).toEqual(['own.example'])
  expect((await read('/twice')).names).toEqual(['own.example'])
})

test('blocklist download: follows a redirect into the public web over the checked address', async () => {
  redirects.set('/public', 'https://secure.example.com/list')
  const { names, warnings } = await read('/public')
  expect([names, warnings]).toEqual([['public.example'], []])
  // The certificate must belong to the name, not to the address.
  redirects.set('/other-name', 'https://other.example.com/list')
  expect((await read('/other-name')).names).toEqual([])
})

test('blocklist download: rejects a redirect to any other address without connecting', async () => {
  const inside = `127.0.0.1:${canary.port}`
  const port = canary.port
  for (const location of [
    `http://${inside}/list`,
    `http://localhost:${port}/`,
    `http://2130706433:${port}/`,
    `http://[::ffff:127.0.0.1]:${port}/`,
    `http://user:password@127.0.0.1:${configured.port}/list`,
    'http://169.254.169.254/latest/meta-data/',
    'http://168.63.129.16/',
    'http://metadata.google.internal/',
    'http://[fd00:ec2::254]/',
    'file:///etc/hosts',
    `//${inside}/`,
    'data:text/plain,canary.example',
    'https://secure.example.com:8443/list',
    '',
  ]) {
    redirects.set('/away', location)
    const { names, warnings, fetched } = await read('/away')
    expect([location, names, warnings.length, fetched.length]).toEqual([location, [], 1, 1])
    expect(warnings[0]).not.toContain('127.0.0.1')
  }
  expect(canaryHits).toBe(0)
})

test('blocklist download: rejects a public name that resolves to a private address, also among others', async () => {
  redirects.set('/name', 'https://secure.example.com/list')
  for (const addresses of [['127.0.0.1'], [publicAddress, '10.0.0.1'], ['::1'], []]) {
    const { names, fetched } = await read('/name', addresses)
    expect([addresses, names, fetched.length]).toEqual([addresses, [], 1])
  }
})

test('blocklist download: checks every redirect, including https to http, and stops after three', async () => {
  redirects.set('/public', 'https://secure.example.com/inside').set('/inside', `http://127.0.0.1:${canary.port}/`)
  expect((await read('/public')).names).toEqual([])
  redirects.set('/inside', 'http://secure.example.com/list')
  expect((await read('/public')).names).toEqual([])
  redirects.set('/round', '/round')
  const { fetched, warnings } = await read('/round')
  expect([fetched.length, warnings]).toEqual([4, ['redirected too often']])
  expect(canaryHits).toBe(0)
})
