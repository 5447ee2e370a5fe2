import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createKeyDirectory } from '../../src/console/keys/stores/keys.ts'
import { mintApiKey } from '../../src/core/accounts/api-keys.ts'
import { plans } from '../../src/core/limits/plans.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { type Database, isRowFault, isUnavailable, migrate, openDatabase } from '../../src/database/database.ts'
import { getStatements, type Statements } from '../../src/database/transact.ts'
import { openJournal } from '../../src/ledger/journal.ts'
import { getDailyUsage } from '../../src/ledger/ledger.ts'
import { createShipper, storeRecords } from '../../src/ledger/shipper.ts'
import { run } from '../../src/ledger/store-usage.ts'
import { startProxy } from '../faults/tcp-proxy.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'
import { databaseContract, newAccount, newKey, quiet } from './database.contract.ts'
import { temporaryFolder, toTexts, usageRecord } from './support.ts'

let server: PrivatePostgres | null = null
let database: Database | null = null

beforeAll(async () => {
  server = await startPostgres()
  if (server === null) return
  database = openDatabase(server.url, patientStore)
  await migrate(database)
}, 240_000)
afterAll(async () => {
  await database?.close()
  await server?.stop()
}, 240_000)

databaseContract('real Postgres', () => database)

const random = (count: number) => crypto.getRandomValues(new Uint8Array(count))
const clock = { now: () => Date.now() }

function onServer(title: string, body: (server: PrivatePostgres, database: Database) => Promise<void>) {
  testNeeding('postgres', title, () => body(needed(server), needed(database)), 60_000)
}

onServer(
  'Postgres 40 ms away: eighty cold keys at once are all found, and a late query fails alone',
  async (postgres, near) => {
    const far = new URL(postgres.url)
    const proxy = startProxy(Number(far.port), { roundTripMs: 40 })
    far.port = String(proxy.port)
    const remote = openDatabase(far.href, patientStore)
    const owner = await newAccount(near)
    const made = []
    for (let count = 0; count < 80; count++) made.push(await newKey(near, owner))
    const keys = createKeyDirectory({ database: remote, clock, plans, random: Math.random })
    await keys.look()
    const late = remote.run(({ sql }) => sql`select pg_sleep(30)`, 20)
    const [failed, ...found] = await Promise.all([
      late.then(
        () => 'answered',
        (cause: unknown) => (cause instanceof GatewayError ? cause.code : 'another failure'),
      ),
      ...made.map(({ key }) => keys.find(key)),
    ])
    expect(failed).toBe('service_unavailable')
    expect(found.map(caller => caller?.accountId)).toEqual(Array(80).fill(owner.accountId))
    await keys.close()
    await remote.close()
    proxy.stop()
  },
)

onServer(
  'Postgres killed: known keys go on, unknown ones get 503, usage waits and arrives exactly',
  async (postgres, near) => {
    const live = openDatabase(postgres.url)
    const folder = temporaryFolder()
    const owner = await newAccount(near)
    const { key } = await newKey(near, owner)
    const keys = createKeyDirectory({ database: live, clock, plans, random: Math.random })
    await keys.find(key)
    const journal = openJournal({ directory: join(folder.path, 'journal') })
    const shipper = createShipper({ journal, database: live, clock, log: quiet })
    const append = (index: number) =>
      journal.append(usageRecord({ request_id: `${owner.accountId}_${index}`, account_id: owner.accountId }))
    append(1)
    await postgres.crash()
    append(2)
    expect(keys.find(key)).toMatchObject({ accountId: owner.accountId })
    await expect(Promise.resolve(keys.find(mintApiKey(random).key))).rejects.toMatchObject({
      code: 'service_unavailable',
    })
    expect(await shipper.drain(500)).toBe(false)
    await postgres.start()
    await eventually(() => journal.backlog() === 0, 10_000)
    expect((await getDailyUsage(near, owner.accountId, Math.floor(usageRecord().at_ms / 86_400_000))).microcents).toBe(
      60,
    )
    await shipper.close()
    await keys.close()
    await journal.close()
    await live.close()
    folder.remove()
  },
)

test.each([
  ['22P05', 'row'],
  ['23514', 'row'],
  ['40P01', 'statement'],
  ['42601', 'statement'],
  ['P0001', 'statement'],
  ['UNDEFINED_VALUE', 'statement'],
  ['25006', 'store'],
  ['28P01', 'store'],
  ['53300', 'store'],
  ['55P03', 'store'],
  ['57014', 'store'],
  ['58030', 'store'],
  ['XX001', 'store'],
  ['99999', 'store'],
  ['CONNECTION_CLOSED', 'store'],
  ['EAI_AGAIN', 'store'],
  ['EMFILE', 'store'],
  ['CERT_HAS_EXPIRED', 'store'],
  ['a code of a later release', 'store'],
])('error %s of Postgres or its driver: blames the %s', (code, blamed) => {
  const error = new Error('wrapped', { cause: Object.assign(new Error('inner'), { code }) })
  expect([isRowFault(error), isUnavailable(error)]).toEqual([blamed === 'row', blamed === 'store'])
})

test('isUnavailable: returns false for an error of this program', () => {
  for (const error of [new GatewayError('conflict', 'x'), new TypeError('x'), 'x'])
    expect(isUnavailable(error)).toBe(false)
})

onServer('shipper: keeps all records while Postgres is read-only', async (postgres, live) => {
  const admin = openDatabase(postgres.url, { connections: 1, ...patientStore })
  const { accountId } = await newAccount(live)
  const folder = temporaryFolder()
  const journal = openJournal({ directory: join(folder.path, 'journal') })
  const failures: string[] = []
  const warn = (_event: string, { detail }: { detail?: unknown } = {}) => void failures.push(String(detail))
  const shipper = createShipper({ journal, database: live, clock, log: { ...quiet, warn } })
  const setReadOnly = (value: string) =>
    admin.run(async ({ sql }) => {
      await sql.unsafe('set default_transaction_read_only = off')
      await sql.unsafe(`alter system set default_transaction_read_only = ${value}`)
      await sql`select pg_reload_conf(), pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()`
    }, 10_000)
  await setReadOnly('on')
  try {
    for (let index = 0; index < 3; index++)
      journal.append(usageRecord({ request_id: `${accountId}_${index}`, account_id: accountId }))
    await eventually(() => failures.some(detail => detail.includes('25006')), 10_000)
    expect([journal.backlog(), journal.aside()]).toEqual([3, 0])
  } finally {
    await setReadOnly('off')
  }
  expect(await shipper.drain(20_000)).toBe(true)
  const { microcents } = await getDailyUsage(live, accountId, Math.floor(usageRecord().at_ms / 86_400_000))
  expect(microcents).toBe(90)
  await shipper.close()
  await journal.close()
  await admin.close()
  folder.remove()
})

onServer(
  'Postgres frozen: every call ends within its deadline, and it is served again after the thaw',
  async postgres => {
    const live = openDatabase(postgres.url)
    await live.run(({ sql }) => sql`select 1`)
    const pids = postgres.pids()
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    try {
      // While it is frozen, only a deadline of ours can end a call.
      for (let round = 0; round < 3; round++)
        await expect(live.run(({ sql }) => sql`select 1`)).rejects.toMatchObject({ code: 'service_unavailable' })
    } finally {
      for (const pid of pids) process.kill(pid, 'SIGCONT')
    }
    const thawedAt = performance.now()
    await eventually(
      () =>
        live
          .run(({ sql }) => sql`select 1`)
          .then(
            () => true,
            () => false,
          ),
      240_000,
    )
    process.stdout.write(`served again ${Math.round(performance.now() - thawedAt)} ms after the thaw\n`)
    await live.close()
  },
)

onServer('database: fails a late query alone while others are answered', async (_, live) => {
  const others = Array.from({ length: 6 }, () => live.run(({ sql }) => sql`select pg_sleep(0.6)`, 20_000))
  await expect(live.run(({ sql }) => sql`select pg_sleep(30)`, 5)).rejects.toMatchObject({
    code: 'service_unavailable',
  })
  // A second query after a silence: the six are running, and none of them is late.
  await expect(live.run(({ sql }) => sql`select pg_sleep(30)`, 10)).rejects.toMatchObject({
    code: 'service_unavailable',
  })
  expect((await Promise.allSettled(others)).filter(({ status }) => status === 'rejected')).toEqual([])
  expect(await live.run(({ sql }) => sql`select 1 as one`)).toMatchObject([{ one: 1 }])
})

onServer('database: answers more queries at once than it has connections', async (_, live) => {
  const many = Array.from({ length: 300 }, () => live.run(({ sql }) => sql`select pg_sleep(0.001)`, 10_000))
  expect((await Promise.allSettled(many)).filter(({ status }) => status === 'rejected')).toEqual([])
})

onServer('a long transaction makes the migrator give up rather than queue', async (_, live) => {
  const [isLocked, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const blocker = live.run(
    ({ sql }) =>
      sql.begin(async transaction => {
        await transaction`lock table drizzle.__drizzle_migrations in access exclusive mode`
        isLocked.resolve()
        await mayEnd.promise
      }),
    240_000,
  )
  await Promise.race([isLocked.promise, blocker])
  await expect(migrate(live)).rejects.toThrow()
  mayEnd.resolve()
  await blocker
})

/** Resolves when a backend waits for a lock that another one has. */
const someoneWaits = (live: Database) =>
  eventually(async () => {
    const [row] = await live.run(
      ({ sql }) => sql<{ waiting: number }[]>`
        select count(*)::int as waiting from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0`,
    )
    return (row?.waiting ?? 0) > 0
  }, 60_000)

onServer(
  'ledger: two gateways with the same keys in another order wait for each other in one direction',
  async (_, live) => {
    const owner = await newAccount(live)
    const [first, second] = [(await newKey(live, owner)).keyId, (await newKey(live, owner)).keyId]
    const owned = (request_id: string, key_id: string) => ({ request_id, key_id, account_id: owner.accountId })
    const batches = [
      [
        { ...owned('a1', first), metadata: { a: 'b' } },
        { ...owned('a2', second), shortfall_microcents: 3 },
      ],
      [
        { ...owned('b1', second), metadata: { a: 'b' } },
        { ...owned('b2', first), shortfall_microcents: 3 },
      ],
    ].map(batch => JSON.stringify({ records: batch.map(usageRecord), isNew: true }))
    const bothAsked = Promise.withResolvers<void>()
    let asked = 0
    const stored = batches.map(input =>
      live.run(
        ({ sql }) =>
          sql.begin(async step => {
            const statements = getStatements(step, true)
            let isFirst = true
            const query: Statements['query'] = async (...words) => {
              const rows = await statements.query(...words)
              if (isFirst) {
                isFirst = false
                if (++asked === 2) bothAsked.resolve()
                await Promise.race([bothAsked.promise, someoneWaits(live)])
              }
              return rows as never
            }
            return run({ ...statements, query }, input)
          }),
        60_000,
      ),
    )
    expect(await Promise.all(stored)).toEqual(['[]', '[]'])
  },
)

onServer('ledger: has a batch once whose connection is killed within the COPY', async (_, live) => {
  const { accountId } = await newAccount(live)
  const batch = Array.from({ length: 500 }, (_, index) =>
    usageRecord({ request_id: `${accountId}_${index}`, account_id: accountId }),
  )
  const [isInserted, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const blocker = live.run(
    ({ sql }) =>
      sql.begin(async step => {
        await run(getStatements(step), JSON.stringify({ records: batch.slice(0, 1), isNew: true }))
        isInserted.resolve()
        await mayEnd.promise
      }),
    240_000,
  )
  await Promise.race([isInserted.promise, blocker])
  const stored = storeRecords(live, toTexts(batch))
  stored.catch(() => {})
  await someoneWaits(live)
  const killed = await live.run(
    ({ sql }) => sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where cardinality(pg_blocking_pids(pid)) > 0 and query ilike 'copy usage_records%'`,
  )
  expect(killed).toHaveLength(1)
  await expect(stored).rejects.toMatchObject({ code: 'service_unavailable' })
  mayEnd.resolve()
  await blocker
  // Two gateways repeat it at once; the ledger has a part of it.
  await Promise.all([storeRecords(live, toTexts(batch)), storeRecords(live, toTexts(batch.toReversed()))])
  const [found] = await live.run(
    ({ sql }) => sql`
      select
        (select count(*)::int from usage_records where account_id = ${accountId}) as rows,
        (select sum(requests)::int from usage_daily where account_id = ${accountId}) as requests,
        (select sum(billed_microcents)::int from usage_daily where account_id = ${accountId}) as microcents`,
  )
  expect(found).toEqual({ rows: 500, requests: 500, microcents: 500 * 30 })
})
