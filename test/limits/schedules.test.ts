/**
 * Random schedules over real stores: instances admit, settle, lose Redis, find it emptied, and die. In any order, no
 * account exceeds its limit, and each settled request is in the ledger once.
 */
import { afterAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { RedisUnavailableError } from '../../src/core/limits/redis.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { type Database, migrate, openDatabase } from '../../src/database/database.ts'
import { openRedis } from '../../src/database/redis.ts'
import { getDailyUsage } from '../../src/ledger/ledger.ts'
import { createShipper } from '../../src/ledger/shipper.ts'
import { FailoverMeter } from '../../src/limits/failover/failover.ts'
import type { Reservation } from '../../src/limits/meter.ts'
import type { LimitRedis } from '../../src/limits/ports.ts'
import { meterScripts } from '../../src/limits/redis/upkeep-scripts.ts'
import { quiet } from '../database/database.contract.ts'
import { eventually } from '../harness/eventually.ts'
import { reportSkipped } from '../harness/needs.ts'
import { patient, patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { type PrivateRedis, startRedis } from '../harness/redis.ts'
import { settlement } from './meter.contract.ts'
import { unit } from './racers.ts'

const server = await startRedis()
const postgres = await startPostgres()
const database = postgres === null ? null : openDatabase(postgres.url, patientStore)
if (database !== null) await migrate(database)
afterAll(async () => {
  await database?.close()
  await postgres?.stop()
  await server?.stop()
})

const limitMicrocents = 20_000
/** A run takes seconds. For many: `SCHEDULES=100 bun test ./test/limits/schedules.test.ts --timeout=3600000`. */
const runs = Number(process.env.SCHEDULES ?? 3)
const clock = { now: () => Date.now(), monotonic: () => performance.now() }

/** Creates an instance whose connection to Redis can be cut. */
function startGateway(redisServer: PrivateRedis, stores: Database) {
  const opened = openRedis({ urls: [redisServer.url], scripts: meterScripts, ...patientStore })
  const listeners: ((isReady: boolean) => void)[] = []
  let isCut = false
  const redis: LimitRedis & Pick<typeof opened, 'send'> = {
    evaluate: (...words) => (isCut ? Promise.reject(new RedisUnavailableError('cut')) : opened.evaluate(...words)),
    send: (...words) => (isCut ? Promise.reject(new RedisUnavailableError('cut')) : opened.send(...words)),
    isReady: () => !isCut && opened.isReady(),
    failedConnections: () => (isCut ? 2 : opened.failedConnections()),
    onChange: listener => void listeners.push(listener),
  }
  opened.onChange(isReady => listeners.forEach(listener => void listener(isReady && !isCut)))
  let records: UsageRecord[] = []
  const meter = new FailoverMeter({
    redis,
    database: stores,
    clock,
    gatewayId: Bun.randomUUIDv7(),
    returnAfterMs: 100,
    deadlines: patient,
    journal: {
      appendTogether: async record => void records.push(record),
      isWritable: () => true,
      untilDurable: () => Promise.resolve(),
      waiting: () => records,
    },
  })
  const journal = {
    take: (maximum: number) => {
      const taken = records.slice(0, maximum)
      if (taken.length === 0) return null
      const release = () => {
        records = records.filter(record => !taken.includes(record))
      }
      return { records: taken, release }
    },
    aside: () => 0,
    onRecord() {},
    setAside: () => {},
    backlog: () => records.length,
  }
  const shipper = createShipper({ journal, database: stores, clock, log: quiet })
  return {
    meter,
    ship: () => shipper.drain(10_000),
    cut(is: boolean) {
      isCut = is
      for (const listener of listeners) listener(!is)
    },
    async stop() {
      await shipper.close()
      await meter.close()
      opened.close()
    },
  }
}

const who = fc.nat(1)
const cost = fc.integer({ min: 0, max: 1_000 })
const command = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('admit' as const), who, count: fc.integer({ min: 1, max: 6 }) }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('settle' as const), cost }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('ship' as const), who }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('flush' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cut' as const), who, is: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('die' as const), who }) },
)
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never
type Gateway = ReturnType<typeof startGateway>

if (server === null || database === null)
  reportSkipped(['redis', 'postgres'], 'shared limits in any schedule of faults')
else
  test(
    'shared limits: stay within limits and bill each request once in any schedule of faults',
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(command, { minLength: 12, maxLength: 20, size: 'max' }), steps =>
          runSchedule(server, database, steps),
        ),
        { numRuns: runs },
      )
    },
    Math.max(120_000, runs * 30_000),
  )

async function runSchedule(redisServer: PrivateRedis, stores: Database, steps: readonly Command[]): Promise<void> {
  const account = `acc_${Bun.randomUUIDv7()}`
  const request = unit(account, { dailyCostMicrocents: limitMicrocents })
  const gateways: [Gateway, Gateway] = [startGateway(redisServer, stores), startGateway(redisServer, stores)]
  let open: { readonly reservation: Reservation; readonly gateway: Gateway }[] = []
  let settled = 0
  const decided = (gateway: Gateway) => eventually(() => gateway.meter.decidedBy() !== null, 15_000)
  try {
    for (const step of steps) {
      const gateway = 'who' in step ? gateways[step.who === 0 ? 0 : 1] : gateways[0]
      if (step.kind === 'admit') {
        await decided(gateway)
        const ids = Array.from({ length: step.count }, () => Bun.randomUUIDv7())
        const all = await Promise.all(ids.map(requestId => gateway.meter.admit({ ...request, requestId })))
        for (const item of all) if (item.admitted) open.push({ reservation: item.reservation, gateway })
        const reserved = open.reduce((sum, { reservation }) => sum + reservation.reservedMicrocents, 0)
        expect(settled + reserved).toBeLessThanOrEqual(limitMicrocents)
      } else if (step.kind === 'settle') {
        const item = open.shift()
        if (item === undefined) continue
        settled += step.cost
        await item.gateway.meter.settle(settlement(item.reservation, 30, step.cost, Date.now()))
      } else if (step.kind === 'ship') await gateway.ship()
      else if (step.kind === 'flush') await redisServer.command('FLUSHALL')
      else if (step.kind === 'cut') gateway.cut(step.is)
      else if (step.kind === 'die') {
        // Its records reach the ledger first: this instance has no disk from which the next one could take them.
        gateway.cut(false)
        await decided(gateway)
        await gateway.ship()
        open = open.filter(item => item.gateway !== gateway)
        await gateway.stop()
        gateways[step.who === 0 ? 0 : 1] = startGateway(redisServer, stores)
      }
    }
    for (const { reservation, gateway } of open) {
      await gateway.meter.settle(settlement(reservation, 30, reservation.reservedMicrocents, Date.now()))
      settled += reservation.reservedMicrocents
    }
    for (const gateway of gateways) {
      gateway.cut(false)
      await eventually(() => gateway.ship(), 15_000)
    }
    expect((await getDailyUsage(stores, account, Math.floor(Date.now() / 86_400_000))).microcents).toBe(settled)
  } finally {
    for (const gateway of gateways) await gateway.stop()
  }
}
