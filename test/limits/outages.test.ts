/** Redis does not do its work: instances admit from their allowances at once, and Redis decides again when it serves. */
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import type { Limits } from '../../src/core/limits/plans.ts'
import { renewMs, reportGraceMs } from '../../src/limits/constants.ts'
import type { Admission, AdmissionRequest, Meter, Reservation } from '../../src/limits/meter.ts'
import type { SharedMeter } from '../../src/limits/shared.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { type PrivateRedis, startRedis } from '../harness/redis.ts'
import { admitted, scope, settlement, wide } from './meter.contract.ts'
import { unit } from './racers.ts'
import { sharedRig } from './rig.ts'

setDefaultTimeout(120_000)

const server = await startRedis()
afterAll(() => server?.stop())

type Rig = Awaited<ReturnType<typeof sharedRig>>

/** Requests of 11 tokens and 1,000 of 1e-8 USD. */
const price = 1_000

/** Code of a decision, or 503. */
async function requestCode(
  meter: Meter,
  request: AdmissionRequest,
): Promise<{ code: string; reservation: Reservation | null }> {
  const admission: Admission | string = await meter.admit(request).catch((cause: { code: string }) => cause.code)
  if (typeof admission === 'string') return { code: admission, reservation: null }
  return admission.admitted
    ? { code: 'admitted', reservation: admission.reservation }
    : { code: admission.code, reservation: null }
}

/** Two instances whose account has had `used` requests, and allowances. */
async function twoInstances(redis: PrivateRedis, used: number, limits: Partial<Limits>) {
  const rig = await sharedRig(redis)
  const meters: [SharedMeter, SharedMeter] = [rig.meter, await rig.open()]
  const request = (id: string) => ({ ...unit('acc_1', limits), requestId: id })
  for (let index = 0; index < used; index++)
    for (const [place, meter] of meters.entries()) {
      const reservation = admitted(await meter.admit(request(`before-${place}-${index}`)))
      await meter.settle(settlement(reservation, 11, price, rig.clock.now()))
    }
  for (const meter of meters) await meter.renew()
  return { rig, meters, request }
}

const settleAll = async (rig: Rig, meter: Meter, open: readonly Reservation[]) => {
  for (const reservation of open) await meter.settle(settlement(reservation, 11, price, rig.clock.now()))
}

const strikes: Readonly<
  Record<string, readonly [(redis: PrivateRedis) => Promise<unknown>, (redis: PrivateRedis) => Promise<unknown>]>
> = {
  'out of memory': [
    redis => redis.command('CONFIG', 'SET', 'maxmemory', '1'),
    redis => redis.command('CONFIG', 'SET', 'maxmemory', '0'),
  ],
  'read-only': [
    redis => redis.command('REPLICAOF', '127.0.0.1', '1'),
    redis => redis.command('REPLICAOF', 'NO', 'ONE'),
  ],
  killed: [redis => redis.crash(), redis => redis.start()],
}

for (const [fault, [strike, heal]] of Object.entries(strikes))
  testNeeding('redis', `shared meter: admits its allowances and no more when Redis is ${fault}`, async () => {
    const redis = needed(server)
    const limits = { dailyCostMicrocents: 100 * price }
    const { rig, meters, request } = await twoInstances(redis, 4, limits)
    let isStruck = true
    try {
      await strike(redis)
      const open: [Reservation[], Reservation[]] = [[], []]
      for (const place of [0, 1] as const) {
        const codes: string[] = []
        for (let index = 0; index < 12; index++) {
          const { code, reservation } = await requestCode(meters[place], request(`during-${place}-${index}`))
          codes.push(code)
          if (reservation !== null) open[place].push(reservation)
        }
        // Each holds what it used in 10 s: 4 requests.
        expect(codes).toEqual([...Array(4).fill('admitted'), ...Array(8).fill('service_unavailable')])
        // What an ended request does not use, another one can.
        const [first] = open[place]
        if (first !== undefined) await meters[place].settle(settlement(first, 1, 0, rig.clock.now()))
        expect((await requestCode(meters[place], request(`again-${place}`))).code).toBe('service_unavailable')
      }
      await heal(redis)
      isStruck = false
      await eventually(() => meters.every(meter => meter.isShared()), 60_000)
      if (fault === 'killed') rig.clock.move(reportGraceMs)
      for (const place of [0, 1] as const) await settleAll(rig, meters[place], open[place].slice(1))
      for (const meter of meters) {
        for (let times = 0; times < 8; times++) await meter.renew()
      }
      // 8 before, 6 of the outage that were billed.
      expect(await meters[0].loadStatus('acc_1', { ...wide, ...limits })).toMatchObject({
        costMicrocents: { remaining: (100 - 14) * price },
      })
      let more = 0
      for (; (await requestCode(meters[more % 2 === 0 ? 0 : 1], request(`after-${more}`))).code === 'admitted'; more++);
      expect(more).toBe(100 - 14)
    } finally {
      if (isStruck) await heal(redis)
      await rig.close()
    }
  })

for (const isOpen of [false, true])
  testNeeding(
    'redis',
    `shared meter: counts on the new day what ${isOpen ? 'is open' : 'ended'} in an outage over midnight`,
    async () => {
      const redis = needed(server)
      const limits = { dailyCostMicrocents: 100 * price }
      const { rig, meters, request } = await twoInstances(redis, 6, limits)
      const [meter, other] = meters
      const scopes = [scope({ dailyCostMicrocents: 100 * price })]
      const scoped = (id: string) => ({ ...request(id), scopes })
      try {
        for (let index = 0; index < 6; index++)
          await settleAll(rig, meter, [admitted(await meter.admit(scoped(`own-${index}`)))])
        for (let times = 0; times < 2; times++) await meter.renew()
        await redis.command('CONFIG', 'SET', 'maxmemory', '1')
        rig.clock.move(86_400_000 - (rig.clock.now() % 86_400_000) + 1_000)
        const open: Reservation[] = []
        for (let index = 0; index < 4; index++) open.push(admitted(await meter.admit(scoped(`during-${index}`))))
        if (!isOpen) await settleAll(rig, meter, open)
        await redis.command('CONFIG', 'SET', 'maxmemory', '0')
        await eventually(() => meters.every(each => each.isShared()), 60_000)
        await meter.renew()
        await settleAll(rig, other, [admitted(await other.admit(scoped('first of the day')))])
        if (isOpen) await settleAll(rig, meter, open)
        for (let times = 0; times < 8; times++) for (const each of meters) await each.renew()
        expect((await other.loadStatus('acc_1', { ...wide, ...limits })).costMicrocents.remaining).toBe(95 * price)
        expect(await redis.command('HGET', 'gateway:{0}:account:acc_1|key:key_1@0', 'cost')).toBe(String(5 * price))
      } finally {
        await redis.command('CONFIG', 'SET', 'maxmemory', '0')
        await rig.close()
      }
    },
  )

testNeeding('redis', 'shared meter: admits at its share of slots and minute when Redis is away', async () => {
  const redis = needed(server)
  for (const [name, limits] of [
    ['slots', { concurrentRequests: 5 }],
    ['minute', { requestsPerMinute: 5 }],
  ] as const) {
    const { rig, meters, request } = await twoInstances(redis, 1, {})
    try {
      for (const meter of meters) await meter.renew()
      rig.clock.move(60_000)
      for (const [place, meter] of meters.entries())
        for (let index = 0; index < 8; index++) {
          const reservation = admitted(await meter.admit(request(`${name}-${place}-${index}`)))
          await meter.settle(settlement(reservation, 11, price, rig.clock.now()))
        }
      // Each sees the other one again.
      for (const meter of [...meters, ...meters]) await meter.renew()
      rig.clock.move(60_000)
      await redis.command('CONFIG', 'SET', 'maxmemory', '1')
      for (const [place, meter] of meters.entries()) {
        const codes: string[] = []
        for (let index = 0; index < 5; index++)
          codes.push(
            (await requestCode(meter, { ...unit('acc_1', limits), requestId: `${name} ${place} ${index}` })).code,
          )
        expect([name, codes.filter(code => code === 'admitted').length]).toEqual([name, 3])
      }
    } finally {
      await redis.command('CONFIG', 'SET', 'maxmemory', '0')
      await rig.close()
    }
  }
})

testNeeding('redis', 'shared meter: keeps its share of the minute when only it has met new counters', async () => {
  const redis = needed(server)
  const { rig, meters, request } = await twoInstances(redis, 1, {})
  const [meter] = meters
  try {
    // Each sees the other one.
    for (const each of meters) await each.renew()
    await redis.command('FLUSHALL')
    await meter.renew()
    await eventually(() => meter.isShared(), 60_000)
    rig.clock.move(reportGraceMs)
    for (let index = 0; index < 8; index++)
      await settleAll(rig, meter, [admitted(await meter.admit(request(`own-${index}`)))])
    for (let times = 0; times < 2; times++) await meter.renew()
    expect(await redis.command('ZCARD', 'gateway:{0}:instances')).toBe(1)
    rig.clock.move(60_000)
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    const codes: string[] = []
    for (let index = 0; index < 5; index++) {
      const own = { ...unit('acc_1', { requestsPerMinute: 5 }), requestId: `away-${index}` }
      codes.push((await requestCode(meter, own)).code)
    }
    expect(codes.filter(code => code === 'admitted')).toHaveLength(3)
  } finally {
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    await rig.close()
  }
})

testNeeding('redis', 'shared meter: admits within the allowances of all scopes when Redis is away', async () => {
  const redis = needed(server)
  await using rig = await sharedRig(redis)
  const scopes = [scope({ dailyCostMicrocents: 20 * price }), scope({ monthlyCostMicrocents: 1e9 }, 'tag:team=search')]
  const request = (id: string) => ({ ...unit('acc_1', {}), scopes, requestId: id })
  try {
    for (let index = 0; index < 8; index++)
      await settleAll(rig, rig.meter, [admitted(await rig.meter.admit(request(`before-${index}`)))])
    await rig.meter.renew()
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    let admittedCount = 0
    for (; (await requestCode(rig.meter, request(`r${admittedCount}`))).code === 'admitted'; admittedCount++);
    // Half of what the key has left.
    expect(admittedCount).toBe(6)
    expect((await requestCode(rig.meter, { ...request('unknown'), accountId: 'acc_other' })).code).toBe(
      'service_unavailable',
    )
    expect((await requestCode(rig.meter, { ...request('large'), outputTokens: 1_000_000 })).code).toBe(
      'service_unavailable',
    )
  } finally {
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
  }
})

testNeeding('redis', 'shared meter: gives an allowance back when it is in the way of a request', async () => {
  const redis = needed(server)
  const { rig, meters, request } = await twoInstances(redis, 10, { dailyCostMicrocents: 60 * price })
  try {
    let count = 0
    for (; (await requestCode(meters[0], request(`r${count}`))).code === 'admitted'; count++);
    // Of 40 remaining requests the other instance holds some until it renews.
    expect(count).toBeGreaterThanOrEqual(30)
    expect(count).toBeLessThan(40)
    expect((await requestCode(meters[0], request('held'))).code).toBe('service_unavailable')
    for (let times = 0; times < 8; times++) await meters[1].renew()
    for (; (await requestCode(meters[0], request(`r${count}`))).code === 'admitted'; count++);
    expect(count).toBe(40)
    expect((await requestCode(meters[0], request('over'))).code).toBe('daily_cost_exceeded')
  } finally {
    await rig.close()
  }
})

testNeeding('redis', 'shared meter: gives an allowance back after 10 s without use, and at its end', async () => {
  const redis = needed(server)
  const { rig, meters, request } = await twoInstances(redis, 3, {})
  const held = async () => Number(await redis.command('HLEN', 'gateway:{0}:account:acc_1:held'))
  try {
    expect(await held()).toBe(2)
    for (let passed = 0; passed <= 12_000; passed += renewMs) await meters[0].renew()
    expect(await held()).toBe(1)
    await meters[1].close()
    expect(await held()).toBe(0)
    expect((await requestCode(meters[0], request('after'))).code).toBe('admitted')
  } finally {
    await rig.close()
  }
})

testNeeding(
  'redis',
  'shared meter: decides from the allowance when a frozen Redis does not answer in time',
  async () => {
    const redis = needed(server)
    const { rig, request } = await twoInstances(redis, 4, {})
    try {
      const late = await rig.open({}, 25)
      for (let index = 0; index < 4; index++)
        await settleAll(rig, late, [admitted(await late.admit(request(`own-${index}`)))])
      await late.renew()
      redis.freeze()
      const codes = await Promise.all(
        ['a', 'b', 'c', 'd', 'e'].map(async id => (await requestCode(late, request(id))).code),
      )
      expect(codes.toSorted()).toEqual([...Array(4).fill('admitted'), 'service_unavailable'])
    } finally {
      redis.thaw()
      await rig.close()
    }
  },
)
