/** An error of one account or call is no outage of Redis, and what an outage leaves is counted. */
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import { RedisUnavailableError } from '../../src/core/limits/redis.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { abandonedMs, allowanceMs, renewMs, reportGraceMs } from '../../src/limits/constants.ts'
import type { Meter } from '../../src/limits/meter.ts'
import type { LimitRedis } from '../../src/limits/redis.ts'
import { reportScript } from '../../src/limits/redis-upkeep-scripts.ts'
import type { SharedMeter } from '../../src/limits/shared.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { startRedis } from '../harness/redis.ts'
import { admitted, scope, settlement, wide } from './meter.contract.ts'
import { unit } from './racers.ts'
import { emptyLedger, openLimitRedis, sharedRig } from './rig.ts'

setDefaultTimeout(60_000)

const server = await startRedis()
afterAll(() => server?.stop())

type Rig = Awaited<ReturnType<typeof sharedRig>>

/** Cost of one request, in 1e-8 USD. */
const price = 1_000
const limits = { dailyCostMicrocents: 100 * price }

const request = (id: string, accountId = 'acc_1') => ({ ...unit(accountId, limits), requestId: id })

const getCode = (meter: Meter, ...of: Parameters<typeof request>) =>
  meter.admit(request(...of)).then(
    admission => (admission.admitted ? 'admitted' : admission.code),
    (cause: { code: string }) => cause.code,
  )

/** Admits and settles `count` requests. Returns how many were admitted. */
async function use(rig: Rig, meter: Meter, name: string, count: number): Promise<number> {
  for (let index = 0; index < count; index++) {
    const admission = await meter.admit(request(`${name}${index}`)).catch(() => null)
    if (admission === null || !admission.admitted) return index
    await meter.settle(settlement(admission.reservation, 11, price, rig.clock.now()))
  }
  return count
}

/** What the account can still pay for, in requests. */
async function getLeft(meter: Meter): Promise<number> {
  const { costMicrocents } = await meter.loadStatus('acc_1', { ...wide, ...limits })
  return costMicrocents.remaining / price
}

testNeeding('redis', 'shared meter: fails only the requests of an account that Redis has no counters of', async () => {
  const redis = needed(server)
  const events: string[] = []
  const rig = await sharedRig(redis, { onEvent: event => void events.push(event) })
  try {
    const open = admitted(await rig.meter.admit(request('open', 'acc_open')))
    expect(await getCode(rig.meter, 'known')).toBe('admitted')
    await redis.command('SET', 'gateway:{0}:account:acc_bad', 'x')
    await redis.command('SET', 'gateway:{0}:account:acc_open', 'x')
    const accounts = ['acc_bad', 'acc_1', 'acc_new']
    expect(await Promise.all(accounts.map(account => getCode(rig.meter, `of ${account}`, account)))).toEqual([
      'service_unavailable',
      'admitted',
      'admitted',
    ])
    await rig.meter.settle(settlement(open, 11, price, rig.clock.now()))
    // The abandoned admission and the settlement are not tried for ever, and the other accounts are renewed.
    for (let times = 0; times < 5; times++) {
      rig.clock.move(renewMs)
      await rig.meter.renew()
    }
    expect(rig.meter.isShared()).toBe(true)
    expect(await redis.command('ZCARD', 'gateway:{0}:account:acc_1:leases')).toBe(2)
    expect(new Set(events)).toEqual(new Set(['limits_failed']))
    const told = events.length
    await rig.meter.renew()
    // Only the report of the one that has had a request.
    expect(events.length).toBe(told + 1)
  } finally {
    await rig.close()
  }
})

testNeeding('redis', 'shared meter: fails only requests that the ledger or a script has no answer for', async () => {
  const ledger = {
    ...emptyLedger,
    load: async (accountId: string) => {
      if (accountId === 'acc_bad') throw Object.assign(new Error('permission denied'), { code: '42501' })
      return emptyLedger.load(accountId, 0, [])
    },
  }
  const rig = await sharedRig(needed(server), { ledger })
  try {
    const codes = await Promise.all([
      getCode(rig.meter, 'bad', 'acc_bad'),
      getCode(rig.meter, 'good'),
      rig.meter.admit({ ...request('fraction'), inputPrice: 0.5 }).catch((cause: { code: string }) => cause.code),
    ])
    expect(codes).toEqual(['service_unavailable', 'admitted', 'service_unavailable'])
    expect(rig.meter.isShared()).toBe(true)
    await rig.meter.renew()
    expect(rig.meter.isShared()).toBe(true)
  } finally {
    await rig.close()
  }
})

testNeeding(
  'redis',
  'shared meter: has its whole allowance in each further outage that Redis lost counters in',
  async () => {
    const redis = needed(server)
    const rig = await sharedRig(redis)
    const { meter } = rig
    try {
      for (let outage = 0; outage < 3; outage++) {
        await use(rig, meter, `before${outage}-`, 6)
        await meter.renew()
        await redis.crash()
        expect([outage, await use(rig, meter, `during${outage}-`, 6)]).toEqual([outage, 6])
        await redis.start()
        await eventually(() => meter.isShared(), 20_000)
        rig.clock.move(reportGraceMs)
        for (let times = 0; times < 8; times++) await meter.renew()
      }
      expect(await getLeft(meter)).toBe(100 - 3 * 12)
    } finally {
      await rig.close()
    }
  },
)

for (const isOpen of [false, true])
  testNeeding(
    'redis',
    `shared meter: counts once what a killed instance admitted in an outage when it ${isOpen ? 'was open' : 'had ended'}`,
    async () => {
      const redis = needed(server)
      const left: UsageRecord[] = []
      const write = (records: ReadonlyMap<string, UsageRecord>) => void left.push(...records.values())
      const rig = await sharedRig(redis, { checkpoints: { write } })
      const { meter: dead } = rig
      try {
        await use(rig, dead, 'before', 6)
        for (let times = 0; times < 2; times++) await dead.renew()
        const before = await getLeft(dead)
        await redis.command('CONFIG', 'SET', 'maxmemory', '1')
        if (isOpen) {
          const open = admitted(await dead.admit(request('open')))
          dead.checkpoint(open, () => settlement(open, 11, price, rig.clock.now()))
        } else {
          expect(await use(rig, dead, 'during', 4)).toBe(4)
          left.push(...rig.written)
        }
        await rig.kill(dead)
        await redis.command('CONFIG', 'SET', 'maxmemory', '0')
        const during = isOpen ? 1 : 4
        const successor = await rig.open()
        for (let times = 0; times < 2; times++) {
          successor.takeOver(left)
          await successor.renew()
          expect(await getLeft(successor)).toBe(before - during)
        }
        // The allowance of the dead instance ends later.
        rig.clock.move(allowanceMs + renewMs)
        await use(rig, successor, 'after', 1)
        for (let times = 0; times < 8; times++) await successor.renew()
        expect(await getLeft(successor)).toBe(100 - 6 - during - 1)
      } finally {
        await redis.command('CONFIG', 'SET', 'maxmemory', '0')
        await rig.close()
      }
    },
  )

/** An instance whose reports call `onReport` with the values of each call before it is sent. */
async function openReporter(
  rig: Rig,
  url: string,
  onReport: (values: readonly string[]) => void,
  more: Parameters<Rig['open']>[0] = {},
) {
  const { keys, redis } = openLimitRedis([url])
  const evaluate: LimitRedis['evaluate'] = async (script, scriptKeys, values, deadlineMs) => {
    if (script === reportScript) onReport(values)
    return redis.evaluate(script, scriptKeys, values, deadlineMs)
  }
  const meter = await rig.open({ redis: { ...redis, evaluate }, keys, ...more })
  return { meter, close: () => redis.close() }
}

testNeeding(
  'redis',
  'shared meter: reports many waiting records in small calls, and accounts wait for the last one',
  async () => {
    const redis = needed(server)
    const rig = await sharedRig(redis)
    await rig.kill(rig.meter)
    const calls: (readonly string[])[] = []
    let reads = 0
    let failing = 0
    let movedMs = 0
    const journal = {
      appendTogether: () => Promise.resolve(),
      isWritable: () => true,
      untilDurable: () => Promise.resolve(),
      waiting() {
        reads++
        return records
      },
    }
    const onReport = (values: readonly string[]) => {
      if (failing-- > 0) throw new RedisUnavailableError('no answer')
      calls.push(values)
      rig.clock.move(movedMs)
    }
    const records: UsageRecord[] = []
    const reporter = await openReporter(rig, redis.url, onReport, { journal })
    try {
      const reservation = { ...admitted(await reporter.meter.admit(request('open'))), requestId: 'waiting' }
      for (let index = 0; index < 3_500; index++) {
        const at = rig.clock.now() - (index < 3_000 ? 0 : 40 * 86_400_000)
        records.push({ ...settlement(reservation, 1, 10, at).record, request_id: `waiting-${index}` })
      }
      await redis.command('FLUSHALL')
      Object.assign(calls, { length: 0 })
      reads = 0
      failing = 3
      movedMs = reportGraceMs - 1
      await reporter.meter.renew()
      await eventually(() => reporter.meter.isShared(), 20_000)
      movedMs = 0
      expect(reads).toBe(1)
      // 3,001 requests, and what was settled and renewed afterwards.
      expect(calls.length).toBeGreaterThanOrEqual(4)
      const sizes = calls.map(values => values.filter(value => /^(?:waiting-\d+|open)$/.test(value)).length)
      expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000)
      expect(new Set(calls.flat().filter(value => value.startsWith('waiting-'))).size).toBe(3_000)
      rig.clock.move(reportGraceMs)
      expect(await getLeft(reporter.meter)).toBe(100 - 30 - 1)
    } finally {
      reporter.close()
      await rig.close()
    }
  },
)

testNeeding('redis', 'shared meter: counts a request that ends between two calls of its report', async () => {
  const redis = needed(server)
  const rig = await sharedRig(redis)
  await rig.kill(rig.meter)
  let onLoss = () => {}
  const onReport = () => {
    if (meter?.isShared() === false) onLoss()
  }
  let meter: SharedMeter | null = null
  const reporter = await openReporter(rig, redis.url, onReport)
  const instance = reporter.meter
  meter = instance
  try {
    for (let index = 0; index < 120; index++) admitted(await instance.admit(request(`r${index}`, `acc_${index + 2}`)))
    const open = admitted(await instance.admit(request('open')))
    await redis.command('FLUSHALL')
    const ending = new Promise<unknown>(done => {
      onLoss = () => {
        onLoss = () => {}
        done(instance.settle(settlement(open, 11, price, rig.clock.now())))
      }
    })
    await instance.renew()
    await ending
    await eventually(() => instance.isShared(), 20_000)
    rig.clock.move(reportGraceMs)
    expect(await getLeft(instance)).toBe(99)
  } finally {
    reporter.close()
    await rig.close()
  }
})

testNeeding(
  'redis',
  'shared meter: frees the allowance of a dead instance when no other one has the account',
  async () => {
    const rig = await sharedRig(needed(server))
    const { meter: dead } = rig
    try {
      await use(rig, dead, 'before', 6)
      for (let times = 0; times < 2; times++) await dead.renew()
      const other = await rig.open()
      const admittedCount = 6 + (await use(rig, other, 'other', 100))
      expect(admittedCount).toBeLessThan(100)
      await rig.kill(dead)
      await rig.kill(other)
      const successor = await rig.open()
      expect(await getCode(successor, 'early')).toBe('service_unavailable')
      rig.clock.move(allowanceMs + renewMs)
      expect(admittedCount + (await use(rig, successor, 'late', 100))).toBe(100)
    } finally {
      await rig.close()
    }
  },
)

testNeeding('redis', 'shared meter: keeps the open requests of a scope whose counters are loaded again', async () => {
  const redis = needed(server)
  const rig = await sharedRig(redis)
  const scopes = [scope({ requestsPerMinute: 100, concurrentRequests: 1 })]
  const base = 'gateway:{0}:account:acc_1|key:key_1@0'
  try {
    admitted(await rig.meter.admit({ ...request('open'), scopes }))
    // Nothing of a scope stays for ever.
    for (const suffix of ['', ':minute', ':leases'])
      expect([suffix, Number(await redis.command('PTTL', `${base}${suffix}`)) > 0]).toEqual([suffix, true])
    await redis.command('DEL', base)
    expect(await rig.meter.admit({ ...request('second'), scopes })).toMatchObject({
      code: 'concurrent_requests_exceeded',
    })
  } finally {
    await rig.close()
  }
})

testNeeding(
  'redis',
  'shared meter: ends a request that was never settled, and counts it when it is settled later',
  async () => {
    const rig = await sharedRig(needed(server))
    const { meter, clock } = rig
    const limits = { concurrentRequests: 1 }
    try {
      const lost = admitted(await meter.admit({ ...unit('acc_1', limits), requestId: 'lost' }))
      for (const movedMs of [abandonedMs - 1, 1]) {
        expect((await meter.admit({ ...unit('acc_1', limits), requestId: 'early' })).admitted).toBe(false)
        clock.move(movedMs)
        await meter.renew()
      }
      const next = admitted(await meter.admit({ ...unit('acc_1', limits), requestId: 'next' }))
      for (const reservation of [lost, next, lost]) await meter.settle(settlement(reservation, 11, price, clock.now()))
      for (let times = 0; times < 8; times++) await meter.renew()
      expect(await getLeft(meter)).toBe(98)
      expect(rig.written.map(record => record.request_id)).toEqual(['lost', 'next'])
    } finally {
      await rig.close()
    }
  },
)
