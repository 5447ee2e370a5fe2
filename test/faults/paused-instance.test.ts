/**
 * A gateway process that is paused, like a suspended machine, for longer than the leases of its open requests, beside
 * another one that serves the same account.
 */
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import { openDatabase } from '../../src/database/database.ts'
import { newAccountOn } from '../harness/account.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { dataFolder, type GatewayProcess, run, startProcess, stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'
import { startUpstream } from '../harness/upstream.ts'
import { eventStream, getFrames } from './support.ts'

setDefaultTimeout(240_000)

const mostOpen = 4
const dailyTokens = 1_000
/** Tokens of a response, unless less was reserved for it. */
const usual = { input: 5, output: 40 }

const stores = await Promise.all([startPostgres(), startRedis()])
const [postgres, redis] = stores
const held = Promise.withResolvers<void>()
const upstream = startUpstream(request => {
  const { max_tokens, max_completion_tokens = max_tokens } = JSON.parse(request.body) as Record<string, number>
  const output = Math.min(usual.output, max_completion_tokens ?? usual.output)
  const { opening, content, closing } = getFrames('openai', ['one ', 'two '], { input: usual.input, output })
  async function* pieces() {
    yield* [...opening, ...content]
    if (request.body.includes('held')) await held.promise
    yield* closing
  }
  return { headers: eventStream, framing: 'chunked', pieces: pieces() }
})

afterAll(async () => {
  upstream.stop()
  await stopProcesses()
  await Promise.all(stores.map(store => store?.stop()))
})

testNeeding(
  ['postgres', 'redis'],
  'two instances: exceed concurrent requests by no more than those of a paused one, and tokens by nothing, with each response in the ledger once',
  async () => {
    const [server, cache] = [needed(postgres), needed(redis)]
    const environment = {
      DATABASE_URL: server.url,
      REDIS_URL: cache.url,
      JWT_SECRET: 'a secret of the tests, long enough to be taken',
      OPENAI_API_KEY: 'sk-test',
      OPENAI_BASE_URL: `${upstream.url}/v1`,
    }
    const folder = dataFolder()
    const [paused, sibling] = await Promise.all([
      startProcess(folder, environment),
      startProcess(dataFolder(), environment),
    ])
    const database = openDatabase(server.url, { connections: 1, ...patientStore })
    const { id: accountId, key } = await newAccountOn(database, {
      requestsPerMinute: 1_000_000,
      concurrentRequests: mostOpen,
      dailyTokens,
      dailyCostMicrocents: 1_000_000_000_000,
    })
    const bodies: Promise<string>[] = []
    /** Returns the status or the error code. Bodies of responses are read at the end. */
    const send = async (gateway: GatewayProcess, prompt: string): Promise<string> => {
      const answer = await gateway.chat(key, prompt, { model: 'openai/gpt-4.1', stream: true, max_output_tokens: 50 })
      const body = answer.text()
      if (answer.status !== 200) return /"code":"(\w+)"/.exec(await body)?.[1] ?? String(answer.status)
      bodies.push(body)
      if (prompt !== 'held') await body
      return 'served'
    }
    for (const gateway of [paused, sibling]) await eventually(async () => (await send(gateway, 'now')) === 'served')

    for (let open = 0; open < mostOpen - 1; open++) expect(await send(paused, 'held')).toBe('served')
    process.kill(paused.pid, 'SIGSTOP')
    const queued = [send(paused, 'now'), send(paused, 'now')]
    expect(await send(sibling, 'held')).toBe('served')
    expect(await send(sibling, 'held')).toBe('concurrent_requests_exceeded')
    // The leases of the paused instance end.
    await eventually(async () => (await send(sibling, 'held')) === 'served', 60_000, 100)
    let open = 2
    for (; (await send(sibling, 'held')) === 'served'; open++);
    expect(open).toBe(mostOpen)
    process.kill(paused.pid, 'SIGCONT')
    for (const code of await Promise.all(queued)) expect(code).toBe('concurrent_requests_exceeded')
    held.resolve()
    await Promise.all(bodies)

    // Both use up the day. An allowance of the other one delays the last requests.
    const codes = new Set<string>()
    for (const gateway of [paused, sibling, paused, sibling])
      await eventually(async () => {
        const code = await send(gateway, 'now')
        codes.add(code)
        return code === 'daily_tokens_exceeded'
      })
    expect([...codes].filter(code => code !== 'service_unavailable').sort()).toEqual([
      'daily_tokens_exceeded',
      'served',
    ])

    for (const gateway of [paused, sibling]) gateway.kill('SIGTERM')
    expect(await Promise.all([paused.exited, sibling.exited])).toEqual([0, 0])
    const seen = (await Promise.all(bodies)).map(text => {
      const { type, request_id: id, usage } = JSON.parse(text.trimEnd().split('\n').at(-1)?.slice(6) ?? '{}')
      return { type, id, tokens: usage?.total_tokens }
    })
    const rows = await database.run(
      ({ sql }) => sql<{ id: string; tokens: number }[]>`
        select request_id as id, (input_tokens + output_tokens)::int as tokens from usage_records
        where account_id = ${accountId}`,
    )
    const byId = (item: { id: string }, other: { id: string }) => item.id.localeCompare(other.id)
    expect(rows.map(row => ({ type: 'done', ...row })).sort(byId)).toEqual(seen.sort(byId))
    const total = rows.reduce((sum, { tokens }) => sum + tokens, 0)
    expect(total).toBeLessThanOrEqual(dailyTokens)
    // Less is left than a request needs.
    expect(total).toBeGreaterThan(dailyTokens - usual.input - usual.output)
    await database.close()
    const { code, stdout } = await run('cli.ts', ['usage', 'reconcile', '--json'], {
      ...environment,
      GATEWAY_DATA_DIR: folder,
    })
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { ok: true, counters: 1, differences: [] }])
  },
)
