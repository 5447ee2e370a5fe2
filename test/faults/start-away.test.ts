/** Starts while a store is unavailable: the gateway is ready in time, reports missing functions, and recovers. */

import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:net'
import { mintApiKey } from '../../src/core/accounts/api-keys.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, reportSkipped, testNeeding } from '../harness/needs.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'
import { dataFolder, freshFolder, type GatewayProcess, run, startProcess, stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'
import { freshKey } from './accounts.ts'

// Every test is processes that start and end.
setDefaultTimeout(240_000)

const stores = await Promise.all([startPostgres(), startRedis()])
const [postgres, redis] = stores
const secret = 'a secret of the tests, long enough to be taken'
const unknownKey = mintApiKey(randomBytes).key

afterAll(async () => {
  await stopProcesses()
  await Promise.all(stores.map(store => store?.stop()))
})

if (postgres === null) reportSkipped('postgres', 'a start while Postgres is away')
else withPostgres(postgres)

function withPostgres(postgres: PrivatePostgres): void {
  const environment = { DATABASE_URL: postgres.url, JWT_SECRET: secret }

  describe('Postgres at startup', () => {
    test('unavailable without tables: probes and models answer within 2 s, others get 503; all work within 2 s after it returns', async () => {
      await postgres.crash()
      const gateway = await startProcess(dataFolder(), environment)
      await answersWithoutPostgres(gateway)
      expect(gateway.output()).toContain('storage     Postgres (unreachable: the gateway waits for it)\n')
      expect(gateway.output()).not.toContain('"event":"ready"')
      await postgres.start()
      const backInMs = await ready(gateway)
      await eventually(() => gateway.output().includes('"event":"ready"'))
      expect(gateway.output()).toMatch(/"event":"account_missing","detail":"[^"]*accounts create <email> --plan usage"/)
      process.stdout.write(
        `started without Postgres in ${gateway.startedInMs} ms, ready ${backInMs} ms after it was there\n`,
      )
      const key = await freshKey(postgres.url)
      expect((await gateway.chat(key, 'hello')).status).toBe(200)
      gateway.kill('SIGTERM')
      expect(await gateway.exited).toBe(0)
    })

    test('frozen: behaves the same, and a known key is valid again within 2 s after it resumes', async () => {
      const key = await freshKey(postgres.url)
      const pids = postgres.pids()
      const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
        for (const pid of pids) tell(pid, name)
      }
      signal('SIGSTOP')
      try {
        const gateway = await startProcess(dataFolder(), environment)
        await answersWithoutPostgres(gateway)
        expect((await gateway.chat(key, 'hello')).status).toBe(503)
        signal('SIGCONT')
        const backInMs = await ready(gateway)
        process.stdout.write(
          `started beside a frozen Postgres in ${gateway.startedInMs} ms, ready ${backInMs} ms later\n`,
        )
        expect((await gateway.chat(key, 'hello')).status).toBe(200)
      } finally {
        signal('SIGCONT')
      }
    })

    test('unavailable: ends cleanly at SIGTERM', async () => {
      await postgres.crash()
      const gateway = await startProcess(dataFolder(), environment)
      gateway.kill('SIGTERM')
      expect(await gateway.exited).toBe(0)
      await postgres.start()
    })

    test('rejecting: prevents the start with its own error text', async () => {
      const url = postgres.url.replace(/postgres$/, 'no_such_database')
      const { code, stderr } = await run('main.ts', [], {
        PORT: '0',
        GATEWAY_DATA_DIR: dataFolder(),
        DATABASE_URL: url,
        JWT_SECRET: secret,
      })
      expect(code).toBe(1)
      expect(stderr).toStartWith('gateway-ai cannot start: DATABASE_URL: Postgres at ')
      expect(stderr).toContain('database "no_such_database" does not exist. Create the database, or correct its name.')
    })
  })
}

describe('Redis at startup', () => {
  testNeeding(
    'redis',
    'away: rejects requests with 503, since it holds no allowance, and serves when Redis is there',
    async () => {
      const server = needed(redis)
      await server.crash()
      const gateway = await startProcess(await freshFolder(), { REDIS_URL: server.url })
      const key = /API key +(gw_live_\w+)/.exec(gateway.output())?.[1] ?? ''
      await rejectsInTime(gateway, key)
      await server.start()
      const since = performance.now()
      while (!String(await server.command('KEYS', '*')).includes('acc_')) {
        expect([200, 503]).toContain((await gateway.chat(key, 'hello')).status)
        if (performance.now() - since > 30_000) throw new Error('never on Redis again')
        await Bun.sleep(100)
      }
      const backInMs = Math.round(performance.now() - since)
      process.stdout.write(`on Redis ${backInMs} ms after it was there\n`)
      expect((await gateway.chat(key, 'hello')).status).toBe(200)
    },
  )

  test('connected but silent: delays the start by at most 3 s', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    const address = silent.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const gateway = await startProcess(await freshFolder(), {
      REDIS_URL: `redis://:canary@127.0.0.1:${port}`,
      // Its deadline is the object of this test.
      MINIMUM_DEADLINE_MS: '0',
    })
    await rejectsInTime(gateway, /API key +(gw_live_\w+)/.exec(gateway.output())?.[1] ?? '')
    const told = () => gateway.output().match(/"event":"redis_unavailable","detail":"REDIS_URL: /g)
    await eventually(() => told() !== null)
    // It retries every second, and is not logged again.
    await Bun.sleep(1_200)
    expect(told()).toHaveLength(1)
    expect(gateway.output()).not.toContain('canary')
    gateway.kill('SIGTERM')
    expect(await gateway.exited).toBe(0)
    silent.close()
  })

  /**
   * The gateway's own measurement: creating the embedded database at the first start takes longer than everything else.
   */
  async function rejectsInTime(gateway: GatewayProcess, key: string): Promise<void> {
    const response = await gateway.chat(key, 'hello')
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200)
  }
})

/** A backend of the server may have ended meanwhile. */
function tell(pid: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
  try {
    process.kill(pid, signal)
  } catch (cause) {
    if (!String(cause).includes('ESRCH')) throw cause
  }
}

async function answersWithoutPostgres(gateway: GatewayProcess): Promise<void> {
  const get = (path: string) => fetch(gateway.url + path)
  expect((await get('/healthz')).status).toBe(200)
  expect((await get('/readyz')).status).toBe(503)
  expect((await get('/v1/models')).status).toBe(200)
  expect(((await (await get('/api/v1/models')).json()) as { data: unknown[] }).data.length).toBeGreaterThan(10)
  const refusals = await Promise.all([
    gateway.chat(unknownKey, 'hello'),
    post('/api/v1/auth/login', { email: 'a@example.com', password: 'a long enough password' }),
    post('/api/v1/auth/register', { email: 'a@example.com', password: 'a long enough password 7', name: 'A' }),
  ])
  for (const refusal of refusals) {
    expect(refusal.status).toBe(503)
    expect(Number(refusal.headers.get('retry-after'))).toBeLessThanOrEqual(1)
    expect(await refusal.json()).toMatchObject({ error: { code: 'service_unavailable' } })
  }
  function post(path: string, body: object) {
    return fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  }
}

/** Returns the time until it reports readiness. */
async function ready(gateway: GatewayProcess): Promise<number> {
  for (const since = performance.now(); ; await Bun.sleep(100)) {
    if ((await fetch(`${gateway.url}/readyz`)).status === 200) return Math.round(performance.now() - since)
    if (performance.now() - since > 30_000) throw new Error('never ready')
  }
}
