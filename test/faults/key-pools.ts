/**
 * `bun test/faults/key-pools.ts`: four gateway processes on one Redis share keys whose upstream counts requests per key
 * itself. Prints per phase how many requests each bucket rejected, and the clients' 429s while a bucket had room.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { command } from '../../src/commands/command.ts'
import { runCommand } from '../../src/commands/run-command.ts'
import { openDatabase } from '../../src/database/database.ts'
import { newAccountOn } from '../harness/account.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { dataFolder, type GatewayProcess, startProcess, stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'

const processes = 4
const rates: ReadonlyMap<string, number> = new Map([
  ['a', 60],
  ['b', 240],
  ['c', 600],
])

type Bucket = { left: number; at: number; rejected: number; served: number }

/** An upstream with one bucket of requests per key, without headers that would tell its level. */
function startCountingUpstream() {
  const buckets = new Map<string, Bucket>()
  const refill = (key: string): Bucket => {
    const rpm = rates.get(key) ?? 0
    const now = performance.now()
    const bucket = buckets.get(key) ?? { left: rpm, at: now, rejected: 0, served: 0 }
    bucket.left = Math.min(rpm, bucket.left + ((now - bucket.at) * rpm) / 60_000)
    bucket.at = now
    buckets.set(key, bucket)
    return bucket
  }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const bucket = refill(request.headers.get('authorization')?.slice('Bearer '.length) ?? '')
      if (bucket.left < 1) {
        bucket.rejected++
        const error = { message: 'Rate limit reached', type: 'requests', code: 'rate_limit_exceeded' }
        return Response.json({ error }, { status: 429, headers: { 'retry-after': '1' } })
      }
      bucket.left -= 1
      bucket.served++
      const message = { role: 'assistant', content: 'Hello.' }
      const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
      return Response.json({ id: 'c', model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }], usage })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    stop: () => server.stop(true),
    /** Whether a bucket has had room for two requests: one may be on its way. */
    hasRoom: () => [...rates.keys()].some(key => refill(key).left >= 2),
    /** Returns the counts since the last call. */
    counts() {
      const text = [...buckets].map(([key, { served, rejected }]) => `${key}: ${served} served, ${rejected} rejected`)
      for (const bucket of buckets.values()) Object.assign(bucket, { served: 0, rejected: 0 })
      return text.sort().join('; ')
    },
  }
}

const rig = command({
  program: 'bun',
  name: 'test/faults/key-pools.ts',
  about: 'Exhaust a key pool from four processes',
  operands: {},
  options: {
    seconds: { type: 'string', value: 'N', about: 'Seconds of each phase; 20 unless given' },
    rate: { type: 'string', value: 'N', about: 'Requests per second of all processes; 60 unless given' },
  },
  async run({ options: { seconds = '20', rate = '60' } }) {
    const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
    if (postgres === null || redis === null) throw new Error('a real Postgres and Redis are needed')
    const upstream = startCountingUpstream()
    const folder = mkdtempSync(join(tmpdir(), 'key-pools-'))
    try {
      const path = join(folder, 'config.json')
      const keys = [...rates].map(([name, rpm]) => ({ name, api_key_env: `KEY_${name.toUpperCase()}`, rpm }))
      const models = [{ id: 'm', pricing: { input_per_mtok: 0, output_per_mtok: 0 } }]
      writeFileSync(path, JSON.stringify({ providers: [{ id: 'own', base_url: upstream.url, keys, models }] }))
      const environment = {
        DATABASE_URL: postgres.url,
        REDIS_URL: redis.url,
        JWT_SECRET: 'rig'.repeat(16),
        GATEWAY_CONFIG: path,
        KEY_A: 'a',
        KEY_B: 'b',
        KEY_C: 'c',
      }
      const gateways: GatewayProcess[] = []
      for (let count = 0; count < processes; count++) gateways.push(await startProcess(dataFolder(), environment))
      const database = openDatabase(postgres.url, patientStore)
      const limits = { requestsPerMinute: 1_000_000, concurrentRequests: 10_000 }
      const { key } = await newAccountOn(database, limits)
      await database.close()

      const phase = async (title: string) => {
        const statuses = new Map<number, number>()
        let unfair = 0
        const open: Promise<void>[] = []
        const ask = async (index: number) => {
          const gateway = gateways[index % processes]
          const response = await gateway?.chat(key, 'Say hello.', {
            model: 'own/m',
            fallback: false,
            max_output_tokens: 5,
          })
          await response?.text()
          const status = response?.status ?? 0
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          if (status === 429 && upstream.hasRoom()) unfair++
        }
        const count = Number(rate) * Number(seconds)
        for (let index = 0; index < count; index++) {
          open.push(ask(index))
          await Bun.sleep(1_000 / Number(rate))
        }
        await Promise.all(open)
        const shown = [...statuses].map(([status, times]) => `${times} × ${status}`).join(', ')
        process.stdout.write(`${title}: ${shown}; ${upstream.counts()}; ${unfair} × 429 while a key had room\n`)
      }
      await phase('with Redis')
      await phase('with Redis, exhausted')
      await redis.crash()
      await phase('Redis away')
      await redis.start()
      await phase('Redis back')
    } finally {
      upstream.stop()
      await stopProcesses()
      await Promise.all([postgres.stop(), redis.stop()])
      rmSync(folder, { recursive: true, force: true })
    }
  },
})

process.exitCode = await runCommand(rig, process.argv.slice(2))
