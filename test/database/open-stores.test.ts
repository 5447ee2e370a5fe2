import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../src/config/config.ts'
import { systemClock } from '../../src/database/clock.ts'
import { openDatabase } from '../../src/database/database.ts'
import { openStores } from '../../src/database/open-stores.ts'
import { startProxy } from '../faults/tcp-proxy.ts'
import { realDatabase } from '../harness/database.ts'
import { untilFound } from '../harness/eventually.ts'
import { freePort } from '../harness/free-port.ts'
import { startGateway } from '../harness/gateway.ts'
import { testNeeding } from '../harness/needs.ts'

const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-stores-'))
const undo = new AsyncDisposableStack()
undo.defer(() => rmSync(folder, { recursive: true, force: true }))
afterAll(() => undo.disposeAsync())

testNeeding(
  'postgres',
  'openStores: starts urgent queries beside others that hold their connections and wait for more',
  async () => {
    const own = await realDatabase()
    if (own === null) throw new Error('no Postgres')
    undo.defer(() => own.drop())
    const environment = { DATABASE_URL: own.url, GATEWAY_DATA_DIR: folder, JWT_SECRET: 'x'.repeat(32) }
    const parts = {
      log: { debug() {}, info() {}, warn() {}, error() {} },
      clock: systemClock,
      databaseDeadlineMs: 60_000,
    }
    const { database, migrated } = await openStores(readConfig(environment), parts, undo)
    await migrated
    const holder = openDatabase(own.url, { connections: 1, deadlineMs: 60_000 })
    undo.defer(() => holder.close())
    const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const held = holder.run(({ sql }) =>
      sql.begin(async step => {
        await step`select pg_advisory_xact_lock(1)`
        locked.resolve()
        await released.promise
      }),
    )
    await locked.promise
    const blocked = Array.from({ length: 20 }, () =>
      database.run(({ sql }) => sql`select pg_advisory_xact_lock_shared(1)`),
    )
    try {
      expect([...(await database.run(({ sql }) => sql`select 1 as one`, undefined, true))]).toEqual([{ one: 1 }])
    } finally {
      released.resolve()
      await Promise.all([held, ...blocked])
    }
  },
  240_000,
)

testNeeding(
  'postgres',
  'openStores: starts without Postgres, rejects calls meanwhile, and migrates and serves when it is there',
  async () => {
    const own = await realDatabase()
    if (own === null) throw new Error('no Postgres')
    undo.defer(() => own.drop())
    const url = new URL(own.url)
    const port = freePort()
    url.port = String(port)
    const events: string[] = []
    const note = (event: string) => void events.push(event)
    const log = { debug() {}, info: note, warn: note, error: note }
    const away = join(folder, 'away')
    const environment = {
      DATABASE_URL: url.href,
      GATEWAY_DATA_DIR: away,
      JWT_SECRET: 'x'.repeat(32),
    }
    const { database, migrated } = await openStores(readConfig(environment), { log, clock: systemClock }, undo)
    const count = () => database.run(({ sql }) => sql`select count(*)::int as accounts from accounts`)
    await expect(count()).rejects.toMatchObject({ code: 'service_unavailable' })
    expect(events).toEqual(['postgres_unavailable'])
    const proxy = startProxy(Number(new URL(own.url).port), { at: port })
    undo.defer(() => proxy.stop())
    await migrated
    const rows = await untilFound(() => count().catch(() => null))
    expect([...rows]).toEqual([{ accounts: 0 }])
    expect(events.at(-1)).toBe('postgres_connected')
  },
  240_000,
)

test('gateway: starts and rejects requests with 503 while Redis is away at its start, and logs it once', async () => {
  const gateway = await startGateway({ REDIS_URL: 'redis://:canary@127.0.0.1:1' })
  undo.defer(() => gateway.stop())
  for (let count = 0; count < 2; count++)
    expect((await gateway.post('/api/v1/chat', { prompt: 'Hi' })).status).toBe(503)
  const lines = gateway.logLines.filter(line => line.includes('"event":"redis_unavailable"'))
  expect(lines).toHaveLength(1)
  expect(gateway.logLines.join('')).not.toContain('canary')
}, 240_000)
