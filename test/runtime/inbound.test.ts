/** Facts about the server that the code depends on: if one fails after an upgrade, the rule beside it changes. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import type { Socket } from 'node:net'
import { createApp } from '../../src/app.ts'
import { plans } from '../../src/core/limits/plans.ts'
import { breakNow, piece } from '../../src/simulator/reply.ts'
import { eventually } from '../harness/eventually.ts'
import { answered, type Gateway, startGateway } from '../harness/gateway.ts'
import { exchangeRaw, openRaw, rawText } from '../harness/raw.ts'
import { startUpstream, type Upstream } from '../harness/upstream.ts'

// Starting a gateway takes seconds when other tests run at the same time.
setDefaultTimeout(240_000)

const megabyte = 1_048_576
const chunk = (content: string) =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'gpt-4.1', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`

/** More than all buffers hold without back-pressure. */
const floodBytes = 32 * megabyte
async function* flood() {
  const text = chunk('x'.repeat(8_000))
  for (let sent = 0; sent < floodBytes; sent += text.length) yield text
  yield breakNow('hang')
}

let upstream: Upstream
let gateway: Gateway
/** The same gateway behind a server that closes connections after a second or two of silence. */
let impatient: number
beforeAll(async () => {
  upstream = startUpstream(({ body }) => {
    if (body.includes('flood'))
      return { headers: { 'content-type': 'text/event-stream' }, framing: 'chunked', pieces: flood() }
    const answer = {
      id: 'x',
      object: 'chat.completion',
      created: 1,
      model: 'gpt-4.1',
      choices: [{ index: 0, message: { role: 'assistant', content: 'late' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }
    return {
      headers: { 'content-type': 'application/json' },
      pieces: [piece(JSON.stringify(answer))],
      headDelayMs: body.includes('slow') ? 7_000 : 0,
    }
  })
  gateway = await startGateway({ OPENAI_API_KEY: 'x', OPENAI_BASE_URL: `${upstream.url}/v1` })
  // Else the first request waits for the key and for the account's day, and is answered 503 on a busy machine.
  await answered(async () => gateway.deps.keys.find(gateway.key))
  await answered(() => gateway.deps.meter.loadStatus(gateway.accountId, plans.usage))
  const { server } = createApp(gateway.deps).listen({ port: 0, hostname: '127.0.0.1', idleTimeout: 1 })
  impatient = server?.port ?? 0
})
afterAll(async () => {
  await gateway.stop()
  upstream.stop()
})

const chat = (body: object, headers: Record<string, string> = {}) => {
  const text = JSON.stringify({ model: 'gpt-4.1', ...body })
  const all = {
    host: 'localhost',
    authorization: `Bearer ${gateway.key}`,
    'content-length': String(text.length),
    ...headers,
  }
  return rawText('POST /v1/chat/completions', all, text)
}
const prompt = (content: string, fields: object = {}) => ({ messages: [{ role: 'user', content }], ...fields })

describe('idle timeout [B12]', () => {
  test('closes a silent connection, but not an authenticated slow response', async () => {
    const ended: string[] = []
    const answer = exchangeRaw(impatient, chat(prompt('slow', { max_tokens: 16 }), { connection: 'close' }), 30_000)
    await exchangeRaw(impatient, chat(prompt('never whole'), { 'content-length': '1000' }), 30_000)
    ended.push('silent connection')
    const got = await answer.finally(() => ended.push('answer'))
    expect(ended).toEqual(['silent connection', 'answer'])
    expect([got?.status, got?.body.includes('late')]).toEqual([200, true])
  }, 240_000)
})

describe('idle timeout after a response [B12]', () => {
  test('applies again after complete, streamed, failed and aborted responses', async () => {
    const { server } = createApp(gateway.deps).listen({ port: 0, hostname: '127.0.0.1' })
    if (server === null) throw new Error('it listens')
    const timeout = spyOn(server, 'timeout')
    const told = () => timeout.mock.calls.splice(0).map(([, seconds]) => seconds)
    const send = (fields: object, headers: Record<string, string> = { connection: 'close' }) =>
      exchangeRaw(server.port ?? 0, chat(prompt('Hi', fields), headers))
    try {
      for (const [fields, status] of [
        [{}, 200],
        [{ stream: true }, 200],
        [{ model: 'unknown', stream: true }, 404],
      ] as const)
        expect([(await send({ max_tokens: 16, ...fields }))?.status, told()]).toEqual([status, [0, 60]])
      const { socket, received } = await openRaw(server.port ?? 0, chat(prompt('flood', { stream: true })))
      await eventually(() => received() !== '', 5_000)
      socket.destroy()
      await eventually(() => timeout.mock.calls.length === 2, 5_000)
      expect(told()).toEqual([0, 60])
      expect([(await send({ n: -1 }))?.status, told()]).toEqual([400, []])
    } finally {
      await server.stop(true)
    }
  })

  test('applies to the connection after its response', async () => {
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        for (const seconds of [0, 1]) server.timeout(request, seconds)
        return new Response()
      },
    })
    // Without a cut the test ends by its own timeout.
    await exchangeRaw(server.port ?? 0, rawText('GET /', { host: 'localhost' }), 60_000)
    await server.stop(true)
  })
})

describe('clients that never read [B11]', () => {
  const readers = 40

  test('stop their upstreams, also forty of them', async () => {
    Bun.gc(true)
    const before = process.memoryUsage.rss()
    const sockets: Socket[] = []
    for (let count = 0; count < readers; count++) {
      const { socket } = await openRaw(
        gateway.port,
        chat(prompt('flood', { stream: true, stream_mode: 'realtime', max_tokens: 20_000 })),
      )
      socket.pause()
      sockets.push(socket)
    }
    const sent = () => upstream.ledger().reduce((sum, { bytesSent }) => sum + bytesSent, 0)
    let last = -1
    for (let now = sent(), looks = 0; now !== last && looks < 40; looks++) {
      last = now
      await Bun.sleep(250)
      now = sent()
    }
    Bun.gc(true)
    const grown = (process.memoryUsage.rss() - before) / megabyte
    const flowed = sent() / megabyte
    process.stdout.write(
      `${readers} readers who never read: ${flowed.toFixed(0)} MB left the upstream, RSS + ${grown.toFixed(0)} MB\n`,
    )
    // At most 10 MB per reader, nearly all in kernel buffers.
    expect(flowed).toBeLessThan(readers * 10)
    for (const socket of sockets) socket.destroy()
    await upstream.until(ledger => ledger.every(({ outcome }) => outcome !== 'open'), 5_000)
  }, 240_000)
})

describe('request size [B14]', () => {
  test('rejects bodies over every limit', async () => {
    Bun.gc(true)
    const before = process.memoryUsage.rss()
    let peak = before
    const timer = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage.rss())
    }, 5)
    const piece = new Uint8Array(megabyte).fill(120)
    const endless = (megabytes: number) => {
      let left = megabytes
      return new ReadableStream<Uint8Array>({
        pull: controller => (left-- > 0 ? controller.enqueue(piece) : controller.close()),
      })
    }
    const post = async (path: string, key: string) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const answer = await fetch(gateway.url + path, { method: 'POST', headers, body: endless(100) })
      await answer.text()
      return answer.status
    }
    const strangers = await Promise.all(Array.from({ length: 20 }, () => post('/v1/chat/completions', 'x')))
    // 503 while other bodies use the space: they are reserved before their keys are looked up.
    for (const status of strangers) expect([401, 503]).toContain(status)
    expect(await post('/v1/chat/completions', 'x')).toBe(401)
    expect(await post('/api/v1/chat/estimate', '')).toBe(413)
    clearInterval(timer)
    process.stdout.write(`22 bodies of 100 MB: RSS + ${((peak - before) / megabyte).toFixed(0)} MB\n`)
    expect(await post('/v1/chat/completions', gateway.key)).toBe(413)
  })

  test('returns 431 for headers or a URL of 20 KB', async () => {
    const send = (target: string, headers: Record<string, string>) =>
      exchangeRaw(gateway.port, rawText(`GET ${target}`, { host: 'localhost', connection: 'close', ...headers }))
    expect((await send('/healthz', { 'x-long': 'a'.repeat(20_000) }))?.status).toBe(431)
    expect((await send(`/${'a'.repeat(20_000)}`, {}))?.status).toBe(431)
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`x-${index}`, '1']))
    expect((await send('/healthz', many))?.status).toBe(431)
    expect((await send('/healthz', {}))?.status).toBe(200)
  })
})

describe('ambiguous requests [B15]', () => {
  const lines = (...rest: string[]) =>
    ['POST /v1/chat/completions HTTP/1.1', 'host: localhost', ...rest, '', ''].join('\r\n')
  test.each([
    ['length beside chunked', `${lines('content-length: 5', 'transfer-encoding: chunked')}0\r\n\r\n`],
    ['two lengths', `${lines('content-length: 5', 'content-length: 6')}hello`],
    ['a negative length', lines('content-length: -5')],
    ['a length in words', lines('content-length: five')],
    ['a folded header', lines('x-a: 1', ' folded')],
    ['a NUL in a header', lines('x-a: a\0b')],
    ['a space before the colon', `${lines('content-length : 5')}hello`],
    ['no version', 'GET /healthz\r\nhost: localhost\r\n\r\n'],
    ['not HTTP', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
  ])('%s', async (_name, text) => {
    const answer = await exchangeRaw(gateway.port, text, 500)
    expect([null, 400, 401, 431, 505]).toContain(answer?.status ?? null)
  })

  test('never merge a second request into a rejected body', async () => {
    const smuggled = 'GET /simulator/directives HTTP/1.1\r\nhost: localhost\r\n\r\n'
    const first = rawText('POST /v1/chat/completions', { host: 'localhost', 'content-length': String(smuggled.length) })
    const { socket, received } = await openRaw(gateway.port, first + smuggled)
    await eventually(() => received().includes('HTTP/1.1'), 10_000)
    // Only time shows that no second response follows.
    await Bun.sleep(200)
    socket.destroy()
    expect(received().match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 401'])
  })
})
