import { afterAll, afterEach, expect, test } from 'bun:test'

import { migrate, openDatabase } from '../../src/database/database.ts'
import { getDailyUsage } from '../../src/ledger/ledger.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, reportSkipped } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { openCheckpointCount, type PrivateRedis, startRedis, startSentinel } from '../harness/redis.ts'
import { type Race, startRacers, unit } from '../limits/racers.ts'
import { nowhere } from '../limits/rig.ts'

const server: PrivateRedis | null = await startRedis()
const postgres = await startPostgres()
const database = postgres === null ? null : openDatabase(postgres.url, patientStore)
if (database !== null) await migrate(database)
const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUps.splice(0).reverse()) await step()
})
afterAll(async () => {
  await database?.close()
  await postgres?.stop()
  await server?.stop()
})

type Team = ReturnType<typeof startRacers>

async function racers(
  count: number,
  redis: PrivateRedis | null,
  more: { readonly leaseMs?: number; readonly redisMs?: number; readonly asksAgainMs?: number } = {},
): Promise<Team> {
  await redis?.command('FLUSHALL')
  const team = startRacers(count, { redis: redis?.url ?? nowhere, database: postgres?.url ?? '', ...more })
  cleanUps.push(team.stop)
  return team
}

type Given = Pick<Race, 'admitted' | 'refused'>

/** Expects exactly the available amount, and the limit's code for rejected requests. */
function expectHandedOut({ admitted, refused }: Given, most: number, code: string, least = most) {
  expect(Object.keys(refused)).toEqual([code])
  expect(admitted).toBeLessThanOrEqual(most)
  expect(admitted).toBeGreaterThanOrEqual(least)
}

function together(given: Given, other: Given): Given {
  const codes = new Set([...Object.keys(given.refused), ...Object.keys(other.refused)])
  const refused = Object.fromEntries(
    [...codes].map(code => [code, (given.refused[code] ?? 0) + (other.refused[code] ?? 0)]),
  )
  return { admitted: given.admitted + other.admitted, refused }
}

if (server === null || database === null) reportSkipped(['redis', 'postgres'], 'races for limits')

if (server !== null && postgres !== null && database !== null) {
  const today = () => Math.floor(Date.now() / 86_400_000)

  test('shared meter: grants exactly the remaining limit to 1,000 concurrent requests on 4 gateways', async () => {
    const team = await racers(4, server)
    const cases = {
      cent: { dailyCostMicrocents: 100_999 },
      token: { dailyTokens: 1_109 },
      reservation: { concurrentRequests: 100 },
      minute: { requestsPerMinute: 100 },
    }
    await team.shared(60_000)
    for (const [account, limits] of Object.entries(cases)) {
      const { admitted } = await team.race(unit(account, limits), 250)
      expect({ account, admitted }).toEqual({ account, admitted: 100 })
    }
  }, 240_000)

  const faults: Record<string, (redis: PrivateRedis) => Promise<void>> = {
    emptied: async redis => void (await redis.command('FLUSHALL')),
    killed: async redis => {
      await redis.crash()
      await Bun.sleep(300)
      await redis.start()
    },
    frozen: async redis => {
      redis.freeze()
      await Bun.sleep(500)
      redis.thaw()
    },
    paused: async redis => void (await redis.command('CLIENT', 'PAUSE', '400', 'ALL')),
    slow: async redis => {
      for (let round = 0; round < 8; round++) await redis.command('DEBUG', 'SLEEP', '0.1')
    },
    busy: async redis => {
      await redis.command('CONFIG', 'SET', 'busy-reply-threshold', '5')
      const script = redis.command('EVAL', 'while true do end', '0').catch(() => {})
      await Bun.sleep(500)
      await redis.command('SCRIPT', 'KILL')
      await script
    },
    full: async redis => {
      await redis.command('CONFIG', 'SET', 'maxmemory', '1')
      await Bun.sleep(500)
      await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    },
    'read-only': async redis => {
      await redis.command('REPLICAOF', '127.0.0.1', '1')
      await Bun.sleep(500)
      await redis.command('REPLICAOF', 'NO', 'ONE')
    },
  }
  // Instances that survive several faults.
  let lasting: Team | null = null
  const lastingTeam = () => (lasting ??= startRacers(4, { redis: server.url, database: postgres.url }))
  afterAll(() => lasting?.stop())

  for (const [fault, strike] of Object.entries(faults)) {
    test(`shared meter: stays within limits and agrees with the ledger when Redis ${fault} during a race`, async () => {
      const team = lastingTeam()
      const account = `acc_${fault}`
      await team.shared(60_000)
      const racing = team.race(unit(account, { dailyCostMicrocents: 200_000 }), 120, 1500)
      await Bun.sleep(250)
      await strike(server)
      const first = await racing
      const struckAt = performance.now()
      await team.shared(60_000)
      const backMs = performance.now() - struckAt
      const second = await team.race(unit(account, { dailyCostMicrocents: 200_000 }), 60)
      await team.everyone({ kind: 'settle', tokens: 11, microcents: 1000 })
      await team.everyone({ kind: 'drain' })
      process.stdout.write(
        `Redis ${fault}: ${first.admitted} + ${second.admitted} of 200, slowest ${first.slowestMs.toFixed(0)} ms, back ${backMs.toFixed(0)} ms after the race\n`,
      )
      const spent = await getDailyUsage(database, account, today())
      expect(spent.microcents).toBe((first.admitted + second.admitted) * 1000)
      expectHandedOut(together(first, second), 200, 'daily_cost_exceeded')
    }, 240_000)
  }

  test('shared meter: stays within limits and agrees with the ledger when Sentinel promotes a replica during a race', async () => {
    const [primary, replica] = [needed(await startRedis()), needed(await startRedis())]
    cleanUps.push(() => Promise.all([primary.stop(), replica.stop()]))
    await replica.command('REPLICAOF', '127.0.0.1', String(primary.port))
    const sentinel = await startSentinel(primary, 'limits')
    cleanUps.push(sentinel.stop)
    await eventually(sentinel.knowsReplica, 60_000)
    const team = startRacers(4, { redis: sentinel.url, database: postgres.url })
    cleanUps.push(team.stop)
    await team.shared(60_000)
    const request = unit('acc_promoted', { dailyCostMicrocents: 200_000, dailyTokens: 10_000 })
    const racing = team.race(request, 120, 3_000)
    await Bun.sleep(700)
    await primary.crash()
    const first = await racing
    await team.shared(60_000)
    expect(String(await replica.command('ROLE'))).toContain('master')
    const race = together(first, await team.race(request, 60))
    await team.everyone({ kind: 'settle', tokens: 11, microcents: 1000 })
    await team.everyone({ kind: 'drain' })
    expectHandedOut(race, 200, 'daily_cost_exceeded')
    expect((await getDailyUsage(database, request.accountId, today())).microcents).toBe(race.admitted * 1000)
  }, 240_000)

  test('shared meter: neither exceeds limits nor loses usage when Redis is flushed repeatedly under load', async () => {
    const team = lastingTeam()
    await team.shared(60_000)
    const request = unit('acc_again', { dailyCostMicrocents: 200_000 })
    const racing = team.race(request, 120, 3000)
    for (let round = 0; round < 6; round++) {
      await Bun.sleep(500)
      await server.command('FLUSHALL')
    }
    const first = await racing
    await team.shared(60_000)
    const race = together(first, await team.race(request, 60))
    const { admitted } = race
    await team.everyone({ kind: 'settle', tokens: 11, microcents: 1000 })
    await team.everyone({ kind: 'drain' })
    expectHandedOut(race, 200, 'daily_cost_exceeded')
    expect((await getDailyUsage(database, 'acc_again', today())).microcents).toBe(admitted * 1000)
  }, 240_000)

  test('shared meter: counts open and recorded requests again when Redis evicts the counters of an account', async () => {
    const team = await racers(2, server)
    await team.shared(60_000)
    const places = 100
    const request = unit('acc_evicted', { dailyCostMicrocents: places * 1_000, concurrentRequests: 10 })
    const pay = async () => {
      await team.everyone({ kind: 'settle', tokens: 11, microcents: 1000 })
      await team.everyone({ kind: 'drain' })
    }
    let total = 0
    for (let round = 0; round < 3; round++) {
      total += (await team.race(request, 5)).admitted
      await pay()
    }
    total += (await team.race(request, 5)).admitted
    expect(total).toBe(40)
    await evict(server, 'account:acc_evicted')
    // Until instances renew, open requests are missing.
    let more = 0
    await eventually(async () => {
      const { admitted } = await team.race(request, 1)
      more += admitted
      return admitted === 0
    })
    expect(more).toBeLessThanOrEqual(10)
    await team.everyone({ kind: 'renew' })
    expect(await team.race(request, 5)).toMatchObject({ admitted: 0, refused: { concurrent_requests_exceeded: 10 } })
    await pay()
    total += more
    for (let admitted = 1; admitted > 0; total += admitted) {
      admitted = (await team.race(request, 5)).admitted
      await pay()
    }
    expect(total).toBe(places)
    expect((await getDailyUsage(database, 'acc_evicted', today())).microcents).toBe(places * 1_000)
  }, 240_000)

  test('shared meter: releases reservations of a killed gateway, whose requests its next process settles to their last checkpoint', async () => {
    const team = await racers(2, server, { leaseMs: 3_000 })
    const [first, second] = team.all
    await team.shared(60_000)
    const request = unit('acc_of_the_dead', { concurrentRequests: 5 })
    const five = { kind: 'race', request, count: 5, withinMs: 0 } as const
    expect(await first?.tell(five)).toMatchObject({ admitted: 5 })
    await first?.tell({ kind: 'checkpoint', tokens: 11, microcents: 700 })
    await eventually(async () => (await openCheckpointCount(server)) === 5, 10_000, 50)
    expect(await second?.tell(five)).toMatchObject({ admitted: 0, refused: { concurrent_requests_exceeded: 5 } })
    await first?.kill()
    await eventually(async () => (await second?.tell({ ...five, count: 1 }))?.admitted === 1, 20_000, 100)
    expect((await getDailyUsage(database, 'acc_of_the_dead', today())).microcents).toBe(0)
    const again = first?.startAgain()
    cleanUps.push(() => again?.kill())
    await again?.tell({ kind: 'drain' })
    expect((await getDailyUsage(database, 'acc_of_the_dead', today())).microcents).toBe(3_500)
    expect(await second?.tell({ ...five, count: 4 })).toMatchObject({ admitted: 4 })
  }, 240_000)

  test('shared meter: admits no request, and no wrong 429, when 4 gateways start without Redis', async () => {
    const team = await racers(4, null, { asksAgainMs: 0 })
    const race = await team.race(unit('acc_without', {}), 10)
    expect(race).toMatchObject({ admitted: 0, refused: { service_unavailable: 40 } })
  }, 240_000)

  for (const fault of ['killed', 'full', 'read-only'] as const)
    test(`shared meter: stays within cost and tokens with full ledger records when Redis stays ${fault}`, async () => {
      const team = await racers(4, server, { asksAgainMs: 1_000 })
      await team.shared(60_000)
      const request = unit(`acc_stays_${fault}`, { dailyCostMicrocents: 200_000, dailyTokens: 2_200 })
      const racing = team.race(request, 250, 4_000)
      await Bun.sleep(2_500)
      const heal = await strikeForGood[fault](server)
      cleanUps.push(heal)
      const { admitted, refused } = await racing
      process.stdout.write(`Redis stays ${fault}: ${admitted} of 200, ${JSON.stringify(refused)}\n`)
      expect(admitted).toBeLessThanOrEqual(200)
      await team.everyone({ kind: 'settle', tokens: 11, microcents: 1000 })
      await team.everyone({ kind: 'drain' })
      expect((await getDailyUsage(database, request.accountId, today())).microcents).toBe(admitted * 1000)
      await heal()
      await team.shared(60_000)
      const second = await team.race(request, 60)
      expect(admitted + second.admitted).toBeLessThanOrEqual(200)
    }, 240_000)
}

const strikeForGood: Readonly<
  Record<'killed' | 'full' | 'read-only', (redis: PrivateRedis) => Promise<() => Promise<void>>>
> = {
  async killed(redis) {
    await redis.crash()
    return once(() => redis.start())
  },
  async full(redis) {
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    return once(async () => void (await redis.command('CONFIG', 'SET', 'maxmemory', '0')))
  },
  async 'read-only'(redis) {
    await redis.command('REPLICAOF', '127.0.0.1', '1')
    return once(async () => void (await redis.command('REPLICAOF', 'NO', 'ONE')))
  },
}

/** Lets Redis evict the keys whose names have this in them, the only ones with an expiry. */
async function evict(redis: PrivateRedis, name: string): Promise<void> {
  const set = (setting: string, value: string) => redis.command('CONFIG', 'SET', setting, value)
  const info = async (field: string) =>
    Number(new RegExp(`${field}:(\\d+)`).exec(String(await redis.command('INFO')))?.[1])
  const before = await info('evicted_keys')
  await set('maxmemory-policy', 'volatile-lru')
  // Little at first, since a Redis without such keys is full. Instances write some of them again meanwhile.
  let bytes = 100
  try {
    await eventually(async () => {
      await set('maxmemory', String((await info('used_memory')) - bytes))
      await redis.command('PING')
      bytes += 100
      const left = await redis.command('KEYS', `*${name}*`)
      return Array.isArray(left) && left.length === 0
    })
  } finally {
    // The next test needs a Redis that evicts nothing.
    await set('maxmemory', '0')
    await set('maxmemory-policy', 'noeviction')
  }
  expect(await info('evicted_keys')).toBeGreaterThan(before)
}

function once(heal: () => Promise<void>): () => Promise<void> {
  let healed: Promise<void> | null = null
  return () => (healed ??= heal())
}
