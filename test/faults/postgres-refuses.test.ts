/**
 * A Postgres that answers and does not do its work: whatever its error is, no usage record leaves the queue, and after
 * the fault ledger and learning have all of them once.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres, { type Sql } from 'postgres'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { type Database, migrate, openDatabase } from '../../src/database/database.ts'
import { openJournal } from '../../src/ledger/journal.ts'
import { createShipper } from '../../src/ledger/shipper.ts'
import { newAccount, quiet } from '../database/database.contract.ts'
import { temporaryFolder, usageRecord } from '../database/support.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { startPostgres } from '../harness/postgres.ts'

setDefaultTimeout(120_000)

const server = await startPostgres({ connections: 30 })
const user = 'gateway'
let admin: Sql | null = null
let database: Database | null = null
let hba = { path: '', text: '' }

beforeAll(async () => {
  if (server === null) return
  admin = postgres(server.url, { max: 2, onnotice: () => {}, connection: { default_transaction_read_only: false } })
  await admin.unsafe(`create role ${user} login createrole`)
  await admin.unsafe(`alter database postgres owner to ${user}`)
  await admin.unsafe(`alter schema public owner to ${user}`)
  const [{ path } = { path: '' }] = await admin<{ path: string }[]>`select current_setting('hba_file') as path`
  hba = { path, text: readFileSync(path, 'utf8') }
  const url = new URL(server.url)
  url.username = user
  database = openDatabase(url.href)
  await migrate(database)
})
afterAll(async () => {
  await database?.close()
  await admin?.end({ timeout: 1 })
  await server?.stop()
})

const setting = async (name: string, value: string | null) => {
  await needed(admin).unsafe(value === null ? `alter system reset ${name}` : `alter system set ${name} = '${value}'`)
  await needed(admin)`select pg_reload_conf()`
  // Each session applies a new setting between two statements.
  await disconnect()
}
const disconnect = () => needed(admin)`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${user}`
const access = async (method: string | null) => {
  writeFileSync(hba.path, method === null ? hba.text : `host all ${user} all ${method}\n${hba.text}`)
  await needed(admin)`select pg_reload_conf()`
  await disconnect()
}
const unsafe = (statement: string) => async () => void (await needed(admin).unsafe(statement))

let unlock = () => {}
let locked: Promise<unknown> = Promise.resolve()
const lock = async (table: string) => {
  const held = Promise.withResolvers<void>()
  const freed = new Promise<void>(resolve => {
    unlock = resolve
  })
  locked = needed(admin).begin(async step => {
    await step.unsafe(`lock table ${table} in access exclusive mode`)
    held.resolve()
    await freed
  })
  await held.promise
}
const release = async () => {
  unlock()
  await locked
}

let killing: ReturnType<typeof setInterval> | undefined
const folder = mkdtempSync(join(tmpdir(), 'gateway-tiny-disk-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Fault = {
  readonly name: string
  readonly strike: () => Promise<unknown>
  readonly heal: () => Promise<unknown>
  /** What the gateway reports. */
  readonly reason: RegExp
}

const faults: readonly Fault[] = [
  {
    name: 'is read-only, as after a failover',
    strike: () => setting('default_transaction_read_only', 'on'),
    heal: () => setting('default_transaction_read_only', null),
    reason: /read-only transaction \(25006\)/,
  },
  {
    name: 'cancels each statement (statement_timeout)',
    strike: () => lock('usage_daily').then(() => setting('statement_timeout', '100ms')),
    heal: () => release().then(() => setting('statement_timeout', null)),
    reason: /57014/,
  },
  {
    name: 'rejects the login in pg_hba.conf',
    strike: () => access('reject'),
    heal: () => access(null),
    reason: /28000/,
  },
  {
    name: 'rejects the password',
    strike: () => access('scram-sha-256'),
    heal: () => access(null),
    reason: /28P01|SASL/,
  },
  {
    name: 'has revoked a grant of the ledger',
    strike: unsafe(`revoke all on usage_records from ${user}, gateway_app`),
    heal: unsafe(
      `grant all on usage_records to ${user}; grant select, insert, update (rating) on usage_records to gateway_app`,
    ),
    reason: /permission denied for table usage_records/,
  },
  {
    name: 'has revoked a grant of learning',
    strike: unsafe(`revoke all on learning_state from ${user}, gateway_app`),
    heal: unsafe(`grant all on learning_state to ${user}, gateway_app`),
    reason: /permission denied for table learning_state/,
  },
  {
    name: 'lacks a table',
    strike: unsafe('alter table usage_daily rename to usage_daily_away'),
    heal: unsafe('alter table usage_daily_away rename to usage_daily'),
    reason: /usage_daily/,
  },
  {
    name: 'holds a lock for longer than a statement may wait',
    strike: () => lock('usage_records'),
    heal: release,
    reason: /no answer within/,
  },
  {
    name: 'gives up on a lock (lock_timeout)',
    strike: () => lock('usage_records').then(() => setting('lock_timeout', '50ms')),
    heal: () => release().then(() => setting('lock_timeout', null)),
    reason: /55P03/,
  },
  {
    name: 'has too many connections',
    strike: () => needed(admin).unsafe(`alter role ${user} connection limit 0`).then(disconnect),
    heal: unsafe(`alter role ${user} connection limit -1`),
    reason: /53300/,
  },
  {
    name: 'kills its backends again and again',
    strike: async () => {
      await lock('usage_daily')
      killing = setInterval(() => void disconnect().catch(() => {}), 20)
    },
    heal: async () => {
      clearInterval(killing)
      await release()
    },
    reason: /57P01|CONNECTION/,
  },
]

describe('a Postgres that', () => {
  for (const fault of faults)
    testNeeding('postgres', `${fault.name}: keeps all usage and learning in the queue, and has it afterwards`, () =>
      throughFault(fault),
    )

  testNeeding(
    ['postgres', 'tmpfs'],
    'has a full disk: keeps all usage and learning in the queue, and has it afterwards',
    async () => {
      const { uid, gid } = statSync(hba.path)
      Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', `size=64m,mode=700,uid=${uid},gid=${gid}`, 'none', folder])
      const filler = join(folder, 'filler')
      try {
        await needed(admin).unsafe(`create tablespace tiny location '${folder}'`)
        await needed(admin).unsafe('alter table usage_records_other set tablespace tiny')
        await throughFault({
          name: 'has a full disk',
          // Larger than the disk, so that it takes all that is left.
          strike: async () => Bun.spawnSync(['dd', 'if=/dev/zero', `of=${filler}`, 'bs=4096'], { stderr: 'ignore' }),
          heal: async () => rmSync(filler),
          reason: /disk is full \(53100\)/,
        })
      } finally {
        await needed(admin).unsafe('alter table usage_records_other set tablespace pg_default')
        await needed(admin).unsafe('drop tablespace if exists tiny')
        Bun.spawnSync(['umount', folder])
      }
    },
  )
})

/** Ships records before, during and after a fault. */
async function throughFault({ name, strike, heal, reason }: Fault): Promise<void> {
  const live = needed(database)
  // The connections of the fault before are gone.
  await eventually(() => isServed(live), 20_000)
  const { accountId } = await newAccount(live)
  const { path, remove } = temporaryFolder()
  const journal = openJournal({ directory: join(path, 'journal') })
  const reasons: string[] = []
  const note = (error: unknown) => {
    reasons.push(error instanceof GatewayError ? String(error.detail) : String(error))
    throw error
  }
  const watched: Database = {
    ...live,
    run: (...words) => live.run(...words).catch(note),
    transact: (...words) => live.transact(...words).catch(note),
  }
  const shipper = createShipper({
    journal,
    database: watched,
    clock: { now: () => Date.now() },
    log: quiet,
  })
  let count = 0
  const append = (more: number) => {
    for (let index = 0; index < more; index++) {
      const request_id = `${accountId}_${count++}`
      journal.append(usageRecord({ request_id, account_id: accountId, learning: lesson }))
    }
  }
  append(5)
  expect(await shipper.drain(20_000)).toBe(true)
  await strike()
  try {
    await eventually(async () => {
      append(20)
      await shipper.drain(500)
      return reason.test(reasons.join('\n'))
    }, 30_000).catch(() => expect(reasons.join('\n')).toMatch(reason))
    expect([name, shipper.aside(), journal.backlog() > 0]).toEqual([name, 0, true])
  } finally {
    await heal()
  }
  expect(await shipper.drain(30_000)).toBe(true)
  const [found] = await live.run(
    ({ sql }) => sql<{ records: number; daily: number; lessons: number }[]>`
      select
        (select count(*)::int from usage_records where account_id = ${accountId}) as records,
        (select sum(requests)::int from usage_daily where account_id = ${accountId}) as daily,
        (select requests from learning_state where account_id = ${accountId}) as lessons`,
  )
  expect(found).toEqual({ records: count, daily: count, lessons: count })
  expect([shipper.aside(), journal.backlog()]).toEqual([0, 0])
  await shipper.close()
  await journal.close()
  remove()
}

const lesson = {
  quality: 0.75,
  epoch: null,
  influenced: false,
  choice_probability: 1,
  enhanced: false,
  repeat_of: null,
} as const

function isServed(live: Database): Promise<boolean> {
  return live
    .run(({ sql }) => sql`select 1`)
    .then(
      () => true,
      () => false,
    )
}
