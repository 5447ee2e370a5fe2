/** Invalid keys in front of a real Postgres: their cost there, and the service for valid keys meanwhile. */
import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { createApp } from '../../src/app.ts'
import { createDeps, type Deps } from '../../src/compose/deps.ts'
import { readConfig } from '../../src/config/config.ts'
import { createPasswords } from '../../src/console/auth/password-hashing.ts'
import { mintApiKey } from '../../src/core/accounts/api-keys.ts'
import { type Database, migrate, openDatabase } from '../../src/database/database.ts'
import { temporaryFolder } from '../database/support.ts'
import { newAccountOn } from '../harness/account.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientEnvironment, patientStore } from '../harness/patience.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'
import { type PostgresTap, startPostgresTap } from '../harness/postgres-tap.ts'
import { dataFolder, startProcess, stopProcesses } from '../harness/processes.ts'
import { createKeyFor, fromAnotherIp, owner } from '../harness/users.ts'

setDefaultTimeout(240_000)

type At = { readonly url: string }
type Served = At & { readonly deps: Deps; stop(): Promise<void> }

let postgres: PrivatePostgres | null = null
let tap: PostgresTap | null = null
let shared: Served | null = null

beforeAll(async () => {
  postgres = await startPostgres()
  if (postgres === null) return
  const database = openDatabase(postgres.url, patientStore)
  await migrate(database)
  await database.close()
  tap = startPostgresTap(postgres.url)
  shared = await serve(tap.url)
}, 240_000)
afterAll(async () => {
  await stopProcesses()
  await shared?.stop()
  tap?.stop()
  await postgres?.stop()
}, 240_000)

async function serve(url: string): Promise<Served> {
  const folder = temporaryFolder()
  const config = readConfig({
    ...patientEnvironment,
    DATABASE_URL: url,
    JWT_SECRET: 'a secret of the tests, long enough to be taken',
    GATEWAY_DATA_DIR: folder.path,
    REGISTRATION: 'open',
    TRUSTED_PROXIES: '127.0.0.1',
    LOG_LEVEL: 'error',
  })
  const passwords = createPasswords({ memoryCost: 64, timeCost: 1 })
  const deps = await createDeps(config, { writeLog: () => {}, passwords })
  const app = createApp(deps).listen({ port: 0, hostname: '127.0.0.1' })
  await deps.keys.look()
  return {
    url: `http://127.0.0.1:${app.server?.port}`,
    deps,
    async stop() {
      await app.server?.stop(true)
      await deps.close()
      folder.remove()
    },
  }
}

function onServer(title: string, body: (at: Served, on: PostgresTap) => Promise<void>) {
  testNeeding('postgres', title, () => body(needed(shared), needed(tap)))
}

const strangers = (count: number) => Array.from({ length: count }, () => mintApiKey(randomBytes))

async function send(at: At, method: string, path: string, headers: Record<string, string>, body?: object) {
  const answer = await fetch(at.url + path, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  const code = text.startsWith('{"error"') ? (JSON.parse(text) as { error: { code: string } }).error.code : null
  return { status: answer.status, code, headers: answer.headers }
}

const chat = (at: At, key: string, from = fromAnotherIp()) =>
  send(at, 'POST', '/api/v1/chat', { authorization: `Bearer ${key}`, ...from }, { prompt: 'Hi', max_output_tokens: 5 })

const prompt = { prompt: 'Good morning!' }
const openRoutes: readonly (readonly [string, string, object?])[] = [
  ['GET', '/v1/models'],
  ['GET', '/v1/models/gpt-5.5'],
  ['GET', '/v1/models/nothing'],
  ['GET', '/api/v1/models'],
  ['GET', '/api/v1/models/health'],
  ['GET', '/healthz'],
  ['GET', '/metrics'],
  ['GET', '/openapi.json'],
  ['GET', '/docs'],
  ['GET', '/'],
  ['GET', '/nowhere'],
  ['HEAD', '/v1/models'],
  ['OPTIONS', '/api/v1/chat/estimate'],
  ['POST', '/api/v1/chat/estimate', prompt],
  ['POST', '/api/v1/chat/enhance', prompt],
  ['POST', '/api/v1/auth/login', { email: 'nobody@example.test', password: 'a password' }],
  ['POST', '/api/v1/auth/refresh', { refresh_token: 'x' }],
]

onServer('open routes: ask Postgres about no key when strangers show well-formed ones', async (at, on) => {
  on.forget()
  const keys = strangers(2 * openRoutes.length)
  for (const [index, [method, path, body]] of openRoutes.entries())
    for (const [place, headers] of [
      { authorization: `Bearer ${keys[2 * index]?.key}` },
      { 'x-api-key': keys[2 * index + 1]?.key ?? '' },
    ].entries()) {
      const { code } = await send(at, method, path, { ...headers, ...fromAnotherIp() }, body)
      expect([path, place, code === 'invalid_api_key']).toEqual([path, place, false])
    }
  expect(on.getCount(keys.map(({ id }) => id))).toBe(0)
})

onServer(
  'chat: looks up no more unknown keys than the address may show, and refuses the rest before a query',
  async (at, on) => {
    on.forget()
    const from = fromAnotherIp()
    const keys = strangers(300)
    const answers = await Promise.all(
      keys.map(async ({ key }, index) => (index % 3 === 0 ? chat(at, key, from) : dryRun(at, key, from))),
    )
    const codes = new Set(answers.map(({ status, code }) => `${status} ${code}`))
    expect(codes.has('429 ip_rate_limited')).toBe(true)
    for (const code of codes)
      expect(['401 invalid_api_key', '429 ip_rate_limited', '503 service_unavailable']).toContain(code)
    const asked = on.getCount(keys.map(({ id }) => id))
    process.stdout.write(`300 unknown keys of one address: ${asked} were looked up\n`)
    // A hundred at once, and one more per second.
    expect(asked).toBeLessThanOrEqual(120)
    expect(asked).toBeGreaterThan(0)
  },
)

const dryRun = (at: At, key: string, from: Record<string, string>) =>
  send(at, 'POST', '/api/v1/route', { authorization: `Bearer ${key}`, ...from }, { prompt: 'Hi' })

onServer('chat: looks an unknown key up once when it is shown again and again', async (at, on) => {
  const [stranger] = strangers(1)
  if (stranger === undefined) throw new Error('one was made')
  expect((await chat(at, stranger.key)).code).toBe('invalid_api_key')
  on.forget()
  for (let count = 0; count < 20; count++) expect((await chat(at, stranger.key)).code).toBe('invalid_api_key')
  expect(on.getCount([stranger.id])).toBe(0)
})

/** Returns Postgres' own count of scans of the keys table, including the gateway's polls. */
async function scansOfKeys(database: Database): Promise<number> {
  const rows = await database.run(
    ({ sql }) => sql<{ scans: number }[]>`
      select (coalesce(seq_scan, 0) + coalesce(idx_scan, 0))::int as scans from pg_stat_user_tables where relname = 'api_keys'`,
  )
  return rows[0]?.scans ?? 0
}

onServer('chat: serves ten keys that are not in memory while 300 connections show unknown ones', async at => {
  if (postgres === null) throw new Error('there is a server')
  const good = await Promise.all(Array.from({ length: 10 }, () => newAccountOn(at.deps.database)))
  for (const name of ['one address', 'an address each']) {
    // In a separate process that has seen none of the ten keys.
    const fresh = await startProcess(dataFolder(), {
      DATABASE_URL: postgres.url,
      JWT_SECRET: 'a secret of the tests, long enough to be taken',
      TRUSTED_PROXIES: '127.0.0.1',
    })
    const before = await scansOfKeys(at.deps.database)
    let isOver = false
    let refused = 0
    const own = fromAnotherIp()
    const flood = Array.from({ length: 300 }, async () => {
      while (!isOver) {
        const { status } = await chat(
          fresh,
          mintApiKey(randomBytes).key,
          name === 'one address' ? own : fromAnotherIp(),
        )
        expect([401, 429, 503]).toContain(status)
        refused++
      }
    })
    const served = async (key: string) => {
      // On a busy machine Postgres may miss its deadline of 1 s; a client then retries and is served before the flood
      // ends.
      for (;;) {
        const { status } = await chat(fresh, key, own)
        if (status !== 503) return status
      }
    }
    let tookMs = 0
    try {
      await eventually(() => refused > 1_000, 30_000)
      const began = performance.now()
      expect(await Promise.all(good.map(({ key }) => served(key)))).toEqual(Array(10).fill(200))
      tookMs = performance.now() - began
    } finally {
      isOver = true
      await Promise.all(flood)
    }
    const scans = (await scansOfKeys(at.deps.database)) - before
    process.stdout.write(
      `flood of 300 connections, ${name}: ten good keys in ${tookMs.toFixed(0)} ms; ${refused} unknown keys refused, ${scans} scans of the keys\n`,
    )
    fresh.kill('SIGKILL')
  }
})

onServer('free endpoints: count requests with a known key by account, wherever they come from', async at => {
  const person = await owner(at)
  const [text, two] = [(await createKeyFor(at, person, 'one')).key, (await createKeyFor(at, person, 'two')).key]
  const other = (await createKeyFor(at, await owner(at))).key
  const from = fromAnotherIp()
  const enhance = async (key: string | null, headers: Record<string, string> = fromAnotherIp()) => {
    const credential = key === null ? {} : { authorization: `Bearer ${key}` }
    return (await send(at, 'POST', '/api/v1/chat/enhance', { ...credential, ...headers }, prompt)).status
  }
  for (let count = 0; count < 5; count++) expect(await enhance(count % 2 ? text : two)).toBe(200)
  expect(await enhance(text)).toBe(429)
  expect(await enhance(two, from)).toBe(429)
  expect(await enhance(other, from)).toBe(200)
  for (let count = 0; count < 5; count++) expect(await enhance(null, from)).toBe(200)
  expect(await enhance(null, from)).toBe(429)
  expect(await enhance(other, from)).toBe(200)
  expect(await enhance(mintApiKey(randomBytes).key, from)).toBe(429)
  const malformed = fromAnotherIp()
  for (let count = 0; count < 5; count++) expect(await enhance('gw_live_malformed', malformed)).toBe(401)
  expect(await enhance('gw_live_malformed', malformed)).toBe(429)
})
