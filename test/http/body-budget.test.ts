/**
 * The budget of request bodies: as a unit, and over real sockets, where every way a request can end releases its bytes.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { mintApiKey } from '../../src/core/accounts/api-keys.ts'
import { systemClock } from '../../src/database/clock.ts'
import { bodyLimits } from '../../src/http/body.ts'
import { BodyBudget, charge } from '../../src/http/body-budget.ts'
import { newAccount } from '../harness/account.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { exchangeRaw, openRaw, rawText } from '../harness/raw.ts'
import { startUpstream, type Upstream } from '../harness/upstream.ts'
import { fromAnotherIp, owner, type Person, sendRequest } from '../harness/users.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

const kilobyte = 1024
const megabyte = 1_048_576

describe('BodyBudget', () => {
  test('holds no more than its limits in any order of work, and nothing after the last release', () => {
    const step = fc.record({
      request: fc.nat(11),
      bytes: fc.oneof(fc.nat(300 * kilobyte), fc.nat(32 * megabyte)),
      isWhole: fc.boolean(),
      ends: fc.boolean(),
      isKnown: fc.boolean(),
      assigns: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), steps => {
        const limits = { process: 40 * megabyte, owner: 34 * megabyte }
        const budget = new BodyBudget({ limits, collect: () => {} })
        const open = () => ({ hold: null as ReturnType<typeof budget.open> | null, bytes: 0, isKnown: false })
        const requests = Array.from({ length: 12 }, open)
        const heldBy = (owner: number) =>
          requests.reduce(
            (sum, { bytes, isKnown }, index) => sum + (isKnown && index % 4 === owner ? charge(bytes) : 0),
            0,
          )
        for (const { request, bytes, isWhole, ends, isKnown, assigns } of steps) {
          const item = requests[request] ?? open()
          if (item.hold === null) {
            item.hold = budget.open(isKnown ? `acc_${request % 4}` : null)
            item.isKnown = isKnown
          }
          try {
            item.hold.add(bytes, isWhole)
            item.bytes += bytes
            if (!item.isKnown && assigns) {
              item.hold.assign(`acc_${request % 4}`)
              item.isKnown = true
            }
          } catch {
            // Rejected: only the earlier bytes stay reserved, and an owner over its share has no others.
          }
          if (ends) {
            item.hold.release()
            item.hold.release()
            Object.assign(item, open())
          }
          const all = [0, 1, 2, 3].map(heldBy)
          expect(budget.heldBytes).toBe(requests.reduce((sum, { bytes }) => sum + charge(bytes), 0))
          expect(budget.heldBytes).toBeLessThanOrEqual(limits.process)
          expect(Math.max(...all)).toBeLessThanOrEqual(limits.owner)
        }
        for (const { hold } of requests) hold?.release()
        expect(budget.heldBytes).toBe(0)
      }),
    )
  })

  test('keeps an eighth for small bodies when large ones use up the rest', () => {
    const budget = new BodyBudget({ limits: { process: 40 * megabyte, owner: 40 * megabyte }, collect: () => {} })
    budget.open('acc_1').add(32 * megabyte, true)
    expect(() => budget.open('acc_2').add(megabyte, true)).toThrow(/memory/)
    expect(() => budget.open('acc_2').add(200 * kilobyte, false)).toThrow(/memory/)
    expect(() => budget.open('acc_2').add(200 * kilobyte, true)).not.toThrow()
  })

  test('runs the collector when released large bodies prevent the next one, and not before', () => {
    let collections = 0
    const budget = new BodyBudget({
      limits: { process: 40 * megabyte, owner: 40 * megabyte },
      collect: () => void collections++,
    })
    const pass = (bytes: number) => {
      const hold = budget.open('acc_1')
      hold.add(bytes, true)
      hold.release()
    }
    for (let count = 0; count < 5_000; count++) pass(30 * kilobyte)
    pass(20 * megabyte)
    expect(collections).toBe(0)
    pass(20 * megabyte)
    expect(collections).toBe(1)
    pass(megabyte)
    expect(collections).toBe(1)
  })

  test('reserves nothing after its release', () => {
    const budget = new BodyBudget({ limits: { process: megabyte, owner: megabyte }, collect: () => {} })
    const hold = budget.open('acc_1')
    hold.release()
    expect(() => hold.add(1, true)).toThrow('released')
    expect(budget.heldBytes).toBe(0)
  })
})

let upstream: Upstream
let gateway: Gateway
let person: Person
/** Deadlines of bodies that are set and not yet canceled; a test lets them pass. */
const deadlines = new Set<() => void>()
/** A body of 300 KB has 16.2 s to arrive; no other timer of a gateway is so long. */
const [slowBytes, slowMs] = [300 * kilobyte, 16_172]

beforeAll(async () => {
  upstream = startUpstream(({ body }) => {
    const chunk = (choices: object[]) =>
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices })}\n\n`
    const first = chunk([{ index: 0, delta: { content: 'Fine.' }, finish_reason: null }])
    if (body.includes('fail')) return { status: 500, pieces: ['{}'] }
    if (body.includes('silence')) return { headDelayMs: 60_000, pieces: [''] }
    const end = `${chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}data: [DONE]\n\n`
    const isEndless = body.includes('endless')
    return {
      headers: { 'content-type': 'text/event-stream' },
      framing: 'chunked',
      pieces: isEndless ? slowly(first) : [first, end],
    }
  })
  gateway = await startGateway(
    {
      OPENAI_API_KEY: 'x',
      OPENAI_BASE_URL: `${upstream.url}/v1`,
      TRUSTED_PROXIES: '127.0.0.1',
      BODIES_IN_FLIGHT_MB: '40',
      BODIES_IN_FLIGHT_PER_ACCOUNT_MB: '35',
    },
    {
      clock: {
        ...systemClock,
        after(milliseconds, action) {
          if (milliseconds !== slowMs) return systemClock.after(milliseconds, action)
          deadlines.add(action)
          return () => void deadlines.delete(action)
        },
      },
    },
  )
  person = await owner(gateway)
}, 240_000)
afterAll(async () => {
  await gateway.stop()
  upstream.stop()
})

async function* slowly(text: string) {
  yield text
  await new Promise(() => {})
}

const held = () => gateway.deps.bodies.heldBytes
const chatPath = '/v1/chat/completions'
const chat = (content: string, fields: object = {}) => ({
  model: 'gpt-4.1',
  messages: [{ role: 'user', content }],
  stream: true,
  ...fields,
})
const head = (path: string, length: number, headers: Record<string, string> = {}) =>
  rawText(`POST ${path}`, {
    host: 'localhost',
    'content-type': 'application/json',
    authorization: `Bearer ${gateway.key}`,
    'content-length': String(length),
    ...headers,
  })
const text = async (answer: Promise<Response>) => (await answer).text()

/** Each runs one request to its end and returns the status; null = the client disconnected before one arrived. */
const endings: readonly (readonly [string, number | null, () => Promise<number | null>])[] = [
  ['a stream', 200, () => status(gateway.post(chatPath, chat('Hi')))],
  ['a JSON answer', 200, () => status(gateway.post(chatPath, chat('Hi', { stream: false })))],
  ['a body without a length', 200, () => status(chunked(JSON.stringify(chat('Hi'))))],
  ['a body that is no JSON', 400, () => status(gateway.post(chatPath, '{'))],
  ['a field that is wrong', 400, () => status(gateway.post(chatPath, chat('Hi', { temperature: 9 })))],
  ['a content type that is wrong', 400, () => status(gateway.post(chatPath, 'Hi', { 'content-type': 'text/plain' }))],
  ['an unknown model', 404, () => status(gateway.post(chatPath, chat('Hi', { model: 'none' })))],
  ['a key that is not valid', 401, () => status(gateway.post(chatPath, chat('Hi'), { authorization: 'Bearer x' }))],
  ['too much text', 413, () => status(gateway.post(chatPath, chat('x'.repeat(bodyLimits.chat))))],
  ['too much text without a length', 413, () => status(chunked(JSON.stringify(chat('x'.repeat(bodyLimits.chat)))))],
  ['a length over every limit', 413, () => raw(head(chatPath, 33 * megabyte))],
  ['an upstream that fails', 502, () => status(gateway.post(chatPath, chat('fail', { fallback: false })))],
  ['a caller who leaves during the body', null, () => leave(head(chatPath, 20 * megabyte) + 'x'.repeat(1000))],
  ['a caller who leaves before the answer', null, () => leaveAt('silence')],
  ['a caller who leaves during the answer', null, () => leaveAt('endless')],
  ['a body that comes too slowly', 400, tooSlowly],
  ['a dry run', 200, () => status(gateway.post('/api/v1/route', { prompt: 'Hi' }))],
  ['a dry run that is wrong', 400, () => status(gateway.post('/api/v1/route', { prompt: 7 }))],
  ['an enhancement', 200, () => status(gateway.post('/api/v1/chat/enhance', { prompt: 'Hi' }, fromAnotherIp()))],
  ['an enhancement that is wrong', 400, () => status(gateway.post('/api/v1/chat/enhance', '{', fromAnotherIp()))],
  ['a change of the account', 200, () => asked('PATCH', '/api/v1/account', { name: 'Another' })],
  ['a change that is refused', 400, () => asked('PATCH', '/api/v1/account', { name: 7 })],
  ['a key made once', 201, () => asked('POST', '/api/v1/keys', { name: 'one' }, { 'idempotency-key': 'one' })],
  [
    'a sign-in that fails',
    401,
    () => asked('POST', '/api/v1/auth/login', { email: 'a@example.com', password: 'wrong' }),
  ],
  ['a refresh that fails', 401, () => asked('POST', '/api/v1/auth/refresh', { refresh_token: 'x' })],
  ['an event of nobody’s', 404, () => asked('POST', '/api/v1/billing/webhooks/stripe', {})],
]

async function status(answer: Promise<Response>): Promise<number> {
  const { status: got, body } = await answer
  await new Response(body).text()
  return got
}
async function asked(method: string, path: string, body: object, headers = {}): Promise<number> {
  return (
    await sendRequest(gateway, method, path, { token: person.token, body, headers: { ...fromAnotherIp(), ...headers } })
  ).status
}
const raw = async (request: string) => (await exchangeRaw(gateway.port, request, 5_000))?.status ?? null
const chunked = (body: string) => {
  const pieces = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(body))
      controller.close()
    },
  })
  const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' }
  return fetch(gateway.url + chatPath, { method: 'POST', headers, body: pieces })
}
async function leave(request: string): Promise<null> {
  const { socket } = await openRaw(gateway.port, request)
  await eventually(() => held() > 0, 5_000)
  socket.destroy()
  return null
}
async function leaveAt(word: string): Promise<null> {
  const body = JSON.stringify(chat(word, { stream_mode: 'realtime' }))
  const { socket, received } = await openRaw(gateway.port, head(chatPath, body.length) + body)
  const reached = () =>
    word === 'endless' ? received().includes('Fine.') : upstream.ledger().at(-1)?.body.includes(word)
  await eventually(() => reached() === true, 5_000)
  expect(held()).toBe(charge(body.length))
  socket.destroy()
  return null
}
async function tooSlowly(): Promise<number | null> {
  const { socket, received } = await openRaw(gateway.port, `${head(chatPath, slowBytes)}{`)
  await eventually(() => deadlines.size === 1, 5_000)
  for (const pass of deadlines) pass()
  await eventually(() => received().includes('}}'), 5_000)
  expect(received()).toContain('did not arrive within 16 s')
  socket.destroy()
  return Number(received().slice(9, 12))
}

describe('body budget of a request', () => {
  test.each(endings.map(([name, expected, run]) => [name, expected, run] as const))(
    'releases the bytes after %s',
    async (_name, expected, run) => {
      expect(await run()).toBe(expected)
      await eventually(() => held() === 0, 5_000)
      expect(deadlines.size).toBe(0)
    },
  )
})

describe('body budget of the gateway', () => {
  const large = 31 * megabyte
  const open = async (key: string) => openRaw(gateway.port, head(chatPath, large, { authorization: `Bearer ${key}` }))
  const getError = async (got: { received(): string }) => {
    await eventually(() => got.received().includes('}}'), 5_000)
    const [headers = '', body = ''] = got.received().split('\r\n\r\n')
    const retryAfter = /^retry-after: (\d+)$/im.exec(headers)?.[1]
    return [headers.slice(9, 12), (JSON.parse(body) as { error: { code: string } }).error.code, retryAfter]
  }

  test('rejects a body before it is sent: 429 for its account, 503 for others, while small requests are served', async () => {
    const [item, two] = [await newAccount(gateway), await newAccount(gateway)]
    expect(await text(gateway.post(chatPath, chat('Hi'), item.headers))).toContain('[DONE]')
    const first = await open(item.key)
    await eventually(() => held() === charge(large), 5_000)
    const second = await open(item.key)
    expect(await getError(second)).toEqual(['429', 'request_bytes_exceeded', '1'])
    const other = await open(two.key)
    expect(await getError(other)).toEqual(['503', 'service_unavailable', '1'])
    for (const account of [item, two])
      expect(await text(gateway.post(chatPath, chat('Hi'), account.headers))).toContain('[DONE]')
    expect(held()).toBe(charge(large))
    for (const { socket } of [first, second, other]) socket.destroy()
    await eventually(() => held() === 0, 5_000)
  })

  test('answers 401 for an invalid key before its body is sent, and keeps nothing reserved', async () => {
    const stranger = await open('gw_live_nobody')
    expect((await getError(stranger)).slice(0, 2)).toEqual(['401', 'invalid_api_key'])
    await eventually(() => held() === 0, 5_000)
    stranger.socket.destroy()
  })

  test('rejects before the key lookup: an unknown key gets 503 without capacity and 401 with it', async () => {
    const account = await newAccount(gateway)
    const unknown = mintApiKey(randomBytes).key
    const first = await open(account.key)
    await eventually(() => held() === charge(large), 5_000)
    const second = await open(unknown)
    expect(await getError(second)).toEqual(['503', 'service_unavailable', '1'])
    first.socket.destroy()
    await eventually(() => held() === 0, 5_000)
    const third = await open(unknown)
    expect((await getError(third)).slice(0, 2)).toEqual(['401', 'invalid_api_key'])
    for (const { socket } of [second, third]) socket.destroy()
    await eventually(() => held() === 0, 5_000)
  })

  test('rejects a body without a length when the received bytes exceed the budget', async () => {
    const account = await newAccount(gateway)
    expect(await text(gateway.post(chatPath, chat('Hi'), account.headers))).toContain('[DONE]')
    const first = await open(account.key)
    await eventually(() => held() === charge(large), 5_000)
    const { authorization = '' } = account.headers
    const start = { host: 'localhost', authorization, 'transfer-encoding': 'chunked' }
    const piece = `${(64 * kilobyte).toString(16)}\r\n${'x'.repeat(64 * kilobyte)}\r\n`
    const second = await openRaw(gateway.port, rawText(`POST ${chatPath}`, start) + piece.repeat(60))
    expect((await getError(second)).slice(0, 2)).toEqual(['429', 'request_bytes_exceeded'])
    expect(held()).toBe(charge(large))
    for (const { socket } of [first, second]) socket.destroy()
    await eventually(() => held() === 0, 5_000)
  })
})
