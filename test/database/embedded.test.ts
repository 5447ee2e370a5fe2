import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import { DataFolderHeld, findHolder, lockDataFolder } from '../../src/database/data-folder.ts'
import { type Database, migrate, openDatabase } from '../../src/database/database.ts'
import { connectEmbedded, type Embedded, openEmbedded } from '../../src/database/embedded.ts'
import { storeRecords } from '../../src/ledger/shipper.ts'
import { freshDataFolder } from '../harness/data-folder.ts'
import { eventually } from '../harness/eventually.ts'
import { oneTurn } from '../harness/moved-clock.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { databaseContract } from './database.contract.ts'
import { temporaryFolder, toTexts, usageRecord } from './support.ts'

const folder = temporaryFolder()
const directory = join(folder.path, 'data')
let embedded: Embedded | null = null
let database: Database | null = null

beforeAll(async () => {
  embedded = await openEmbedded(await freshDataFolder(directory))
  database = openDatabase(embedded.address, patientStore)
  await migrate(database)
}, 240_000)
afterAll(async () => {
  await database?.close()
  await embedded?.close()
  folder.remove()
})

databaseContract('embedded Postgres', () => database)

function client() {
  const address = embedded?.address
  if (address === undefined || typeof address === 'string') throw new Error('no socket')
  return postgres({
    path: address.socketPath,
    host: 'localhost',
    user: 'postgres',
    database: 'postgres',
    max: 1,
    fetch_types: false,
    onnotice: () => {},
  })
}

/** Creates a client without a driver, which may stop between any two messages. */
async function wireClient() {
  const address = embedded?.address
  if (address === undefined || typeof address === 'string') throw new Error('no socket')
  let text = ''
  const socket = await Bun.connect({
    unix: address.socketPath,
    socket: {
      data(_, bytes) {
        text += bytes.toString('latin1')
      },
    },
  })
  const parameters = Buffer.from('user\0postgres\0database\0postgres\0\0')
  const head = Buffer.from([0, 0, 0, parameters.length + 8, 0, 3, 0, 0])
  socket.write(Buffer.concat([head, parameters]))
  await eventually(() => text.includes('Z\0\0\0\x05I'), 2000)
  text = ''
  return {
    send: (...messages: Buffer[]) => socket.write(Buffer.concat(messages)),
    heard: () => text,
    close: () => socket.end(),
  }
}

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const parse = (sql: string) => message('P', Buffer.from(`\0${sql}\0\0\0`))
const bind = message('B', Buffer.alloc(8))
const executeAndSync = Buffer.concat([message('E', Buffer.alloc(5)), message('S', Buffer.alloc(0))])

test('embedded database: waits on a busy machine without failing other queries', async () => {
  const [late, beside] = await Promise.all([
    database?.run(({ sql }) => sql`select 'late' as word from pg_sleep(1.2)`),
    database?.run(({ sql }) => sql`select 'beside' as word`),
  ])
  expect([late?.[0]?.word, beside?.[0]?.word]).toEqual(['late', 'beside'])
})

test('data folder: creates a missing folder with mode 0700 [C5]', () => {
  const path = join(folder.path, 'private')
  lockDataFolder(path)()
  expect(statSync(path).mode & 0o777).toBe(0o700)
})

test("embedded database: changes turns only when the backend is ready, so no client replaces another's bind", async () => {
  const [item, other] = await Promise.all([wireClient(), wireClient()])
  item.send(parse("select 'of one'"), bind)
  await Bun.sleep(50)
  other.send(parse("select 'of the other'"), bind)
  await Bun.sleep(50)
  item.send(executeAndSync)
  other.send(executeAndSync)
  await eventually(() => item.heard().includes('of one') && other.heard().includes('of the other'), 2000)
  expect(item.heard()).not.toContain('of the other')
  expect(other.heard()).not.toContain('of one')
  item.close()
  other.close()
})

test('embedded database: never mixes results of concurrent clients', async () => {
  const clients = Array.from({ length: 6 }, client)
  const rounds = clients.map(async (sql, which) => {
    for (let round = 0; round < 60; round++) {
      const rows = await sql.unsafe(`select $1::text as said, ${which * 1000 + round} as number`, [`${which}-${round}`])
      expect({ ...rows[0] }).toEqual({ said: `${which}-${round}`, number: which * 1000 + round })
    }
  })
  await Promise.all(rounds)
  await Promise.all(clients.map(sql => sql.end()))
})

test('embedded database: keeps transactions separate and rolls back when the client disconnects', async () => {
  const [item, other] = [client(), client()]
  await item`create table if not exists vanishing (n int)`
  const [inserted, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const inside = item.begin(async transaction => {
    await transaction`insert into vanishing values (1)`
    inserted.resolve()
    await asked.promise
    await transaction`insert into vanishing values (2)`
  })
  await inserted.promise
  const seeing = other`select count(*)::int as n from vanishing`.execute()
  await oneTurn()
  asked.resolve()
  expect([0, 2]).toContain((await seeing)[0]?.n)
  await inside
  const dying = item.begin(async transaction => {
    await transaction`insert into vanishing values (3)`
    await item.end({ timeout: 0 })
  })
  await dying.catch(() => {})
  expect((await other`select count(*)::int as n from vanishing`)[0]?.n).toBe(2)
  await other.end()
})

test('embedded database: limits an error to its own client', async () => {
  const [item, other] = [client(), client()]
  const wrong = item`select ${'x'}::int`
  const right = other`select ${1}::int as n`
  await expect(wrong).rejects.toThrow()
  expect((await right)[0]?.n).toBe(1)
  expect((await item`select 2 as n`)[0]?.n).toBe(2)
  await Promise.all([item.end(), other.end()])
})

test('data folder: rejects a second gateway and names the first', async () => {
  await expect(openEmbedded(directory)).rejects.toThrow(`in use by process ${process.pid}`)
  await expect(openEmbedded(directory)).rejects.toBeInstanceOf(DataFolderHeld)
})

test("connectEmbedded: uses the running gateway's database, also to store usage", async () => {
  const connected = await connectEmbedded(directory)
  expect(connected.address).toEqual({ socketPath: join(directory, 'postgres.sock') })
  const other = openDatabase(connected.address, patientStore)
  const records = ['req_own', 'req_other'].map(request_id => usageRecord({ request_id, account_id: 'acc_both' }))
  await storeRecords(other, toTexts(records.slice(1)))
  await storeRecords(needed(database), toTexts(records))
  await storeRecords(other, toTexts(records))
  const [sum] = await other.run(
    ({ sql }) => sql<{ requests: number; rows: number }[]>`
      select sum(requests)::int as requests, (select count(*)::int from usage_records where account_id = 'acc_both') as rows
      from usage_daily where account_id = 'acc_both'`,
  )
  expect(sum).toEqual({ requests: 2, rows: 2 })
  await other.close()
  await connected.close()
  expect(await database?.run(({ sql }) => sql`select 1 as n`)).toHaveLength(1)
})

test('embedded database: refuses transactions behind eight that wait, and stores those', async () => {
  const holder = client()
  const [isHeld, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const held = holder.begin(async step => {
    await step`select 1`
    isHeld.resolve()
    await mayEnd.promise
  })
  await isHeld.promise
  const stored = Array.from({ length: 9 }, (_, index) =>
    storeRecords(needed(database), toTexts([usageRecord({ request_id: `req_wait_${index}`, account_id: 'acc_wait' })])),
  )
  await expect(stored[8]).rejects.toMatchObject({ code: 'service_unavailable' })
  mayEnd.resolve()
  await held
  expect(await Promise.all(stored.slice(0, 8))).toEqual(Array.from({ length: 8 }, () => []))
  const [found] = await holder`select sum(requests)::int as requests from usage_daily where account_id = 'acc_wait'`
  expect(found).toEqual({ requests: 8 })
  await holder.end()
})

const serving = (path: string) => `
  const { openEmbedded } = await import(${JSON.stringify(new URL('../../src/database/embedded.ts', import.meta.url).pathname)})
  const { openDatabase } = await import(${JSON.stringify(new URL('../../src/database/database.ts', import.meta.url).pathname)})
  const embedded = await openEmbedded(${JSON.stringify(path)})
  const database = openDatabase(embedded.address, ${JSON.stringify(patientStore)})
  await database.run(({ sql }) => sql.unsafe('create table if not exists kept (n int)'), 5000)
  for (let n = 0; ; n++) {
    await database.run(({ sql }) => sql\`insert into kept values (\${n})\`, 5000)
    console.log(n)
  }`

test('embedded database: restarts after a kill at any moment with every confirmed commit', async () => {
  // Also with a path too long for a socket.
  const path = await freshDataFolder(join(folder.path, 'long'.repeat(30)))
  for (let round = 0; round < 2; round++) {
    const child = Bun.spawn([process.execPath, '-e', serving(path)], { stdout: 'pipe', stderr: 'inherit' })
    let told = ''
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      told += text
      if (told.split('\n').length > 20 + round * 15) break
    }
    child.kill('SIGKILL')
    await child.exited
    const again = await openEmbedded(path)
    const reopened = openDatabase(again.address, patientStore)
    const rows = await reopened.run(({ sql }) => sql`select count(*)::int as n from kept`)
    expect(rows[0]?.n).toBeGreaterThanOrEqual(told.trim().split('\n').length - 1)
    await reopened.run(({ sql }) => sql`delete from kept`)
    await reopened.close()
    await again.close()
  }
}, 240_000)

test('embedded database: removes prepared statements of disconnected clients only', async () => {
  const [leaving, staying] = [client(), client()]
  const prepared = async () => {
    const [row] = await staying<{ count: number }[]>`
      select count(*)::int as count from pg_prepared_statements where statement like '%::int as marked%'`
    return row?.count
  }
  await leaving`select ${1}::int as marked`
  await staying`select ${1}::int + 1, ${1}::int as marked`
  expect(await prepared()).toBe(3)
  await leaving.end()
  await eventually(async () => (await prepared()) === 2, 2_000)
  expect(await staying`select ${1}::int + 1, ${1}::int as marked`).toHaveLength(1)
  await staying.end()
})

test('data folder: unlocks on close, whatever process an earlier lock names', () => {
  const path = join(folder.path, 'lock')
  lockDataFolder(path)()
  expect(findHolder(path)).toBeNull()
  for (const holder of [`{"pid":${process.ppid},"began":"another boot/1"}`, '{"pid":', '']) {
    writeFileSync(join(path, 'gateway.pid'), holder)
    expect(findHolder(path)).toBeNull()
    const release = lockDataFolder(path)
    expect(findHolder(path)).toEqual({ pid: process.pid })
    expect(() => lockDataFolder(path)).toThrow(DataFolderHeld)
    release()
  }
})

const holding = (path: string) => `
  const { lockDataFolder } = await import(${JSON.stringify(new URL('../../src/database/data-folder.ts', import.meta.url).pathname)})
  globalThis.release = lockDataFolder(${JSON.stringify(path)})
  console.log('held')
  setInterval(() => {}, 1_000)`

/** Starts a process that holds the folder, with these words before its command. Returns it when it does. */
async function startHolder(path: string, ...before: string[]) {
  const child = Bun.spawn([...before, process.execPath, '-e', holding(path)], { stdout: 'pipe', stderr: 'inherit' })
  const { value } = await child.stdout.getReader().read()
  expect(new TextDecoder().decode(value)).toBe('held\n')
  return child
}

test('data folder: keeps the lock of a stopped process, and ends that of a killed one', async () => {
  const path = join(folder.path, 'killed')
  const child = await startHolder(path)
  child.kill('SIGSTOP')
  expect(findHolder(path)).toEqual({ pid: child.pid })
  expect(() => lockDataFolder(path)).toThrow(`in use by process ${child.pid}`)
  child.kill('SIGKILL')
  await child.exited
  expect(findHolder(path)).toBeNull()
  lockDataFolder(path)()
})

testNeeding('namespaces', 'data folder: rejects a second gateway in another PID namespace', async () => {
  const path = join(folder.path, 'containers')
  const child = await startHolder(path, 'unshare', '--pid', '--fork', '--mount-proc', '--kill-child')
  // Process 1 is another one here.
  expect(readFileSync(join(path, 'gateway.pid'), 'utf8')).toContain('"pid":1,')
  expect(findHolder(path)).toEqual({ pid: null })
  expect(() => lockDataFolder(path)).toThrow('in use by a process of another container')
  child.kill('SIGKILL')
  await child.exited
  await eventually(() => findHolder(path) === null, 10_000)
  lockDataFolder(path)()
})

test('embedded database: reports writes of any client, also of statements that return rows, and no reads', async () => {
  let reports = 0
  embedded?.onWrite?.(() => void reports++)
  const sql = client()
  // Long enough for several looks.
  const read = async () => {
    for (let count = 0; count < 20; count++) await sql`select pg_sleep(0.02) from written`
  }
  try {
    await sql`create table written (at int)`
    await sql`insert into written values (1)`
    await read()
    await eventually(() => reports > 0, 10_000)
    const before = reports
    await read()
    expect(reports).toBe(before)
    await sql`with added as (insert into written values (2) returning at) select at from added`
    await eventually(() => reports > before, 10_000)
  } finally {
    await sql`drop table written`
    await sql.end()
  }
})
