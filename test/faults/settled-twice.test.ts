/**
 * Responses that ended while their gateway's connections to both stores were cut, and a gateway that is killed before
 * it could report them: other instances count their checkpoints, and the journal of the dead one ships their records and
 * corrects the counters when it is back.
 */
import { afterAll, describe, expect, setDefaultTimeout } from 'bun:test'
import { openDatabase } from '../../src/database/database.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { dataFolder, type GatewayProcess, run, startProcess, stopProcesses } from '../harness/processes.ts'
import { openCheckpointCount, startRedis } from '../harness/redis.ts'
import { freshKey } from './accounts.ts'
import { startProxy } from './tcp-proxy.ts'

setDefaultTimeout(240_000)

const answers = 10
const stores = await Promise.all([startPostgres(), startRedis()])
const [postgres, redis] = stores

afterAll(async () => {
  await stopProcesses()
  await Promise.all(stores.map(store => store?.stop()))
})

type Seen = { readonly id: string; readonly tokens: number; readonly microcents: number }

/** A response that takes some seconds, with the usage that its client received. */
async function longAnswer(gateway: GatewayProcess, key: string): Promise<Seen> {
  const prompt = '[[sim:tokens=110, chunk=1, pace_ms=40]] tell me'
  const text = await (await gateway.chat(key, prompt, { stream: true })).text()
  const last = text
    .split('\n')
    .filter(line => line.startsWith('data: '))
    .at(-1)
  const event = JSON.parse(last?.slice(6) ?? '{}')
  expect(event).toMatchObject({ type: 'done' })
  const { usage, request_id: id } = event
  return { id, tokens: usage.total_tokens, microcents: Math.round(usage.cost_usd * 1e8) }
}

describe('ledger of dead instances', () => {
  testNeeding(
    ['postgres', 'redis'],
    'records what clients received, and so do all sums, when the instance is back',
    async () => {
      const [server, cache] = [needed(postgres), needed(redis)]
      const [toPostgres, toRedis] = [startProxy(Number(new URL(server.url).port)), startProxy(cache.port)]
      const proxied = new URL(server.url)
      proxied.port = String(toPostgres.port)
      const direct = {
        DATABASE_URL: server.url,
        REDIS_URL: cache.url,
        JWT_SECRET: 'a secret of the tests, long enough to be taken',
      }
      const folder = dataFolder()
      const [sibling, victim] = await Promise.all([
        startProcess(dataFolder(), direct),
        startProcess(folder, { ...direct, DATABASE_URL: proxied.href, REDIS_URL: toRedis.url }),
      ])
      const key = await freshKey(server.url, { concurrent: 2 * answers })
      for (const gateway of [victim, sibling])
        await eventually(async () => (await gateway.chat(key, 'hello')).status === 200, 10_000, 50)
      const database = openDatabase(server.url, { connections: 1, ...patientStore })

      const running = Promise.all(Array.from({ length: answers }, () => longAnswer(victim, key)))
      running.catch(() => {})
      await eventually(async () => (await openCheckpointCount(cache)) === answers, 15_000, 100)
      toRedis.cut()
      toPostgres.cut()
      const seen = await running
      victim.kill('SIGKILL')
      await victim.exited

      const rows = () =>
        database.run(
          ({ sql }) => sql<{ id: string; status: string; truth: string; tokens: number; microcents: number }[]>`
          select request_id as id, status, truth, (input_tokens + output_tokens)::float8 as tokens,
            billed_microcents::float8 as microcents
          from usage_records
          where request_id in (select json_array_elements_text(${JSON.stringify(seen.map(({ id }) => id))}::text::json))`,
          240_000,
        )
      // The other instance's limits count the checkpoints; the records are on the disk of the dead one.
      expect((await sibling.chat(key, 'hello')).status).toBe(200)
      expect(await rows()).toHaveLength(0)

      await startProcess(folder, direct)
      await eventually(async () => (await rows()).length === answers, 30_000, 100)
      const byId = (item: { id: string }, other: { id: string }) => item.id.localeCompare(other.id)
      const ended = seen.map(item => ({ ...item, status: 'completed', truth: 'final' }))
      expect((await rows()).map(row => ({ ...row })).sort(byId)).toEqual(ended.sort(byId))

      const audited = await run('cli.ts', ['usage', 'reconcile', '--json'], { ...direct, GATEWAY_DATA_DIR: folder })
      const found = JSON.parse(audited.stdout)
      expect(found).toMatchObject({ ok: true, counters: 1, differences: [], replaced: { requests: 0 } })
      expect(audited.code).toBe(0)
      await database.close()
      toRedis.stop()
      toPostgres.stop()
    },
  )
})
