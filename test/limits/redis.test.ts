import { afterAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { getKeys, getPartition } from '../../src/core/limits/redis.ts'
import { type Scope, tagScopeName } from '../../src/core/limits/scopes.ts'
import { projectTagName } from '../../src/core/request/tags.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { type Database, migrate, openDatabase } from '../../src/database/database.ts'
import { createShipper } from '../../src/ledger/shipper.ts'
import { defaultLeaseMs } from '../../src/limits/failover/failover.ts'
import { createLocalMeter } from '../../src/limits/local/meter.ts'
import type { Reservation } from '../../src/limits/meter.ts'
import { quiet } from '../database/database.contract.ts'
import { eventually } from '../harness/eventually.ts'
import { reportSkipped } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { startRedis } from '../harness/redis.ts'
import { admitted, scope, send, settlement, wide } from './meter.contract.ts'
import { failoverRig } from './rig.ts'

const server = await startRedis()
const postgres = await startPostgres()
const database = postgres === null ? null : openDatabase(postgres.url, patientStore)
if (database !== null) await migrate(database)
afterAll(async () => {
  await database?.close()
  await postgres?.stop()
  await server?.stop()
})

/** Input and output tokens of the record from `settlement`. */
const tokensOfRecord = 30

async function ship(database: Database, record: UsageRecord): Promise<void> {
  const waiting = [record]
  const journal = {
    take: () => (waiting.length === 0 ? null : { records: waiting, release: () => void waiting.splice(0) }),
    aside: () => 0,
    onRecord() {},
    setAside: () => {},
    backlog: () => waiting.length,
  }
  const shipper = createShipper({ journal, database, clock: { now: () => Date.now() }, log: quiet })
  expect(await shipper.drain(10_000)).toBe(true)
  await shipper.close()
}

const billed = (records: readonly UsageRecord[]) => records.map(record => [record.request_id, record.billed_microcents])

if (server === null || database === null) reportSkipped(['redis', 'postgres'], 'the meter in Redis')
else {
  type Rig = Awaited<ReturnType<typeof failoverRig>>
  const withRig = (title: string, body: (rig: Rig) => Promise<void>, timeoutMs = 20_000) =>
    test(
      title,
      async () => {
        const rig = await failoverRig({ database, redis: server })
        try {
          await body(rig)
        } finally {
          await rig.close()
        }
      },
      timeoutMs,
    )

  /** Moves all instances to a new epoch. */
  const changeEpoch = async (meters: readonly Rig['meter'][]) => {
    await database.run(({ sql }) => sql`select limit_switch(epoch, 'redis', 0) from limit_authority`)
    await eventually(async () => {
      const [row] = await database.run(({ sql }) => sql<{ is_open: boolean }[]>`select is_open from limit_authority`)
      return row?.is_open === true
    }, 240_000)
    for (const meter of meters) await eventually(() => meter.isShared(), 10_000)
  }

  describe('limits in Redis', () => {
    withRig('releases a reservation when its lease ends, and counts it once if it is settled later', async rig => {
      const { meter, clock, records } = rig
      const limits = { ...wide, concurrentRequests: 1 }
      const reservation = admitted(await meter.admit(send('a', { limits })))
      clock.move(defaultLeaseMs - 1)
      expect(await meter.admit(send('b', { limits }))).toMatchObject({ code: 'concurrent_requests_exceeded' })
      clock.move(1)
      expect(await meter.admit(send('b', { limits }))).toMatchObject({
        admitted: true,
        quotaStatus: { tokens: { remaining: wide.dailyTokens - 300 } },
      })
      await meter.settle(settlement(reservation, 120, 5_000, clock.now()))
      expect(meter.quotaStatus('acc_1', limits)).toMatchObject({ tokens: { remaining: wide.dailyTokens - 420 } })
      expect(billed(await records())).toEqual([['a', 5_000]])
    })

    test('limits in Redis: admit nothing while usage cannot be recorded', async () => {
      let isWritable = true
      const journal = {
        appendTogether: async () => {},
        isWritable: () => isWritable,
        untilDurable: async () => {},
        waiting: () => [],
      }
      const rig = await failoverRig({ database, redis: server, more: { journal } })
      try {
        const reservation = admitted(await rig.meter.admit(send('a')))
        isWritable = false
        await expect(rig.meter.admit(send('b'))).rejects.toThrow('Usage cannot be recorded')
        const { quotaStatus } = await rig.meter.admit(send('a'))
        expect(quotaStatus.reservations.remaining).toBe(9)
        await rig.meter.settle(settlement(reservation, 120, 5_000, rig.clock.now()))
      } finally {
        await rig.close()
      }
    })

    withRig('keeps a reservation while its lease is renewed', async ({ meter, clock }) => {
      const limits = { ...wide, concurrentRequests: 1 }
      await meter.admit(send('a', { limits }))
      for (let round = 0; round < 6; round++) {
        clock.move(5_000)
        await meter.renew(true)
      }
      clock.move(defaultLeaseMs - 1)
      expect(await meter.admit(send('b', { limits }))).toMatchObject({ code: 'concurrent_requests_exceeded' })
      clock.move(1)
      expect((await meter.admit(send('b', { limits }))).admitted).toBe(true)
    })

    withRig(
      'counts a request of a dead gateway by its last checkpoint, and by its end if it was only suspended',
      async rig => {
        const { meter, clock, open, records } = rig
        const reservation = admitted(await meter.admit(send('a')))
        for (const tokens of [110, 150]) {
          meter.checkpoint(reservation, () => settlement(reservation, tokens, tokens * 100, clock.now()))
          await meter.renew(false)
        }
        clock.move(15_000)
        const other = await open()
        await other.sweep()
        expect(await records()).toEqual([])
        await other.admit(send('b'))
        expect(other.quotaStatus('acc_1', wide)).toMatchObject({
          tokens: { remaining: wide.dailyTokens - 150 - 300 },
          reservations: { remaining: 9 },
        })
        await meter.settle(settlement(reservation, 300, 30_000, clock.now()))
        expect(billed(await records())).toEqual([['a', 30_000]])
        expect(meter.quotaStatus('acc_1', wide)).toMatchObject({ tokens: { remaining: wide.dailyTokens - 300 - 300 } })
      },
    )

    withRig('keeps open requests of the living and checkpoints of the dead when the epoch changes', async rig => {
      const { meter: dead, clock, open, records, getId } = rig
      const living = await open()
      const [lost, kept] = [admitted(await dead.admit(send('lost'))), admitted(await living.admit(send('kept')))]
      dead.checkpoint(lost, () => settlement(lost, 150, 15_000, clock.now()))
      living.checkpoint(kept, () => settlement(kept, 150, 15_000, clock.now()))
      await Promise.all([dead.renew(false), living.renew(false)])
      await dead.close()
      await database.run(
        ({ sql }) => sql`update limit_gateways set at = at - interval '1 minute' where id <> ${getId(living)}`,
      )
      await changeEpoch([living])
      expect((await living.admit(send('b'))).quotaStatus.reservations.remaining).toBe(7)
      clock.move(defaultLeaseMs / 2)
      await living.renew(true)
      clock.move(defaultLeaseMs / 2)
      await living.sweep()
      expect(await records()).toEqual([])
      const { quotaStatus } = await living.admit(send('c'))
      expect(quotaStatus.tokens.remaining).toBe(wide.dailyTokens - 150 - 3 * 300)
    })

    withRig(
      'counts the end of a request instead of its checkpoint, once, however often its record is taken over',
      async rig => {
        const { meter, clock, open } = rig
        const reservation = admitted(await meter.admit(send('a')))
        meter.checkpoint(reservation, () => settlement(reservation, 150, 15_000, clock.now()))
        await meter.renew(false)
        clock.move(15_000)
        const other = await open()
        await other.sweep()
        for (let times = 0; times < 3; times++) {
          other.takeOver([settlement(reservation, 290, 29_000, clock.now()).record])
          // The first one arrives; later ones were sent before the reply that this sees.
          await eventually(
            async () => (await other.loadStatus('acc_1', wide)).tokens.remaining === wide.dailyTokens - 290,
            240_000,
          )
        }
        expect((await other.admit(send('b'))).quotaStatus).toMatchObject({
          tokens: { remaining: wide.dailyTokens - 290 - 300 },
          costMicrocents: { remaining: wide.dailyCostMicrocents - 29_000 - 110_000 },
        })
      },
    )

    withRig('drops the lease of a dead gateway when the ledger has the end of its request', async rig => {
      const { meter: dead, clock, open, getId } = rig
      const living = await open()
      const [day, request] = [Math.floor(clock.now() / 86_400_000), send('in-ledger', { accountId: 'acc_shipped' })]
      const reservation = admitted(await dead.admit(request))
      dead.checkpoint(reservation, () => settlement(reservation, 30, 15_000, clock.now()))
      await dead.renew(false)
      await dead.close()
      await ship(database, settlement(reservation, 30, 29_000, day * 86_400_000 + 1).record)
      await database.run(
        ({ sql }) => sql`update limit_gateways set at = at - interval '1 minute' where id <> ${getId(living)}`,
      )
      await changeEpoch([living])
      const { quotaStatus } = await living.admit(send('b', { accountId: 'acc_shipped' }))
      expect(quotaStatus).toMatchObject({
        costMicrocents: { remaining: wide.dailyCostMicrocents - 29_000 - 110_000 },
        reservations: { remaining: 9 },
      })
    })

    withRig('counts a request once that is settled while the epoch changes', async ({ meter, clock, records }) => {
      const reservation = admitted(await meter.admit(send('a')))
      await server.command('FLUSHALL')
      await meter.settle(settlement(reservation, tokensOfRecord, 20_000, clock.now()))
      await eventually(async () => {
        const { reservations, tokens } = await meter.loadStatus('acc_1', wide)
        return reservations.remaining === 10 && tokens.remaining === wide.dailyTokens - tokensOfRecord
      }, 240_000)
      const { quotaStatus } = await meter.admit(send('b'))
      expect(quotaStatus).toMatchObject({
        tokens: { remaining: wide.dailyTokens - tokensOfRecord - 300 },
        reservations: { remaining: 9 },
      })
      expect(billed(await records())).toEqual([['a', 20_000]])
    })

    withRig('counts the minute and the day as before when Redis is emptied', async ({ meter, clock }) => {
      for (const id of ['a', 'b', 'c']) {
        const reservation = admitted(await meter.admit(send(id)))
        if (id !== 'c') await meter.settle(settlement(reservation, tokensOfRecord, 20_000, clock.now()))
        clock.move(1_000)
      }
      await server.command('FLUSHALL')
      expect((await meter.admit(send('d'))).quotaStatus).toMatchObject({
        requests: { remaining: wide.requestsPerMinute - 4 },
        tokens: { remaining: wide.dailyTokens - 2 * tokensOfRecord - 2 * 300 },
        costMicrocents: { remaining: wide.dailyCostMicrocents - 2 * 20_000 - 2 * 110_000 },
        reservations: { remaining: 8 },
      })
    })

    withRig(
      'counts scopes as before when Redis is emptied, open and settled requests alike',
      async ({ meter, clock }) => {
        await database.run(
          ({ sql }) => sql`
          with owner as (insert into accounts (id, name, plan, created_at) values ('acc_scopes', 'x', 'usage', now()))
          insert into tag_limits values ('acc_scopes', 'team', 'search', '{"since":7}', now())`,
        )
        const scopes = [scope({ dailyTokens: 900, since: 7 }, 'tag:team=search')]
        const ofAccount = { accountId: 'acc_scopes', scopes }
        admitted(await meter.admit(send('open', ofAccount)))
        const settled = admitted(await meter.admit(send('settled', ofAccount)))
        const end = settlement(settled, 250, 1_000, clock.now())
        await meter.settle({ ...end, record: { ...end.record, tags: { team: 'search' } } })
        await server.command('FLUSHALL')
        // 900 less 300 reserved and 250 used.
        expect(admitted(await meter.admit(send('next', { ...ofAccount, inputTokens: 300 }))).outputCap).toBe(50)
      },
    )

    withRig(
      'never exceeds a limit above 1,000 per minute, in a log of one minute of seconds',
      async rig => {
        const { meter, clock } = rig
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
          const admission = await meter.admit(send(`r${index}`, { limits }))
          if (admission.admitted) {
            times.push(clock.now())
            await meter.settle(settlement(admission.reservation, 1, 1, clock.now()))
          } else refused++
          const inWindow = times.filter(time => time > clock.now() - 60_000).length
          expect(inWindow).toBeLessThanOrEqual(2_000)
          if (!admission.admitted) expect(inWindow).toBeGreaterThan(2_000 - 60)
        }
        expect(refused).toBeGreaterThan(0)
        const log = await server.command('HSTRLEN', getKeys(getPartition('acc_1')).account('acc_1'), 'b')
        expect(Number(log)).toBeLessThanOrEqual(62 * 8)
      },
      240_000,
    )

    withRig('keeps the last minute when a limit goes above 1,000 per minute and back', async ({ meter, clock }) => {
      const few = { ...wide, requestsPerMinute: 10 }
      const many = { ...wide, requestsPerMinute: 2_000 }
      const remaining: number[] = []
      for (const [index, limits] of [few, few, many, many, many, few, few].entries()) {
        clock.move(400)
        remaining.push((await meter.admit(send(`r${index}`, { limits }))).quotaStatus.requests.remaining)
      }
      expect(remaining).toEqual([9, 8, 1_997, 1_996, 1_995, 4, 3])
      clock.move(60_000 - 5 * 400)
      expect((await meter.admit(send('last', { limits: few }))).quotaStatus.requests.remaining).toBe(10 - 6)
    })

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

    withRig(
      'takes two round trips for a warm request, in a project or not, and little time of Redis',
      async ({ meter, clock }) => {
        const limits = {
          ...wide,
          requestsPerMinute: 1_000,
          concurrentRequests: 10,
          dailyTokens: 1e12,
          dailyCostMicrocents: 1e15,
        }
        const inProject = [
          scope({ dailyCostMicrocents: 1e15 }),
          scope({ monthlyCostMicrocents: 1e15 }, tagScopeName(projectTagName, 'prj_1')),
        ]
        const item = async (index: number, scopes: readonly Scope[] = []) => {
          const reservation = admitted(await meter.admit(send(`r${index}`, { limits, scopes })))
          await meter.settle(settlement(reservation, 300, 1_000, clock.now()))
        }
        await item(-1)
        await item(-2, inProject)
        const account = getKeys(getPartition('acc_1')).account('acc_1')
        const heard = await monitor(server.port)
        for (let index = 0; index < 50; index++) await item(index, index % 2 === 0 ? inProject : [])
        const own = () => heard().filter(line => line.includes(account))
        await eventually(() => own().length >= 100, 5_000)
        heard.stop()
        expect(own().map(line => /"(\w+)"/.exec(line)?.[1])).toEqual(Array.from({ length: 100 }, () => 'EVALSHA'))

        // Most rounds contain other load; the shortest has the least.
        const rounds: number[] = []
        for (let round = 0; round < 13; round++) {
          await server.command('CONFIG', 'RESETSTAT')
          for (let index = 0; index < 300; index++) {
            clock.move(200)
            await item(1_000 + round * 300 + index)
          }
          const stats = String(await server.command('INFO', 'commandstats'))
          rounds.push(Number(/cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(stats)?.[1]) / 300)
        }
        const [best = 0, ...others] = rounds.slice(1).toSorted((round, other) => round - other)
        process.stdout.write(
          `Redis time per admission and settlement, 300 in the minute: ${best.toFixed(1)} µs, median ${others[5]?.toFixed(1)}\n`,
        )
      },
      240_000,
    )
  })

  describe('shared limits', () => {
    for (const [holder, redis, numRuns] of [
      ['Redis', server, 40],
      ['Postgres', null, 15],
    ] as const)
      test(`make the same decisions as the local meter when ${holder} decides`, async () => {
        await fc.assert(
          fc.asyncProperty(fc.array(command, { minLength: 20, maxLength: 60 }), steps =>
            sameAsLocal(() => failoverRig({ database, redis }), steps),
          ),
          { numRuns },
        )
      }, 240_000)
  })
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

async function sameAsLocal(open: () => ReturnType<typeof failoverRig>, steps: readonly Command[]): Promise<void> {
  const { meter: shared, clock, records, close } = await open()
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
  const reservations = new Map<string, Reservation>()
  const over = new Set<string>()
  for (const step of steps) {
    if (step.kind === 'move') {
      clock.move(step.by)
      await shared.renew(true)
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
      // A repeated request is answered from memory, with the counters of the last reply.
      if (isKnown) expect({ ...there, quotaStatus: null }).toEqual({ ...here, quotaStatus: null })
      else expect(there).toEqual(here)
      if (here.admitted) reservations.set(requestId, here.reservation)
    } else if (reservation !== undefined && step.kind === 'raise') {
      expect(await shared.raise(reservation, step.tokens, step.cost)).toEqual(
        await local.raise(reservation, step.tokens, step.cost),
      )
    } else if (reservation !== undefined && step.kind === 'settle' && !over.has(requestId)) {
      const given = settlement(reservation, step.tokens, step.cost, clock.now())
      over.add(requestId)
      const [here, there] = [await local.settle(given), await shared.settle(given)]
      expect([there.tokens, there.costMicrocents, there.reservations]).toEqual([
        here.tokens,
        here.costMicrocents,
        here.reservations,
      ])
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
