import { afterAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { UsageRecord } from '../../src/core/usage.ts'
import type { Seat } from '../../src/stores/meter.ts'
import { createLocalMeter } from '../../src/stores/meter-local.ts'
import {
  createRedisMeter,
  defaultLeaseMs,
  keysOf,
  partitionOf,
  partitions,
  type RedisMeter,
} from '../../src/stores/meter-redis.ts'
import { openRedis, type Redis } from '../../src/stores/redis.ts'
import { meterScripts } from '../../src/stores/scripts/meter.ts'
import { type PrivateRedis, startRedis } from '../harness/redis.ts'
import { eventually } from './database.contract.ts'
import { admitted, ask, meterContract, settlement, wide } from './meter.contract.ts'
import { movableClock } from './support.ts'

const server: PrivateRedis | null = await startRedis()
// What is asked of Redis matters here, not how soon it answers on a busy machine.
const link: Redis | null =
  server === null ? null : openRedis({ urls: [server.url], scripts: meterScripts, commandDeadlineMs: 5_000 })
afterAll(async () => {
  link?.close()
  await server?.stop()
})

const epoch = 'epoch@test'

/** A meter on an account space of its own, under an epoch that stands. */
async function rig(redis: Redis) {
  await eventually(() => redis.isReady(), 5000)
  await redis.send('', ['FLUSHALL'])
  for (let partition = 0; partition < partitions; partition++)
    await redis.send('', ['SET', keysOf(partition).epoch, epoch])
  const clock = movableClock()
  const seeds: { account: string; tokens: number; microcents: number }[] = []
  const open = (): RedisMeter =>
    createRedisMeter({
      redis,
      clock,
      time: clock.now,
      epochOf: () => epoch,
      seed: async account => seeds.find(one => one.account === account) ?? { tokens: 0, microcents: 0 },
    })
  const meter = open()
  return {
    redis,
    clock,
    seeds,
    open,
    shared: meter,
    meter: { ...meter, close: async () => {} },
    async records() {
      const all: UsageRecord[] = []
      for (let partition = 0; partition < partitions; partition++) {
        const entries = (await redis.send('', ['XRANGE', keysOf(partition).stream, '-', '+'])) as [
          string,
          [string, string],
        ][]
        all.push(...entries.map(([, [, record]]) => JSON.parse(record) as UsageRecord))
      }
      return all
    },
    close: async () => {},
  }
}

if (server !== null && link !== null) {
  meterContract('in Redis', () => rig(link))

  test('a lease that runs out gives back seat and reservation; settled after all it still counts, once', async () => {
    const { meter, shared, clock, records } = await rig(link)
    const limits = { ...wide, concurrentRequests: 1 }
    const seat = admitted(await meter.admit(ask('a', { limits })))
    clock.move(defaultLeaseMs - 1)
    expect(await meter.admit(ask('b', { limits }))).toMatchObject({ code: 'concurrent_requests_exceeded' })
    clock.move(1)
    expect(await meter.admit(ask('b', { limits }))).toMatchObject({
      admitted: true,
      standing: { tokens: { remaining: wide.dailyTokens - 300 } },
    })
    await shared.settle(settlement(seat, 120, 5_000, clock.now()))
    expect(meter.standing('acc_1', limits)).toMatchObject({ tokens: { remaining: wide.dailyTokens - 420 } })
    expect((await records()).map(record => [record.request_id, record.billed_microcents])).toEqual([['a', 5_000]])
  })

  test('a renewed lease lasts', async () => {
    const { meter, shared, clock } = await rig(link)
    const limits = { ...wide, concurrentRequests: 1 }
    await meter.admit(ask('a', { limits }))
    for (let round = 0; round < 6; round++) {
      clock.move(5_000)
      await shared.renew(true)
    }
    clock.move(defaultLeaseMs - 1)
    expect(await meter.admit(ask('b', { limits }))).toMatchObject({ code: 'concurrent_requests_exceeded' })
    clock.move(1)
    expect((await meter.admit(ask('b', { limits }))).admitted).toBe(true)
  })

  test('of a gateway that died a sibling settles what it last heard of, once its lease is over', async () => {
    const { meter, shared, clock, open, records } = await rig(link)
    const seat = admitted(await meter.admit(ask('a')))
    for (const tokens of [110, 150]) {
      shared.checkpoint(seat, settlement(seat, tokens, tokens * 100, clock.now()))
      await shared.renew(false)
    }
    clock.move(15_000)
    const sibling = open()
    await sibling.sweep(partitionOf('acc_1'), 'acc_1')
    expect((await records()).map(one => [one.request_id, one.billed_microcents])).toEqual([['a', 15_000]])
    await sibling.admit(ask('b'))
    expect(sibling.standing('acc_1', wide)).toMatchObject({
      tokens: { remaining: wide.dailyTokens - 150 - 300 },
      seats: { remaining: 9 },
    })
    // It was only asleep.
    await shared.settle(settlement(seat, 300, 30_000, clock.now()))
    expect((await records()).length).toBe(1)
    expect(meter.standing('acc_1', wide)).toMatchObject({ tokens: { remaining: wide.dailyTokens - 150 - 300 } })
  })

  test('counts that are made anew keep the checkpoints of gateways that are no longer there to register', async () => {
    const { shared, clock, records, redis } = await rig(link)
    const [dead, alive] = [admitted(await shared.admit(ask('dead'))), admitted(await shared.admit(ask('alive')))]
    for (const seat of [dead, alive]) shared.checkpoint(seat, settlement(seat, 150, 15_000, clock.now()))
    await shared.renew(false)
    const keys = keysOf(partitionOf('acc_1'))
    await redis.send('', ['HSET', keys.announced, 'id', 'another@test'])
    await redis.send('', ['SET', keys.epoch, 'another@test'])
    const sibling = createRedisMeter({
      redis,
      clock,
      time: clock.now,
      epochOf: () => 'another@test',
      seed: async () => ({ tokens: 0, microcents: 0 }),
    })
    await sibling.register('another@test', 'acc_1', { seats: [alive], ages: [], waiting: [] })
    sibling.adopt({ seat: alive, limits: wide, admittedAt: clock.now() })
    expect((await sibling.admit(ask('b'))).standing.seats.remaining).toBe(7)
    clock.move(10_000)
    await sibling.renew(true)
    clock.move(5_000)
    await sibling.sweep(partitionOf('acc_1'), 'acc_1')
    expect((await records()).map(one => one.request_id)).toEqual(['dead'])
    const { standing } = await sibling.admit(ask('c'))
    expect(standing.tokens.remaining).toBe(wide.dailyTokens - 150 - 3 * 300)
  })

  test('the day begins with what the ledger knows, and with what was registered on its way there', async () => {
    const { shared, seeds, redis } = await rig(link)
    seeds.push({ account: 'acc_1', tokens: 1_000, microcents: 7 })
    await redis.send('', ['HSET', keysOf(partitionOf('acc_1')).announced, 'id', epoch])
    const seat = {
      requestId: 'x',
      accountId: 'acc_1',
      outputCap: 1,
      reservedTokens: 50,
      reservedMicrocents: 5,
      day: Math.floor(Date.UTC(2026, 4, 5) / 86_400_000),
    }
    await shared.register(epoch, 'acc_1', { seats: [seat], ages: [30_000, 10_000], waiting: [] })
    const { standing } = await shared.admit(ask('a'))
    expect(standing).toMatchObject({
      tokens: { remaining: wide.dailyTokens - 1_000 - 50 - 300 },
      costMicrocents: { remaining: wide.dailyCostMicrocents - 7 - 5 - 110_000 },
      requests: { remaining: wide.requestsPerMinute - 3 },
      seats: { remaining: 8 },
    })
  })

  test('above a thousand a minute the log is buckets of a second: never over, and no larger than a minute of them', async () => {
    const { shared, clock, redis } = await rig(link)
    const limits = {
      ...wide,
      requestsPerMinute: 2_000,
      concurrentRequests: 100_000,
      dailyTokens: 1e9,
      dailyCostMicrocents: 1e15,
    }
    const times: number[] = []
    let refused = 0
    for (let index = 0; index < 3_000; index++) {
      clock.move(25)
      const admission = await shared.admit(ask(`r${index}`, { limits }))
      if (admission.admitted) times.push(clock.now())
      else refused++
      const inWindow = times.filter(time => time > clock.now() - 60_000).length
      expect(inWindow).toBeLessThanOrEqual(2_000)
      if (!admission.admitted) expect(inWindow).toBeGreaterThan(2_000 - 60)
    }
    expect(refused).toBeGreaterThan(0)
    const log = await redis.send('', ['HSTRLEN', keysOf(partitionOf('acc_1')).account('acc_1'), 'b'])
    expect(Number(log)).toBeLessThanOrEqual(62 * 16)
  })

  test('in whatever order, Redis decides and grants exactly what the meter in process would', async () => {
    const limits = fc.record({
      requestsPerMinute: fc.constantFrom(0, 3, 1_000),
      concurrentRequests: fc.constantFrom(1, 3, 50),
      dailyTokens: fc.constantFrom(0, 3_000, 1e9),
      dailyCostMicrocents: fc.constantFrom(3_000, 167_000_000, 1e15),
    })
    const id = fc.integer({ min: 0, max: 12 })
    const price = fc.oneof(fc.nat(3_000_000), fc.nat(7_500_000_001))
    const command = fc.oneof(
      fc.record({
        kind: fc.constant('admit' as const),
        id,
        limits,
        input: fc.nat(90_000),
        output: fc.integer({ min: 1, max: 128_000 }),
        choices: fc.integer({ min: 1, max: 3 }),
        fairShare: fc.boolean(),
        inputPrice: price,
        outputPrice: price,
        extra: fc.nat(500),
      }),
      fc.record({ kind: fc.constant('settle' as const), id, tokens: fc.nat(9_000), cost: fc.nat(9_000_000) }),
      fc.record({ kind: fc.constant('raise' as const), id, tokens: fc.nat(9_000), cost: fc.nat(9_000_000) }),
      fc.record({ kind: fc.constant('move' as const), by: fc.nat(14_000) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 20, maxLength: 60 }), async commands => {
        const { shared, clock, records } = await rig(link)
        const written: UsageRecord[] = []
        const local = createLocalMeter({
          clock,
          journal: {
            appendTogether: async record => void written.push(record),
            isWritable: () => true,
            untilDurable: async () => {},
          },
          seed: async () => ({ tokens: 0, microcents: 0 }),
        })
        const seats = new Map<string, Seat>()
        const over = new Set<string>()
        for (const step of commands) {
          if (step.kind === 'move') {
            clock.move(step.by)
            await shared.renew(true)
            continue
          }
          const requestId = `r${step.id}`
          const seat = seats.get(requestId)
          if (step.kind === 'admit') {
            const request = ask(requestId, {
              limits: step.limits,
              inputTokens: step.input,
              outputTokens: step.output,
              choices: step.choices,
              fairShare: step.fairShare,
              inputPrice: step.inputPrice,
              outputPrice: step.outputPrice,
              extraMicrocents: step.extra,
            })
            const [here, there] = [await local.admit(request), await shared.admit(request)]
            // Of a request that was settled before, Redis is not asked again: what it said of the minute then is repeated.
            if (over.has(requestId)) expect({ ...there, standing: null }).toEqual({ ...here, standing: null })
            else expect(there).toEqual(here)
            if (here.admitted) seats.set(requestId, here.seat)
          } else if (seat !== undefined && step.kind === 'raise') {
            expect(await shared.raise(seat, step.tokens, step.cost)).toEqual(
              await local.raise(seat, step.tokens, step.cost),
            )
          } else if (seat !== undefined && step.kind === 'settle') {
            const given = settlement(seat, step.tokens, step.cost, clock.now())
            over.add(requestId)
            const [here, there] = [await local.settle(given), await shared.settle(given)]
            expect([there.tokens, there.costMicrocents, there.seats]).toEqual([
              here.tokens,
              here.costMicrocents,
              here.seats,
            ])
          }
        }
        expect(await records()).toEqual(written)
      }),
      { numRuns: 300 },
    )
  }, 30_000)

  test('a warm request is two round trips, and little of Redis’ time', async () => {
    const { shared, clock, redis } = await rig(link)
    const limits = {
      ...wide,
      requestsPerMinute: 1_000,
      concurrentRequests: 10,
      dailyTokens: 1e12,
      dailyCostMicrocents: 1e15,
    }
    const one = async (index: number) => {
      const seat = admitted(await shared.admit(ask(`r${index}`, { limits })))
      await shared.settle(settlement(seat, 300, 1_000, clock.now()))
    }
    await one(-1)
    const heard = await monitor(server.port)
    for (let index = 0; index < 50; index++) await one(index)
    await eventually(() => heard().length >= 100, 1000)
    heard.stop()
    expect(heard().map(line => /"(\w+)"/.exec(line)?.[1])).toEqual(Array.from({ length: 100 }, () => 'EVALSHA'))

    for (let index = 0; index < 4_000; index++) {
      clock.move(200)
      await one(1_000 + index)
      if (index === 1_000) await redis.send('', ['CONFIG', 'RESETSTAT'])
    }
    const stats = String(await redis.send('', ['INFO', 'commandstats']))
    const microseconds = Number(/cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(stats)?.[1]) / 3_000
    process.stdout.write(
      `Redis time for an admission and its settling, 300 in the minute: ${microseconds.toFixed(1)} µs\n`,
    )
  }, 30_000)
}

/** Commands that clients send from now on, one a line; what scripts do inside is left out. */
async function monitor(port: number) {
  let text = ''
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, bytes) {
        text += bytes.toString()
      },
    },
  })
  socket.write('MONITOR\r\n')
  await eventually(() => text.startsWith('+OK'), 1000)
  const lines = () =>
    text.split('\r\n').filter(line => line.startsWith('+') && line.includes('[') && !line.includes(' lua]'))
  return Object.assign(lines, { stop: () => socket.end() })
}
