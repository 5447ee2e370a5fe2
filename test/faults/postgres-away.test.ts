/**
 * Postgres gone for five seconds under load, of a real gateway process on a real server: who is known goes on, streams and
 * new requests alike, who is not is told to come again, and afterwards the ledger says what the callers saw.
 */
import { afterAll, describe, setDefaultTimeout } from 'bun:test'
import { needed, testNeeding } from '../harness/needs.ts'
import { startPostgres } from '../harness/postgres.ts'
import { stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'
import { throughOutage } from './outage.ts'

setDefaultTimeout(120_000)

const awayMs = 5_000

const stores = await Promise.all([startPostgres(), startRedis()])
const [postgres, redis] = stores

afterAll(async () => {
  await stopProcesses()
  await Promise.all(stores.map(store => store?.stop()))
})

describe('Postgres is gone for 5 s under load', () => {
  testNeeding(
    'postgres',
    'limits in process: known keys go on, unknown ones get 503, and all is in the ledger ≤ 10 s after its return',
    async () => {
      const server = needed(postgres)
      await throughOutage('Postgres gone', server, {}, [
        [0, server.crash],
        [awayMs, server.start],
      ])
    },
  )

  testNeeding(['postgres', 'redis'], 'limits in Redis: the same', async () => {
    const server = needed(postgres)
    await throughOutage('Postgres gone, Redis there', server, { REDIS_URL: needed(redis).url }, [
      [0, server.crash],
      [awayMs, server.start],
    ])
  })
})
