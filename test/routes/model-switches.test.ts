/** Switches of models behind whole gateways: two instances on one database, and one simulator as two hosts. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { createDeps, type Deps } from '../../src/compose/deps.ts'
import { systemClock } from '../../src/database/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { type OwnDatabase, realDatabase } from '../harness/database.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { describeNeeding } from '../harness/needs.ts'
import { createKeyFor, createManagementKey, owner, type Person, sendRequest, signIn } from '../harness/users.ts'

setDefaultTimeout(240_000)

const model = 'openai/gpt-5.5'
const embedding = 'openai/text-embedding-3-small'
const waitMs = 20_000

/** Hosts of the calls, in order, and calls that wait for `release`. */
const calls: string[] = []
let held: Promise<void> | null = null
const network = {
  ...systemNetwork,
  async fetch(url: string, init: RequestInit) {
    const isMirror = new Headers(init.headers).get('authorization') === 'Bearer key-mirror'
    calls.push(isMirror ? 'mirror' : 'openai')
    if (held !== null) await held
    return systemNetwork.fetch(url, init)
  },
}

let simulator: Simulator
let gateway: Gateway
let database: OwnDatabase
let boss: Person
let key: string
/** Another instance on the same database, with a server of its own. */
let second: Deps
let server: Bun.Server<unknown>

type Answer = {
  data: { model: string; enabled: boolean; hosts: object[] | null; configured_hosts: string[]; used_by: string[] }[]
  enabled: boolean
  error: { code: string; message: string; param: string }
}
const send = (method: string, body?: unknown, token = boss.token) =>
  sendRequest<Answer>(gateway, method, '/api/v1/model-switches', { token, body })
const change = async (body: object) => expect((await send('PATCH', { model, ...body })).status).toBe(200)

const bearer = () => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })
/** Sends to one instance; `at` is its address. */
async function post(path: string, body: object, at = gateway.url) {
  const response = await fetch(`${at}${path}`, { method: 'POST', headers: bearer(), body: JSON.stringify(body) })
  return { status: response.status, text: await response.text() }
}
const chat = (name: string = model, at = gateway.url) =>
  post('/api/v1/chat', { model: name, prompt: 'Say hello.', max_output_tokens: 20, fallback: false }, at)
const secondUrl = () => `http://127.0.0.1:${server.port}`
const getText = async (path: string) => (await fetch(`${gateway.url}${path}`, { headers: bearer() })).text()

describeNeeding('postgres', 'switches', () => {
  beforeAll(async () => {
    simulator = await startSimulator({ clock: systemClock, random: Math.random })
    const own = await realDatabase()
    if (own === null) throw new Error('this test needs Postgres')
    database = own
    const hosts = [{ model, pricing: { input_per_mtok: 1, output_per_mtok: 1 } }]
    const mirror = { id: 'mirror', base_url: simulator.urls.openai, api_key_env: 'MIRROR_KEY', hosts }
    gateway = await startGateway(
      {
        // Switches do not depend on stored keys.
        STORED_PROVIDER_KEYS: 'off',
        OPENAI_API_KEY: 'key-own',
        OPENAI_BASE_URL: simulator.urls.openai,
        MIRROR_KEY: 'key-mirror',
        DATABASE_URL: own.url,
        JWT_SECRET: 'a secret of the tests, long enough to be taken',
      },
      {
        network,
        file: { providers: [mirror], enhancement: { model: 'gpt-5.4-mini' }, routing: { baseline_model: model } },
      },
    )
    const first = gateway.deps.firstAccount
    const person = await signIn(gateway, { email: first?.email ?? '', password: first?.password ?? '' })
    if (person === null) throw new Error('the sign-in failed')
    boss = person
    key = (await createKeyFor(gateway, boss)).key
    second = await createDeps(
      { ...gateway.deps.config, ownDirectory: `${gateway.deps.config.ownDirectory}/second` },
      { network, writeLog() {} },
    )
    const app = createApp(second)
    server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: request => app.handle(request) })
  }, 240_000)
  afterAll(async () => {
    await server.stop(true)
    await second.close()
    await gateway.stop()
    await database.drop()
    await simulator.stop()
  })

  test('model switches: name the settings that use a model', async () => {
    const { data } = (await send('GET')).body
    expect(data.flatMap(({ model: name, used_by }) => used_by.map(setting => [setting, name])).toSorted()).toEqual([
      ['enhancement.model', 'openai/gpt-5.4-mini'],
      ['routing.baseline_model', model],
    ])
  })

  test('model switches: switch a model off on each instance, by every name, and requests in progress finish', async () => {
    expect((await chat()).status).toBe(200)
    const { promise, resolve } = Promise.withResolvers<void>()
    held = promise
    const before = calls.length
    const running = chat()
    await eventually(() => calls.length > before, waitMs)
    held = null
    await change({ enabled: false })
    const refused = await chat()
    expect([refused.status, refused.text]).toEqual([404, expect.stringContaining('switched off by the operator')])
    expect(refused.text).toContain('model_not_found')
    await eventually(async () => (await chat(model, secondUrl())).status === 404, waitMs)
    resolve()
    expect((await running).status).toBe(200)
    const message = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 20 }
    for (const [path, body] of [
      ['/api/v1/chat', { model: 'gpt-5.5', prompt: 'Hi' }],
      ['/api/v1/chat', { model: 'OpenAI/GPT-5.5', prompt: 'Hi' }],
      ['/v1/chat/completions', { model, ...message }],
      ['/v1/messages', { model, ...message }],
      ['/v1/messages/count_tokens', { model, messages: message.messages }],
      ['/v1/responses', { model, input: 'Hi' }],
      ['/api/v1/route', { model, prompt: 'Hi' }],
    ] as const) {
      const { status, text } = await post(path, body)
      expect([path, status, text]).toEqual([path, 404, expect.stringContaining('switched off by the operator')])
    }
  })

  test('model switches: a model that is off is in no list, and automatic routing does not choose it', async () => {
    const lists = ['/v1/models', '/api/v1/models', '/api/v1/models/health']
    for (const path of lists)
      expect([path, await getText(path)]).toEqual([path, expect.not.stringContaining('gpt-5.5"')])
    for (const [name, headers, form] of [
      ['gpt-5.5', {}, { error: { code: 'model_not_found', message: expect.stringContaining('switched off') } }],
      [
        'openai%2Fgpt-5.5',
        { 'anthropic-version': '2023-06-01' },
        { type: 'error', error: { type: 'not_found_error' } },
      ],
    ] as const) {
      const answer = await fetch(`${gateway.url}/v1/models/${name}`, { headers: { ...bearer(), ...headers } })
      const text = await answer.text()
      expect([answer.status, text]).toEqual([404, expect.stringContaining('switched off by the operator')])
      expect(JSON.parse(text)).toMatchObject(form)
    }
    expect(await getText('/v1/models/gpt-0')).toContain('Unknown model')
    const { text } = await post('/api/v1/route', { prompt: 'Prove that the square root of two is irrational.' })
    const { candidates } = JSON.parse(text) as { candidates: { model: string }[] }
    expect(candidates.length).toBeGreaterThan(0)
    expect(candidates.map(candidate => candidate.model)).not.toContain(model)
    await change({ enabled: true })
    for (const path of lists) expect([path, await getText(path)]).toEqual([path, expect.stringContaining('gpt-5.5"')])
    expect((await chat()).status).toBe(200)
    await eventually(async () => (await chat(model, secondUrl())).status === 200, waitMs)
  })

  test('model switches: switch an embedding model off and on', async () => {
    const embed = () => post('/v1/embeddings', { model: embedding, input: 'hello' })
    expect((await embed()).status).toBe(200)
    expect((await send('PATCH', { model: embedding, enabled: false })).body).toMatchObject({ enabled: false })
    expect(await embed()).toEqual({ status: 404, text: expect.stringContaining('switched off by the operator') })
    expect(await getText('/v1/models')).not.toContain('text-embedding-3-small')
    expect((await send('PATCH', { model: embedding, enabled: true })).status).toBe(200)
    expect((await embed()).status).toBe(200)
  })

  test('model switches: call the hosts in the given order, and draw the first one by weight', async () => {
    const begin = async () => {
      const at = calls.length
      expect((await chat()).status).toBe(200)
      return calls[at]
    }
    expect(await begin()).toBe('openai')
    await change({ hosts: [{ host: 'mirror' }] })
    expect(await begin()).toBe('mirror')
    await change({
      hosts: [
        { host: 'mirror', weight: 0 },
        { host: 'openai', weight: 1 },
      ],
    })
    expect([await begin(), await begin(), await begin()]).toEqual(['openai', 'openai', 'openai'])
    const row = (await send('GET')).body.data.find(item => item.model === model)
    expect(row).toMatchObject({ enabled: true, configured_hosts: ['openai', 'mirror'] })
    await change({ hosts: null })
    expect((await send('GET')).body.data.filter(item => item.hosts !== null || !item.enabled)).toEqual([])
  })

  test('model switches: refuse wrong names and hosts, and name the field', async () => {
    const zero = [{ host: 'openai', weight: 0 }]
    const twice = [{ host: 'openai' }, { host: 'openai' }]
    for (const [body, param] of [
      [{ model: 'gpt-5.5', enabled: false }, 'model'],
      [{ model: 'openai/unknown', enabled: false }, 'model'],
      [{ model, hosts: [{ host: 'azure' }] }, 'hosts'],
      [{ model, hosts: twice }, 'hosts'],
      [{ model, hosts: zero }, 'hosts'],
    ] as const) {
      const refused = await send('PATCH', body)
      expect([body, refused.status, refused.body.error?.param]).toEqual([body, 400, param])
    }
    expect((await chat()).status).toBe(200)
  })

  test('model switches: accept only owners of the account of the operator and management keys with the scope', async () => {
    const stranger = await owner(gateway)
    const body = { model, enabled: false }
    expect((await send('GET', undefined, stranger.token)).status).toBe(403)
    expect((await send('PATCH', body, stranger.token)).status).toBe(403)
    const reads = await createManagementKey(gateway, boss, ['providers:read'])
    const writes = await createManagementKey(gateway, boss, ['providers:write'])
    expect((await send('GET', undefined, reads.key)).status).toBe(200)
    expect((await send('PATCH', body, reads.key)).status).toBe(403)
    expect((await send('PATCH', body, writes.key)).status).toBe(200)
    expect((await chat()).status).toBe(404)
    await change({ enabled: true })
    const audit = await sendRequest<object>(gateway, 'GET', '/api/v1/audit', { token: boss.token })
    expect(audit.text).toContain('model.switched')
    expect(audit.text).toContain(model)
  })
})
