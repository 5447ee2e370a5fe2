/** Postgres behind PgBouncer in transaction mode, as managed databases offer it. */
import { afterAll, beforeAll, expect } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate, openDatabase } from '../../src/database/database.ts'
import { eventually } from '../harness/eventually.ts'
import { freePort } from '../harness/free-port.ts'
import { startGateway } from '../harness/gateway.ts'
import { describeNeeding, needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'

describeNeeding('pgbouncer', 'Postgres behind PgBouncer in transaction mode', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-pooler-'))
  let postgres: PrivatePostgres | null = null
  let pooler: Bun.Subprocess | null = null
  let address = ''

  beforeAll(async () => {
    postgres = await startPostgres()
    if (postgres === null) return
    const port = freePort()
    const file = join(folder, 'pgbouncer.ini')
    writeFileSync(
      file,
      `[databases]
postgres = host=127.0.0.1 port=${new URL(postgres.url).port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 500
`,
    )
    chmodSync(folder, 0o755)
    // PgBouncer refuses to run as root.
    const asUser = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
    pooler = Bun.spawn(['pgbouncer', '-q', ...asUser, file], { stdout: 'ignore', stderr: 'ignore' })
    await eventually(() => accepts(port))
    address = `postgres://postgres@127.0.0.1:${port}/postgres?prepare=false`
  }, 240_000)
  afterAll(async () => {
    pooler?.kill()
    await pooler?.exited
    await postgres?.stop()
    rmSync(folder, { recursive: true, force: true })
  }, 240_000)

  testNeeding('postgres', 'migrate: runs once when ten instances start at the same time', async () => {
    const databases = Array.from({ length: 10 }, () => openDatabase(address, { connections: 1, ...patientStore }))
    await Promise.all(databases.map(database => migrate(database)))
    const direct = openDatabase(needed(postgres).url, { connections: 1 })
    const [row] = await direct.run(
      ({ sql }) => sql<{ locks: number; most: number }[]>`
        select (select count(*)::int from pg_locks where locktype = 'advisory') as locks,
               (select max(times)::int from (select count(*) as times from drizzle.__drizzle_migrations group by hash) as each) as most`,
    )
    expect(row).toEqual({ locks: 0, most: 1 })
    await Promise.all([...databases, direct].map(database => database.close()))
  })

  testNeeding('postgres', 'gateway: answers and records 120 concurrent requests', async () => {
    const gateway = await startGateway({ DATABASE_URL: address, JWT_SECRET: 'a secret of the pooler, long enough' })
    let isStopped = false
    try {
      const answers = await Promise.all(
        Array.from({ length: 120 }, (_, index) =>
          gateway.post('/api/v1/chat', { prompt: `Say hello to number ${index}.` }),
        ),
      )
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
      isStopped = true
      await gateway.stop()
      const direct = openDatabase(needed(postgres).url, { connections: 1 })
      const [row] = await direct.run(
        ({ sql }) => sql<{ records: number }[]>`select count(*)::int as records from usage_records`,
      )
      expect(row?.records).toBe(120)
      await direct.close()
    } finally {
      if (!isStopped) await gateway.stop()
    }
  })
})

function accepts(port: number): Promise<boolean> {
  return new Promise(done => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      done(true)
    })
    socket.once('error', () => done(false))
  })
}
