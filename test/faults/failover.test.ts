import { afterAll, afterEach, expect, test } from 'bun:test'

import type { Limits } from '../../src/core/limits/plans.ts'
import { type Database, migrate, openDatabase } from '../../src/database/database.ts'
import { getDailyUsage } from '../../src/ledger/ledger.ts'
import { eventually } from '../harness/eventually.ts'
import { reportSkipped } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { openCheckpointCount, type PrivateRedis, startRedis } from '../harness/redis.ts'
import { meterContract } from '../limits/meter.contract.ts'
import { type Race, startRacers, unit } from '../limits/racers.ts'
import { failoverRig, nowhere } from '../limits/rig.ts'

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
  more: { readonly leaseMs?: number; readonly redisMs?: number } = {},
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

/**
 * Races for 200 units, and again for what attempts without an answer had reserved: a starved machine causes such
 * attempts, and their reservations are released 1.5 s later.
 */
async function raceFor200(team: Team, request: Parameters<Team['race']>[0]): Promise<Given> {
  const first = await team.race(request, 100)
  if (first.undecided === 0 || first.admitted === 200) return first
  await Bun.sleep(3_000)
  return together(first, await team.race(request, 60))
}

/** Reservations that Postgres has made for an account, released ones among them. */
async function getReservations(on: Database, accountId: string): Promise<number> {
  const [row] = await on.run(
    ({ sql }) => sql<{ count: number }[]>`
      select count(*)::int as count from limit_reservations where account_id = ${accountId}`,
  )
  return row?.count ?? 0
}

function together(given: Given, other: Given): Given {
  const codes = new Set([...Object.keys(given.refused), ...Object.keys(other.refused)])
  const refused = Object.fromEntries(
    [...codes].map(code => [code, (given.refused[code] ?? 0) + (other.refused[code] ?? 0)]),
  )
  return { admitted: given.admitted + other.admitted, refused }
}

if (server === null || database === null) reportSkipped(['redis', 'postgres'], 'failover meter')
else {
  meterContract('failover meter, Redis decides', () => failoverRig({ database, redis: server }))
  meterContract('failover meter, Postgres decides', () => failoverRig({ database, redis: null }))
}

if (server !== null && postgres !== null && database !== null) {
  const today = () => Math.floor(Date.now() / 86_400_000)

  test('failover meter: grants exactly the remaining limit to 1,000 concurrent requests on 4 gateways', async () => {
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
    test(`failover meter: stays within limits and agrees with the ledger when Redis ${fault} during a race`, async () => {
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
      expectHandedOut(together(first, second), 200, 'daily_cost_exceeded', 199)
    }, 240_000)
  }

  test('failover meter: neither exceeds limits nor loses usage when Redis is flushed repeatedly under load', async () => {
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
    // Attempts without an answer, which a starved machine causes, give back what they reserved 1.5 s later.
    if (first.undecided > 0) await Bun.sleep(3_000)
    const race = together(first, await team.race(request, 60))
    const { admitted } = race
    await team.everyone({ kind: 'settle', tokens: 11, microcents: 1000 })
    await team.everyone({ kind: 'drain' })
    expectHandedOut(race, 200, 'daily_cost_exceeded', 199)
    expect((await getDailyUsage(database, 'acc_again', today())).microcents).toBe(admitted * 1000)
  }, 240_000)

  test('failover meter: releases reservations of a killed gateway, whose requests its next process settles to their last checkpoint', async () => {
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

  test('failover meter: stays within all four limits when 4 gateways start without Redis', async () => {
    const team = await racers(4, null)
    const refusals = {
      cent: 'daily_cost_exceeded',
      token: 'daily_tokens_exceeded',
      reservation: 'concurrent_requests_exceeded',
      minute: 'requests_per_minute_exceeded',
    }
    const cases: Record<keyof typeof refusals, Partial<Limits>> = {
      cent: { dailyCostMicrocents: 200_999 },
      token: { dailyTokens: 2_209 },
      reservation: { concurrentRequests: 200 },
      minute: { requestsPerMinute: 200 },
    }
    for (const name of ['cent', 'token', 'reservation', 'minute'] as const) {
      const request = unit(`acc_without_${name}`, cases[name])
      if (name === 'minute') {
        // An attempt without an answer counts until the end of its minute, so that fewer than 200 may be admitted.
        const race = await team.race(request, 100)
        expectHandedOut(race, 200, refusals[name], 200 - race.undecided)
        expect(await getReservations(database, request.accountId)).toBe(200)
      } else expectHandedOut(await raceFor200(team, request), 200, refusals[name])
    }
  }, 240_000)

  test('failover meter: stays within limits with full ledger records when Redis dies under 4 known gateways', async () => {
    const team = await racers(4, server)
    await team.shared(60_000)
    await Bun.sleep(1_100)
    await server.crash()
    cleanUps.push(() => server.start())
    const cent = await raceFor200(team, unit('acc_dead', { dailyCostMicrocents: 200_000 }))
    expectHandedOut(cent, 200, 'daily_cost_exceeded')
    const minute = await team.race(unit('acc_minute', { requestsPerMinute: 10 }), 25)
    expect(minute.admitted).toBeLessThanOrEqual(10 + 3)
    expect(minute.admitted + minute.undecided).toBeGreaterThanOrEqual(10)
    await team.everyone({ kind: 'settle', tokens: 11, microcents: 1000 })
    await team.everyone({ kind: 'drain' })
    expect((await getDailyUsage(database, 'acc_dead', today())).microcents).toBe(cent.admitted * 1000)
  }, 240_000)
}
