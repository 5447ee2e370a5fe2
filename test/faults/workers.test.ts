/**
 * Several processes on one port, with Postgres or the embedded database, and the supervisor as an operator starts it.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { type Database, openDatabase } from '../../src/database/database.ts'
import { connectEmbedded } from '../../src/database/embedded.ts'
import { newAccountOn } from '../harness/account.ts'
import { eventually } from '../harness/eventually.ts'
import type { GatewayLimits } from '../harness/gateway.ts'
import { reportSkipped } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'
import { dataFolder, freshFolder, type GatewayProcess, run, startProcess, stopProcesses } from '../harness/processes.ts'
import { scrape } from '../harness/prometheus.ts'
import { type PrivateRedis, startRedis } from '../harness/redis.ts'
import { anyPause, startCallers } from './kept-callers.ts'

// Every test is processes that start and end.
setDefaultTimeout(240_000)

const stores = await Promise.all([startPostgres(), startRedis()])
const [postgres, redis] = stores

if (postgres === null || redis === null) reportSkipped(['postgres', 'redis'], 'two workers on Postgres and Redis')
else withStores(postgres, redis)
if (redis === null) reportSkipped('redis', 'two workers on an embedded database')
else withEmbeddedDatabase({ REDIS_URL: redis.url, WORKERS: '2', DRAIN_NOTICE_MS: '2500' })

test('WORKERS: refuses a start without REDIS_URL and names the setting', async () => {
  const { code, stderr } = await run('main.ts', [], { WORKERS: '2', PORT: '0', GATEWAY_DATA_DIR: dataFolder() })
  expect(code).toBe(1)
  expect(stderr).toContain('WORKERS: 2 processes share limits in Redis; set REDIS_URL, or WORKERS=1')
})

afterAll(async () => {
  await stopProcesses()
  await Promise.all(stores.map(store => store?.stop()))
})

function withStores(postgres: PrivatePostgres, redis: PrivateRedis): void {
  const environment = {
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    JWT_SECRET: 'a secret of the tests, long enough to be taken',
    WORKERS: '2',
  }
  const folder = dataFolder()
  let gateway: GatewayProcess
  let database: Database

  beforeAll(async () => {
    gateway = await startProcess(folder, environment)
    database = openDatabase(postgres.url, { connections: 1, ...patientStore })
    // The first worker starts before the others, and each needs a moment to find the limits in Redis.
    const shares = async () => {
      const { values } = scrape(await (await fetch(`${gateway.url}/metrics`)).text())
      return [1, 2].map(worker => values.get(`gateway_limits_in_redis_ratio{worker="${worker}"}`))
    }
    await eventually(async () => (await shares()).every(share => share === 1), 90_000)
  }, 240_000)
  afterAll(() => database.close())

  /** Returns the key of a new account with these limits. */
  const keyWith = async (limits: GatewayLimits): Promise<string> => (await newAccountOn(database, limits)).key

  const ledger = (ids: readonly string[]) =>
    database.run(
      ({ sql }) => sql<{ requestId: string; status: string; outputTokens: number }[]>`
        select request_id as "requestId", status, output_tokens::int as "outputTokens"
        from usage_records where request_id in ${sql(ids)}`,
    )

  describe('two workers', () => {
    test('answer on one port, each with its own folder, and print one startup message', async () => {
      expect(getWorkers(gateway.pid)).toHaveLength(2)
      const before = getWorkers(gateway.pid).map(openSockets)
      // The first worker prints the message before the others listen: they join shortly after.
      let grown: number[] = []
      for (let tries = 0; tries < 40 && !(grown.length > 1 && grown.every(count => count > 4)); tries++) {
        if (tries > 0) await Bun.sleep(100)
        const sockets = await Promise.all(Array.from({ length: 40 }, () => knock(gateway)))
        grown = getWorkers(gateway.pid).map((pid, index) => openSockets(pid) - (before[index] ?? 0))
        for (const socket of sockets) socket.destroy()
      }
      process.stdout.write(`40 connections went ${grown.join(' and ')}\n`)
      expect(grown[0]).toBeGreaterThan(4)
      expect(grown[1]).toBeGreaterThan(4)
      expect(['worker-1', 'worker-2'].map(name => existsSync(join(folder, name, 'journal')))).toEqual([true, true])
      expect(gateway.output().match(/listening/g)).toHaveLength(1)
    })

    test('appear both in every scrape, each with its own figures', async () => {
      for (let tries = 0; tries < 8; tries++) {
        const { values, types } = scrape(await (await fetch(`${gateway.url}/metrics`)).text())
        expect(types.get('gateway_requests_total')).toBe('counter')
        for (const worker of [1, 2]) expect(values.get(`gateway_ready{worker="${worker}"}`)).toBe(1)
      }
    })

    test('share an account’s requests per minute and concurrent requests: each is granted once', async () => {
      const [minute, reservations] = await Promise.all([
        keyWith({ requestsPerMinute: 20, concurrentRequests: 100 }),
        keyWith({ requestsPerMinute: 1_000, concurrentRequests: 3 }),
      ])
      const asked = await Promise.all(Array.from({ length: 60 }, () => send(gateway, minute, 'hello')))
      expect(counted(asked.map(({ status }) => status))).toEqual({ 200: 20, 429: 40 })
      await Promise.all(asked.map(answer => answer.text()))
      const streams = await Promise.all(
        Array.from({ length: 16 }, () => send(gateway, reservations, endless, { stream: true })),
      )
      expect(counted(streams.map(({ status }) => status))).toEqual({ 200: 3, 429: 13 })
      await Promise.all(streams.map(answer => answer.body?.cancel()))
    })

    test('reject a second start on the same folder, and one on the same port', async () => {
      const port = new URL(gateway.url).port
      const again = await run('main.ts', [], { ...environment, PORT: '0', GATEWAY_DATA_DIR: folder })
      expect(again.code).toBe(1)
      expect(again.stderr).toContain(`is in use by process ${gateway.pid}`)
      const beside = await run('main.ts', [], { ...environment, PORT: port, GATEWAY_DATA_DIR: dataFolder() })
      expect(beside.code).toBe(1)
      expect(beside.stderr).toContain(`127.0.0.1:${port} is in use`)
    })

    test('end every stream complete after SIGTERM, with exit code 0 and no remaining process', async () => {
      const key = await keyWith({ requestsPerMinute: 1_000, concurrentRequests: 100 })
      const paced = '[[sim:tokens=60, chunk=8, pace_ms=50]] tell me'
      const streams = await Promise.all(Array.from({ length: 8 }, () => send(gateway, key, paced, { stream: true })))
      const workers = getWorkers(gateway.pid)
      gateway.kill('SIGTERM')
      const ends = await Promise.all(streams.map(answer => answer.text().then(isWhole, () => false)))
      expect(counted(ends)).toEqual({ true: 8 })
      expect(await gateway.exited).toBe(0)
      expect(workers.filter(pid => existsSync(`/proc/${pid}`))).toEqual([])
      expect(await ledger(streams.map(answer => answer.headers.get('x-request-id') ?? ''))).toHaveLength(8)
    })
  })
}

function withEmbeddedDatabase(environment: Readonly<Record<string, string>>): void {
  describe('two workers on an embedded database', () => {
    const roomy = { requestsPerMinute: 100_000, dailyTokens: 1_000_000_000, dailyCostMicrocents: 1_000_000_000_000 }
    let folder = ''
    let gateway: GatewayProcess
    let database: Database

    const openOwn = async () => {
      const { address } = await connectEmbedded(folder)
      database = openDatabase(address, { connections: 1, ...patientStore })
    }
    const keyWith = async (limits: GatewayLimits): Promise<string> => (await newAccountOn(database, limits)).key
    const outputTokens = async (ids: readonly string[]) => {
      const rows = await database.run(
        ({ sql }) => sql<{ id: string; status: string; tokens: number }[]>`
        select request_id as id, status, output_tokens::int as tokens from usage_records where request_id in ${sql(ids)}`,
      )
      return new Map(rows.map(({ id, ...row }) => [id, row]))
    }

    beforeAll(async () => {
      folder = await freshFolder()
      gateway = await startProcess(folder, environment)
      await eventually(() => gateway.output().includes('"event":"workers_ready"'), 60_000)
      await openOwn()
    }, 240_000)
    afterAll(() => database.close())

    test('share the embedded database and its first account', async () => {
      const key = /API key +(gw_live_\w+)/.exec(gateway.output())?.[1] ?? ''
      const answers = await Promise.all(Array.from({ length: 5 }, () => send(gateway, key, 'hello')))
      expect(counted(answers.map(({ status }) => status))).toEqual({ 200: 5 })
    })

    test('share all four limits of an account: the last unit of each is granted once', async () => {
      const [minute, reservations, tokens, cost] = await Promise.all([
        keyWith({ ...roomy, requestsPerMinute: 10, concurrentRequests: 100 }),
        keyWith({ ...roomy, concurrentRequests: 3 }),
        keyWith({ ...roomy, concurrentRequests: 100, dailyTokens: 2_000 }),
        keyWith({ ...roomy, concurrentRequests: 100, dailyCostMicrocents: 20_000 }),
      ])
      const race = async (key: string, count: number) => {
        const all = await Promise.all(
          Array.from({ length: count }, () => send(gateway, key, endless, { stream: true })),
        )
        await Promise.all(all.map(answer => answer.body?.cancel()))
        return counted(all.map(({ status }) => status))
      }
      expect(await race(minute, 16)).toEqual({ 200: 10, 429: 6 })
      expect(await race(reservations, 8)).toEqual({ 200: 3, 429: 5 })
      for (const key of [tokens, cost]) {
        const { 429: refused = 0, ...rest } = await race(key, 8)
        expect(Object.keys(rest)).toEqual(['200'])
        expect(refused).toBeGreaterThan(0)
      }
      const [over] = await database.run(
        ({ sql }) => sql<{ count: number }[]>`
        select count(*)::int as count from accounts where daily_tokens = 2000 and exists (
          select from usage_daily where account_id = accounts.id group by account_id having sum(input_tokens + output_tokens) > 2000)
        or daily_cost_microcents = 20000 and exists (
          select from usage_daily where account_id = accounts.id group by account_id having sum(billed_microcents) > 20000)`,
      )
      expect(over?.count).toBe(0)
    })

    test('replace a killed one, settle its open requests and release their reservations', async () => {
      const key = await keyWith({ ...roomy, concurrentRequests: 8 })
      const paced = '[[sim:tokens=120, chunk=8, pace_ms=100]] tell me'
      const streams = await Promise.all(Array.from({ length: 8 }, () => send(gateway, key, paced, { stream: true })))
      const ids = streams.map(answer => answer.headers.get('x-request-id') ?? '')
      const ends = Promise.all(streams.map(answer => answer.text().then(isWhole, () => false)))
      // The first checkpoint of a request precedes its output.
      await eventually(() => ids.every(id => hasOutput(folder, id)), 30_000)
      const workers = getWorkers(gateway.pid)
      const [first = 0] = workers
      process.kill(first, 'SIGKILL')
      // A connection in the queue of the dying worker is reset with it.
      await eventually(async () => (await send(gateway, key, 'hello').catch(() => null))?.status === 200, 60_000)
      const whole = (await ends).filter(Boolean).length
      await eventually(async () => (await outputTokens(ids)).size === 8, 60_000)
      const rows = [...(await outputTokens(ids)).values()]
      expect(rows.filter(({ status }) => status === 'completed')).toHaveLength(whole)
      expect(rows.every(({ tokens }) => tokens > 0)).toBe(true)
      await eventually(() => getWorkers(gateway.pid).filter(pid => !workers.includes(pid)).length === 1, 60_000)
    })

    test('restart one after another on SIGUSR2 without a truncated or rejected request on a kept connection', async () => {
      const key = await keyWith({ ...roomy, concurrentRequests: 100 })
      await eventually(async () => (await readyOnes(gateway)) === 2, 60_000)
      const before = getWorkers(gateway.pid)
      const callers = startCallers({ url: gateway.url, key, callers: 4, pauseMs: anyPause(150) })
      process.kill(gateway.pid, 'SIGUSR2')
      await eventually(() => gateway.output().includes('"event":"workers_replaced"'), 120_000)
      const { answered, failed } = await callers.stop()
      expect(failed).toEqual({})
      expect(answered).toBeGreaterThan(20)
      expect(getWorkers(gateway.pid).filter(pid => before.includes(pid))).toEqual([])
    })

    test('reload the credentials in every worker on SIGHUP, and keep running', async () => {
      await eventually(async () => (await readyOnes(gateway)) === 2, 60_000)
      const before = getWorkers(gateway.pid)
      const reloads = () => gateway.output().split('"event":"config_reloaded"').length - 1
      process.kill(gateway.pid, 'SIGHUP')
      await eventually(() => reloads() === 2, 60_000)
      expect(getWorkers(gateway.pid)).toEqual(before)
    })

    test('stop when their supervisor is killed, and the next start ships their open requests, also with one process', async () => {
      const key = await keyWith({ ...roomy, concurrentRequests: 100 })
      const paced = '[[sim:tokens=60, chunk=8, pace_ms=100]] tell me'
      const streams = await Promise.all(Array.from({ length: 4 }, () => send(gateway, key, paced, { stream: true })))
      const workers = getWorkers(gateway.pid)
      gateway.kill('SIGKILL')
      const texts = Promise.all(streams.map(answer => answer.text().catch(() => '')))
      await gateway.exited
      await database.close()
      await eventually(() => !workers.some(pid => existsSync(`/proc/${pid}`)), 30_000)
      const billed = (await texts).map(text =>
        Number(/"output_tokens":(\d+)/.exec(text.slice(text.lastIndexOf('data: ')))?.[1]),
      )
      expect((await texts).every(isWhole)).toBe(true)
      gateway = await startProcess(folder, { PORT: new URL(gateway.url).port })
      await openOwn()
      const ids = streams.map(answer => answer.headers.get('x-request-id') ?? '')
      await eventually(async () => (await outputTokens(ids)).size === 4, 60_000)
      const rows = await outputTokens(ids)
      expect(ids.map(id => rows.get(id)?.tokens)).toEqual(billed)
      gateway.kill('SIGTERM')
      expect(await gateway.exited).toBe(0)
    })
  })
}

/** Runs until its test cancels it: a stream that ends early releases its reservation for the next request. */
const endless = '[[sim:tokens=400, chunk=8, pace_ms=200]] tell me'

/** Returns whether a checkpoint below a data folder has output of the request. */
function hasOutput(folder: string, id: string): boolean {
  const paths = [...new Bun.Glob('**/journal/open-requests').scanSync({ cwd: folder, absolute: true })]
  const lines = paths.flatMap(path => readFileSync(path, 'utf8').split('\n'))
  return lines.some(line => line.includes(id) && /"output_tokens":[1-9]/.test(line))
}

async function readyOnes(gateway: GatewayProcess): Promise<number> {
  const { values } = scrape(await (await fetch(`${gateway.url}/metrics`)).text())
  return [1, 2].filter(worker => values.get(`gateway_ready{worker="${worker}"}`) === 1).length
}

/** Uses its own connection, so that the kernel chooses the worker. */
function send(gateway: GatewayProcess, key: string, prompt: string, fields: object = {}): Promise<Response> {
  return fetch(`${gateway.url}/api/v1/chat`, {
    method: 'POST',
    keepalive: false,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ model: 'gateway-ai', prompt, max_output_tokens: 500, ...fields }),
  })
}

const isWhole = (text: string) => text.includes('"type":"done"')

function counted(values: readonly (number | boolean)[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[String(value)] = (counts[String(value)] ?? 0) + 1
  return counts
}

/** A connection with a response that stays open. */
function knock(gateway: GatewayProcess): Promise<Socket> {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  return new Promise((done, fail) => {
    socket.once('error', fail)
    socket.once('data', () => done(socket))
    socket.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
  })
}

function getWorkers(parent: number): number[] {
  const tasks = readdirSync(`/proc/${parent}/task`)
  return tasks.flatMap(task =>
    readFileSync(`/proc/${parent}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
}

function openSockets(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).filter(name => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${name}`).startsWith('socket:')
    } catch {
      return false
    }
  }).length
}
