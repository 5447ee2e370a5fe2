/**
 * 1,000 requests from 4 gateways for the last cent, token, concurrent request and minute, while Redis is healthy,
 * emptied, stopped, killed, missing, or unreachable for one of them: `bun test/faults/limits.ts [rounds] [fault]`.
 * Exits with 1 if a limit was exceeded, or more than 0.1% of available capacity was rejected.
 */

import { keysOf, partitionOf } from '../../src/core/limits/partitions.ts'
import { migrate, openDatabase } from '../../src/database/database.ts'
import { dailyUsageOf } from '../../src/ledger/ledger.ts'
import { startPostgres } from '../harness/postgres.ts'
import { type PrivateRedis, startRedis, startRedisCluster } from '../harness/redis.ts'
import { startRacers, unit } from '../limits/racers.ts'
import { startProxy } from './tcp-proxy.ts'

const gateways = 4
const each = 250
const places = 200
const raceMs = 2_000

type Strike = (redis: PrivateRedis, cut: () => void) => Promise<void>
const faults: Readonly<Record<string, { readonly strike: Strike; readonly begins?: 'without' | 'cluster' }>> = {
  whole: { strike: async () => {} },
  emptied: {
    async strike(redis) {
      for (let round = 0; round < 4; round++) {
        await redis.command('FLUSHALL')
        await Bun.sleep(500)
      }
    },
  },
  'stopped 5 s': {
    async strike(redis) {
      redis.freeze()
      await Bun.sleep(5_000)
      redis.thaw()
    },
  },
  'killed and started': {
    async strike(redis) {
      await redis.crash()
      await Bun.sleep(500)
      await redis.start()
    },
  },
  killed: { strike: redis => redis.crash() },
  'not there at the start': { strike: async () => {}, begins: 'without' },
  'cluster’s node lost': { strike: redis => redis.crash(), begins: 'cluster' },
  'cut off from one gateway': { strike: async (_, cut) => cut() },
}

const limits = {
  cent: { dailyCostMicrocents: places * 1_000 + 999 },
  token: { dailyTokens: places * 11 + 10 },
  seat: { concurrentRequests: places },
  minute: { requestsPerMinute: places },
} as const

const [rounds = '3', only] = process.argv.slice(2)
const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
if (postgres === null || redis === null) throw new Error('needs Postgres and Redis')
const database = openDatabase(postgres.url, { connections: 2 })
await migrate(database)
let isWell = true

for (const [fault, { strike, begins }] of Object.entries(faults)) {
  if (only !== undefined && only !== fault) continue
  for (const [limit, own] of Object.entries(limits)) {
    const sums = { admitted: 0, over: 0, under: 0, slowestMs: 0 }
    for (let round = 0; round < Number(rounds); round++) {
      await redis.crash()
      await redis.start()
      const proxy = startProxy(redis.port)
      const account = `${fault}-${limit}-${round}`
      const cluster = begins === 'cluster' ? await startRedisCluster() : null
      const struck = cluster === null ? redis : await holderOf(cluster, account)
      const addresses = Array.from({ length: gateways }, (_, index) => (index === 0 ? proxy.url : redis.url))
      const address = begins === 'without' ? 'redis://127.0.0.1:1' : cluster?.map(({ url }) => url).join(',')
      const team = startRacers(gateways, { redis: address ?? addresses, database: postgres.url })
      if (begins !== 'without') await team.shared(20_000)
      const racing = team.race(unit(account, own), each, raceMs)
      await Bun.sleep(raceMs / 8)
      await strike(struck, proxy.cut)
      const first = await racing
      // Capacity that was rejected during the change must be available at once, or after limits are allocated again.
      const second = await team.race(unit(account, own), places / gateways)
      const admitted = first.admitted + second.admitted
      await team.everyone({ kind: 'settle', tokens: 11, microcents: 1_000 })
      await team.everyone({ kind: 'drain' })
      const spent = await dailyUsageOf(database, account, Math.floor(Date.now() / 86_400_000))
      if (spent.microcents !== admitted * 1_000) {
        process.stdout.write(`${account}: ${admitted} were admitted, and the ledger has ${spent.microcents / 1_000}\n`)
        isWell = false
      }
      sums.admitted += admitted
      sums.over += Math.max(0, admitted - places)
      sums.under += Math.max(0, places - admitted)
      sums.slowestMs = Math.max(sums.slowestMs, first.slowestMs)
      await team.stop()
      proxy.stop()
      await Promise.all((cluster ?? []).map(node => node.stop()))
    }
    const asked = Number(rounds) * (gateways * each + places)
    if (sums.over > 0 || sums.under > asked / 1_000) isWell = false
    process.stdout.write(
      `Redis ${fault}, last ${limit}: ${sums.admitted} of ${places * Number(rounds)} in ${rounds} rounds of ${gateways * each}; ${sums.over} over, ${sums.under} wrongly refused, slowest ${sums.slowestMs.toFixed(0)} ms\n`,
    )
  }
}
/** Returns the cluster node with the account's counters. */
async function holderOf(cluster: readonly PrivateRedis[], account: string): Promise<PrivateRedis> {
  const slot = Number(await cluster[0]?.command('CLUSTER', 'KEYSLOT', keysOf(partitionOf(account)).epoch))
  return cluster[slot < 5_461 ? 0 : slot < 10_923 ? 1 : 2] ?? Promise.reject(new Error('no such node'))
}

await database.close()
await Promise.all([postgres.stop(), redis.stop()])
process.exit(isWell ? 0 : 1)
