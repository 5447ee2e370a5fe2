/** `Idempotency-Key` over real sockets: two gateways on one database, simulated providers. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { createApp } from '../../src/app.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import type { Database } from '../../src/database/database.ts'
import { openRedis } from '../../src/database/redis.ts'
import { createIdempotencyStore, type IdempotencyRegistry } from '../../src/database/repositories/idempotency.ts'
import { derivedSecrets } from '../../src/http/idempotency.ts'
import { quiet } from '../database/database.contract.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { startRedis } from '../harness/redis.ts'
import { owner, type Person, sendRequest, upgraded } from '../harness/users.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

type Answer = {
  readonly request_id: string
  readonly usage: { readonly total_tokens: number; readonly cost_usd: number }
  readonly error: {
    readonly code: string
    readonly request_id: string
    readonly result_id?: string
    readonly usage?: { readonly total_tokens: number; readonly cost_usd: number }
  }
}

let gateway: Gateway
let siblingsBook: IdempotencyRegistry
let siblingsUrl = ''
let stopSibling = async () => {}
let boss: Person
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  siblingsBook = createIdempotencyStore({ database: gateway.deps.database, log: quiet })
  const sibling = createApp({ ...gateway.deps, idempotency: siblingsBook }).listen({ port: 0, hostname: '127.0.0.1' })
  siblingsUrl = `http://127.0.0.1:${sibling.server?.port}`
  stopSibling = async () => {
    await sibling.server?.stop(true)
    await siblingsBook.close()
  }
  boss = await owner(gateway)
})
afterAll(async () => {
  await stopSibling()
  await gateway.stop()
})

let made = 0
const runningRows = async () => {
  const [row] = await gateway.deps.database.run(
    ({ sql }) => sql<{ count: number }[]>`select count(*)::int as count from idempotency_keys where status = 'running'`,
  )
  return row?.count ?? 0
}
const newName = () => `order-${++made}`

async function chat(name: string, body: object, options: { readonly url?: string; readonly key?: string } = {}) {
  const { url = gateway.url, key = gateway.key } = options
  const answer = await fetch(`${url}/api/v1/chat`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': name },
    body: JSON.stringify({ model: 'gpt-5.5', ...body }),
  })
  const text = await answer.text()
  const json = (text.startsWith('{') ? JSON.parse(text) : {}) as Answer
  return { status: answer.status, code: json.error?.code ?? null, headers: answer.headers, json, text }
}

async function recordsSince(requestIds: readonly string[]): Promise<{ requests: number; billed: number }> {
  const [row] = await gateway.deps.database.run(
    ({ sql }) => sql<{ requests: number; billed: number }[]>`
      select count(*)::int as requests, coalesce(sum(billed_microcents), 0)::float8 as billed from usage_records
      where request_id in (select json_array_elements_text(${JSON.stringify(requestIds)}::text::json))`,
  )
  return row ?? { requests: 0, billed: 0 }
}

describe('chat request with an Idempotency-Key', () => {
  test('answers 409 `already_completed` with ID and usage at every gateway when the request has completed', async () => {
    const name = newName()
    const first = await chat(name, { prompt: 'Hi' })
    expect(first.status).toBe(200)
    for (const url of [gateway.url, siblingsUrl]) {
      const again = await chat(name, { prompt: 'Hi' }, { url })
      expect([again.status, again.code]).toEqual([409, 'already_completed'])
      expect(again.headers.get('x-should-retry')).toBe('false')
      expect(again.json.error.request_id).toBe(first.json.request_id)
      expect(again.json.error.usage).toMatchObject({
        total_tokens: first.json.usage.total_tokens,
        cost_usd: first.json.usage.cost_usd,
      })
      expect(again.text).not.toContain('simulated')
    }
  })

  test('runs and bills once when many clients send it at once over two gateways', async () => {
    const name = newName()
    const racing = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        chat(name, { prompt: '[[sim:pace_ms=5]] Hi' }, { url: index % 2 ? siblingsUrl : gateway.url }),
      ),
    )
    const codes = racing.map(({ code }) => code ?? 'ran')
    expect(codes.filter(code => code === 'ran')).toHaveLength(1)
    expect(codes.filter(code => code === 'conflict' || code === 'already_completed')).toHaveLength(39)
    const ids = racing.flatMap(({ headers }) => headers.get('x-request-id') ?? [])
    await eventually(async () => (await recordsSince(ids)).requests > 0, 5000)
    expect((await recordsSince(ids)).requests).toBe(1)
  })

  test('answers 409 `conflict` while the request is running', async () => {
    const name = newName()
    const running = chat(name, { prompt: '[[sim:first_ms=2000]] Hi' })
    await eventually(async () => (await runningRows()) > 0, 3000)
    const beside = await chat(name, { prompt: '[[sim:first_ms=2000]] Hi' }, { url: siblingsUrl })
    expect([beside.status, beside.code]).toEqual([409, 'conflict'])
    await running
  })

  test('answers 409 `conflict` for another body or path', async () => {
    const name = newName()
    expect((await chat(name, { prompt: 'Hi' })).status).toBe(200)
    expect((await chat(name, { prompt: 'Ho' })).code).toBe('conflict')
    const elsewhere = await gateway.post(
      '/v1/chat/completions',
      { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hi' }] },
      { 'idempotency-key': name },
    )
    expect(elsewhere.status).toBe(409)
  })

  test('runs again when nothing was delivered', async () => {
    const name = newName()
    const body = { prompt: `[[sim:status=503, times=1, key=${name}]] Hi`, fallback: false }
    const failed = await chat(name, body)
    expect(failed.status).toBe(502)
    expect((await chat(name, body, { url: siblingsUrl })).status).toBe(200)
    expect((await chat(name, body)).code).toBe('already_completed')
  })

  test('runs again when it was rejected before it ran', async () => {
    const name = newName()
    const refused = await chat(name, { model: 'no-such-model', prompt: 'Hi' })
    expect(refused.status).toBe(404)
    expect((await chat(name, { prompt: 'Hi' })).status).toBe(200)
  })

  test('does not run again when a part was delivered', async () => {
    const name = newName()
    const body = { prompt: '[[sim:cut_after=3, tokens=50, pace_ms=10]] Hi', stream: true, fallback: false }
    const cut = await chat(name, body)
    expect(cut.status).toBe(200)
    expect(cut.text).toContain('"type":"error"')
    const again = await chat(name, body)
    expect([again.status, again.code]).toEqual([409, 'already_completed'])
    expect(again.json.error.usage?.total_tokens).toBeGreaterThan(0)
  })

  test('does not run again when the client disconnected after a part', async () => {
    const name = newName()
    const leaving = new AbortController()
    const body = { model: 'gpt-5.5', prompt: '[[sim:tokens=400, pace_ms=20]] Hi', stream: true }
    const answer = await gateway.post('/api/v1/chat', body, { 'idempotency-key': name }, leaving.signal)
    await answer.body?.getReader().read()
    leaving.abort()
    const { model: _, ...rest } = body
    await eventually(async () => (await chat(name, rest)).code === 'already_completed', 3000)
  })

  test('treats the same key of another account as another request', async () => {
    const name = newName()
    const { body } = await sendRequest<{ key: string }>(gateway, 'POST', '/api/v1/keys', {
      token: boss.token,
      body: { name: 'k' },
    })
    expect((await chat(name, { prompt: 'Hi' })).status).toBe(200)
    expect((await chat(name, { prompt: 'Hi' }, { key: body.key })).status).toBe(200)
  })

  test('accepts keys of 1 to 255 printable characters', async () => {
    for (const name of ['é', 'x'.repeat(256), 'a\tb']) {
      const refused = await chat(name, { prompt: 'Hi' })
      expect([refused.status, refused.code]).toEqual([400, 'invalid_request'])
    }
    expect((await chat('x'.repeat(255), { prompt: 'Hi' })).status).toBe(200)
  })
})

describe('idempotency store', () => {
  const rows = () =>
    gateway.deps.database.run(({ sql }) => sql<{ text: string }[]>`select idempotency_keys::text from idempotency_keys`)

  test('contains no text of the client and no digest that could be guessed [L4]', async () => {
    const name = `canary-${newName()}`
    await chat(name, { prompt: 'canary prompt' })
    const text = JSON.stringify(await rows())
    expect(text).not.toContain('canary')
    for (const guess of [name, 'canary prompt', JSON.stringify({ model: 'gpt-5.5', prompt: 'canary prompt' })])
      expect(text).not.toContain(Bun.SHA256.hash(guess, 'hex'))
  })

  test('forgets a key after one day, and not before', async () => {
    const name = newName()
    const first = await chat(name, { prompt: 'Hi' })
    const age = (hours: number) =>
      gateway.deps.database.run(
        ({ sql }) => sql`
          update idempotency_keys set created_at = clock_timestamp() - make_interval(hours => ${hours})
          where result_id = ${first.json.request_id}`,
      )
    await age(23)
    expect((await chat(name, { prompt: 'Hi' })).code).toBe('already_completed')
    await age(25)
    expect((await chat(name, { prompt: 'Hi' })).status).toBe(200)
  })

  test('uses the ledger when the gateway died before it finished the key', async () => {
    const name = newName()
    const first = await chat(name, { prompt: 'Hi' })
    const id = first.json.request_id
    await eventually(async () => (await recordsSince([id])).requests === 1, 5000)
    const running = () =>
      gateway.deps.database.run(
        ({ sql }) => sql`
          update idempotency_keys set status = 'running', usage = null, lease_ends_at = clock_timestamp()
          where result_id = ${id}`,
      )
    await running()
    const again = await chat(name, { prompt: 'Hi' })
    expect([again.code, again.json.error.request_id]).toEqual(['already_completed', id])
    expect(again.json.error.usage?.total_tokens).toBe(first.json.usage.total_tokens)
  })

  test('releases the key of a gateway that died without output when the request can no longer run', async () => {
    const name = newName()
    const first = await chat(name, { prompt: 'Hi' })
    const orphan = (held: boolean) =>
      gateway.deps.database.run(
        ({ sql }) => sql`
          update idempotency_keys set status = 'running', usage = null, result_id = 'req_of_the_dead',
            lease_ends_at = clock_timestamp() + ${held ? 60 : -1} * interval '1 second'
          where result_id in (${first.json.request_id}, 'req_of_the_dead')`,
      )
    await orphan(true)
    expect((await chat(name, { prompt: 'Hi' })).code).toBe('conflict')
    await orphan(false)
    const racing = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        chat(name, { prompt: 'Hi' }, { url: index % 2 ? siblingsUrl : gateway.url }),
      ),
    )
    expect(racing.filter(({ status }) => status === 200)).toHaveLength(1)
  })
})

test('request without Idempotency-Key: does not query the store', async () => {
  let asked = 0
  const counting: IdempotencyRegistry = {
    ...siblingsBook,
    claim(claim) {
      asked++
      return siblingsBook.claim(claim)
    },
  }
  const app = createApp({ ...gateway.deps, idempotency: counting }).listen({ port: 0, hostname: '127.0.0.1' })
  const url = `http://127.0.0.1:${app.server?.port}/api/v1/chat`
  const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' }
  expect((await fetch(url, { method: 'POST', headers, body: '{"prompt":"Hi"}' })).status).toBe(200)
  expect(asked).toBe(0)
  await app.server?.stop(true)
})

describe('idempotent management request', () => {
  const make = (url: string, path: string, name: string, body: object) =>
    sendRequest<{ id?: string; error?: Answer['error'] }>({ url }, 'POST', path, {
      token: boss.token,
      body,
      headers: { 'x-forwarded-for': '10.9.9.9', 'idempotency-key': name },
    })

  test('creates a key once for concurrent requests; later ones receive its ID and never its secret', async () => {
    const name = newName()
    const racing = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        make(index % 2 ? siblingsUrl : gateway.url, '/api/v1/keys', name, { name: 'once only' }),
      ),
    )
    const created = racing.filter(({ status }) => status === 201)
    expect(created).toHaveLength(1)
    const again = await make(gateway.url, '/api/v1/keys', name, { name: 'once only' })
    expect([again.status, again.body.error?.code, again.body.error?.result_id]).toEqual([
      409,
      'already_completed',
      created[0]?.body.id,
    ])
    expect(again.headers.get('x-should-retry')).toBe('false')
    expect(again.text).not.toContain('gw_live_')
    expect((await make(gateway.url, '/api/v1/keys', name, { name: 'another' })).body.error?.code).toBe('conflict')
    const listed = await sendRequest<{ data: { name: string }[] }>(gateway, 'GET', '/api/v1/keys', {
      token: boss.token,
    })
    expect(listed.body.data.filter(key => key.name === 'once only')).toHaveLength(1)
  })

  test('changes a plan once', async () => {
    const name = newName()
    await upgraded(gateway, boss)
    await sendRequest(gateway, 'POST', '/api/v1/billing/downgrade', { token: boss.token, body: {} })
    const upgrade = () => make(gateway.url, '/api/v1/billing/upgrade', name, { confirm: true })
    expect((await upgrade()).status).toBe(200)
    expect((await upgrade()).body.error?.code).toBe('already_completed')
  })

  test('stores nothing under a digest that visible or stored values can produce', async () => {
    const name = newName()
    const body = { name: 'secret plans' }
    expect((await make(gateway.url, '/api/v1/keys', name, body)).status).toBe(201)
    const rows = await gateway.deps.database.run(
      ({ sql }) => sql<{ name: string; request_digest: string }[]>`select name, request_digest from idempotency_keys`,
    )
    const stored = new Set(rows.flatMap(row => [row.name, row.request_digest]))
    const guesses = (secret: string) =>
      [`name\n${name}`, `request\nPOST /api/v1/keys\n${JSON.stringify(body)}`].map(text =>
        createHmac('sha256', secret).update(text).digest('hex'),
      )
    const known = await gateway.deps.database.run(
      ({ sql }) => sql<{ text: string }[]>`
        select unnest(array[users.id, users.account_id, users.email, users.password_hash, sessions.id]) as text
        from users join sessions on sessions.user_id = users.id where users.id = ${boss.id}`,
    )
    for (const guess of ['', boss.token, boss.refreshToken, ...known.map(({ text }) => text)].flatMap(guesses))
      expect(stored.has(guess)).toBe(false)
    // The user's secret does: the guesses use the gateway's own digest function.
    for (const digest of guesses(gateway.deps.getSecret(boss.id))) expect(stored.has(digest)).toBe(true)
  })

  test('gives users their own secrets, on which gateways agree during a rotation', () => {
    const [old, next] = ['the first secret, of 32 bytes at least', 'the second secret, of 32 bytes at least']
    const getSecret = derivedSecrets(old, 'idempotency')
    expect(new Set([getSecret('usr_1'), getSecret('usr_2'), derivedSecrets(next, 'idempotency')('usr_1')]).size).toBe(3)
    expect(getSecret('usr_1')).toMatch(/^[0-9a-f]{64}$/)
    expect(derivedSecrets(old, 'idempotency')('usr_1')).toBe(getSecret('usr_1'))
  })

  test('may run again after a rejection', async () => {
    const name = newName()
    expect((await make(gateway.url, '/api/v1/keys', name, { name: '' })).status).toBe(400)
    expect((await make(gateway.url, '/api/v1/keys', name, { name: 'right' })).status).toBe(201)
  })
})

describe('Postgres unavailable', () => {
  const away = () => Promise.reject(new GatewayError('service_unavailable', 'away', { retryAfterMs: 1000 }))
  let isAway = false
  const getClaim = (holder: string, name: string, requestDigest = 'digest') => ({
    accountId: gateway.accountId,
    name,
    requestDigest,
    holder,
    leaseMs: 60_000,
  })

  test('runs nothing with a key without Redis, because a repetition cannot be detected', async () => {
    const book = createIdempotencyStore({ database: { ...gateway.deps.database, run: away }, log: quiet })
    await expect(book.claim(getClaim('req_a', newName()))).rejects.toMatchObject({ code: 'service_unavailable' })
    await book.close()
  })

  testNeeding('redis', 'Redis stands in: one of many runs, and is known as the one when Postgres is back', async () => {
    const server = needed(await startRedis())
    const redis = openRedis({ urls: [server.url], ...patientStore })
    await eventually(() => redis.isReady(), 5000)
    const { database } = gateway.deps
    const flaky: Database = { ...database, run: (work, ms) => (isAway ? away() : database.run(work, ms)) }
    const books = [1, 2].map(() => createIdempotencyStore({ database: flaky, redis, log: quiet }))
    const book = (index: number) => books[index % 2] as IdempotencyRegistry
    const name = newName()

    isAway = true
    const racing = await Promise.all(
      Array.from({ length: 20 }, (_, index) => book(index).claim(getClaim(`req_${index}`, name))),
    )
    expect(racing.map(({ outcome }) => outcome).sort()).toEqual([...Array(19).fill('running'), 'taken'])
    expect(await book(0).claim(getClaim('req_other', name, 'another'))).toEqual({ outcome: 'other_request' })
    const winner = racing.findIndex(({ outcome }) => outcome === 'taken')

    isAway = false
    expect(await book(0).claim(getClaim('req_later', name))).toEqual({ outcome: 'running' })
    const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3, cost_usd: 0, estimated: false }
    await book(winner).finish(getClaim(`req_${winner}`, name), { resultId: `req_${winner}`, usage })
    expect(await book(1).claim(getClaim('req_last', name))).toEqual({
      outcome: 'completed',
      resultId: `req_${winner}`,
      usage,
    })

    isAway = true
    const second = newName()
    expect(await book(0).claim(getClaim('req_x', second))).toEqual({ outcome: 'taken' })
    await book(0).release(getClaim('req_x', second))
    expect(await book(1).claim(getClaim('req_y', second))).toEqual({ outcome: 'taken' })
    isAway = false
    for (const idempotencyRegistry of books) await idempotencyRegistry.close()
    redis.close()
    await server.stop()
  })
})
