/**
 * 1,000 requests from 4 gateways for the last cent, token, concurrent request and minute, while Redis is healthy,
 * emptied, stopped, killed, missing, or unreachable for one of them, or Postgres is killed or stopped; of the account, of
 * one key, one project and one tag: `bun test/faults/limits.ts [rounds] [fault] [account | key | project | tag]`. After each race, all is
 * settled and Redis emptied, and a further race must find nothing left of what the ledger has. Exits with 1 if a limit was exceeded, or more than 0.1% of available capacity was rejected.
 */

import { createLimitKeys } from '../../src/core/limits/redis.ts'
import { tagScopeName } from '../../src/core/limits/scopes.ts'
import { projectTagName } from '../../src/core/request/tags.ts'
import { migrate, openDatabase } from '../../src/database/database.ts'
import { getDailyUsage } from '../../src/ledger/ledger.ts'
import type { AdmissionRequest } from '../../src/limits/meter.ts'
import { patientStore } from '../harness/patience.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'
import { type PrivateRedis, startRedis, startRedisCluster } from '../harness/redis.ts'
import { scope } from '../limits/meter.contract.ts'
import { startRacers, unit } from '../limits/racers.ts'
import { startProxy } from './tcp-proxy.ts'

const gateways = 4
const each = 250
const places = 200
const raceMs = 2_000

type Strike = (redis: PrivateRedis, cut: () => void, postgres: PrivatePostgres) => Promise<void>
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
  'whole, and Postgres stopped 3 s': {
    async strike(_redis, _cut, server) {
      const pids = server.pids()
      for (const pid of pids) signal(pid, 'SIGSTOP')
      await Bun.sleep(3_000)
      for (const pid of pids) signal(pid, 'SIGCONT')
    },
  },
  'whole, and Postgres killed and started': {
    async strike(_redis, _cut, server) {
      await server.crash()
      await Bun.sleep(500)
      await server.start()
    },
  },
  'killed and started, and Postgres too': {
    async strike(redis, _cut, server) {
      await Promise.all([redis.crash(), server.crash()])
      await Bun.sleep(500)
      await Promise.all([redis.start(), server.start()])
    },
  },
}

const limits = {
  cent: { dailyCostMicrocents: places * 1_000 + 999 },
  token: { dailyTokens: places * 11 + 10 },
  reservation: { concurrentRequests: places },
  minute: { requestsPerMinute: places },
} as const
const month = { monthlyCostMicrocents: places * 1_000 + 999 }

/** Requests for the last of each limit: of the account, of the key of all records, of a project or a tag beside a key with more. */
const subjects: Readonly<Record<string, (account: string) => Readonly<Record<string, AdmissionRequest>>>> = {
  account: account => mapped(limits, own => unit(account, own)),
  key: account => mapped({ ...limits, month }, own => ({ ...unit(account, {}), scopes: [scope(own)] })),
  project: account => besideKey(account, tagScopeName(projectTagName, 'prj_race')),
  tag: account => besideKey(account, 'tag:team=race'),
}

function besideKey(account: string, name: string) {
  return mapped({ ...limits, month }, own => ({
    ...unit(account, {}),
    scopes: [scope({ dailyTokens: 1_000_000 }), scope(own, name)],
  }))
}

function mapped<T, U>(all: Readonly<Record<string, T>>, change: (item: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(all).map(([name, item]) => [name, change(item)]))
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // This child of the server has ended.
  }
}

const [rounds = '3', only, subject] = process.argv.slice(2)
const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
if (postgres === null || redis === null) throw new Error('needs Postgres and Redis')
const database = openDatabase(postgres.url, { connections: 2, ...patientStore })
await migrate(database)
const tags = { team: 'race', [projectTagName]: 'prj_race' }
let isWell = true

for (const [fault, { strike, begins }] of Object.entries(faults)) {
  if (only !== undefined && only !== fault) continue
  for (const [kind, limit] of Object.entries(subjects).flatMap(([name, of]) =>
    Object.keys(of('')).map(text => [name, text] as const),
  )) {
    if (subject !== undefined && subject !== kind) continue
    const sums = { admitted: 0, over: 0, under: 0, slowestMs: 0 }
    for (let round = 0; round < Number(rounds); round++) {
      await redis.crash()
      await redis.start()
      const proxy = startProxy(redis.port)
      const account = `${fault}-${kind}-${limit}-${round}`
      const request = subjects[kind]?.(account)[limit] ?? unit(account, {})
      await storeLimits(account, request.scopes)
      const cluster = begins === 'cluster' ? await startRedisCluster() : null
      const struck = cluster === null ? redis : await getHolder(cluster, account)
      const addresses = Array.from({ length: gateways }, (_, index) => (index === 0 ? proxy.url : redis.url))
      const address = begins === 'without' ? 'redis://127.0.0.1:1' : cluster?.map(({ url }) => url).join(',')
      const team = startRacers(gateways, { redis: address ?? addresses, database: postgres.url })
      if (begins !== 'without') await team.shared(20_000)
      const racing = team.race(request, each, raceMs)
      await Bun.sleep(raceMs / 8)
      await strike(struck, proxy.cut, postgres)
      const first = await racing
      // Capacity that was rejected during the change must be available at once, or after limits are allocated again.
      const second = await team.race(request, places / gateways)
      const admitted = first.admitted + second.admitted
      await team.everyone({ kind: 'settle', tokens: 11, microcents: 1_000, tags })
      await team.everyone({ kind: 'drain' })
      const spent = await getDailyUsage(database, account, Math.floor(Date.now() / 86_400_000))
      if (spent.microcents !== admitted * 1_000) {
        process.stdout.write(`${account}: ${admitted} were admitted, and the ledger has ${spent.microcents / 1_000}\n`)
        isWell = false
      }
      if (limit === 'cent' || limit === 'token' || limit === 'month') {
        // Redis loads the account from the ledger again; a dead one stays dead, and Postgres has decided all along.
        await redis.command('FLUSHALL').catch(() => {})
        const third = await team.race(request, 25)
        sums.over += Math.max(0, admitted + third.admitted - Math.max(places, admitted))
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
      `Redis ${fault}, last ${limit} of the ${kind}: ${sums.admitted} of ${places * Number(rounds)} in ${rounds} rounds of ${gateways * each}; ${sums.over} over, ${sums.under} wrongly refused, slowest ${sums.slowestMs.toFixed(0)} ms\n`,
    )
  }
}
/** Stores the limits of a race: instances read them when they load the account again. */
async function storeLimits(account: string, scopes: AdmissionRequest['scopes'] = []): Promise<void> {
  await database.run(
    ({ sql }) => sql`
      with account as (insert into accounts (id, name, plan, created_at) values (${account}, 'race', 'usage', now()))
      insert into users (id, account_id, email, password_hash, role, created_at)
      values (${account}, ${account}, ${`${Bun.hash(account)}@race.test`}, '', 'owner', now())`,
  )
  for (const { name, limits: own } of scopes) {
    const stored = JSON.stringify(own)
    const [tag, value] = name.slice('tag:'.length).split('=')
    await database.run(({ sql }) =>
      name.startsWith('tag:')
        ? sql`insert into tag_limits values (${account}, ${tag ?? ''}, ${value ?? ''}, ${stored}::text::jsonb, now())`
        : sql`
            insert into api_keys (id, account_id, user_id, name, public_id, digest, created_at, limits)
            values (${name.slice('key:'.length)}, ${account}, ${account}, 'race', 'race', 'race', now(), ${stored}::text::jsonb)
            on conflict (id) do update set account_id = excluded.account_id, limits = excluded.limits`,
    )
  }
}

/** Returns the cluster node with the account's counters. */
async function getHolder(cluster: readonly PrivateRedis[], account: string): Promise<PrivateRedis> {
  const slot = Number(
    await cluster[0]?.command('CLUSTER', 'KEYSLOT', createLimitKeys(cluster.map(({ url }) => url)).account(account)),
  )
  return cluster[slot < 5_461 ? 0 : slot < 10_923 ? 1 : 2] ?? Promise.reject(new Error('no such node'))
}

await database.close()
await Promise.all([postgres.stop(), redis.stop()])
process.exit(isWell ? 0 : 1)
