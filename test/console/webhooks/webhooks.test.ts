/** The parts of webhooks without a gateway: signatures, sealed secrets, guarded requests, attempts. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { deliverDue, newSigningSecret, signedHeaders } from '../../../src/console/webhooks/worker.ts'
import {
  type AttemptResult,
  disabledAfterMs,
  endpointUrlProblem,
  nextAttemptMs,
  retryWaitsMs,
} from '../../../src/core/webhooks/events.ts'
import { createTextSeal } from '../../../src/http/text-seal.ts'
import { createHttpPost, type HttpPost } from '../../../src/web/http-post.ts'

describe('webhook signature', () => {
  // The example of the Standard Webhooks documentation.
  const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1614265330, body: '{"test": 2432232314}' }
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

  test('equals the published example', () => {
    expect(signedHeaders(message, [secret])).toEqual({
      'webhook-id': message.id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
  })

  test('has one part per secret during a rotation', () => {
    const parts = signedHeaders(message, [newSigningSecret(), secret])['webhook-signature']?.split(' ')
    expect(parts).toHaveLength(2)
    expect(parts?.[1]).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  })
})

test('webhook secret: opens only for its endpoint, under the current or the previous session secret', () => {
  const [old, current] = ['an old session secret of the tests', 'the current secret of the tests']
  const getSeal = (secret: string, previousSecret: string | null) =>
    createTextSeal({ secret, previousSecret, purpose: 'tests', prefix: 'gwx1.' })
  const sealed = getSeal(old, null).seal('whk_1', 'whsec_x')
  expect(sealed).not.toContain('whsec_x')
  expect(getSeal(current, old).open('whk_1', sealed)).toBe('whsec_x')
  expect(getSeal(current, old).open('whk_2', sealed)).toBeNull()
  expect(getSeal(current, null).open('whk_1', sealed)).toBeNull()
  const resealed = getSeal(current, old).reseal('whk_1', sealed) ?? ''
  expect(getSeal(current, null).open('whk_1', resealed)).toBe('whsec_x')
  expect(getSeal(current, old).reseal('whk_1', resealed)).toBeNull()
})

test('webhook attempts: last one day, end at 410, and outlast the time after which an endpoint is disabled', () => {
  const failed = { status: 500, error: 'status', durationMs: 1 } as const
  expect(retryWaitsMs.map((_, index) => nextAttemptMs(index + 1, failed))).toEqual([...retryWaitsMs])
  expect(nextAttemptMs(retryWaitsMs.length + 1, failed)).toBeNull()
  expect(nextAttemptMs(1, { ...failed, status: 410 })).toBeNull()
  const totalMs = retryWaitsMs.reduce((sum, retryWaitsM) => sum + retryWaitsM, 0)
  expect(totalMs).toBeGreaterThan(23 * 3_600_000)
  expect(disabledAfterMs).toBeLessThan(totalMs)
})

test('webhook URL: needs https and a public host, unless private hosts are allowed', () => {
  const isPublic = (text: string) => new URL(text).hostname === 'example.com'
  const table = [
    ['https://example.com/hook', true, true],
    ['http://example.com/hook', false, true],
    ['https://127.0.0.1/hook', false, true],
    ['http://localhost:9000/hook', false, true],
    ['https://user:secret@example.com/', false, false],
    ['ftp://example.com/', false, false],
    ['example.com', false, false],
  ] as const
  for (const [url, usually, withPrivate] of table)
    expect([
      url,
      endpointUrlProblem(url, isPublic, false) === null,
      endpointUrlProblem(url, isPublic, true) === null,
    ]).toEqual([url, usually, withPrivate])
})

describe('guarded POST', () => {
  const message = { headers: { 'content-type': 'application/json' }, body: '{}', timeoutMs: 20_000 }
  let server: Server
  let url = ''
  const received: string[] = []
  const held: ServerResponse[] = []
  beforeAll(async () => {
    server = createServer((request, response) => {
      received.push(`${request.method} ${request.url}`)
      switch (request.url) {
        case '/slow':
          return void held.push(response)
        case '/closes':
          return void request.socket.destroy()
        case '/endless':
          response.write('x'.repeat(10_000))
          return void held.push(response)
        case '/moved':
          return void response.writeHead(307, { location: '/ok' }).end()
        default:
          return void response.writeHead(request.url === '/fails' ? 500 : 204).end()
      }
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    const address = server.address()
    url = typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : ''
  })
  afterAll(() => {
    for (const response of held) response.destroy()
    server.closeAllConnections()
    server.close()
  })

  test('reports each way in which a receiver fails, and follows no redirect', async () => {
    const post = createHttpPost({ resolve: async () => [], privateAllowed: true })
    const results = await Promise.all(
      ['/ok', '/fails', '/moved', '/closes', '/slow', '/endless'].map(path =>
        post(url + path, { ...message, ...(path === '/slow' ? { timeoutMs: 300 } : {}) }),
      ),
    )
    expect(results).toEqual([
      { status: 204 },
      { status: 500 },
      { failure: 'redirected' },
      { failure: 'unreachable' },
      { failure: 'timeout' },
      { status: 200 },
    ])
    expect(received.filter(text => text === 'POST /ok')).toHaveLength(1)
  })

  test('sends nothing to an address that is not public, and fails as for an unknown name', async () => {
    const before = received.length
    const names: Record<string, string[]> = {
      'inside.example.com': ['10.0.0.1'],
      'both.example.com': ['93.184.215.14', '127.0.0.1'],
      'mapped.example.com': ['::ffff:127.0.0.1'],
      'metadata.example.com': ['169.254.169.254'],
    }
    const post = createHttpPost({
      resolve: async host => names[host] ?? [],
      privateAllowed: false,
      dial: ({ address }) => ({ address, port: Number(new URL(url).port) }),
    })
    for (const host of Object.keys(names))
      expect([host, await post(`https://${host}/`, message)]).toEqual([
        host,
        { failure: 'unreachable', detail: 'address_not_public' },
      ])
    for (const target of [
      'https://127.0.0.1/',
      'https://[::1]/',
      'https://169.254.169.254/latest/meta-data',
      'https://localhost/',
      'https://example.com:8443/',
      'http://example.com/',
      `${url}/ok`,
    ])
      expect([target, await post(target, message)]).toEqual([
        target,
        { failure: 'unreachable', detail: 'url_not_allowed' },
      ])
    expect(await post('https://unknown.example.com/', message)).toEqual({
      failure: 'unreachable',
      detail: 'unknown_name',
    })
    expect(received).toHaveLength(before)
  })
})

describe('webhook delivery', () => {
  /** Delivers one event whose attempt takes `elapsedMs`, as the last attempt. */
  const delivered = async (outcome: Awaited<ReturnType<HttpPost>>, elapsedMs: number) => {
    const open = [{ id: 'msg_1', endpointId: 'whk_1', body: '{}', attempts: 11, url: 'https://a.example.com/' }]
    const settled: AttemptResult[] = []
    const logged: unknown[] = []
    let now = 0
    await deliverDue(
      {
        claim: async () =>
          open.splice(0).map(item => ({
            ...item,
            accountId: 'acc_1',
            format: 'standard' as const,
            sealedSecret: 's',
            sealedPreviousSecret: null,
          })),
        settle: async (_, result) => {
          settled.push(result)
          return 'failed'
        },
        post: async () => {
          now += elapsedMs
          return outcome
        },
        seal: { open: () => newSigningSecret() },
        clock: { now: () => now, monotonic: () => now },
        log: { info: (_, fields) => void logged.push(fields) },
        version: '0',
      },
      () => false,
    )
    return { shown: settled, logged }
  }

  test('shows users the same for an internal name as for an unknown one, and logs which it was', async () => {
    const unknown = await delivered({ failure: 'unreachable', detail: 'unknown_name' }, 31.5)
    const internal = await delivered({ failure: 'unreachable', detail: 'address_not_public' }, 2)
    const failed = await delivered({ failure: 'unreachable' }, 88)
    expect(unknown.shown).toEqual([{ status: null, error: 'unreachable', durationMs: 100 }])
    expect([internal.shown, failed.shown]).toEqual([unknown.shown, unknown.shown])
    expect(internal.logged).toEqual([
      { endpoint_id: 'whk_1', attempts: 11, error: 'unreachable', detail: 'address_not_public' },
    ])
  })
})
