/** A gateway that is killed while another attempt continues a cut text. */
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import { openDatabase } from '../../src/database/database.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { dataFolder, startProcess, stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'
import { freshKey } from './accounts.ts'
import { readReply } from './support.ts'

setDefaultTimeout(240_000)

const stores = await Promise.all([startPostgres(), startRedis()])
const [postgres, redis] = stores
afterAll(async () => {
  await stopProcesses()
  await Promise.all(stores.map(store => store?.stop()))
})

type Bill = {
  readonly status: string
  readonly input: number
  readonly output: number
  readonly microcents: number
  readonly attempts: number
  /** All requests of that day. */
  readonly daily: number
}

/** Characters of each piece, which are two tokens of the simulator. */
const pieceLength = 8
const firstPieces = 30

testNeeding(
  ['postgres', 'redis'],
  'continuation: kill -9 while it runs bills both parts once and frees what they reserved',
  async () => {
    const environment = {
      DATABASE_URL: needed(postgres).url,
      REDIS_URL: needed(redis).url,
      JWT_SECRET: 'a secret of the tests, long enough to be taken',
    }
    const folder = dataFolder()
    const [sibling, victim] = await Promise.all([
      startProcess(dataFolder(), environment),
      startProcess(folder, environment),
    ])
    // One request at a time: the killed one counts until it is settled.
    const key = await freshKey(environment.DATABASE_URL, { concurrent: 1 })
    for (const gateway of [victim, sibling])
      await eventually(async () => (await gateway.chat(key, 'hello')).status === 200, 10_000, 50)
    const database = openDatabase(environment.DATABASE_URL, { connections: 1, ...patientStore })
    const fields = { model: 'openai/gpt-4.1', stream: true, max_output_tokens: 4_000 }

    // The first call is cut after its pieces. The next one goes on for longer than the gateway lives.
    const directives = `[[sim:tokens=2000, chunk=${pieceLength}, pace_ms=40]] [[sim:cut_after=${firstPieces}, times=1, key=killed]]`
    const response = await victim.chat(key, `${directives} Tell me`, fields)
    const id = response.headers.get('x-request-id') ?? ''
    const decoder = new TextDecoder()
    let received = ''
    const done = (async () => {
      for await (const bytes of response.body ?? []) received += decoder.decode(bytes, { stream: true })
    })().catch(() => {})
    const said = () => readReply(200, response.headers, received.slice(0, received.lastIndexOf('\n\n') + 2)).text
    // More than one checkpoint of the second part.
    await eventually(() => said().length > pieceLength * (firstPieces + 75), 60_000)
    victim.kill('SIGKILL')
    await victim.exited
    await done
    expect(received).not.toContain('"type":"done"')

    const bills = () =>
      database.run(
        ({ sql }) => sql<Bill[]>`
          select status, input_tokens::int as input, output_tokens::int as output,
            billed_microcents::float8 as microcents, attempts::int as attempts,
            (select sum(billed_microcents)::float8 from usage_daily where usage_daily.account_id = usage_records.account_id)
              - (select sum(billed_microcents)::float8 from usage_records as other
                where other.account_id = usage_records.account_id and other.request_id <> ${id}) as daily
          from usage_records where request_id = ${id}`,
        240_000,
      )
    await eventually(async () => (await sibling.chat(key, 'hello')).status === 200, 60_000, 100)
    const again = await startProcess(folder, environment)
    await eventually(async () => (await bills()).length > 0, 60_000, 100)
    const found = await bills()
    expect(found).toMatchObject([{ status: 'failed', attempts: 2 }])
    const [{ input = 0, output = 0, microcents = 0, daily = 0 } = {}] = found
    // GPT-4.1: 2 USD and 8 USD for a million tokens.
    expect([microcents, daily]).toEqual([input * 200 + output * 800, microcents])
    // The whole first part, and of the second one at least a checkpoint, and nothing that was not sent.
    expect(output).toBeGreaterThan(2 * firstPieces)
    expect(output).toBeLessThanOrEqual(Math.ceil(said().length / 3))

    // Records that are shipped later are no second ones of it.
    await eventually(async () => (await again.chat(key, 'hello')).status === 200, 60_000, 100)
    const records = await bills()
    expect(records.map(({ microcents }) => microcents)).toEqual([microcents])
    await database.close()
  },
)
