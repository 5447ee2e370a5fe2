/**
 * Postgres unavailable for 5 s under load, with a real gateway process on a real server: known keys continue with
 * streams and new requests, unknown ones are rejected with 503, and the ledger matches the clients' view afterwards.
 */
import { afterAll, describe, setDefaultTimeout } from 'bun:test'
import { needed, testNeeding } from '../harness/needs.ts'
import { startPostgres } from '../harness/postgres.ts'
import { stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'
import { throughOutage } from './outage.ts'

setDefaultTimeout(240_000)

const awayMs = 5_000

const stores = await Promise.all([startPostgres(), startRedis()])
const [postgres, redis] = stores

afterAll(async () => {
  await stopProcesses()
  await Promise.all(stores.map(store => store?.stop()))
})

describe('Postgres unavailable for 5 s under load', () => {
  testNeeding(
    'postgres',
    'limits in process: serve known keys, answer 503 to unknown ones, and ship all usage after its return',
    async () => {
      const server = needed(postgres)
      await throughOutage('Postgres gone', server, {}, [
        [0, server.crash],
        [awayMs, server.start],
      ])
    },
  )

  testNeeding(['postgres', 'redis'], 'limits in Redis: behave the same', async () => {
    const server = needed(postgres)
    await throughOutage('Postgres gone, Redis there', server, { REDIS_URL: needed(redis).url }, [
      [0, server.crash],
      [awayMs, server.start],
    ])
  })

  testNeeding(
    ['postgres', 'redis'],
    'limits in Redis, which is killed too: serve known keys from allowances, and ship all usage once after the return of both',
    async () => {
      const [server, limits] = [needed(postgres), needed(redis)]
      await throughOutage(
        'both gone',
        server,
        { REDIS_URL: limits.url },
        [
          [0, limits.crash],
          [0, server.crash],
          [awayMs, limits.start],
          [awayMs, server.start],
        ],
        'some',
      )
    },
  )
})
