/** Rate limiters: the same in a process and in Redis, and shared by several gateways on one Redis. */

import { afterAll, describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import fc from 'fast-check'
import { createLocalRateLimiters, type LimitRule, type RateLimiterFactory } from '../../src/core/limits/rate-limits.ts'
import { openRedis, type Redis } from '../../src/database/redis.ts'
import { limitScripts, sharedLimits } from '../../src/database/shared-limits.ts'
import { enhancement } from '../../src/dialects/native/enhance.ts'
import { errorResponse, toGatewayError } from '../../src/http/error-response.ts'
import { openPromptAnalyzer } from '../../src/text/readers.ts'
import { anyBodies } from '../harness/bodies.ts'
import { eventually } from '../harness/eventually.ts'
import { reportSkipped } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { startRedis } from '../harness/redis.ts'
import { movableClock } from './support.ts'

const server = await startRedis()
const links: Redis[] = []
afterAll(async () => {
  for (const link of links) link.close()
  await server?.stop()
})

/** These tests cover the commands to Redis, not its latency on a busy machine. */
async function connect(url: string): Promise<Redis> {
  const redis = openRedis({ urls: [url], scripts: limitScripts, ...patientStore })
  links.push(redis)
  await eventually(redis.isReady, 5_000)
  return redis
}

type Rig = { readonly open: RateLimiterFactory; readonly clock: ReturnType<typeof movableClock> }
const kinds: Record<string, () => Rig> = {
  'in process': () => {
    const clock = movableClock()
    return { open: createLocalRateLimiters(clock), clock }
  },
}
/** Distinguishes tests on one server. */
let titles = 0

// Slow refills, because a key in Redis uses the server's own time.
const bucket = { perMinute: 2, burst: 3 }
const window = { allowed: 3, windowMs: 90_000 }

if (server !== null) {
  const redis = await connect(server.url)
  kinds['in Redis'] = () => {
    const clock = movableClock()
    const own = ++titles
    const open = sharedLimits({ redis, clock, time: clock.now })
    return { open: (title, rule) => open(`${own} ${title}`, rule), clock }
  }
}

for (const [kind, start] of Object.entries(kinds))
  describe(kind, () => {
    test.each<[string, LimitRule, readonly (readonly [afterMs: number, wait: number])[]]>([
      [
        'a bucket',
        bucket,
        [
          [0, 0],
          [0, 0],
          [0, 0],
          [0, 30_000],
          [20_000, 10_000],
          [10_000, 0],
          [0, 30_000],
          [90_000, 0],
          [0, 0],
          [0, 0],
          [0, 30_000],
        ],
      ],
      [
        'a window',
        window,
        [
          [0, 0],
          [40_000, 0],
          [0, 0],
          [0, 50_000],
          [49_999, 1],
          [1, 0],
          [0, 40_000],
          [40_000, 0],
          [0, 0],
          [0, 50_000],
        ],
      ],
    ])('rate limiter: %s allows its limit, returns the wait, and does not count rejections', async (_, rule, steps) => {
      const { open, clock } = start()
      const limit = open('one', rule)
      const waits: number[] = []
      for (const [afterMs] of steps) {
        clock.move(afterMs)
        waits.push(await limit.take('192.0.2.1'))
      }
      expect(waits).toEqual(steps.map(([, wait]) => wait))
    })

    test('shared rate limiters: separate names and titles', async () => {
      const { open } = start()
      const [item, other] = [open('one', window), open('other', window)]
      for (let count = 0; count < 3; count++) expect(await item.take('a')).toBe(0)
      expect([await item.take('a'), await item.take('b'), await other.take('a')]).toEqual([90_000, 0, 0])
    })
  })

if (server === null) reportSkipped('redis', 'limits that gateways share in Redis')
else {
  const { url } = server
  const rules = fc.oneof(
    fc.record({ perMinute: fc.integer({ min: 1, max: 7 }), burst: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ allowed: fc.integer({ min: 1, max: 4 }), windowMs: fc.integer({ min: 60_000, max: 120_000 }) }),
  )
  const steps = fc.array(fc.record({ afterMs: fc.nat(40_000), gateway: fc.nat(2) }), { maxLength: 40 })

  test('shared rate limiters: allow over several gateways what one would, with the same wait', async () => {
    const redis = await connect(url)
    await fc.assert(
      fc.asyncProperty(rules, steps, async (rule, taken) => {
        const clock = movableClock()
        const own = ++titles
        const gateway = () => sharedLimits({ redis, clock, time: clock.now })
        const alone = createLocalRateLimiters(clock)('alone', rule)
        const together = [0, 1, 2].map(() => gateway()(`${own} together`, rule))
        for (const { afterMs, gateway: index } of taken) {
          clock.move(afterMs)
          const wait = await alone.take('a')
          expect((await together[index]?.take('a')) === 0).toBe(wait === 0)
          // A new gateway has no local counts.
          expect(await gateway()(`${own} forgetful`, rule).take('a')).toBe(wait)
        }
      }),
      { numRuns: 40 },
    )
  })

  test('shared rate limiters: stay within the limit when two gateways race', async () => {
    const clock = movableClock()
    const gateways = [await connect(url), await connect(url)].map(redis => sharedLimits({ redis, clock }))
    for (const rule of [bucket, window]) {
      const title = `race ${++titles}`
      const limits = gateways.map(open => open(title, rule))
      const waits = await Promise.all(Array.from({ length: 40 }, (_, index) => limits[index % 2]?.take('a')))
      expect(waits.filter(wait => wait === 0)).toHaveLength(3)
    }
  })

  test('shared rate limiters: allow an IP address five concurrent requests over two gateways', async () => {
    const clock = { now: () => 1_800_000_000_000 }
    const read = openPromptAnalyzer().read
    const apps = [await connect(url), await connect(url)].map(redis =>
      new Elysia({ normalize: false })
        .onError(({ error }) => errorResponse(toGatewayError(error), 'req_test'))
        .use(
          enhancement({
            read,
            getAddress: () => '192.0.2.7',
            clock,
            limits: sharedLimits({ redis, clock }),
            bodies: anyBodies(),
            recall: () => null,
          }),
        ),
    )
    const statuses: number[] = []
    for (let count = 0; count < 12; count++) {
      const body = JSON.stringify({ prompt: 'Good morning!' })
      const headers = { 'content-type': 'application/json' }
      const request = new Request('http://localhost/api/v1/chat/enhance', { method: 'POST', headers, body })
      statuses.push((await apps[count % 2]?.handle(request))?.status ?? 0)
    }
    expect(statuses).toEqual([...Array(5).fill(200), ...Array(7).fill(429)])
  })

  test('shared rate limiters: store no IP address in Redis and expire entries', async () => {
    const redis = await connect(url)
    const clock = movableClock()
    await redis.send('', ['FLUSHALL'])
    const open = sharedLimits({ redis, clock })
    for (const rule of [bucket, window]) await open('burst' in rule ? 'bucket' : 'window', rule).take('192.0.2.99')
    const keys = await redis.send('', ['KEYS', '*'])
    if (!Array.isArray(keys)) throw new Error('KEYS replies a list')
    expect(keys).toHaveLength(2)
    for (const key of keys.map(String)) {
      expect(key).not.toContain('192.0.2')
      const left = Number(await redis.send(key, ['PTTL', key]))
      expect(left).toBeWithin(1, 'bucket' === key.split(':')[1] ? 30_001 : 90_001)
    }
  })

  test('shared rate limiters: use local counts for any number of requests without Redis', async () => {
    const redis = await connect(url)
    const clock = movableClock()
    const limit = sharedLimits({ redis, clock })(`away ${++titles}`, window)
    expect([await limit.take('a'), await limit.take('a')]).toEqual([0, 0])
    redis.close()
    expect([await limit.take('a'), await limit.take('a')]).toEqual([0, 90_000])
    const waits = await Promise.all(Array.from({ length: 9 }, () => limit.take('b')))
    expect(waits.filter(wait => wait === 0)).toHaveLength(3)
  })
}
