import { afterAll, expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCleanups } from '../../src/composition/cleanup.ts'
import { systemClock } from '../../src/composition/clock.ts'
import { openStores } from '../../src/composition/open-stores.ts'
import { readConfig } from '../../src/config.ts'
import { openDatabase } from '../../src/database/database.ts'
import { realDatabase } from '../harness/database.ts'
import { testNeeding } from '../harness/needs.ts'

const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-stores-'))
const undo: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
afterAll(() => runCleanups(undo))

testNeeding(
  'postgres',
  'openStores: starts urgent queries beside others that hold their connections and wait for more',
  async () => {
    const own = await realDatabase()
    if (own === null) throw new Error('no Postgres')
    undo.push(() => own.drop())
    const environment = { DATABASE_URL: own.url, GATEWAY_DATA_DIR: folder, JWT_SECRET: 'x'.repeat(32) }
    const parts = {
      log: { debug() {}, info() {}, warn() {}, error() {} },
      clock: systemClock,
      databaseDeadlineMs: 60_000,
    }
    const { database, migrated } = await openStores(readConfig(environment), parts, undo)
    await migrated
    const holder = openDatabase(own.url, { connections: 1, deadlineMs: 60_000 })
    undo.push(() => holder.close())
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
