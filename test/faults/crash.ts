/**
 * `kill -9` of a gateway with 50 open streams, repeatedly, while another instance serves: `bun test/faults/crash.ts
 * [rounds] [seed]`. Every completed response is in the ledger once with the provider's usage; the others are settled
 * and their reservations released within 15 s; ledger and daily totals agree. Exits with 1 otherwise.
 */
import { migrate, openDatabase } from '../../src/database/database.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { dataFolder, type GatewayProcess, startProcess, stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'
import { startUpstream } from '../harness/upstream.ts'
import { freshKey } from './accounts.ts'
import { getFrames } from './support.ts'

const streams = 50
const promisedMs = 15_000
const paceMs = 50
const mostPieces = 60

const [rounds = '20', seedText = String(Date.now() % 100_000)] = process.argv.slice(2)
const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
if (postgres === null || redis === null) throw new Error('needs Postgres and Redis')
const random = seeded(Number(seedText))

/** The provider: sends as many deltas as the prompt requests, and records an invoice for them. */
const upstream = startUpstream(request => {
  const wanted = Number(/pieces=(\d+)/.exec(request.body)?.[1] ?? 1)
  const { opening, content, closing } = getFrames('openai', Array<string>(wanted).fill('word '), {
    input: 20,
    output: wanted,
  })
  return {
    headers: { 'content-type': 'text/event-stream' },
    framing: 'chunked',
    pieces: paced([...opening, ...content, ...closing]),
  }
})

async function* paced(frames: readonly string[]) {
  for (const frame of frames) {
    yield frame
    await Bun.sleep(paceMs)
  }
}

const environment = {
  DATABASE_URL: postgres.url,
  REDIS_URL: redis.url,
  JWT_SECRET: 'a secret of the tests, long enough to be taken',
  OPENAI_API_KEY: 'sk-test',
  OPENAI_BASE_URL: `${upstream.url}/v1`,
}
const database = openDatabase(postgres.url, { connections: 2, ...patientStore })
await migrate(database)
const folders = [dataFolder(), dataFolder()] as const
const sibling = await startProcess(folders[0], environment)
let victim = await startProcess(folders[1], environment)
const key = await freshKey(postgres.url, { concurrent: streams })

type Stream = { readonly id: string; readonly status: number; readonly isWhole: boolean; readonly pieces: number }
const all: Stream[] = []
const problems: string[] = []
let slowestReservationsMs = 0
let slowestSettledMs = 0
let killedStreams = 0

for (let round = 0; round < Number(rounds); round++) {
  const running = Array.from({ length: streams }, () => stream(victim, 5 + Math.floor(random() * mostPieces)))
  // Later than the first checkpoint, even of an instance that has just started.
  const killAfterMs = 1_500 + Math.floor(random() * 2_000)
  await Bun.sleep(killAfterMs)
  victim.kill('SIGKILL')
  const killedAt = performance.now()
  const seen = await Promise.all(running)
  all.push(...seen)
  const cut = seen.filter(item => item.id !== '' && !item.isWhole)
  killedStreams += cut.length
  const [reservationsMs, settledMs, restarted] = await Promise.all([
    sinceUntil(killedAt, async () => {
      const probes = await Promise.all(Array.from({ length: streams }, () => stream(sibling, 4)))
      all.push(...probes)
      return probes.every(({ status }) => status === 200)
    }),
    sinceUntil(killedAt, async () => (await getRows(cut.map(({ id }) => id))).length === cut.length),
    startProcess(folders[1], environment),
  ])
  victim = restarted
  slowestReservationsMs = Math.max(slowestReservationsMs, reservationsMs)
  slowestSettledMs = Math.max(slowestSettledMs, settledMs)
  process.stdout.write(
    `round ${round + 1}: killed after ${killAfterMs} ms with ${cut.length} streams open; seats free after ${(reservationsMs / 1000).toFixed(1)} s, settled after ${(settledMs / 1000).toFixed(1)} s\n`,
  )
}

const whole = all.filter(item => item.isWhole)
await sinceUntil(performance.now(), async () => (await getRows(whole.map(({ id }) => id))).length >= whole.length)
const rows = await getRows(whole.map(({ id }) => id))
const byId = Map.groupBy(rows, row => row.id)
for (const { id, pieces } of whole) {
  const own = byId.get(id) ?? []
  if (own.length !== 1 || own[0]?.status !== 'completed' || own[0].input !== 20 || own[0].output !== pieces)
    problems.push(`${id}: ${JSON.stringify(own)} where the provider counted 20 and ${pieces}`)
}
const [sums] = await database.run(
  ({ sql }) => sql<{ ledger: string; daily: string; rows: number; counted: number }[]>`
    select (select sum(billed_microcents) from usage_records)::text as ledger,
      (select sum(billed_microcents) from usage_daily)::text as daily,
      (select count(*) from usage_records)::int as rows, (select sum(requests) from usage_daily)::int as counted`,
)
if (sums?.ledger !== sums?.daily || sums?.rows !== sums?.counted)
  problems.push(`ledger and daily sums differ: ${JSON.stringify(sums)}`)
if (slowestReservationsMs > promisedMs || slowestSettledMs > promisedMs) problems.push('later than promised')
process.stdout.write(
  `${rounds} kills, seed ${seedText}: ${whole.length} finished answers, each in the ledger once, ${killedStreams} cut; seats free after ${(slowestReservationsMs / 1000).toFixed(1)} s at most, settled after ${(slowestSettledMs / 1000).toFixed(1)} s at most; ${problems.length} problems\n${problems.slice(0, 10).join('\n')}\n`,
)
await stopProcesses()
upstream.stop()
await database.close()
await Promise.all([postgres.stop(), redis.stop()])
process.exit(problems.length === 0 ? 0 : 1)

async function stream(gateway: GatewayProcess, pieces: number): Promise<Stream> {
  let [id, status] = ['', 0]
  try {
    const answer = await gateway.chat(key, `pieces=${pieces}`, { model: 'openai/gpt-4.1', stream: true })
    id = answer.headers.get('x-request-id') ?? ''
    status = answer.status
    const text = await answer.text()
    return { id: status === 200 ? id : '', status, pieces, isWhole: text.includes('"type":"done"') }
  } catch {
    return { id, status, pieces, isWhole: false }
  }
}

function getRows(ids: readonly string[]) {
  return database.run(
    ({ sql }) => sql<{ id: string; status: string; input: number; output: number }[]>`
      select request_id as id, status, input_tokens::int as input, output_tokens::int as output
      from usage_records where request_id in (select json_array_elements_text(${JSON.stringify(ids)}::text::json))`,
    5_000,
  )
}

async function sinceUntil(since: number, isSo: () => Promise<boolean>): Promise<number> {
  while (!(await isSo()) && performance.now() - since < 4 * promisedMs) await Bun.sleep(200)
  return performance.now() - since
}

function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
