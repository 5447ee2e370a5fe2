/** One suite for both counters of a pool's capacity: in this process, and in Redis. */
import { afterAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { openRedis, type Redis } from '../../src/database/redis.ts'
import type { CapacityStore, KeyOption } from '../../src/providers/keys/capacity.ts'
import { keyScripts } from '../../src/providers/keys/capacity-scripts.ts'
import { LocalCapacity } from '../../src/providers/keys/local-capacity.ts'
import { RedisCapacity } from '../../src/providers/keys/redis-capacity.ts'
import { eventually } from '../harness/eventually.ts'
import { reportSkipped } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { type PrivateRedis, startRedis } from '../harness/redis.ts'

const server = await startRedis()
afterAll(() => server?.stop())

type Rig = {
  readonly store: CapacityStore
  /** Lets time pass. */
  advance(milliseconds: number): Promise<void>
}

const model = 'openai/gpt'
let pools = 0

function localRig(): Rig {
  let now = 1_000_000
  return {
    store: new LocalCapacity({ clock: { monotonic: () => now }, random: () => 0 }),
    advance: async milliseconds => {
      now += milliseconds
    },
  }
}

async function connected(node: PrivateRedis): Promise<Redis> {
  const redis = openRedis({ urls: [node.url], scripts: keyScripts, ...patientStore })
  await eventually(() => redis.isReady())
  return redis
}

/** Redis has its own clock, so its stored times move into the past instead. */
function redisRig(redis: Redis): Rig {
  const poolId = `pool-${pools++}`
  const key = `gw:{keys:${poolId}}:use`
  const store = new RedisCapacity({
    redis,
    clock: { monotonic: () => performance.now() },
    random: () => 0,
    instanceId: 'a',
    poolId,
  })
  return {
    store,
    async advance(milliseconds) {
      const fields = await redis.send(key, ['HGETALL', key])
      if (!Array.isArray(fields)) throw new Error('the hash has fields')
      for (let at = 0; at < fields.length; at += 2)
        await redis.send(key, ['HSET', key, String(fields[at]), String(Number(fields[at + 1]) - milliseconds)])
    },
  }
}

const option = (account: string, requests: number | null, tokens: number | null, weight = 1): KeyOption => ({
  account,
  quota: { requests, tokens },
  weight,
  share: 1,
})

function contract(rigOf: () => Rig): void {
  describe('key capacity store', () => {
    const claim = async (rig: Rig, options: readonly KeyOption[], tokens = 1) =>
      await rig.store.claim(options, { model, tokens })

    test('grants a quota once and reports when the next request has room', async () => {
      const rig = rigOf()
      const options = [option('a', 3, null)]
      for (let count = 0; count < 3; count++) expect((await claim(rig, options)).index).toBe(0)
      const refused = await claim(rig, options)
      expect(refused.index).toBe(-1)
      // One request returns each 20 s; Redis' own clock runs meanwhile.
      expect(refused.waitMs).toBeGreaterThan(15_000)
      expect(refused.waitMs).toBeLessThanOrEqual(20_000)
      await rig.advance(20_000)
      expect((await claim(rig, options)).index).toBe(0)
      expect((await claim(rig, options)).index).toBe(-1)
    })

    test('prefers the key with most remaining capacity', async () => {
      const rig = rigOf()
      const options = [option('small', 10, null), option('large', 100, null)]
      const counts = [0, 0]
      for (let count = 0; count < 110; count++) {
        const { index } = await claim(rig, options)
        counts[index] = (counts[index] ?? 0) + 1
      }
      expect(counts).toEqual([10, 100])
    })

    test('counts keys of one account together', async () => {
      const rig = rigOf()
      const options = [option('shared', 2, null), option('shared', 2, null)]
      const indexes = []
      for (let count = 0; count < 3; count++) indexes.push((await claim(rig, options)).index)
      expect(indexes).toEqual([0, 0, -1])
    })

    test('counts tokens, and corrects them by the used ones', async () => {
      const rig = rigOf()
      const options = [option('a', null, 1_000)]
      expect((await claim(rig, options, 900)).index).toBe(0)
      expect((await claim(rig, options, 900)).index).toBe(-1)
      rig.store.correct('a', 880)
      expect((await claim(rig, options, 900)).index).toBe(0)
    })

    test('grants a request above the whole quota only from a full bucket', async () => {
      const rig = rigOf()
      const options = [option('a', null, 1_000)]
      expect((await claim(rig, options, 5_000)).index).toBe(0)
      expect((await claim(rig, options, 100)).index).toBe(-1)
      await rig.advance(60_000)
      expect((await claim(rig, options, 5_000)).index).toBe(0)
    })

    test('has an empty bucket after a rejection by the upstream', async () => {
      const rig = rigOf()
      const options = [option('a', 6, 1_000)]
      expect((await claim(rig, options)).index).toBe(0)
      rig.store.exhaust('a', { requests: true, tokens: false })
      expect((await claim(rig, options)).index).toBe(-1)
      await rig.advance(10_000)
      expect((await claim(rig, options, 900)).index).toBe(0)
      expect((await claim(rig, options)).index).toBe(-1)
    })

    test('pauses an account for one model, or for all', async () => {
      const rig = rigOf()
      const options = [option('a', null, null)]
      rig.store.pause('a', model, 30_000)
      const { index, waitMs } = await claim(rig, options)
      expect(index).toBe(-1)
      expect(waitMs).toBeGreaterThan(25_000)
      expect((await rig.store.claim(options, { model: 'openai/other', tokens: 1 })).index).toBe(0)
      rig.store.pause('a', null, 40_000)
      expect((await rig.store.claim(options, { model: 'openai/other', tokens: 1 })).index).toBe(-1)
      await rig.advance(40_000)
      expect((await claim(rig, options)).index).toBe(0)
    })

    const step = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({ kind: fc.constant('claim' as const), tokens: fc.integer({ min: 1, max: 60 }) }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 30_000 }) }),
      },
    )

    test('neither exceeds a quota nor refuses a request that one has room for', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.record({ requests: fc.integer({ min: 1, max: 6 }), tokens: fc.integer({ min: 60, max: 200 }) }), {
            minLength: 1,
            maxLength: 3,
          }),
          fc.array(step, { maxLength: 40 }),
          async (quotas, steps) => {
            const rig = rigOf()
            const options = quotas.map(({ requests, tokens }, at) => option(`account-${at}`, requests, tokens))
            const rooms = quotas.map(quota => ({ ...quota, left: { ...quota } }))
            // Redis' own clock runs a little during the test.
            const slack = 0.05
            for (const one of steps) {
              if (one.kind === 'pass') {
                await rig.advance(one.ms)
                for (const { requests, tokens, left } of rooms) {
                  left.requests = Math.min(requests, left.requests + (requests * one.ms) / 60_000)
                  left.tokens = Math.min(tokens, left.tokens + (tokens * one.ms) / 60_000)
                }
                continue
              }
              const { index } = await claim(rig, options, one.tokens)
              const left = rooms[index]?.left
              if (left === undefined)
                expect(
                  rooms.some(room => room.left.requests >= 1 + slack && room.left.tokens >= one.tokens + slack),
                ).toBe(false)
              else {
                left.requests -= 1
                left.tokens -= one.tokens
                expect([left.requests >= -slack, left.tokens >= -slack * 60]).toEqual([true, true])
              }
            }
          },
        ),
        { numRuns: 25 },
      )
    })
  })
}

describe('local key capacity', () => {
  contract(localRig)

  test('divides a quota among processes', () => {
    const store = new LocalCapacity({ clock: { monotonic: () => 0 }, random: () => 0 }, { processes: () => 4 })
    const granted = Array.from({ length: 20 }, () => store.claim([option('a', 8, null)], { model, tokens: 1 }).index)
    expect(granted.filter(index => index === 0)).toHaveLength(2)
  })

  test('chooses among equal keys by weight', () => {
    const draws = [0.1, 0.74, 0.76, 0.99].values()
    const store = new LocalCapacity({ clock: { monotonic: () => 0 }, random: () => draws.next().value ?? 0 })
    const options = [option('a', null, null, 3), option('b', null, null, 1)]
    const indexes = Array.from({ length: 4 }, () => store.claim(options, { model, tokens: 1 }).index)
    expect(indexes).toEqual([0, 0, 1, 1])
  })
})

if (server === null) reportSkipped(['redis'], 'key capacity in Redis')
else {
  const redis = await connected(server)
  afterAll(() => redis.close())

  describe('key capacity in Redis', () => {
    contract(() => redisRig(redis))
  })

  describe('key capacity of four instances', () => {
    const rpm = 40
    const options = [option('a', rpm, null)]
    const need = { model, tokens: 1 }

    test('stays within the quota, and without Redis exceeds it by at most one request per instance', async () => {
      const own = await startRedis()
      if (own === null) throw new Error('the first one started')
      const clients = await Promise.all(Array.from({ length: 4 }, () => connected(own)))
      const clock = { monotonic: () => 0 }
      const stores = clients.map(
        (client, at) =>
          new RedisCapacity({ redis: client, clock, random: () => 0, instanceId: `instance-${at}`, poolId: 'four' }),
      )
      const claimAll = async (each: number) => {
        const choices = await Promise.all(
          stores.flatMap(store => Array.from({ length: each }, () => store.claim(options, need))),
        )
        return choices.filter(({ index }) => index === 0).length
      }
      const startedAt = performance.now()
      // Every instance reports itself once before all of the quota is used.
      const granted = (await claimAll(1)) + (await claimAll(30))
      const refilled = (rpm * (performance.now() - startedAt)) / 60_000
      expect(granted).toBeGreaterThanOrEqual(rpm)
      expect(granted).toBeLessThanOrEqual(rpm + Math.floor(refilled))
      await own.crash()
      // The instances' own clock stands still: nothing is refilled.
      expect(await claimAll(30)).toBeLessThanOrEqual(4)
      for (const client of clients) client.close()
      await own.stop()
    }, 240_000)
  })
}
