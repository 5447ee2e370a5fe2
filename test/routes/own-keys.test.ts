/** Own keys of accounts and projects behind whole gateways: providers that accept some keys, over real sockets. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { createDeps, type Deps } from '../../src/compose/deps.ts'
import { findOwnKeyObstacle } from '../../src/console/provider-keys/store.ts'
import { systemClock } from '../../src/database/clock.ts'
import { changeAccount } from '../../src/database/repositories/accounts.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { type OwnDatabase, realDatabase } from '../harness/database.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { describeNeeding } from '../harness/needs.ts'
import { addMember, createKeyFor, createManagementKey, owner, type Person, sendRequest } from '../harness/users.ts'

setDefaultTimeout(240_000)

const operatorKey = 'sk-operator-0123456789abcdef'
const plenty = { requestsPerMinute: 1_000_000, concurrentRequests: 1_000, dailyTokens: 1e12, dailyCostMicrocents: 1e15 }

/** What the provider answers to a key instead of serving it; and the keys of the calls, in order. */
const statuses = new Map<string, number>()
const calls: string[] = []
const network = {
  ...systemNetwork,
  async fetch(url: string, init: RequestInit) {
    const headers = new Headers(init.headers)
    const key = headers.get('authorization')?.slice('Bearer '.length) ?? headers.get('x-api-key') ?? ''
    calls.push(key)
    const status = statuses.get(key)
    if (status !== undefined) return Response.json({ error: { message: `no for ${key}` } }, { status })
    if (url.endsWith('/models')) return Response.json({ data: [] })
    return systemNetwork.fetch(url, init)
  },
}

type Key = {
  id: string
  serves: string
  fallback: boolean | null
  state: string
  hint: string
  project_id: string | null
}
type Answer = Key & {
  data: Key[]
  result: string
  candidates: { model: string; own_key: boolean; estimated_cost_usd: number }[]
  total: { cost_usd: number; own_key_cost_usd: number; requests: number }
  error: { code: string; message: string; param: string }
}
type Logged = {
  request_id: string
  cost_usd: number
  own_key_cost_usd: number | null
  total_tokens: number
  attempt_details: { outcome: string; own_key: string | null; http_status: number }[]
}

let simulator: Simulator
let gateway: Gateway
let database: OwnDatabase
/** Another instance on the same database. */
let second: Deps

type Tenant = Person & { readonly key: string }

async function newTenant(): Promise<Tenant> {
  const person = await owner(gateway)
  await changeAccount(gateway.deps.database, person.accountId, plenty)
  const { key } = await createKeyFor(gateway, person)
  await gateway.deps.keys.look()
  return { ...person, key }
}

const send = (tenant: Pick<Person, 'token'>, method: string, path: string, body?: unknown) =>
  sendRequest<Answer>(gateway, method, `/api/v1${path}`, { token: tenant.token, body })

const request = { model: 'openai/gpt-5.5', prompt: 'Say hello.', max_output_tokens: 20, fallback: 'same_model' }

let made = 0
/** A key that no other test uses. */
const freshKey = () => `sk-tenant-${String(++made).padStart(4, '0')}-0123456789abcdef`

async function addKey(tenant: Pick<Person, 'token'>, fields: object = {}, key = freshKey()) {
  const { status, body, text } = await send(tenant, 'POST', '/provider-keys', { provider: 'openai', key, ...fields })
  expect([status, text]).toEqual([201, expect.not.stringContaining(key)])
  return { ...body, key }
}

/** Sends a chat and returns its status, the keys that it called, and its ID. */
async function chat(key: string, body: object = {}, path = '/api/v1/chat') {
  const from = calls.length
  const answer = await gateway.post(path, { ...request, ...body }, { authorization: `Bearer ${key}` })
  const text = await answer.text()
  return { status: answer.status, text, keys: calls.slice(from), id: answer.headers.get('x-request-id') ?? '' }
}

async function findRecord(tenant: Pick<Person, 'token'>, id: string): Promise<Logged> {
  let found: Logged | null = null
  await eventually(async () => {
    const { status, body } = await sendRequest<Logged>(gateway, 'GET', `/api/v1/requests/${id}`, {
      token: tenant.token,
    })
    if (status === 200) found = body
    return status === 200
  }, 30_000)
  if (found === null) throw new Error('the request is in the log')
  return found
}

/** A gateway that starts on the database of the tests, as after a restart. */
async function startAgain(changes: Partial<Deps['config']>) {
  const { config } = gateway.deps
  const ownDirectory = `${config.ownDirectory}/again-${++made}`
  const deps = await createDeps({ ...config, ...changes, ownDirectory }, { network, writeLog() {} })
  const app = createApp(deps).listen({ port: 0, hostname: '127.0.0.1' })
  deps.readiness.isReady = true
  const url = `http://127.0.0.1:${app.server?.port}`
  /** Sends a request with this credential, and returns its status and the keys that it called. */
  const sendTo = async (path: string, token: string, body: object = {}) => {
    const from = calls.length
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    await answer.text()
    return [answer.status, calls.slice(from)]
  }
  const stop = async () => {
    await app.server?.stop(true)
    await deps.close()
  }
  return { deps, sendTo, stop }
}

const stateOfOpenai = () => gateway.deps.endpoints.get('openai')?.keys?.status().keys[0]?.state ?? null

describeNeeding('postgres', 'own keys', () => {
  beforeAll(async () => {
    simulator = await startSimulator({ clock: systemClock, random: Math.random })
    const own = await realDatabase()
    if (own === null) throw new Error('this test needs Postgres')
    database = own
    gateway = await startGateway(
      {
        ...{ DATABASE_URL: own.url, JWT_SECRET: 'a secret of the tests, long enough to be taken' },
        ...{ TRUSTED_PROXIES: '127.0.0.1', STORED_PROVIDER_KEYS: 'anywhere' },
        ...{ OPENAI_BASE_URL: simulator.urls.openai, OPENAI_API_KEY: operatorKey },
      },
      { network },
    )
    second = await createDeps(
      { ...gateway.deps.config, ownDirectory: `${gateway.deps.config.ownDirectory}/second` },
      { network, writeLog() {} },
    )
  }, 240_000)
  afterEach(() => statuses.clear())
  afterAll(async () => {
    await second.close()
    await gateway.stop()
    await database.drop()
    await simulator.stop()
  })

  test('own keys: serve the requests of their account only, which cost it nothing here', async () => {
    const [first, other, third] = [await newTenant(), await newTenant(), await newTenant()]
    const [ofFirst, ofOther] = [await addKey(first), await addKey(other, { name: 'theirs' })]
    expect(ofFirst).toMatchObject({ serves: 'account', fallback: true, project_id: null, hint: 'cdef' })
    const answers = await Promise.all(
      Array.from({ length: 4 }, async () => [await chat(first.key), await chat(other.key), await chat(third.key)]),
    )
    expect(answers.flat().map(({ status }) => status)).toEqual(Array(12).fill(200))
    const last = [await chat(first.key), await chat(other.key), await chat(third.key)] as const
    expect(last.map(({ keys }) => keys)).toEqual([[ofFirst.key], [ofOther.key], [operatorKey]])
    const [record, billed] = [await findRecord(first, last[0].id), await findRecord(third, last[2].id)]
    expect(record).toMatchObject({ cost_usd: 0, own_key_cost_usd: billed.cost_usd })
    expect(record.attempt_details).toMatchObject([{ outcome: 'served', own_key: 'main', http_status: 200 }])
    expect(record.total_tokens).toBeGreaterThan(0)
    expect(billed).toMatchObject({ own_key_cost_usd: null, attempt_details: [{ own_key: null }] })
    expect(billed.cost_usd).toBeGreaterThan(0)
    const usage = await send(first, 'GET', '/usage?group_by=day')
    expect(usage.body.total).toMatchObject({ cost_usd: 0, requests: 5 })
    expect(usage.body.total.own_key_cost_usd).toBeCloseTo(billed.cost_usd * 5, 8)
    const csv = await fetch(`${gateway.url}/api/v1/requests/export?format=csv`, {
      headers: { authorization: `Bearer ${first.token}` },
    })
    const [columns = '', newest = ''] = (await csv.text()).replaceAll('"', '').split('\r\n')
    const place = columns.split(',').indexOf('own_key_cost_usd')
    expect(Number(newest.split(',')[place])).toBe(billed.cost_usd)
    const dry = await sendRequest<Answer>(gateway, 'POST', '/api/v1/route', {
      ...{ token: first.key, body: { prompt: 'Say hello.', model: 'openai/gpt-5.5' } },
    })
    expect(dry.body.candidates[0]).toMatchObject({ own_key: true, estimated_cost_usd: 0 })
    expect((await send(first, 'GET', '/provider-keys')).body.data).toMatchObject([{ state: 'working' }])
    expect((await send(other, 'GET', '/provider-keys')).body.data).toHaveLength(1)
    expect((await send(third, 'GET', '/provider-keys')).body.data).toEqual([])
  })

  test.each([
    ['a stream', { stream: true }, '/api/v1/chat'],
    ['automatic routing', { model: undefined }, '/api/v1/chat'],
    ['Chat Completions', chatBody(), '/v1/chat/completions'],
    ['Messages', { ...chatBody(), max_tokens: 20 }, '/v1/messages'],
    ['Responses', { model: 'openai/gpt-5.5', input: 'Say hello.', max_output_tokens: 20 }, '/v1/responses'],
    ['embeddings', { model: 'openai/text-embedding-3-small', input: ['one', 'two'] }, '/v1/embeddings'],
  ])('own keys: serve %s', async (_, body, path) => {
    const tenant = await newTenant()
    const { key } = await addKey(tenant)
    const isNative = path.startsWith('/api')
    const from = calls.length
    const answer = isNative
      ? await chat(tenant.key, body, path)
      : await gateway.post(path, body, { authorization: `Bearer ${tenant.key}` })
    expect(answer.status).toBe(200)
    if (answer instanceof Response) await answer.text()
    expect(new Set(calls.slice(from))).toEqual(new Set([key]))
    await eventually(async () => {
      const { total } = (await send(tenant, 'GET', '/usage?group_by=day')).body
      return total.requests === 1 && total.cost_usd === 0 && total.own_key_cost_usd > 0
    }, 30_000)
  })

  test('own keys: serve the requests of their project before those of the account', async () => {
    const tenant = await newTenant()
    const project = (await send(tenant, 'POST', '/projects', { name: 'search' })).body.id
    const inProject = await send(tenant, 'POST', '/keys', { name: 'search', project_id: project })
    await gateway.deps.keys.look()
    const [ofAccount, ofProject] = [await addKey(tenant), await addKey(tenant, { project_id: project })]
    expect(ofProject).toMatchObject({ serves: 'project', project_id: project })
    const { key: projectKey } = inProject.body as unknown as { key: string }
    expect((await chat(projectKey)).keys).toEqual([ofProject.key])
    expect((await chat(tenant.key)).keys).toEqual([ofAccount.key])
    expect((await send(tenant, 'DELETE', `/provider-keys/${ofProject.id}`)).status).toBe(204)
    expect((await chat(projectKey)).keys).toEqual([ofAccount.key])
    const stranger = await newTenant()
    const foreign = await send(stranger, 'POST', '/provider-keys', {
      ...{ provider: 'openai', key: freshKey(), project_id: project },
    })
    expect([foreign.status, foreign.body.error.param]).toEqual([400, 'project_id'])
  })

  test.each([401, 429])('own keys: let those of the operator serve after a %d, at its price', async status => {
    const [tenant, plain] = [await newTenant(), await newTenant()]
    const own = await addKey(tenant)
    statuses.set(own.key, status)
    const { keys, status: answered, id } = await chat(tenant.key)
    expect([answered, keys]).toEqual([200, [own.key, operatorKey]])
    const reference = await findRecord(plain, (await chat(plain.key)).id)
    const record = await findRecord(tenant, id)
    expect(record).toMatchObject({ cost_usd: reference.cost_usd, own_key_cost_usd: null })
    expect(record.attempt_details).toMatchObject([{ own_key: 'main', http_status: status }, { own_key: null }])
    // The next request knows it.
    expect((await chat(tenant.key)).keys).toEqual([operatorKey])
    expect((await send(tenant, 'GET', '/provider-keys')).body.data[0]?.state).toBe(
      status === 401 ? 'rejected' : 'rate_limited',
    )
  })

  test.each([401, 429])('own keys: without fallback end a request after a %d, and nothing is billed', async status => {
    const tenant = await newTenant()
    const own = await addKey(tenant, { fallback: false })
    statuses.set(own.key, status)
    for (let tries = 0; tries < 3; tries++) {
      const { keys, status: answered, text } = await chat(tenant.key)
      expect(answered).toBe(tries === 0 && status === 401 ? 502 : answered)
      expect(answered).toBeGreaterThanOrEqual(429)
      expect(keys).not.toContain(operatorKey)
      expect(text).not.toContain(own.key)
      if (tries === 0 && status === 401) expect(text).toContain('own key \\"main\\"')
    }
    const { total } = (await send(tenant, 'GET', '/usage?group_by=day')).body
    expect([total.cost_usd, total.own_key_cost_usd]).toEqual([0, 0])
    // Allowed now, without a restart.
    expect((await send(tenant, 'PATCH', `/provider-keys/${own.id}`, { fallback: true })).body.fallback).toBe(true)
    expect(await chat(tenant.key)).toMatchObject({ status: 200, keys: expect.arrayContaining([operatorKey]) })
  })

  test('own keys: change no health of the operator or of other accounts when they are bad, nor the reverse', async () => {
    const [bad, good, plain] = [await newTenant(), await newTenant(), await newTenant()]
    const badKey = await addKey(bad, { fallback: false })
    const goodKey = await addKey(good)
    for (const status of [401, 500, 404]) {
      statuses.set(badKey.key, status)
      for (let tries = 0; tries < 6; tries++) await chat(bad.key)
    }
    expect(gateway.deps.health.getEntry('openai/gpt-5.5')).toMatchObject({ state: 'healthy', failureRate: 0 })
    expect(gateway.deps.health.getActivity('openai').lastFailure).toBeNull()
    expect((await chat(good.key)).keys).toEqual([goodKey.key])
    expect((await chat(plain.key)).keys).toEqual([operatorKey])
    statuses.set(operatorKey, 401)
    for (let tries = 0; tries < 3; tries++) expect((await chat(plain.key)).status).not.toBe(200)
    expect(gateway.deps.health.getStanding('openai/gpt-5.5').state).toBe('unhealthy')
    for (const model of ['openai/gpt-5.5', undefined])
      expect(await chat(good.key, { model })).toMatchObject({ status: 200, keys: [goodKey.key] })
    statuses.clear()
    gateway.deps.health.retryCredentials()
    expect((await chat(plain.key)).status).toBe(200)
  })

  test('own keys: serve an account without money, and their fallback does not', async () => {
    const tenant = await newTenant()
    const own = await addKey(tenant)
    await changeAccount(gateway.deps.database, tenant.accountId, { ...plenty, dailyCostMicrocents: 0 })
    await gateway.deps.keys.look()
    for (const model of ['openai/gpt-5.5', undefined])
      expect(await chat(tenant.key, { model })).toMatchObject({ status: 200, keys: [own.key] })
    statuses.set(own.key, 401)
    const refused = await chat(tenant.key)
    expect([refused.status, refused.keys]).toEqual([502, [own.key]])
    expect((await findRecord(tenant, refused.id)).cost_usd).toBe(0)
    await changeAccount(gateway.deps.database, tenant.accountId, { ...plenty, requestsPerMinute: 1, dailyTokens: 1e12 })
    await gateway.deps.keys.look()
    statuses.clear()
    const limited = await Promise.all([chat(tenant.key), chat(tenant.key), chat(tenant.key)])
    expect(limited.map(({ status }) => status)).toContain(429)
  })

  test('own keys: lose no request when they are rotated and removed during traffic, on each instance', async () => {
    const tenant = await newTenant()
    const own = await addKey(tenant, { fallback: false })
    const caller = { accountId: tenant.accountId }
    const seenBySecond = () => second.ownKeys.of(caller)?.endpoints.get('openai')?.access.apiKey ?? null
    await eventually(() => seenBySecond() === own.key, 20_000)
    let isOver = false
    const seen = new Set<number>()
    const traffic = Promise.all(
      Array.from({ length: 3 }, async () => {
        while (!isOver) seen.add((await chat(tenant.key)).status)
      }),
    )
    const next = freshKey()
    expect((await send(tenant, 'POST', `/provider-keys/${own.id}/rotate`, { key: next })).status).toBe(200)
    expect((await chat(tenant.key)).keys).toContain(next)
    await eventually(() => seenBySecond() === next, 20_000)
    expect((await send(tenant, 'DELETE', `/provider-keys/${own.id}`)).status).toBe(204)
    await eventually(() => seenBySecond() === null, 20_000)
    isOver = true
    await traffic
    expect(seen).toEqual(new Set([200]))
    const after = await chat(tenant.key)
    expect([after.status, after.keys]).toEqual([200, [operatorKey]])
    expect(stateOfOpenai()).toBeNull()
  })

  test('own keys: accept owners and management keys with the scope, and a test without cost', async () => {
    const tenant = await newTenant()
    const admin = await addMember(gateway, tenant, 'admin')
    expect((await send(admin, 'POST', '/provider-keys', { provider: 'openai', key: freshKey() })).status).toBe(403)
    const own = await addKey(tenant)
    const stranger = await newTenant()
    for (const [method, path, body] of [
      ['DELETE', `/provider-keys/${own.id}`, undefined],
      ['PATCH', `/provider-keys/${own.id}`, { fallback: false }],
      ['POST', `/provider-keys/${own.id}/rotate`, { key: freshKey() }],
      ['POST', `/provider-keys/${own.id}/test`, undefined],
    ] as const)
      expect([path, (await send(stranger, method, path, body)).status]).toEqual([path, 404])
    expect((await send(tenant, 'POST', `/provider-keys/${own.id}/test`)).body.result).toBe('working')
    statuses.set(own.key, 401)
    expect((await send(tenant, 'POST', `/provider-keys/${own.id}/test`)).body.result).toBe('rejected')
    const { key } = await createManagementKey(gateway, tenant, ['providers:write'])
    const made = await send({ token: key }, 'POST', '/provider-keys', {
      ...{ provider: 'openai', name: 'second', key: freshKey() },
    })
    expect(made.status).toBe(201)
    const audit = await send(tenant, 'GET', '/audit')
    expect(audit.text).toContain('provider_key.created')
  })

  test('own keys: end with their project and their account, and stay unseen', async () => {
    const tenant = await newTenant()
    const project = (await send(tenant, 'POST', '/projects', { name: 'gone' })).body.id
    const canary = 'sk-canary-of-a-tenant-0123456789'
    const own = await addKey(tenant, { project_id: project }, canary)
    const ofAccount = await addKey(tenant)
    await addKey(tenant, { name: 'again', project_id: project })
    statuses.set(ofAccount.key, 401)
    await chat(tenant.key)
    const rows = async () =>
      await gateway.deps.database.run(
        ({ sql }) => sql<{ id: string }[]>`select id from provider_keys where account_id = ${tenant.accountId}`,
      )
    const pages = [
      '/providers',
      '/provider-keys',
      '/audit',
      '/audit/export?format=jsonl',
      '/requests',
      '/account/export',
    ]
    const texts = await Promise.all(pages.map(async path => (await send(tenant, 'GET', path)).text))
    const tables = await gateway.deps.database.run(
      ({ sql }) => sql<{ name: string }[]>`select tablename as name from pg_tables where schemaname = 'public'`,
    )
    for (const { name } of tables)
      texts.push(JSON.stringify(await gateway.deps.database.run(({ sql }) => sql`select * from ${sql(name)}`)))
    for (const secret of [canary, ofAccount.key])
      expect([...texts, ...gateway.logLines].filter(text => text.includes(secret))).toEqual([])
    expect(gateway.logLines.join('\n')).toContain(`openai#${ofAccount.id}`)
    expect((await rows()).length).toBe(3)
    expect(own.id).not.toBe(ofAccount.id)
    expect((await send(tenant, 'DELETE', `/projects/${project}`)).status).toBe(204)
    expect((await rows()).length).toBe(1)
    const closed = await send(tenant, 'DELETE', '/account', {
      ...{ name: tenant.email, password: tenant.password },
    })
    expect(closed.status).toBeLessThan(300)
    expect((await rows()).length).toBe(0)
  })

  test('own keys: keep their view, and what it knows of them, when other accounts change theirs', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()]
    const project = (await send(tenant, 'POST', '/projects', { name: 'between' })).body.id
    for (const name of ['one', 'two', 'three'])
      await addKey(tenant, { name, ...(name === 'two' && { project_id: project }) })
    const { ownKeys } = gateway.deps
    const find = () => ownKeys.of({ accountId: tenant.accountId })
    const view = find()
    const added = await addKey(other)
    await send(other, 'DELETE', `/provider-keys/${added.id}`)
    for (let at = 0; at < 1_100; at++) expect(ownKeys.of({ accountId: `acc_none_${at}` })).toBeNull()
    expect(view).not.toBeNull()
    expect(find()).toBe(view)
  })

  test('own keys: keep the state of a key that stays when the account adds, replaces and removes others', async () => {
    const tenant = await newTenant()
    const own = await addKey(tenant)
    expect((await chat(tenant.key)).keys).toEqual([own.key])
    const getState = async () => {
      const { data } = (await send(tenant, 'GET', '/provider-keys')).body
      return data.find(({ id }) => id === own.id)?.state
    }
    expect(await getState()).toBe('working')
    const project = (await send(tenant, 'POST', '/projects', { name: 'beside' })).body.id
    const others = [await addKey(tenant, { project_id: project }), await addKey(tenant, { name: 'second' })]
    expect(await getState()).toBe('working')
    for (const { id } of others) {
      await send(tenant, 'POST', `/provider-keys/${id}/rotate`, { key: freshKey() })
      expect(await getState()).toBe('working')
      await send(tenant, 'DELETE', `/provider-keys/${id}`)
      expect(await getState()).toBe('working')
    }
    await send(tenant, 'POST', `/provider-keys/${own.id}/rotate`, { key: freshKey() })
    expect(await getState()).toBe('unused')
  })

  test('own keys: serve the first request after a restart', async () => {
    const [tenant, strict] = [await newTenant(), await newTenant()]
    const [own, bad] = [await addKey(tenant), await addKey(strict, { fallback: false })]
    statuses.set(bad.key, 401)
    const restarted = await startAgain({})
    try {
      expect(await restarted.sendTo('/api/v1/chat', tenant.key, request)).toEqual([200, [own.key]])
      expect(await restarted.sendTo('/api/v1/chat', strict.key, request)).toEqual([502, [bad.key]])
    } finally {
      await restarted.stop()
    }
  })

  test('own keys: need no call of the database for a warm request', async () => {
    const { database: stored } = gateway.deps
    const tenant = await newTenant()
    const own = await addKey(tenant)
    await chat(tenant.key)
    const caller = { accountId: tenant.accountId }
    const run = spyOn(stored, 'run')
    try {
      const views = Array.from({ length: 10 }, () => gateway.deps.ownKeys.of(caller))
      expect([run.mock.calls.length, new Set(views).size]).toEqual([0, 1])
    } finally {
      run.mockRestore()
    }
    expect((await chat(tenant.key)).keys).toEqual([own.key])
  })

  test.each([
    ['of the operator only', 'operator', 'the operator allows none'],
    ['of nobody', 'off', 'the operator allows none'],
    ['at public addresses', 'on', 'address of the operator'],
  ] as const)('own keys: serve nothing when the setting allows only keys %s', async (_, storedKeys, reason) => {
    const [tenant, strict] = [await newTenant(), await newTenant()]
    await addKey(tenant)
    const barred = await addKey(strict, { fallback: false })
    const { deps, sendTo, stop } = await startAgain({ storedKeys })
    try {
      await deps.storedSettings.loaded()
      const view = deps.ownKeys.of({ accountId: tenant.accountId })?.endpoints.get('openai')
      expect([view?.keys?.status().keys, view?.own?.shared]).toEqual([[], deps.endpoints.get('openai') ?? null])
      expect(findOwnKeyObstacle(deps.config, 'openai', deps.endpoints.get('openai'))).toContain(reason)
      // The operator's key would be billed, which this account does not allow. Its own key is sent nowhere.
      const test = `/api/v1/provider-keys/${barred.id}/test`
      expect(await sendTo('/api/v1/chat', strict.key, request)).toEqual([503, []])
      expect(await sendTo(test, strict.token)).toEqual([409, []])
    } finally {
      await stop()
    }
  })
})

function chatBody() {
  return { model: 'openai/gpt-5.5', messages: [{ role: 'user', content: 'Say hello.' }] }
}
