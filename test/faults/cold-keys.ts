/**
 * `bun test/faults/cold-keys.ts`: Postgres 40 ms away, and a steady stream of unknown keys beside known ones. Every
 * request must be answered, and known keys must not be delayed. Prints counts and times.
 */
import { join } from 'node:path'
import { command, runCommand } from '../../src/commands/command.ts'
import { openDatabase } from '../../src/database/database.ts'
import { startChild, stopChildren } from '../bench/load/child.ts'
import type { OpenLoad, OpenLoadResult } from '../bench/load/open-load.ts'
import { newAccountOn } from '../harness/account.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { dataFolder, startProcess, stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'
import { startProxy } from './tcp-proxy.ts'

const body = JSON.stringify({
  model: 'gateway-ai',
  max_tokens: 16,
  messages: [{ role: 'user', content: 'Say hello.' }],
})

const rig = command({
  program: 'bun',
  name: 'test/faults/cold-keys.ts',
  about: 'Show the gateway new keys while Postgres is far away',
  operands: {},
  options: {
    rate: { type: 'string', value: 'N', about: 'New keys per second; 80 unless given' },
    seconds: { type: 'string', value: 'N', about: '8 unless given' },
    away: { type: 'string', value: 'MS', about: 'Round trip to Postgres; 40 unless given' },
    redis: { type: 'boolean', about: 'Limits in Redis' },
  },
  async run({ options: { rate = '80', seconds = '8', away = '40', redis: withRedis } }) {
    const [postgres, redis] = await Promise.all([startPostgres(), withRedis ? startRedis() : null])
    if (postgres === null) throw new Error('a real Postgres is needed')
    const far = new URL(postgres.url)
    const proxy = startProxy(Number(far.port), { roundTripMs: Number(away) })
    far.port = String(proxy.port)
    try {
      const gateway = await startProcess(dataFolder(), {
        DATABASE_URL: far.href,
        JWT_SECRET: 'bench'.repeat(8),
        ...(redis === null ? {} : { REDIS_URL: redis.url }),
      })
      const database = openDatabase(postgres.url, patientStore)
      const count = Number(rate) * Number(seconds)
      const limits = { requestsPerMinute: 1_000_000, concurrentRequests: 10_000 }
      const cold: Awaited<ReturnType<typeof newAccountOn>>[] = []
      while (cold.length < count)
        cold.push(...(await Promise.all(Array.from({ length: 10 }, () => newAccountOn(database, limits)))))
      const known = await newAccountOn(database, limits)
      await database.close()
      // Known after its first request; the cold keys exist from the next poll on.
      for (let tries = 0; tries < 20; tries++) await (await gateway.chat(known.key, 'Say hello.')).text()
      const port = Number(new URL(gateway.url).port)
      const load = async (keys: readonly string[], perSecond: number): Promise<OpenLoadResult> => {
        const options: OpenLoad = {
          port,
          path: '/v1/chat/completions',
          keys,
          body,
          rate: perSecond,
          seconds: Number(seconds),
          warmingSeconds: 0,
          connections: 500,
        }
        const child = await startChild([
          process.execPath,
          join(import.meta.dir, '..', 'bench', 'load', 'open-load.ts'),
          JSON.stringify(options),
        ])
        return JSON.parse(child.line) as OpenLoadResult
      }
      const say = (name: string, { statuses }: OpenLoadResult) =>
        process.stdout.write(`${name.padEnd(28)} ${JSON.stringify(statuses)}\n`)
      say('known keys alone', await load([known.key], 20))
      const [ofCold, ofKnown] = await Promise.all([
        load(
          cold.map(({ key }) => key),
          Number(rate),
        ),
        load([known.key], 20),
      ])
      say('known keys beside cold ones', ofKnown)
      say('cold keys', ofCold)
      const lines = gateway
        .output()
        .split('\n')
        .filter(line => line.includes('"level":"error"') || line.includes('"level":"warn"'))
      process.stdout.write(`${lines.length} warnings and errors ${lines.at(-1) ?? ''}\n`)
    } finally {
      await stopProcesses()
      await stopChildren()
      proxy.stop()
      await Promise.all([postgres.stop(), redis?.stop()])
    }
  },
})

process.exitCode = await runCommand(rig, process.argv.slice(2))
