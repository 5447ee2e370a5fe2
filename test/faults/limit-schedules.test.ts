/**
 * A model of limits in random schedules on a clock that the test moves: instances admit, settle, renew, ship, die, a day ends, and Redis is
 * emptied, out of memory or read-only. In any order cost and tokens stay within their limits, the minute and concurrent requests
 * within theirs or the instance's share, and each settled request counts once.
 */
import { afterAll, expect } from 'bun:test'
import fc from 'fast-check'
import { dayMs, formatDay } from '../../src/core/text/utc-days.ts'
import type { DailyUsage, UsageRecord } from '../../src/core/usage/usage-record.ts'
import { renewMs, reportGraceMs } from '../../src/limits/constants.ts'
import type { Reservation } from '../../src/limits/meter.ts'
import type { LimitLedger } from '../../src/limits/redis.ts'
import type { SharedMeter } from '../../src/limits/shared.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patient } from '../harness/patience.ts'
import { type PrivateRedis, startRedis } from '../harness/redis.ts'
import { settlement } from '../limits/meter.contract.ts'
import { unit } from '../limits/racers.ts'
import { memoryJournal, sharedRig } from '../limits/rig.ts'

const server = await startRedis()
afterAll(() => server?.stop())

/** Of each request. */
const price = 1_000
const size = 11
const minuteMs = 60_000
/** For many: `SCHEDULES=3000 bun test ./test/faults/limit-schedules.test.ts --timeout=3600000`. */
const runs = Number(process.env.SCHEDULES ?? 60)

const who = fc.nat(2)
const command = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({ kind: fc.constant('admit' as const), who, count: fc.integer({ min: 1, max: 6 }) }),
  },
  { weight: 7, arbitrary: fc.record({ kind: fc.constant('settle' as const), cost: fc.nat(price) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('pass' as const), renewals: fc.integer({ min: 1, max: 7 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('ship' as const), who }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('flush' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fill' as const), isFull: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lock' as const), isReadOnly: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('die' as const), who }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('calm' as const) }) },
)
/** Limits in requests. Any of them can be the one that is reached. */
const limited = fc.record({
  cost: fc.integer({ min: 10, max: 60 }),
  tokens: fc.integer({ min: 10, max: 60 }),
  perMinute: fc.integer({ min: 4, max: 60 }),
  concurrent: fc.integer({ min: 2, max: 30 }),
  /** When the day ends: open requests, allowances and outages go on over it. */
  midnightInMs: fc.integer({ min: 5_000, max: 90_000 }),
})
type Limited = typeof limited extends fc.Arbitrary<infer T> ? T : never
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never
/** Longer than a minute, with the only request open: its instance must still return its allowance. */
const longOutage: Command[] = [
  { kind: 'admit', who: 0, count: 1 },
  { kind: 'lock', isReadOnly: true },
  ...Array.from({ length: 4 }, (): Command => ({ kind: 'pass', renewals: 7 })),
  { kind: 'lock', isReadOnly: false },
]
/** The day ends while Redis is away, and what is admitted and settled then is the first of the new one. */
const outageOverMidnight: Command[] = [
  { kind: 'admit', who: 0, count: 6 },
  ...Array.from({ length: 6 }, (): Command => ({ kind: 'settle', cost: price })),
  { kind: 'pass', renewals: 2 },
  { kind: 'lock', isReadOnly: true },
  { kind: 'pass', renewals: 7 },
  { kind: 'admit', who: 0, count: 2 },
  { kind: 'settle', cost: price },
  { kind: 'settle', cost: price },
  { kind: 'lock', isReadOnly: false },
]
type Instance = { meter: SharedMeter; waiting: UsageRecord[] }

testNeeding(
  'redis',
  'shared meter: exceeds no limit and counts each request once in any schedule of faults',
  async () => {
    await fc.assert(
      fc.asyncProperty(limited, fc.array(command, { minLength: 10, maxLength: 40, size: 'max' }), (limits, steps) =>
        runSchedule(needed(server), limits, steps),
      ),
      {
        numRuns: runs,
        examples: [
          [{ cost: 10, tokens: 10, perMinute: 4, concurrent: 2, midnightInMs: 30_000 }, longOutage],
          [{ cost: 60, tokens: 60, perMinute: 60, concurrent: 30, midnightInMs: 15_000 }, outageOverMidnight],
        ],
      },
    )
  },
  Math.max(240_000, runs * 10_000),
)

async function runSchedule(redis: PrivateRedis, most: Limited, steps: readonly Command[]): Promise<void> {
  const shipped = new Map<string, DailyUsage & { readonly day: number }>()
  const ledger: LimitLedger = {
    async load(_, day, requestIds) {
      const ofDay = [...shipped.values()].filter(usage => usage.day === day)
      const sum = (field: keyof DailyUsage) => ofDay.reduce((total, usage) => total + usage[field], 0)
      const present = new Map([...shipped].filter(([id]) => requestIds.includes(id)))
      return { tokens: sum('tokens'), microcents: sum('microcents'), present, scopes: [] }
    },
    loadScopes: async () => [],
  }
  const faults = new Set<'fill' | 'lock'>()
  const heal = async () => {
    faults.clear()
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    await redis.command('REPLICAOF', 'NO', 'ONE')
  }
  await heal()
  await using rig = await sharedRig(redis, { ledger, deadlines: { ...patient, limitsMs: 2_000 } })
  const limits = {
    dailyCostMicrocents: most.cost * price,
    dailyTokens: most.tokens * size,
    requestsPerMinute: most.perMinute,
    concurrentRequests: most.concurrent,
  }
  let open: { readonly reservation: Reservation; readonly instance: Instance }[] = []
  let recent: { readonly at: number; readonly instance: Instance }[] = []
  const settled: (DailyUsage & { readonly day: number })[] = []
  /** What ended requests of a day have used. */
  const getUsed = (day: number, field: keyof DailyUsage) =>
    settled.reduce((total, usage) => total + (usage.day === day ? usage[field] : 0), 0)
  /** Only Redis has decided since the last calm. */
  let isExact = true
  let asked = 0
  const start = async (): Promise<Instance> => {
    const waiting: UsageRecord[] = []
    return { meter: await rig.open({ journal: memoryJournal(waiting) }), waiting }
  }
  rig.clock.move(dayMs - (rig.clock.now() % dayMs) - most.midnightInMs)
  const instances = [await start(), await start(), await start()]
  const get = (place: number) => instances[place] ?? needed(instances[0] ?? null)
  const ship = ({ waiting }: Instance) => {
    for (const record of waiting.splice(0))
      shipped.set(record.request_id, {
        tokens: record.input_tokens,
        microcents: record.billed_microcents,
        day: formatDay(record.at_ms),
      })
  }
  const settle = async (item: (typeof open)[number], cost: number) => {
    settled.push({ tokens: size, microcents: cost, day: item.reservation.day })
    await item.instance.meter.settle(settlement(item.reservation, size, cost, rig.clock.now()))
  }
  const pass = async (renewals: number) => {
    for (let times = 0; times < renewals; times++) {
      rig.clock.move(renewMs)
      for (const { meter } of instances) await meter.renew()
      // Reports take real time, which must not count as seconds of the schedule: a late one is a second fault.
      if (faults.size === 0) await eventually(() => instances.every(({ meter }) => meter.isShared()), 60_000)
    }
  }
  /** Lets Redis serve, all instances report, and all allowances go back. */
  const calm = async () => {
    await heal()
    for (let times = 0; times < 2; times++) {
      await Promise.all(instances.map(({ meter }) => meter.renew()))
      await eventually(() => instances.every(({ meter }) => meter.isShared()), 60_000)
    }
    rig.clock.move(reportGraceMs)
    await pass(8)
    isExact = true
  }
  /** The minute and concurrent requests after an admission by `instance`. */
  const expectWithin = (
    instance: Instance,
    title: string,
    all: readonly { readonly instance: Instance }[],
    limit: number,
  ) => {
    const own = all.filter(item => item.instance === instance).length
    const share = isExact ? 0 : Math.ceil(limit / instances.length)
    const isWithin = all.length <= limit || own <= share
    expect([title, isWithin, isWithin ? '' : `${all.length} of ${limit}, ${own} of ${share} its own`]).toEqual([
      title,
      true,
      '',
    ])
  }
  try {
    // Each knows all others.
    await pass(2)
    for (const step of steps) {
      if (step.kind === 'admit') {
        const instance = get(step.who)
        const ids = Array.from({ length: step.count }, () => `r${asked++}`)
        const all = await Promise.all(
          ids.map(requestId => instance.meter.admit({ ...unit('acc_1', limits), requestId }).catch(() => null)),
        )
        recent = recent.filter(({ at }) => at > rig.clock.now() - minuteMs)
        for (const item of all) {
          if (!item?.admitted) continue
          open.push({ reservation: item.reservation, instance })
          recent.push({ at: rig.clock.now(), instance })
        }
        const today = formatDay(rig.clock.now())
        const reserved = open.filter(({ reservation }) => reservation.day === today).length
        expect(getUsed(today, 'microcents') + reserved * price).toBeLessThanOrEqual(limits.dailyCostMicrocents)
        expect(getUsed(today, 'tokens') + reserved * size).toBeLessThanOrEqual(limits.dailyTokens)
        if (!all.some(item => item?.admitted)) continue
        expectWithin(instance, 'minute', recent, most.perMinute)
        expectWithin(instance, 'concurrent', open, most.concurrent)
      } else if (step.kind === 'settle') {
        const item = open.shift()
        if (item !== undefined) await settle(item, step.cost)
      } else if (step.kind === 'pass') await pass(step.renewals)
      else if (step.kind === 'ship') ship(get(step.who))
      else if (step.kind === 'calm') await calm()
      else if (step.kind === 'flush') {
        isExact = false
        recent = recent.filter(({ instance }) => instances.includes(instance))
        await redis.command('FLUSHALL').catch(() => {})
      } else if (step.kind === 'fill') {
        if (step.isFull) isExact = false
        faults[step.isFull ? 'add' : 'delete']('fill')
        await redis.command('CONFIG', 'SET', 'maxmemory', step.isFull ? '1' : '0')
      } else if (step.kind === 'lock') {
        if (step.isReadOnly) isExact = false
        faults[step.isReadOnly ? 'add' : 'delete']('lock')
        await redis.command('REPLICAOF', ...(step.isReadOnly ? ['127.0.0.1', '1'] : ['NO', 'ONE']))
      } else {
        // A double fault is out of scope: of a dead instance an emptied Redis gets what the ledger has, and no minute.
        await calm()
        const dead = get(step.who)
        ship(dead)
        open = open.filter(({ instance }) => instance !== dead)
        await rig.kill(dead.meter)
        instances[instances.indexOf(dead)] = await start()
      }
    }
    for (const item of open.splice(0)) await settle(item, price)
    await calm()
    for (const instance of instances) ship(instance)
    const total = (all: Iterable<DailyUsage>) => [...all].reduce((sum, { microcents }) => sum + microcents, 0)
    expect(total(shipped.values())).toBe(total(settled))
    rig.clock.move(600_000)
    await pass(8)
    const today = formatDay(rig.clock.now())
    const status = await get(0).meter.loadStatus('acc_1', { ...unit('acc_1', limits).limits })
    expect(status.costMicrocents.remaining).toBe(limits.dailyCostMicrocents - getUsed(today, 'microcents'))
    expect(status.tokens.remaining).toBe(limits.dailyTokens - getUsed(today, 'tokens'))
  } finally {
    await heal()
  }
}
