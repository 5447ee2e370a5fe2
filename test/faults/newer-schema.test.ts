/** A database that a later release has migrated: a running gateway continues, a starting one fails. */
import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import packageJson from '../../package.json'
import { type Database, openDatabase } from '../../src/database/database.ts'
import { openEmbedded } from '../../src/database/embedded.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { dataFolder, freshFolder, run, startProcess, stopProcesses } from '../harness/processes.ts'
import { freshKey } from './accounts.ts'

setDefaultTimeout(240_000)

const postgres = await startPostgres()
afterAll(async () => {
  await stopProcesses()
  await postgres?.stop()
})

/** State of the database after a later release; null = one that does not store its version. */
async function migrateFurther(database: Database, version: string | null): Promise<void> {
  await database.run(async ({ sql }) => {
    await sql`insert into drizzle.__drizzle_migrations (hash, created_at) values ('later', ${Date.UTC(2031, 4, 6)})`
    await sql.unsafe(
      `comment on table drizzle.__drizzle_migrations is ${version === null ? 'null' : `'gateway-ai ${version}'`}`,
    )
  }, 240_000)
}

const { version } = packageJson
const refusal = (writer: string, remedy: string) =>
  `The database was migrated by ${writer} (its latest migration is of 2031-05-06), and this is gateway-ai ${version}, which does not know that schema. Start ${remedy}, or restore a backup from before the upgrade.\n`

describe('a database of a later release', () => {
  testNeeding(
    'postgres',
    'start: refuses and names both versions when a later release migrated Postgres, while a running gateway serves on',
    async () => {
      const server = needed(postgres)
      const environment = { DATABASE_URL: server.url, JWT_SECRET: 'a secret of the tests, long enough to be taken' }
      const running = await startProcess(dataFolder(), environment)
      expect(running.output()).toMatch(/First account: .* accounts create <email> --plan usage\n/)
      const key = await freshKey(server.url)
      await eventually(async () => (await running.chat(key, 'hello')).status === 200, 10_000)
      const database = openDatabase(server.url, { connections: 1, ...patientStore })
      const [before] = await database.run(
        ({ sql }) => sql<{ writer: string }[]>`
        select obj_description('drizzle.__drizzle_migrations'::regclass) as writer`,
      )
      expect(before?.writer).toBe(`gateway-ai ${version}`)
      await migrateFurther(database, '99.1.0')
      await database.close()

      const said = refusal('gateway-ai 99.1.0', 'that version or a later one')
      expect(await run('main.ts', [], { ...environment, PORT: '0', GATEWAY_DATA_DIR: dataFolder() })).toEqual({
        code: 1,
        stdout: expect.not.stringContaining('"event":"ready"'),
        stderr: `gateway-ai cannot start: ${said}`,
      })
      for (const words of [['usage', 'reconcile'], ['migrate'], ['accounts', 'show', 'a@example.com']])
        expect([words, await run('cli.ts', words, { ...environment, GATEWAY_DATA_DIR: dataFolder() })]).toEqual([
          words,
          { code: 1, stdout: '', stderr: said },
        ])
      expect((await running.chat(key, 'hello')).status).toBe(200)
      running.kill('SIGTERM')
      expect(await running.exited).toBe(0)
    },
  )

  test('start: rejects an embedded database that a later release migrated, and leaves it intact for that release', async () => {
    const folder = await freshFolder()
    const change = async (work: (database: Database) => Promise<unknown>) => {
      const embedded = await openEmbedded(folder)
      const database = openDatabase(embedded.address, patientStore)
      await work(database)
      await database.close()
      await embedded.close()
    }
    await change(database => migrateFurther(database, null))
    const { code, stderr } = await run('main.ts', [], { PORT: '0', GATEWAY_DATA_DIR: folder })
    expect(code).toBe(1)
    expect(stderr).toBe(`gateway-ai cannot start: ${refusal('a later release of gateway-ai', 'the later release')}`)
    // The reverted migration stands for the release that knows it.
    await change(database =>
      database.run(({ sql }) => sql`delete from drizzle.__drizzle_migrations where hash = 'later'`, 10_000),
    )
    const known = await startProcess(folder)
    known.kill('SIGTERM')
    expect(await known.exited).toBe(0)
  })
})
