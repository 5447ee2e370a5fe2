/** Stored keys of providers behind whole gateways: two instances on one database, and providers that accept some keys. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { createDeps, type Deps } from '../../src/compose/deps.ts'
import { createKeyDirectory } from '../../src/console/keys/stores/keys.ts'
import { moveOperator } from '../../src/console/provider-keys/store.ts'
import { systemClock } from '../../src/database/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { type OwnDatabase, realDatabase } from '../harness/database.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { describeNeeding } from '../harness/needs.ts'
import { addMember, createManagementKey, owner, type Person, sendRequest, signIn } from '../harness/users.ts'

setDefaultTimeout(240_000)

const canary = 'sk-canary-0123456789abcdefghij'
const model = { model: 'openai/gpt-5.5', prompt: 'Say hello.', max_output_tokens: 20, fallback: false }

/** Keys that the provider rejects, and those of the calls, in order. */
const rejected = new Set<string>()
const calls: string[] = []
const network = {
  ...systemNetwork,
  async fetch(url: string, init: RequestInit) {
    const key = new Headers(init.headers).get('authorization')?.slice('Bearer '.length) ?? ''
    calls.push(key)
    if (rejected.has(key)) return Response.json({ error: { message: `bad key ${key}` } }, { status: 401 })
    if (url.endsWith('/models')) return Response.json({ data: [] })
    return systemNetwork.fetch(url, init)
  },
}

let simulator: Simulator
let gateway: Gateway
let database: OwnDatabase
let boss: Person
/** Another instance on the same database. */
let second: Deps

type Answer = {
  id: string
  hint: string
  data: {
    id: string
    state: string
    simulated: boolean
    keys: { name: string; source: string; state: string }[] | null
  }[]
  stored_keys: string
  result: string
  error: { code: string; message: string; param: string }
}
const send = (method: string, path: string, body?: unknown, token = boss.token) =>
  sendRequest<Answer>(gateway, method, `/api/v1${path}`, { token, body })
const add = (name: string, key: string) => send('POST', '/provider-keys', { provider: 'openai', name, key })
const chat = async () => (await gateway.post('/api/v1/chat', model)).status
const keysAt = (deps: Deps) =>
  deps.endpoints
    .get('openai')
    ?.keys?.status()
    .keys.map(({ name }) => name) ?? []
const provider = async (id = 'openai') => (await send('GET', '/providers')).body.data.find(item => item.id === id)

describeNeeding('postgres', 'stored', () => {
  beforeAll(async () => {
    simulator = await startSimulator({ clock: systemClock, random: Math.random })
    const own = await realDatabase()
    if (own === null) throw new Error('this test needs Postgres')
    database = own
    const stores = { DATABASE_URL: own.url, JWT_SECRET: 'a secret of the tests, long enough to be taken' }
    const upstream = { TRUSTED_PROXIES: '127.0.0.1', OPENAI_BASE_URL: simulator.urls.openai }
    gateway = await startGateway({ ...upstream, ...stores }, { network })
    const first = gateway.deps.firstAccount
    const person = await signIn(gateway, { email: first?.email ?? '', password: first?.password ?? '' })
    if (person === null) throw new Error('the sign-in failed')
    boss = person
    second = await createDeps(
      { ...gateway.deps.config, ownDirectory: `${gateway.deps.config.ownDirectory}/second` },
      { network, writeLog() {} },
    )
  }, 240_000)
  afterAll(async () => {
    await second.close()
    await gateway.stop()
    await database.drop()
    await simulator.stop()
  })

  test('provider keys: end the simulation of each instance without a restart, and stay unseen', async () => {
    expect((await provider())?.simulated).toBe(true)
    expect((await provider('mistral'))?.state).toBe('not_set')
    const { status, body, text } = await add('main', canary)
    expect([status, body.hint]).toEqual([201, canary.slice(-4)])
    expect(text).not.toContain(canary)
    expect([...gateway.deps.endpoints.keys()]).toEqual(['openai'])
    expect(gateway.deps.isSimulated()).toBe(false)
    expect(await chat()).toBe(200)
    expect(calls.at(-1)).toBe(canary)
    await eventually(() => keysAt(second).length === 1, 20_000)
    expect(second.isSimulated()).toBe(false)
    expect(await provider()).toMatchObject({
      state: 'working',
      keys: [{ name: 'main', source: 'stored', state: 'working' }],
    })
  })

  test('provider keys: appear in no response, error, log line, audit entry or table', async () => {
    rejected.add(canary)
    expect(await chat()).not.toBe(200)
    rejected.delete(canary)
    const pages = ['/providers', '/provider-keys', '/audit', '/audit/export?format=jsonl', '/requests', '/status']
    const texts = await Promise.all(pages.map(async path => (await send('GET', path)).text))
    const wrong = await send('POST', '/provider-keys', { provider: 'openai', name: 'main', key: canary })
    expect([wrong.status, wrong.body.error.code]).toEqual([409, 'conflict'])
    // A provider without a variable may get one: a name finds one key.
    expect(
      (await send('POST', '/provider-keys', { provider: 'mistral', name: 'environment', key: canary })).status,
    ).toBe(409)
    const tables = await gateway.deps.database.run(
      ({ sql }) => sql<{ name: string }[]>`select tablename as name from pg_tables where schemaname = 'public'`,
    )
    for (const { name } of tables) {
      const rows = await gateway.deps.database.run(({ sql }) => sql`select * from ${sql(name)}`)
      texts.push(JSON.stringify(rows))
    }
    expect([...texts, wrong.text, ...gateway.logLines].filter(text => text.includes(canary))).toEqual([])
    expect(texts.join('\n')).toContain('provider_key.created')
  })

  test('provider keys: serve beside each other: a rejected key does not stop the other', async () => {
    const other = 'sk-other-0123456789abcdef'
    const { body } = await add('other', other)
    rejected.add(canary)
    const statuses = await Promise.all(Array.from({ length: 6 }, chat))
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect((await provider())?.keys).toMatchObject([{ state: 'rejected' }, { state: 'working' }])
    const tested = await send('POST', '/providers/openai/test', { key: 'main' })
    expect(tested.body.result).toBe('rejected')
    expect((await send('POST', '/providers/openai/test', { key: 'other' })).body.result).toBe('working')
    rejected.delete(canary)
    expect((await send('DELETE', `/provider-keys/${body.id}`)).status).toBe(204)
  })

  test('provider keys: lose no request when they are rotated during traffic', async () => {
    const { data } = (await send('GET', '/provider-keys')).body
    const id = data[0]?.id ?? ''
    let isOver = false
    const statuses = new Set<number>()
    const traffic = Promise.all(
      Array.from({ length: 3 }, async () => {
        while (!isOver) statuses.add(await chat())
      }),
    )
    for (const key of ['sk-rotated-0123456789abcdef', canary]) {
      expect((await send('POST', `/provider-keys/${id}/rotate`, { key })).status).toBe(200)
      expect(await chat()).toBe(200)
      expect(calls).toContain(key)
    }
    isOver = true
    await traffic
    expect(statuses).toEqual(new Set([200]))
  })

  test('provider keys: end on each instance when they are removed, without a simulation in their place', async () => {
    const { data } = (await send('GET', '/provider-keys')).body
    for (const { id } of data) expect((await send('DELETE', `/provider-keys/${id}`)).status).toBe(204)
    expect([...gateway.deps.endpoints.keys()]).toEqual([])
    await eventually(() => second.endpoints.size === 0, 20_000)
    const before = calls.length
    expect(await chat()).not.toBe(200)
    expect(calls.length).toBe(before)
    expect((await add('main', canary)).status).toBe(201)
    expect(await chat()).toBe(200)
  })

  test('provider keys: accept only owners of the account of the operator and management keys with the scope', async () => {
    const stranger = await owner(gateway)
    const admin = await addMember(gateway, boss, 'admin')
    const body = { provider: 'openai', name: 'foreign', key: canary }
    for (const [{ token }, status, code] of [
      // An own key would be free of charge at an address that the operator pays for.
      [stranger, 400, 'invalid_request'],
      [admin, 403, 'forbidden'],
    ] as const) {
      const refused = await send('POST', '/provider-keys', body, token)
      expect([refused.status, refused.body.error.code]).toEqual([status, code])
      expect((await send('POST', '/providers/openai/test', {}, token)).status).toBe(403)
    }
    expect((await send('GET', '/provider-keys', undefined, stranger.token)).body.data).toEqual([])
    expect((await send('GET', '/providers', undefined, stranger.token)).body).toMatchObject({
      stored_keys: 'not_operator',
      data: [{ id: 'openai', keys: null }],
    })
    const [own] = (await send('GET', '/provider-keys')).body.data
    expect((await send('DELETE', `/provider-keys/${own?.id}`, undefined, stranger.token)).status).toBe(404)
    const reads = await createManagementKey(gateway, boss, ['providers:read'])
    const writes = await createManagementKey(gateway, boss, ['providers:write'])
    expect((await send('GET', '/provider-keys', undefined, reads.key)).status).toBe(200)
    expect((await send('POST', '/provider-keys', body, reads.key)).status).toBe(403)
    const made = await send('POST', '/provider-keys', body, writes.key)
    expect(made.status).toBe(201)
    expect((await send('DELETE', `/provider-keys/${made.body.id}`, undefined, writes.key)).status).toBe(204)
    // Another account becomes the operator's: the keys of this one serve no request.
    await moveOperator(gateway.deps.database, stranger.accountId)
    await eventually(() => gateway.deps.endpoints.size === 0, 20_000)
    await moveOperator(gateway.deps.database, boss.accountId)
    await eventually(() => gateway.deps.endpoints.size === 1, 20_000)
  })

  test.each([
    ['another provider', { provider: 'nobody', key: canary }, 'provider'],
    ['a provider without its address', { provider: 'ollama', key: canary }, 'provider'],
    ['a short key', { provider: 'openai', key: 'short' }, 'key'],
    ['a key of two lines', { provider: 'openai', key: `${canary}\r\nx-evil: 1` }, 'key'],
    ['a long key', { provider: 'openai', key: 'k'.repeat(4_097) }, 'key'],
    ['a wrong name', { provider: 'openai', key: canary, name: 'a b' }, 'name'],
  ])('provider keys: refuse a wrong field without repeating it: %s', async (_, body, param) => {
    const refused = await send('POST', '/provider-keys', body)
    expect([refused.status, refused.body.error.param]).toEqual([400, param])
    expect(refused.text).not.toContain(canary)
  })

  test('provider keys: start a gateway with a clear error when the sealing secret is lost', async () => {
    const lines: string[] = []
    const { config } = gateway.deps
    const lost = {
      ...config,
      jwtSecret: 'another secret of the tests, long enough',
      ownDirectory: `${config.ownDirectory}/lost`,
    }
    const deps = await createDeps(lost, { network, writeLog: line => void lines.push(line) })
    try {
      createApp(deps)
      expect(deps.isSimulated()).toBe(false)
      expect(keysAt(deps)).toEqual([])
      expect(lines.join('')).toContain('provider_keys_unreadable')
      expect(lines.join('')).not.toContain(canary)
    } finally {
      await deps.close()
    }
  })

  test.each(['provider', 'account'])('provider keys: serve nothing when their row gets another %s', async what => {
    const { database: own } = gateway.deps
    const stranger = await owner(gateway)
    const [row] = (await send('GET', '/provider-keys')).body.data
    const before = { provider: 'openai', account_id: boss.accountId }
    const put = (values: { provider?: string; account_id?: string }) =>
      own.run(({ sql }) => sql`update provider_keys set ${sql(values)} where id = ${row?.id ?? ''}`)
    const isMoved = what === 'account'
    await put(isMoved ? { account_id: stranger.accountId } : { provider: 'mistral' })
    if (isMoved) await moveOperator(own, stranger.accountId)
    try {
      await gateway.deps.storedSettings.look()
      const sent = calls.length
      const names = [...gateway.deps.endpoints.values()].flatMap(({ keys }) => keys?.status().keys ?? [])
      expect(names).toEqual([])
      expect(await chat()).not.toBe(200)
      const shown = await send('GET', '/providers', undefined, isMoved ? stranger.token : boss.token)
      const keys = shown.body.data.flatMap(item => item.keys ?? [])
      expect(keys).toMatchObject([{ name: 'main', state: 'unreadable' }])
      for (const body of [{}, { key: 'main' }]) {
        const path = `/providers/${isMoved ? 'openai' : 'mistral'}/test`
        const tested = await send('POST', path, body, isMoved ? stranger.token : boss.token)
        expect([tested.status, tested.body.error.message]).toEqual([409, expect.stringContaining('unreadable')])
      }
      expect(calls.length).toBe(sent)
    } finally {
      await put(before)
      if (isMoved) await moveOperator(own, boss.accountId)
      await gateway.deps.storedSettings.look()
    }
    expect(await chat()).toBe(200)
    expect(calls.at(-1)).toBe(canary)
  })

  test('provider keys: come before API keys, so that no request meets a simulation at the start', async () => {
    const { database: own, clock, config } = gateway.deps
    const away = () => Promise.reject(new Error('the stored keys are away'))
    const keys = createKeyDirectory({ database: own, clock, plans: config.plans, random: Math.random, before: away })
    try {
      await keys.look()
      expect(keys.recall(gateway.key)).toBeNull()
      expect(async () => await keys.find(gateway.key)).toThrow('the stored keys are away')
    } finally {
      await keys.close()
    }
  })

  test('provider keys: serve nothing when a setting turns them off', async () => {
    const { config } = gateway.deps
    const deps = await createDeps(
      { ...config, storedKeys: 'off', ownDirectory: `${config.ownDirectory}/off` },
      { network, writeLog() {} },
    )
    try {
      await deps.storedSettings.loaded()
      expect(deps.isSimulated()).toBe(true)
    } finally {
      await deps.close()
    }
  })
})
