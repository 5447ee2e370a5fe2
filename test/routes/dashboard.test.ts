/** The dashboard over HTTP: who gets which form, and the browser restrictions. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { createDashboardBundle } from '../../src/console/dashboard/bundle.ts'
import { dashboard, type SiteFile } from '../../src/console/dashboard/routes.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'

setDefaultTimeout(240_000)

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const send = (path: string, headers: Record<string, string> = {}) =>
  fetch(gateway.url + path, { headers, decompress: false })
const page = (headers: Record<string, string> = {}) =>
  send('/', { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'accept-encoding': 'identity', ...headers })
/** Paths of the files that the page refers to. */
const files = async () =>
  [...(await (await page()).text()).matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path ?? '')

describe('GET /', () => {
  test('returns the page to a browser and the list of endpoints to other clients', async () => {
    expect((await page()).headers.get('content-type')).toBe('text/html;charset=utf-8')
    for (const accept of ['*/*', 'application/json']) {
      const answer = await send('/', { accept })
      expect(answer.headers.get('content-type')).toStartWith('application/json')
      expect(answer.headers.get('vary')).toBe('accept')
      expect(await answer.json()).toMatchObject({ name: 'gateway-ai', endpoints: expect.any(Array) })
    }
  })

  test('keeps the connection while the page is built, and then limits its idle time again', async () => {
    const timeouts: unknown[] = []
    const built = Promise.withResolvers<ReadonlyMap<string, SiteFile>>()
    const app = dashboard({
      site: { files: () => built.promise },
      welcome: () => ({ name: 'gateway-ai', version: '1.5.0', endpoints: [] }),
      setIdleTimeout: (_, seconds) => void timeouts.push(seconds),
    })
    const answer = app.handle(new Request('http://localhost/', { headers: { accept: 'text/html' } }))
    await eventually(() => timeouts.length > 0, 10_000)
    expect(timeouts).toEqual([120])
    const bytes = new TextEncoder().encode('page')
    built.resolve(new Map([['index.html', { type: 'text/html', bodies: { identity: bytes, gzip: bytes, br: bytes } }]]))
    expect(await (await answer).text()).toBe('page')
    expect(timeouts).toEqual([120, null])
  })

  test('forbids other origins’ resources and caching [H5]', async () => {
    const { headers } = await page()
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    )
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
    expect(headers.get('strict-transport-security')).toContain('max-age=')
    expect(headers.get('permissions-policy')).toContain('camera=()')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('access-control-allow-origin')).toBeNull()
  })

  test('contains no inline script or style, and refers to no other origin', async () => {
    const text = await (await page()).text()
    expect(text).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc="\/)/)
    expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//)
    expect(await files()).toHaveLength(2)
  })
})

describe('GET /assets', () => {
  test('allows permanent caching under names with the content hash, the same in every process', async () => {
    const names = (await files()).map(path => path.replace('/assets/', ''))
    for (const name of names) {
      expect(name).toMatch(/^dashboard-[a-z0-9]{10,13}-\d+\.(js|css)$/)
      const { status, headers } = await send(`/assets/${name}`)
      expect([status, headers.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable'])
    }
    expect([...(await createDashboardBundle().files()).keys()]).toEqual(expect.arrayContaining(names))
  })

  test.each([
    ['br, gzip', 'br', brotliDecompressSync],
    ['gzip, deflate', 'gzip', gunzipSync],
    ['gzip;q=0, br;q=0, zstd', null, (body: Uint8Array) => body],
  ] as const)('returns %p as %p, the same when decompressed', async (accepted, encoding, unpack) => {
    for (const path of await files()) {
      const plain = await (await send(path, { 'accept-encoding': 'identity' })).bytes()
      const answer = await send(path, { 'accept-encoding': accepted })
      expect([answer.headers.get('content-encoding'), answer.headers.get('vary')]).toEqual([
        encoding,
        'accept-encoding',
      ])
      expect(Buffer.compare(unpack(await answer.bytes()), plain)).toBe(0)
    }
  })

  test('answers 404 for other names', async () => {
    for (const name of ['index.html', 'chunk-00000000.js', '..%2fsite.ts', '%2e%2e/app.ts', 'main.tsx'])
      expect((await send(`/assets/${name}`)).status).toBe(404)
  })
})
