/** A gateway process under load while its stores become unavailable and return. */
import { expect } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mintApiKey } from '../../src/core/accounts/api-keys.ts'
import { openDatabase } from '../../src/database/database.ts'
import { answerMs, renewMs } from '../../src/limits/constants.ts'
import { eventually } from '../harness/eventually.ts'
import { patientStore } from '../harness/patience.ts'
import type { PrivatePostgres } from '../harness/postgres.ts'
import { dataFolder, type GatewayProcess, run, startProcess } from '../harness/processes.ts'
import { freshKey } from './accounts.ts'

const everyMs = 25
const streamsAtATime = 20
const accounts = 4

/** A client's view of a successful request. */
type Seen = { readonly id: string; readonly tokens: number; readonly usd: number }
/** `refused`: with 503 and `retry-after` before any work. */
type Outcome = (Seen | { readonly refused: true } | { readonly failed: string }) & {
  readonly beganAt: number
  /** Milliseconds until the status. */
  readonly waitedMs: number
}

/**
 * What accounts get that the gateway knows, while stores are away: all requests are served; some are, from allowances, and
 * the others rejected; or all may be rejected, since nothing can decide limits.
 */
type Served = 'all' | 'some' | 'maybe none'

/**
 * Faults of the stores with their time in milliseconds from the first one; Postgres is available again after the last.
 */
export type Schedule = readonly (readonly [atMs: number, strike: () => unknown])[]

/**
 * Loads a gateway, applies the schedule to its stores, and compares the ledger with the clients' view. Rejections are 503,
 * and admitted requests end normally. Returns the longest time until a status.
 */
export async function throughOutage(
  name: string,
  server: PrivatePostgres,
  more: Readonly<Record<string, string>>,
  schedule: Schedule,
  served: Served = 'all',
): Promise<number> {
  const environment = {
    DATABASE_URL: server.url,
    JWT_SECRET: 'a secret of the tests, long enough to be taken',
    ...more,
  }
  const folder = dataFolder()
  const gateway = await startProcess(folder, environment)
  const keys = await Promise.all(Array.from({ length: accounts }, () => freshKey(server.url)))
  const unused = await freshKey(server.url)
  // On a busy machine a first query may miss its deadline.
  for (const key of keys) await eventually(async () => (await gateway.chat(key, 'hello')).status === 200, 10_000)

  const outcomes: Promise<Outcome>[] = []
  let turn = 0
  const next = () => keys[turn++ % keys.length] ?? ''
  const short = () => void outcomes.push(outcome(() => gateway.chat(next(), 'hello', { max_output_tokens: 32 })))
  const streaming = Array.from({ length: streamsAtATime }, () => true)
  let loaded = true
  const load = setInterval(short, everyMs)
  const streams = streaming.map(async () => {
    while (loaded) {
      const stream = outcome(() =>
        gateway.chat(next(), '[[sim:tokens=200, chunk=8, pace_ms=40]] tell me', { stream: true }),
      )
      outcomes.push(stream)
      if ('refused' in (await stream)) await Bun.sleep(everyMs)
    }
  })

  // An allowance for this load begins with the renewal after it.
  await Bun.sleep(renewMs + answerMs)
  const goneAt = performance.now()
  const before = outcomes.length
  const awayMs = schedule.at(-1)?.[0] ?? 0
  const strangersAsked = Bun.sleep(300).then(() =>
    Promise.all([mintApiKey(randomBytes).key, unused].map(key => refusal(gateway, key))),
  )
  for (const [atMs, strike] of schedule) {
    await Bun.sleep(Math.max(0, atMs - (performance.now() - goneAt)))
    await strike()
  }
  const strangers = await strangersAsked
  const during = outcomes.length - before
  const backAt = performance.now()
  await Bun.sleep(500)
  clearInterval(load)
  loaded = false
  await Promise.all(streams)

  const all = await Promise.all(outcomes)
  const seen = all.filter(item => 'id' in item)
  const refused = all.filter(item => 'refused' in item).length
  expect(all.filter(item => 'failed' in item)).toEqual([])
  if (served === 'all') expect(refused).toBe(0)
  // Until the first return of a store, allowances decide.
  const firstReturnMs = schedule.find(([atMs]) => atMs > 0)?.[0] ?? 0
  const fromAllowances = seen.filter(({ beganAt }) => beganAt > goneAt && beganAt < goneAt + firstReturnMs).length
  if (served !== 'maybe none') expect(fromAllowances).toBeGreaterThan(20)
  const slowestMs = Math.max(...all.map(({ waitedMs }) => waitedMs))
  expect(during).toBeGreaterThan(20)
  // A response that had waited for the end of the outage would not be 503.
  for (const { status, code, retryAfter } of strangers) {
    expect({ status, code, retryAfter }).toEqual({ status: 503, code: 'service_unavailable', retryAfter: '1' })
  }

  const database = openDatabase(server.url, { connections: 1, ...patientStore })
  try {
    const rows = () =>
      database.run(
        ({ sql }) => sql<{ id: string; tokens: number; microcents: number }[]>`
          select request_id as id, (input_tokens + output_tokens)::float8 as tokens, billed_microcents::float8 as microcents
          from usage_records where request_id in (select json_array_elements_text(${JSON.stringify(seen.map(({ id }) => id))}::text::json))`,
        5_000,
      )
    while ((await rows()).length < seen.length && performance.now() - backAt < 60_000) await Bun.sleep(50)
    const settledInMs = Math.round(performance.now() - backAt)
    const byId = new Map((await rows()).map(row => [row.id, row]))
    const wrong = seen.filter(({ id, tokens, usd }) => {
      const row = byId.get(id)
      return row === undefined || row.tokens !== tokens || row.microcents !== Math.round(usd * 1e8)
    })
    expect(wrong).toEqual([])
    const [sums] = await database.run(
      ({ sql }) => sql<{ ledger: string; daily: string; requests: string; counted: string }[]>`
        select (select sum(billed_microcents) from usage_records) as ledger, (select sum(billed_microcents) from usage_daily) as daily,
          (select count(*) from usage_records) as requests, (select sum(requests) from usage_daily) as counted`,
    )
    expect(sums?.daily).toBe(sums?.ledger)
    expect(sums?.counted).toBe(sums?.requests)
    process.stdout.write(
      `${name} ${awayMs} ms: ${seen.length} requests, ${during} of them begun meanwhile, ${fromAllowances} served before the first return, ${refused} refused with 503, slowest status ${slowestMs.toFixed(0)} ms, 0 failed, 0 streams cut; all in the ledger ${settledInMs} ms after its return, 0 differences\n`,
    )
    // A client that was rejected because of the database is served again. On a starved machine a key lookup may be late once more.
    await eventually(async () => (await gateway.chat(unused, 'hello')).status === 200, 10_000)
  } finally {
    await database.close()
  }
  gateway.kill('SIGTERM')
  expect(await gateway.exited).toBe(0)
  const { code, stdout } = await run('cli.ts', ['usage', 'reconcile'], { ...environment, GATEWAY_DATA_DIR: folder })
  expect([code, stdout]).toEqual([0, stdout])
  return slowestMs
}

async function outcome(send: () => Promise<Response>): Promise<Outcome> {
  const beganAt = performance.now()
  let waitedMs = 0
  const result = await read(send, () => {
    waitedMs = performance.now() - beganAt
  })
  return { ...result, beganAt, waitedMs }
}

async function read(send: () => Promise<Response>, hasStatus: () => void) {
  try {
    const answer = await send()
    hasStatus()
    const text = await answer.text()
    const last = text.startsWith('data:') || text.startsWith(':') ? lastEvent(text) : JSON.parse(text)
    const { usage } = last
    if (answer.status === 503 && last.error?.code === 'service_unavailable' && answer.headers.has('retry-after'))
      return { refused: true } as const
    if (answer.status !== 200 || usage === undefined) return { failed: `${answer.status} ${text.slice(-300)}` }
    return { id: last.request_id, tokens: usage.total_tokens, usd: usage.cost_usd }
  } catch (cause) {
    return { failed: String(cause) }
  }
}

function lastEvent(text: string) {
  const line = text
    .split('\n')
    .filter(part => part.startsWith('data: '))
    .at(-1)
  const event = JSON.parse(line?.slice(6) ?? '{}')
  return event.type === 'done' ? event : {}
}

async function refusal(gateway: GatewayProcess, key: string) {
  const answer = await gateway.chat(key, 'hello')
  const { error } = (await answer.json()) as { error?: { code?: string } }
  return { status: answer.status, code: error?.code, retryAfter: answer.headers.get('retry-after') }
}
