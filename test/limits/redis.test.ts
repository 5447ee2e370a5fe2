/** Counters in Redis: leases, loading, loss of the counters, and the cost of a request. */
import { afterAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createLimitKeys } from '../../src/core/limits/redis.ts'
import { type Scope, tagScopeName } from '../../src/core/limits/scopes.ts'
import { projectTagName } from '../../src/core/request/tags.ts'
import type { DailyUsage, UsageRecord } from '../../src/core/usage/usage-record.ts'
import { leaseMs, renewMs, reportGraceMs } from '../../src/limits/constants.ts'
import { createMemoryMeter } from '../../src/limits/memory.ts'
import type { AdmissionRequest, Reservation } from '../../src/limits/meter.ts'
import type { SharedMeter } from '../../src/limits/shared.ts'
import { eventually } from '../harness/eventually.ts'
import { reportSkipped } from '../harness/needs.ts'
import { startRedis } from '../harness/redis.ts'
import { admitted, meterContract, scope, send, settlement, wide } from './meter.contract.ts'
import { emptyLedger, memoryJournal, sharedRig } from './rig.ts'

const server = await startRedis()
afterAll(() => server?.stop())

const billed = (records: readonly UsageRecord[]) => records.map(record => [record.request_id, record.billed_microcents])
const account = createLimitKeys(['']).account('acc_1')

if (server === null) reportSkipped('redis', 'the meter in Redis')
else {
  type Rig = Awaited<ReturnType<typeof sharedRig>>
  const withRig = (title: string, body: (rig: Rig) => Promise<void>, timeoutMs = 60_000) =>
    test(
      title,
      async () => {
        await using rig = await sharedRig(server)
        await body(rig)
      },
      timeoutMs,
    )

  /** Moves the clock in steps in which these instances renew their leases. */
  const pass = async (rig: Rig, milliseconds: number, living: readonly SharedMeter[]) => {
    for (let passed = 0; passed < milliseconds; passed += renewMs) {
      rig.clock.move(renewMs)
      for (const meter of living) await meter.renew()
    }
  }

  meterContract('shared meter', () => sharedRig(server))

  describe('limits in Redis', () => {
    withRig(
      'passes the note of a conversation to the next request of any instance, with the calls of a request',
      async rig => {
        const { meter, open, clock } = rig
        const other = await open()
        const text = 'abcd 1 {"level":"strong"}'
        const reservation = admitted(await meter.admit(send('a', { conversation: 'abcd' })))
        await meter.settle({
          ...settlement(reservation, 1, 1, clock.now()),
          note: { name: 'abcd', getText: () => text },
        })
        const admitThere = (requestId: string, changes: Partial<AdmissionRequest>) =>
          other.admit(send(requestId, changes))
        expect(await admitThere('b', { conversation: 'abcd', scopes: [scope({ dailyTokens: 1_000 })] })).toMatchObject({
          note: text,
        })
        expect(await admitThere('c', {})).not.toHaveProperty('note')
        expect(await admitThere('d', { conversation: 'bbcd' })).not.toHaveProperty('note')
        // A settlement without a note leaves the last one.
        await other.settle(settlement(reservation, 1, 1, clock.now()))
        expect(await admitThere('e', { conversation: 'abcd' })).toMatchObject({ note: text })
        await server.command('FLUSHALL')
        await other.renew()
        await eventually(() => other.isShared())
        clock.move(reportGraceMs)
        const later = await admitThere('f', { conversation: 'abcd' })
        expect(later.admitted).toBe(true)
        expect(later).not.toHaveProperty('note')
      },
    )

    withRig(
      'releases a reservation when its instance is dead, and counts it once if it is settled later',
      async rig => {
        const { meter: dead, clock, open, records } = rig
        const living = await open()
        const limits = { ...wide, concurrentRequests: 1 }
        await pass(rig, leaseMs * 2, [living])
        const reservation = admitted(await dead.admit(send('a', { limits })))
        await pass(rig, leaseMs - renewMs, [living])
        expect(await living.admit(send('b', { limits }))).toMatchObject({ code: 'concurrent_requests_exceeded' })
        await pass(rig, renewMs, [living])
        expect(await living.admit(send('b', { limits }))).toMatchObject({ admitted: true })
        expect(living.quotaStatus('acc_1', limits)).toMatchObject({ tokens: { remaining: wide.dailyTokens - 300 } })
        for (let times = 0; times < 2; times++) await dead.settle(settlement(reservation, 120, 5_000, clock.now()))
        expect(await living.loadStatus('acc_1', limits)).toMatchObject({
          tokens: { remaining: wide.dailyTokens - 420 },
        })
        expect(billed(await records())).toEqual([['a', 5_000]])
      },
    )

    withRig('keeps a reservation while its lease is renewed', async rig => {
      const limits = { ...wide, concurrentRequests: 1 }
      await rig.meter.admit(send('a', { limits }))
      await pass(rig, leaseMs * 4, [rig.meter])
      expect(await rig.meter.admit(send('b', { limits }))).toMatchObject({ code: 'concurrent_requests_exceeded' })
    })

    withRig('ends no lease after a time without any renewal, in which Redis was away itself', async rig => {
      const { meter, clock, open } = rig
      const other = await open()
      const limits = { ...wide, concurrentRequests: 1 }
      await pass(rig, leaseMs * 2, [meter, other])
      await meter.admit(send('a', { limits }))
      clock.move(60_000)
      expect(await other.admit(send('b', { limits }))).toMatchObject({ code: 'concurrent_requests_exceeded' })
      await other.renew()
      clock.move(renewMs)
      await meter.renew()
      await pass(rig, leaseMs * 2, [meter, other])
      expect(await other.admit(send('b', { limits }))).toMatchObject({ code: 'concurrent_requests_exceeded' })
    })

    withRig('counts the last checkpoint of a dead instance, and the end of its request instead once', async rig => {
      const { meter: dead, clock, open } = rig
      const living = await open()
      await pass(rig, leaseMs * 2, [living])
      const reservation = admitted(await dead.admit(send('a')))
      for (const tokens of [110, 150]) {
        dead.checkpoint(reservation, () => settlement(reservation, tokens, tokens * 100, clock.now()))
        await dead.renew()
      }
      await pass(rig, leaseMs * 2, [living])
      await living.admit(send('b'))
      // An allowance that covers its only request is counted as spent, until it ends too.
      const left = async () => (await living.loadStatus('acc_1', wide)).tokens.remaining + 300
      expect(await left()).toBe(wide.dailyTokens - 150 - 300)
      const successor = await open()
      const end = settlement(reservation, 300, 30_000, clock.now())
      successor.takeOver([end.record])
      await successor.renew()
      await dead.settle(end)
      expect(await left()).toBe(wide.dailyTokens - 300 - 300)
    })

    withRig('counts minute, day and open requests as before when Redis is emptied', async ({ meter, clock, open }) => {
      const other = await open()
      const scopes = [scope({ dailyTokens: 10_000 }, 'tag:team=search')]
      const kept = admitted(await other.admit(send('kept', { scopes })))
      for (const id of ['a', 'b']) {
        const reservation = admitted(await meter.admit(send(id)))
        if (id === 'a') await meter.settle(settlement(reservation, 30, 20_000, clock.now()))
        clock.move(1_000)
      }
      await server.command('FLUSHALL')
      await Promise.all([meter.renew(), other.renew()])
      await eventually(() => meter.isShared() && other.isShared(), 60_000)
      clock.move(reportGraceMs)
      admitted(await meter.admit(send('d')))
      expect(meter.quotaStatus('acc_1', wide)).toMatchObject({
        requests: { remaining: wide.requestsPerMinute - 4 },
        tokens: { remaining: wide.dailyTokens - 30 - 3 * 300 },
        costMicrocents: { remaining: wide.dailyCostMicrocents - 20_000 - 3 * 110_000 },
        reservations: { remaining: 7 },
      })
      await other.settle(settlement(kept, 100, 1_000, clock.now()))
      expect(await meter.loadStatus('acc_1', wide)).toMatchObject({ reservations: { remaining: 8 } })
    })

    test('counts a request once when its record reaches the ledger between report and load', async () => {
      const shipped = new Map<string, DailyUsage>()
      let asked: readonly string[] = []
      const ledger = {
        ...emptyLedger,
        async load(_: string, __: number, requestIds: readonly string[]) {
          asked = requestIds
          const present = new Map([...shipped].filter(([id]) => requestIds.includes(id)))
          const tokens = [...shipped.values()].reduce((sum, usage) => sum + usage.tokens, 0)
          return { tokens, microcents: 0, present, scopes: [] }
        },
      }
      await using rig = await sharedRig(server, { ledger })
      const ids = ['open', 'waiting', 'shipped']
      const open = await Promise.all(ids.map(async id => admitted(await rig.meter.admit(send(id)))))
      for (const reservation of open.slice(1)) await rig.meter.settle(settlement(reservation, 100, 0, rig.clock.now()))
      shipped.set('shipped', { tokens: 100, microcents: 0 })
      await server.command('FLUSHALL')
      await rig.meter.renew()
      await eventually(() => rig.meter.isShared(), 60_000)
      rig.clock.move(reportGraceMs)
      const status = await rig.meter.loadStatus('acc_1', wide)
      expect([...asked].sort()).toEqual([...ids].sort())
      expect(status).toMatchObject({
        requests: { remaining: wide.requestsPerMinute - 3 },
        tokens: { remaining: wide.dailyTokens - 300 - 200 },
        reservations: { remaining: 9 },
      })
    }, 60_000)

    withRig(
      'begins another generation when an instance reports ended requests after accounts have loaded',
      async rig => {
        const { meter: late, clock, open } = rig
        const other = await open({ journal: memoryJournal() })
        await late.settle(settlement(admitted(await late.admit(send('a'))), 100, 1_000, clock.now()))
        await server.command('FLUSHALL')
        await other.renew()
        await eventually(() => other.isShared(), 60_000)
        clock.move(reportGraceMs)
        expect((await other.loadStatus('acc_1', wide)).tokens.remaining).toBe(wide.dailyTokens)
        await late.renew()
        await eventually(() => late.isShared(), 60_000)
        clock.move(reportGraceMs)
        expect((await late.loadStatus('acc_1', wide)).tokens.remaining).toBe(wide.dailyTokens - 100)
      },
    )

    withRig('admits no request sooner when the clock is set back', async ({ meter, clock }) => {
      const limits = { ...wide, requestsPerMinute: 2 }
      await meter.admit(send('a', { limits }))
      clock.move(-20_000)
      await meter.admit(send('b', { limits }))
      expect(await meter.admit(send('c', { limits }))).toMatchObject({ admitted: false, retryAfterMs: 60_000 })
      clock.move(20_000 + 59_999)
      expect((await meter.admit(send('c', { limits }))).admitted).toBe(false)
      clock.move(1)
      expect((await meter.admit(send('c', { limits }))).admitted).toBe(true)
    })

    withRig('sends the admissions of one turn in one call, and its settlements in another', async rig => {
      const { meter, clock } = rig
      const inProject = [
        scope({ dailyCostMicrocents: 1e15 }),
        scope({ monthlyCostMicrocents: 1e15 }, tagScopeName(projectTagName, 'prj_1')),
      ]
      const limits = {
        ...wide,
        requestsPerMinute: 100_000,
        concurrentRequests: 100,
        dailyTokens: 1e12,
        dailyCostMicrocents: 1e15,
      }
      const round = async (name: string, count: number, scopes: readonly Scope[]) => {
        const ids = Array.from({ length: count }, (_, index) => `${name}${index}`)
        const all = await Promise.all(ids.map(id => meter.admit(send(id, { limits, scopes }))))
        await Promise.all(all.map(item => meter.settle(settlement(admitted(item), 300, 1_000, clock.now()))))
      }
      await round('first', 1, inProject)
      const heard = await monitor(server.port)
      await round('alone', 1, [])
      await round('together', 32, inProject)
      const own = () => heard().filter(line => line.includes(account))
      await eventually(() => own().length >= 4, 60_000)
      heard.stop()
      expect(own().map(line => /"(\w+)"/.exec(line)?.[1])).toEqual(Array.from({ length: 4 }, () => 'EVALSHA'))

      const times: number[] = []
      for (let turn = 0; turn < 20; turn++) {
        await server.command('CONFIG', 'RESETSTAT')
        for (let index = 0; index < 20; index++) await round(`${turn}.${index}.`, 32, [])
        clock.move(30_000)
        const stats = String(await server.command('INFO', 'commandstats'))
        times.push(Number(/cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(stats)?.[1]) / 640)
      }
      process.stdout.write(`Redis time per request, 32 in flight: ${Math.min(...times).toFixed(1)} µs\n`)
    })

    withRig('asks for INFO once per connection, and not while it decides', async ({ meter, clock }) => {
      const before = String(await server.command('INFO', 'commandstats'))
      const calls = (stats: string) => Number(/cmdstat_info:calls=(\d+)/.exec(stats)?.[1] ?? 0)
      for (let index = 0; index < 20; index++) {
        const reservation = admitted(await meter.admit(send(`r${index}`)))
        await meter.settle(settlement(reservation, 10, 10, clock.now()))
        await meter.renew()
      }
      // The one that reads the statistics.
      expect(calls(String(await server.command('INFO', 'commandstats'))) - calls(before)).toBe(1)
    })
  })

  test('shared meter: decides like the memory meter in any sequence', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 20, maxLength: 60 }), steps =>
        sameAsLocal(() => sharedRig(server), steps),
      ),
      { numRuns: 40 },
    )
  }, 240_000)
}

const limits = fc.record({
  requestsPerMinute: fc.constantFrom(0, 3, 1_000),
  concurrentRequests: fc.constantFrom(1, 3, 50),
  dailyTokens: fc.constantFrom(0, 3_000, 1e9),
  dailyCostMicrocents: fc.constantFrom(3_000, 167_000_000, 1e15),
})
const getLimit = (...values: number[]) => fc.constantFrom(null, ...values)
/** Few names, so that requests share them. */
const scopes = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom('key:key_1', 'key:key_2', 'tag:team=search', 'tag:env=prod'),
    limits: fc.record({
      requestsPerMinute: getLimit(0, 3, 50),
      concurrentRequests: getLimit(1, 3, 50),
      dailyTokens: getLimit(3_000, 200_000),
      dailyCostMicrocents: getLimit(3_000, 167_000_000),
      monthlyCostMicrocents: getLimit(9_000, 267_000_000),
    }),
  }),
  { maxLength: 3, selector: ({ name }) => name },
)
const id = fc.integer({ min: 0, max: 12 })
const price = fc.oneof(fc.nat(3_000_000), fc.nat(7_500_000_001))
const command = fc.oneof(
  fc.record({
    kind: fc.constant('admit' as const),
    id,
    limits,
    scopes,
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
  fc.record({ kind: fc.constant('move' as const), by: fc.nat(6_000) }),
)
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never

async function sameAsLocal(open: () => ReturnType<typeof sharedRig>, steps: readonly Command[]): Promise<void> {
  const { meter: shared, clock, records, close } = await open()
  const written: UsageRecord[] = []
  const local = createMemoryMeter({
    clock,
    journal: {
      appendTogether: async record => void written.push(record),
      isWritable: () => true,
      untilDurable: async () => {},
    },
    seed: async () => ({ tokens: 0, microcents: 0 }),
  })
  const reservations = new Map<string, Reservation>()
  const over = new Set<string>()
  for (const step of steps) {
    if (step.kind === 'move') {
      clock.move(step.by)
      continue
    }
    const requestId = `r${step.id}`
    const reservation = reservations.get(requestId)
    if (step.kind === 'admit') {
      const request = send(requestId, {
        limits: step.limits,
        scopes: step.scopes,
        inputTokens: step.input,
        outputTokens: step.output,
        choices: step.choices,
        fairShare: step.fairShare,
        inputPrice: step.inputPrice,
        outputPrice: step.outputPrice,
        extraMicrocents: step.extra,
      })
      const isKnown = reservations.has(requestId)
      const [here, there] = [await local.admit(request), await shared.admit(request)]
      expect(there).toEqual(here)
      // A repeated request is answered from memory, with the counters of the last reply.
      if (!isKnown) expect(shared.quotaStatus('acc_1', step.limits)).toEqual(local.quotaStatus('acc_1', step.limits))
      if (here.admitted) reservations.set(requestId, here.reservation)
    } else if (reservation !== undefined && step.kind === 'raise') {
      expect(await shared.raise(reservation, step.tokens, step.cost)).toEqual(
        await local.raise(reservation, step.tokens, step.cost),
      )
    } else if (reservation !== undefined && step.kind === 'settle' && !over.has(requestId)) {
      const given = settlement(reservation, step.tokens, step.cost, clock.now())
      over.add(requestId)
      await Promise.all([local.settle(given), shared.settle(given)])
      const { requests: _, ...here } = local.quotaStatus('acc_1', wide) ?? {}
      expect(shared.quotaStatus('acc_1', wide)).toMatchObject(here)
    }
  }
  expect(await records()).toEqual(written)
  await close()
}

/** Returns the commands that clients send from now on, one per line, without those of scripts. */
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
