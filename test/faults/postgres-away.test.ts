/**
 * Postgres unavailable for 5 s under load, with a real gateway process on a real server: known keys continue with
 * streams and new requests, unknown ones are rejected with 503, and the ledger matches the clients' view afterwards.
 */
import { afterAll, describe, setDefaultTimeout, test } from 'bun:test'
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

describe('Postgres unavailable for 5 s under load', () => {
  test('limits in process: serve known keys, answer 503 to unknown ones, and ship all usage within 10 s', async () => {
    if (postgres !== null)
      await throughOutage('Postgres gone', postgres, {}, [
        [0, postgres.crash],
        [awayMs, postgres.start],
      ])
  })

  test('limits in Redis: behave the same', async () => {
    if (postgres !== null && redis !== null)
      await throughOutage('Postgres gone, Redis there', postgres, { REDIS_URL: redis.url }, [
        [0, postgres.crash],
        [awayMs, postgres.start],
      ])
  })
})
