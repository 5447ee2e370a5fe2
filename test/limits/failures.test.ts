/** An error of one account or call is no outage of Redis, and what an outage leaves is counted. */
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import { RedisUnavailableError, type Script } from '../../src/core/limits/redis.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { systemClock } from '../../src/database/clock.ts'
import {
  abandonedMs,
  allowanceMs,
  failuresLoggedEveryMs,
  leaseMs,
  minuteMs,
  renewMs,
  reportGraceMs,
  requestsPerCall,
} from '../../src/limits/constants.ts'
import type { Meter } from '../../src/limits/meter.ts'
import { Presence } from '../../src/limits/presence.ts'
import type { LimitRedis } from '../../src/limits/redis.ts'
import { admitScript, settleScript } from '../../src/limits/redis-request-scripts.ts'
import { forgetScript, reportScript } from '../../src/limits/redis-upkeep-scripts.ts'
import { SharedMeter } from '../../src/limits/shared.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patient } from '../harness/patience.ts'
import { startRedis, startRedisCluster } from '../harness/redis.ts'
import { admitted, scope, settlement, wide } from './meter.contract.ts'
import { unit } from './racers.ts'
import { emptyLedger, memoryJournal, openLimitRedis, sharedRig } from './rig.ts'

setDefaultTimeout(240_000)

const server = await startRedis()
afterAll(() => server?.stop())

type Rig = Awaited<ReturnType<typeof sharedRig>>

/** Cost of one request, in 1e-8 USD. */
const price = 1_000
const limits = { dailyCostMicrocents: 100 * price }

const request = (id: string, accountId = 'acc_1') => ({ ...unit(accountId, limits), requestId: id })

/** Opens an instance of which calls of these scripts wait after `hold` until `pass`. */
async function openSlow(rig: Rig, scripts: readonly Script[]) {
  const { keys, redis } = openLimitRedis([needed(server).url])
  let gate: PromiseWithResolvers<void> | null = null
  const evaluate: LimitRedis['evaluate'] = async (script, ...more) => {
    if (scripts.includes(script)) await gate?.promise
    return redis.evaluate(script, ...more)
  }
  const deadlines = {
    get limitsMs() {
      return gate === null ? patient.limitsMs : 50
    },
  }
  return {
    slow: await rig.open({ redis: { ...redis, evaluate }, keys, deadlines }),
    hold() {
      gate = Promise.withResolvers()
    },
    pass() {
      gate?.resolve()
      gate = null
    },
    async closeSlow() {
      await rig.close()
      redis.close()
    },
  }
}

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

/** What Redis counts as held by instances, in requests. */
async function getHeld(): Promise<number> {
  const held = (await needed(server).command('HVALS', 'gateway:{0}:account:acc_1:held')) as string[]
  return held.reduce((sum, amounts) => sum + Number(amounts.split(':')[1]) / price, 0)
}

/** A ledger of these records. Calls `onLoad` before it reads them. */
const createLedger = (records: readonly UsageRecord[], onLoad = async () => {}): typeof emptyLedger => ({
  ...emptyLedger,
  async load(_, __, requestIds) {
    await onLoad()
    const asked = records.filter(({ request_id }) => requestIds.includes(request_id))
    const present = new Map(asked.map(({ request_id }) => [request_id, { tokens: 11, microcents: price }]))
    return { tokens: 0, microcents: records.length * price, present, scopes: [] }
  },
})

testNeeding('redis', 'shared meter: fails only the requests of an account that Redis has no counters of', async () => {
  const redis = needed(server)
  const events: (readonly [string, string])[] = []
  await using rig = await sharedRig(redis, { onEvent: (...event) => void events.push(event) })
  let skippedMs = 0
  const clock = { now: rig.clock.now, monotonic: () => performance.now() + skippedMs }
  await rig.kill(rig.meter)
  const meter = await rig.open({ clock })
  const getCount = (detail = '') => Number(/; (\d+) since the last report$/.exec(detail)?.[1])
  const open = admitted(await meter.admit(request('open', 'acc_open')))
  expect(await getCode(meter, 'known')).toBe('admitted')
  await redis.command('SET', 'gateway:{0}:account:acc_bad', 'x')
  await redis.command('SET', 'gateway:{0}:account:acc_open', 'x')
  const accounts = ['acc_bad', 'acc_1', 'acc_new']
  expect(await Promise.all(accounts.map(account => getCode(meter, `of ${account}`, account)))).toEqual([
    'service_unavailable',
    'admitted',
    'admitted',
  ])
  await meter.settle(settlement(open, 11, price, rig.clock.now()))
  // The abandoned admission and the settlement are not tried for ever, and the other accounts are renewed.
  for (let times = 0; times < 5; times++) {
    rig.clock.move(renewMs)
    await meter.renew()
  }
  expect(meter.isShared()).toBe(true)
  const renewed = String(rig.clock.now() + leaseMs)
  expect(await redis.command('ZCOUNT', 'gateway:{0}:account:acc_1:leases', renewed, renewed)).toBe(2)
  // However many fail, they are one line per second, which counts them.
  expect(events.map(([event, detail]) => [event, getCount(detail)])).toEqual([['limits_failed', 1]])
  skippedMs += failuresLoggedEveryMs
  await meter.renew()
  const counted = getCount(events[1]?.[1])
  expect(counted).toBeGreaterThan(1)
  skippedMs += failuresLoggedEveryMs
  await meter.renew()
  // Only the report of the one that has had a request.
  expect(events.slice(2).map(([, detail]) => getCount(detail))).toEqual([1])
})

testNeeding('redis', 'shared meter: fails only requests that the ledger or a script has no answer for', async () => {
  const ledger = {
    ...emptyLedger,
    load: async (accountId: string) => {
      if (accountId === 'acc_bad') throw Object.assign(new Error('permission denied'), { code: '42501' })
      return emptyLedger.load(accountId, 0, [])
    },
  }
  await using rig = await sharedRig(needed(server), { ledger })
  const codes = await Promise.all([
    getCode(rig.meter, 'bad', 'acc_bad'),
    getCode(rig.meter, 'good'),
    rig.meter.admit({ ...request('fraction'), inputPrice: 0.5 }).catch((cause: { code: string }) => cause.code),
  ])
  expect(codes).toEqual(['service_unavailable', 'admitted', 'service_unavailable'])
  expect(rig.meter.isShared()).toBe(true)
  await rig.meter.renew()
  expect(rig.meter.isShared()).toBe(true)
})

testNeeding(
  'redis',
  'shared meter: has its whole allowance in each further outage that Redis lost counters in',
  async () => {
    const redis = needed(server)
    await using rig = await sharedRig(redis)
    const { meter } = rig
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
      await using rig = await sharedRig(redis, { checkpoints: { write } })
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
      }
    },
  )

type SentReport = {
  readonly accounts: readonly { readonly open: readonly [string][]; readonly ended: readonly [string][] }[]
}

/** An instance whose reports call `onReport` with the content of each call before it is sent. */
async function openReporter(
  rig: Rig,
  url: string,
  onReport: (sent: SentReport) => void,
  more: Parameters<Rig['open']>[0] = {},
) {
  const { keys, redis } = openLimitRedis([url])
  const evaluate: LimitRedis['evaluate'] = async (script, scriptKeys, values, deadlineMs) => {
    if (script === reportScript) onReport(JSON.parse(values[2] ?? ''))
    return redis.evaluate(script, scriptKeys, values, deadlineMs)
  }
  const meter = await rig.open({ redis: { ...redis, evaluate }, keys, ...more })
  return { meter, close: () => redis.close() }
}

const getIds = ({ accounts }: SentReport) =>
  accounts.flatMap(({ open, ended }) => [...open, ...ended]).map(([id]) => id)

testNeeding(
  'redis',
  'shared meter: reports many waiting records in small calls, and accounts wait for the last one',
  async () => {
    const redis = needed(server)
    await using rig = await sharedRig(redis)
    await rig.kill(rig.meter)
    const calls: (readonly string[])[] = []
    let reads = 0
    let failing = 0
    let movedMs = 0
    const journal = {
      ...memoryJournal(),
      waiting() {
        reads++
        return records
      },
    }
    const onReport = (sent: SentReport) => {
      if (failing-- > 0) throw new RedisUnavailableError('no answer')
      calls.push(getIds(sent))
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
      expect(Math.max(...calls.map(ids => ids.length))).toBeLessThanOrEqual(requestsPerCall)
      expect(new Set(calls.flat().filter(id => id.startsWith('waiting-'))).size).toBe(3_000)
      rig.clock.move(reportGraceMs)
      expect(await getLeft(reporter.meter)).toBe(100 - 30 - 1)
    } finally {
      reporter.close()
    }
  },
)

testNeeding('redis', 'shared meter: reports what a predecessor left when its first report has failed', async () => {
  const redis = needed(server)
  await using rig = await sharedRig(redis)
  const { record } = settlement(admitted(await rig.meter.admit(request('left'))), 11, price, rig.clock.now())
  let failing = 1
  const onReport = () => {
    if (failing-- <= 0) return
    // The next attempt comes after the others' accounts have loaded.
    rig.clock.move(reportGraceMs)
    throw new RedisUnavailableError('no answer')
  }
  await rig.kill(rig.meter)
  await redis.command('FLUSHALL')
  const successor = await openReporter(rig, redis.url, onReport, { journal: memoryJournal([record]) })
  try {
    expect(await getLeft(successor.meter)).toBe(99)
  } finally {
    successor.close()
  }
})

testNeeding('redis', 'shared meter: loads no account with what Redis had before it lost its counters', async () => {
  const redis = needed(server)
  let onLoad: (() => Promise<void>) | null = null
  const ledger: typeof emptyLedger = {
    ...emptyLedger,
    async load(...of) {
      const act = onLoad
      onLoad = null
      await act?.()
      return emptyLedger.load(...of)
    },
  }
  await using rig = await sharedRig(redis, { ledger })
  const other = await rig.open({ journal: memoryJournal() })
  const renewed = async (meter: SharedMeter) => {
    await meter.renew()
    await eventually(() => meter.isShared(), 20_000)
  }
  onLoad = async () => {
    expect(await use(rig, other, 'unshipped', 3)).toBe(3)
    await redis.command('FLUSHALL')
    await renewed(rig.meter)
  }
  // It cannot be loaded before the others have reported.
  expect(await getCode(rig.meter, 'early')).toBe('service_unavailable')
  await renewed(other)
  rig.clock.move(reportGraceMs)
  for (let times = 0; times < 8; times++) for (const meter of [other, rig.meter]) await meter.renew()
  expect(await getLeft(other)).toBe(97)
})

testNeeding(
  'redis',
  'shared meter: counts what ended while only its instance was without Redis, which lost counters',
  async () => {
    const redis = needed(server)
    const shipped: UsageRecord[] = []
    await using rig = await sharedRig(redis, { ledger: createLedger(shipped) })
    const { keys, redis: client } = openLimitRedis([redis.url])
    let isCut = false
    const evaluate: LimitRedis['evaluate'] = async (...call) => {
      if (isCut) throw new RedisUnavailableError('no route')
      return client.evaluate(...call)
    }
    const unshipped: UsageRecord[] = []
    const cut = await rig.open({ redis: { ...client, evaluate }, keys, journal: memoryJournal(unshipped) })
    const renewedAll = async () => {
      for (const meter of [cut, rig.meter]) await meter.renew()
      await eventually(() => rig.meter.isShared() && (isCut || cut.isShared()), 20_000)
    }
    try {
      const open = admitted(await cut.admit(request('open')))
      isCut = true
      await cut.settle(settlement(open, 11, price, rig.clock.now()))
      await redis.command('FLUSHALL')
      await renewedAll()
      rig.clock.move(reportGraceMs)
      // Its record comes to the ledger after the account has loaded, and the minute of the request is over.
      expect(await getLeft(rig.meter)).toBe(100)
      shipped.push(...unshipped.splice(0))
      rig.clock.move(minuteMs)
      await renewedAll()
      isCut = false
      for (let times = 0; times < 2; times++) await renewedAll()
      rig.clock.move(reportGraceMs)
      // Until no allowance is counted.
      for (let times = 0; times < 8; times++) await renewedAll()
      expect(await getLeft(rig.meter)).toBe(99)
    } finally {
      client.close()
    }
  },
)

testNeeding('redis', 'shared meter: counts a request that ends between two calls of its report', async () => {
  const redis = needed(server)
  await using rig = await sharedRig(redis)
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
  }
})

testNeeding(
  'redis',
  'shared meter: frees the allowance of a dead instance when no other one has the account',
  async () => {
    await using rig = await sharedRig(needed(server))
    const { meter: dead } = rig
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
  },
)

testNeeding('redis', 'shared meter: keeps the open requests of a scope whose counters are loaded again', async () => {
  const redis = needed(server)
  await using rig = await sharedRig(redis)
  const scopes = [scope({ requestsPerMinute: 100, concurrentRequests: 1 })]
  const base = 'gateway:{0}:account:acc_1|key:key_1@0'
  admitted(await rig.meter.admit({ ...request('open'), scopes }))
  // Nothing of a scope stays for ever.
  for (const suffix of ['', ':minute', ':leases'])
    expect([suffix, Number(await redis.command('PTTL', `${base}${suffix}`)) > 0]).toEqual([suffix, true])
  await redis.command('DEL', base)
  expect(await rig.meter.admit({ ...request('second'), scopes })).toMatchObject({
    code: 'concurrent_requests_exceeded',
  })
})

testNeeding(
  'redis',
  'shared meter: ends a request that was never settled, and counts it when it is settled later',
  async () => {
    await using rig = await sharedRig(needed(server))
    const { meter, clock } = rig
    const limits = { concurrentRequests: 1 }
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
  },
)

testNeeding('redis', 'shared meter: renews many open requests of one account in small calls', async () => {
  const redis = needed(server)
  await using rig = await sharedRig(redis)
  await rig.kill(rig.meter)
  const calls: (readonly string[])[] = []
  const reporter = await openReporter(rig, redis.url, sent => void calls.push(getIds(sent)))
  const { meter } = reporter
  const many = { concurrentRequests: 10_000 }
  try {
    const ids = Array.from({ length: 2_500 }, (_, index) => `r${index}`)
    await Promise.all(ids.map(requestId => meter.admit({ ...unit('acc_1', many), requestId })))
    Object.assign(calls, { length: 0 })
    await meter.renew()
    expect(calls.map(call => call.length)).toEqual([requestsPerCall, requestsPerCall, 500])
    expect(new Set(calls.flat())).toEqual(new Set(ids))
    // Each is renewed.
    rig.clock.move(renewMs)
    await meter.renew()
    const leases = 'gateway:{0}:account:acc_1:leases'
    const until = String(rig.clock.now() + leaseMs)
    expect(await redis.command('ZCOUNT', leases, until, until)).toBe(2_500)
  } finally {
    reporter.close()
  }
})

testNeeding(
  'redis',
  'shared meter: releases an admission that Redis executes after the request stopped waiting',
  async () => {
    const redis = needed(server)
    const rig = await sharedRig(redis)
    await use(rig, rig.meter, 'before', 4)
    await rig.meter.renew()
    const { slow, hold, pass, closeSlow } = await openSlow(rig, [admitScript, settleScript])
    try {
      await use(rig, slow, 'own', 4)
      for (let times = 0; times < 2; times++) await slow.renew()
      hold()
      // From the allowance, and then not at all: however long each call to Redis may take.
      const first = admitted(await slow.admit(request('first')))
      const codes = await Promise.all(['a', 'b', 'c', 'd'].map(id => getCode(slow, id)))
      expect(codes.toSorted()).toEqual([...Array(3).fill('admitted'), 'service_unavailable'])
      await slow.settle(settlement(first, 11, price, rig.clock.now()))
      pass()
      const leases = () => redis.command('ZCARD', 'gateway:{0}:account:acc_1:leases')
      // The first renewal can come before the late admissions.
      await eventually(async () => {
        await slow.renew()
        return (await leases()) === 3
      }, 20_000)
      expect(slow.isShared()).toBe(true)
    } finally {
      await closeSlow()
    }
  },
)

testNeeding('redis', 'shared meter: reserves nothing when Redis admits a request after its settlement', async () => {
  const redis = needed(server)
  const rig = await sharedRig(redis)
  const { slow, hold, pass, closeSlow } = await openSlow(rig, [admitScript])
  try {
    await use(rig, slow, 'own', 4)
    for (let times = 0; times < 2; times++) await slow.renew()
    const before = await getLeft(rig.meter)
    const slot = { ...request('late'), scopes: [scope({ concurrentRequests: 1 })] }
    hold()
    const late = admitted(await slow.admit(slot))
    await slow.settle(settlement(late, 11, price, rig.clock.now()))
    pass()
    // The held call goes first.
    expect(await slow.admit({ ...slot, requestId: 'next' })).toMatchObject({ admitted: true })
    for (const suffix of ['', '|key:key_1@0'])
      expect(await redis.command('ZRANGE', `gateway:{0}:account:acc_1${suffix}:leases`, '0', '-1')).toEqual(['next'])
    // An allowance is counted as spent until it goes back, also by what is used from it.
    expect(await getLeft(rig.meter)).toBe(before - 2)
  } finally {
    await closeSlow()
  }
})

testNeeding(
  'redis',
  'shared meter: frees the slot of a scope when its request ends before the account loads',
  async () => {
    const redis = needed(server)
    await using rig = await sharedRig(redis)
    const { keys, redis: client } = openLimitRedis([redis.url])
    const own = { ...request('open'), scopes: [scope({ concurrentRequests: 1 })] }
    try {
      const open = admitted(await rig.meter.admit(own))
      await redis.command('FLUSHALL')
      await rig.meter.renew()
      const leases = () => redis.command('ZCARD', 'gateway:{0}:account:acc_1|key:key_1@0:leases')
      await eventually(async () => (await leases()) === 1 && rig.meter.isShared(), 20_000)
      await rig.meter.settle(settlement(open, 11, price, rig.clock.now()))
      expect(await leases()).toBe(0)
      // The deletion of the account finds scopes that only a report has named.
      await client.evaluate(forgetScript, [keys.account('acc_1')], [])
      expect(await redis.command('KEYS', 'gateway:{0}:account:*')).toEqual([keys.account('acc_1')])
    } finally {
      client.close()
    }
  },
)

testNeeding('redis', 'shared meter: keeps no name of a tag when the account of its requests is deleted', async () => {
  const redis = needed(server)
  const rig = await sharedRig(redis)
  const { slow, hold, pass, closeSlow } = await openSlow(rig, [admitScript])
  const { keys, redis: client } = openLimitRedis([redis.url])
  const tagged = (id: string) => ({ ...request(id), scopes: [scope({ dailyTokens: 1_000 }, 'tag:who=someone')] })
  const stored = async () => {
    const names = (await redis.command('KEYS', '*')) as string[]
    return [...names, ...(await Promise.all(names.map(async name => String(await redis.command('DUMP', name)))))].join()
  }
  try {
    const open = admitted(await slow.admit(tagged('open')))
    for (const id of ['a', 'b', 'c', 'd'])
      await slow.settle(settlement(admitted(await slow.admit(tagged(id))), 11, price, rig.clock.now()))
    for (let times = 0; times < 2; times++) await slow.renew()
    hold()
    const fromAllowance = admitted(await slow.admit(tagged('from an allowance')))
    const late = admitted(await slow.admit(tagged('late')))
    expect(await stored()).toContain('someone')
    await client.evaluate(forgetScript, [keys.account('acc_1')], [])
    expect(await stored()).not.toContain('someone')
    // A renewal has open requests and allowances; settlements have the names of their request.
    await slow.settle(settlement(fromAllowance, 11, price, rig.clock.now()))
    await slow.renew()
    expect(await stored()).not.toContain('someone')
    pass()
    for (const reservation of [open, late]) await slow.settle(settlement(reservation, 11, price, rig.clock.now()))
    expect(await getCode(slow, 'after the deletion')).toBe('invalid_api_key')
    await slow.renew()
    expect(await stored()).not.toContain('someone')
    expect(slow.isShared()).toBe(true)
  } finally {
    client.close()
    await closeSlow()
  }
})

testNeeding('redis', 'shared meter: leaves its share of the minute to others when it closes', async () => {
  const redis = needed(server)
  await using rig = await sharedRig(redis)
  const other = await rig.open()
  for (const meter of [other, rig.meter]) await meter.renew()
  expect(await redis.command('ZCARD', 'gateway:{0}:instances')).toBe(2)
  await other.close()
  expect(await redis.command('ZCARD', 'gateway:{0}:instances')).toBe(1)
})

testNeeding('redis', 'shared meter: decides for the accounts of other nodes when a cluster node is dead', async () => {
  const nodes = needed(await startRedisCluster())
  for (const node of nodes) await node.command('CONFIG', 'SET', 'cluster-require-full-coverage', 'no')
  const { keys, redis } = openLimitRedis(
    nodes.map(({ url }) => url),
    500,
  )
  const [dead, ...living] = nodes
  const meter = new SharedMeter({
    redis,
    keys,
    ledger: emptyLedger,
    clock: systemClock,
    gatewayId: 'one',
    deadlines: patient,
    reportGraceMs: 0,
    returnAfterMs: 0,
    journal: memoryJournal(),
  })
  try {
    await eventually(() => meter.isShared(), 60_000)
    const accounts = Array.from({ length: 32 }, (_, index) => `acc_${index}`)
    const isOfDead = new Map<string, boolean>()
    for (const account of accounts) {
      const slot = Number(await needed(living[0] ?? null).command('CLUSTER', 'KEYSLOT', keys.account(account)))
      // The first of three nodes has the first third of the slots.
      isOfDead.set(account, slot <= 5_460)
    }
    expect(new Set(isOfDead.values())).toEqual(new Set([true, false]))
    await needed(dead ?? null).crash()
    const isRight = async () => {
      const codes = await Promise.all(accounts.map(account => getCode(meter, crypto.randomUUID(), account)))
      return accounts.every((account, index) => (codes[index] === 'admitted') !== isOfDead.get(account))
    }
    await eventually(isRight, 60_000)
    expect(meter.isShared()).toBe(false)
    // It stays so, also with a new connection.
    for (let times = 0; times < 5; times++) {
      await meter.renew()
      expect(await isRight()).toBe(true)
    }
  } finally {
    await meter.close()
    redis.close()
    await Promise.all(nodes.map(node => node.stop()))
  }
})

testNeeding(
  'redis',
  'shared meter: counts a request once when it is reported, ends and is in the ledger while the account loads',
  async () => {
    const redis = needed(server)
    const shipped: UsageRecord[] = []
    const unshipped: UsageRecord[] = []
    let onLoad: (() => Promise<void>) | null = null
    await using rig = await sharedRig(redis, {
      ledger: createLedger(shipped, async () => {
        const act = onLoad
        onLoad = null
        await act?.()
      }),
    })
    const other = await rig.open({ journal: memoryJournal(unshipped) })
    const open = admitted(await other.admit(request('open')))
    await redis.command('FLUSHALL')
    await rig.meter.renew()
    await eventually(() => rig.meter.isShared(), 20_000)
    rig.clock.move(reportGraceMs)
    onLoad = async () => {
      await other.renew()
      await eventually(() => other.isShared(), 20_000)
      await other.settle(settlement(open, 11, price, rig.clock.now()))
      shipped.push(...unshipped.splice(0))
    }
    expect(await getLeft(rig.meter)).toBe(99)
    expect(shipped).toHaveLength(1)
  },
)

testNeeding('redis', 'shared meter: returns to no allowance what Redis counts as an open request', async () => {
  const redis = needed(server)
  await using rig = await sharedRig(redis)
  const { meter } = rig
  try {
    await use(rig, meter, 'before', 6)
    for (let times = 0; times < 2; times++) await meter.renew()
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    const open = admitted(await meter.admit(request('open')))
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    await eventually(() => meter.isShared(), 20_000)
    for (let times = 0; times < 2; times++) await meter.renew()
    const held = await getHeld()
    expect(held).toBeGreaterThan(0)
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    await meter.settle(settlement(open, 0, 0, rig.clock.now()))
    expect(await use(rig, meter, 'again', 100)).toBe(held)
  } finally {
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
  }
})

testNeeding('redis', 'presence: is not back when a call failed while it settled', async () => {
  const { redis } = openLimitRedis([needed(server).url])
  let settled = 0
  const presence: Presence = new Presence(
    { redis, clock: systemClock, returnAfterMs: 0 },
    {
      partition: 0,
      store: { begin: async () => ({ text: 'one', ageMs: reportGraceMs }), checkService: async () => {} },
      report: async () => true,
      async settle() {
        settled++
        if (settled === 1) presence.failed(new RedisUnavailableError('no answer'))
      },
    },
  )
  try {
    await eventually(() => presence.isHere(), 20_000)
    expect(settled).toBe(2)
  } finally {
    await presence.close()
    redis.close()
  }
})

testNeeding('redis', 'shared meter: confirms a settlement once when it was sent twice', async () => {
  const redis = needed(server)
  const rig = await sharedRig(redis)
  const { slow, hold, pass, closeSlow } = await openSlow(rig, [admitScript, settleScript])
  try {
    await use(rig, slow, 'own', 6)
    for (let times = 0; times < 2; times++) await slow.renew()
    hold()
    const open = admitted(await slow.admit(request('open')))
    await slow.settle(settlement(open, 11, price, rig.clock.now()))
    const renewed = slow.renew()
    pass()
    await renewed
    await slow.renew()
    const held = await getHeld()
    expect(held).toBeGreaterThan(0)
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    expect(await use(rig, slow, 'again', 100)).toBe(held)
  } finally {
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    await closeSlow()
  }
})

for (const isLost of [false, true])
  testNeeding(
    'redis',
    `shared meter: counts what lapses and is settled in one outage when Redis ${isLost ? 'loses' : 'keeps'} its counters`,
    async () => {
      const redis = needed(server)
      await using rig = await sharedRig(redis)
      const { meter } = rig
      try {
        await use(rig, meter, 'before', 6)
        for (let times = 0; times < 2; times++) await meter.renew()
        const held = await getHeld()
        if (isLost) await redis.crash()
        else await redis.command('CONFIG', 'SET', 'maxmemory', '1')
        const open = [admitted(await meter.admit(request('one'))), admitted(await meter.admit(request('two')))]
        rig.clock.move(abandonedMs)
        await meter.renew()
        for (const reservation of open) await meter.settle(settlement(reservation, 5, price / 2, rig.clock.now()))
        // The allowance got them back once.
        expect(await use(rig, meter, 'during', 100)).toBe(held)
        if (isLost) await redis.start()
        else await redis.command('CONFIG', 'SET', 'maxmemory', '0')
        await eventually(() => meter.isShared(), 20_000)
        rig.clock.move(reportGraceMs)
        for (let times = 0; times < 8; times++) await meter.renew()
        expect(await getLeft(meter)).toBe(100 - 6 - 1 - held)
      } finally {
        await redis.command('CONFIG', 'SET', 'maxmemory', '0')
      }
    },
  )

testNeeding('redis', 'shared meter: forgets an account whose only request is never settled', async () => {
  const redis = needed(server)
  await using rig = await sharedRig(redis)
  await rig.kill(rig.meter)
  let reported = 0
  const reporter = await openReporter(rig, redis.url, ({ accounts }) => {
    reported = accounts.length
  })
  const { meter } = reporter
  try {
    const lost = admitted(await meter.admit(request('lost')))
    await meter.renew()
    expect(reported).toBe(1)
    rig.clock.move(abandonedMs)
    for (let times = 0; times < 8; times++) await meter.renew()
    expect(reported).toBe(0)
    await meter.settle(settlement(lost, 11, price, rig.clock.now()))
    expect(await getLeft(meter)).toBe(99)
  } finally {
    reporter.close()
  }
})
