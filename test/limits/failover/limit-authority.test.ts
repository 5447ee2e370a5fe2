import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { GatewayError } from '../../../src/core/validation/errors.ts'
import { migrate, openDatabase } from '../../../src/database/database.ts'
import { openRedis } from '../../../src/database/redis.ts'
import { FailoverMeter } from '../../../src/limits/failover/failover.ts'
import { LimitAuthority } from '../../../src/limits/failover/limit-authority.ts'
import type { LimitDatabase } from '../../../src/limits/ports.ts'
import { meterScripts } from '../../../src/limits/redis/upkeep-scripts.ts'
import { eventually } from '../../database/database.contract.ts'
import { startProxy } from '../../faults/tcp-proxy.ts'
import { reportSkipped } from '../../harness/needs.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { startRedis } from '../../harness/redis.ts'
import { admitted, ask, settlement, wide } from '../meter.contract.ts'

setDefaultTimeout(60_000)

const [server, postgres] = await Promise.all([startRedis(), startPostgres()])
const database = postgres === null ? null : openDatabase(postgres.url)
if (database !== null) await migrate(database)
const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUps.splice(0).reverse()) await step()
})
afterAll(async () => {
  await database?.close()
  await Promise.all([postgres?.stop(), server?.stop()])
})

test('limit authority: makes its steps however often waiting requests hurry it', async () => {
  let beats = 0
  const authority = new LimitAuthority({
    postgres: {
      async beat() {
        beats++
        return { epoch: 1, holder: 'postgres', isOpen: false, isComplete: false, living: [] }
      },
      register: async () => true,
      change: async () => {},
      open: async () => {},
      leave: async () => {},
    },
    redis: { isReady: () => true, failedConnections: () => 0 },
    store: { partitions: async () => [] },
    monotonic: () => performance.now(),
    registered: () => [],
    onLeave() {},
  })
  for (let times = 0; times < 400 && beats < 6; times++) {
    authority.hurry()
    await Bun.sleep(2)
  }
  await authority.close()
  expect(beats).toBe(6)
})

for (const [name, isOpenRequest, expected] of [
  ['starts a new epoch if it has open requests, since Redis has loaded accounts without them', true, ['5 redis']],
  ['joins the open epoch if it has no open requests', false, []],
] as const)
  test(`limit authority: an instance that registers late ${name}`, async () => {
    const state = { epoch: 5, isOpen: true, registered: 0, beats: 0 }
    const changes: string[] = []
    const row = { accountId: 'acc_1', day: 1, tokens: 1, microcents: 1, outputCap: 1, ageMs: 0, scopes: [] }
    const authority = new LimitAuthority({
      postgres: {
        async beat() {
          state.beats++
          const { epoch, isOpen, registered } = state
          return { epoch, holder: 'redis', isOpen, isComplete: registered === epoch, living: [] }
        },
        async register(epoch) {
          state.registered = epoch
          return true
        },
        async change(known, holder) {
          changes.push(`${known} ${holder}`)
          Object.assign(state, { epoch: known + 1, isOpen: false })
        },
        async open() {
          state.isOpen = true
        },
        leave: async () => {},
      },
      redis: { isReady: () => true, failedConnections: () => 0 },
      store: { partitions: async () => [{ state: 1, text: 'key', oldestEntry: '' }] },
      monotonic: () => performance.now(),
      registered: () => [{ ...row, requestId: 'req_1', isOpen: isOpenRequest }],
      onLeave() {},
    })
    const epoch = await authority.ready(20_000)
    await authority.close()
    expect(changes).toEqual([...expected])
    expect(epoch?.number).toBe(5 + expected.length)
  })

if (server === null || postgres === null || database === null)
  reportSkipped(['redis', 'postgres'], 'the limit authority of several gateways')
else {
  /** `gatewayId` is its name for the others. */
  const gateway = (redisUrl = server.url, stores: LimitDatabase = database, gatewayId = Bun.randomUUIDv7()) => {
    const redis = openRedis({ urls: [redisUrl], scripts: meterScripts })
    const meter = new FailoverMeter({
      redis,
      database: stores,
      clock: { now: () => Date.now(), monotonic: () => performance.now() },
      gatewayId,
      returnAfterMs: 300,
      leaseMs: 60_000,
      journal: {
        append() {},
        appendTogether: async () => {},
        isWritable: () => true,
        untilDurable: async () => {},
        waiting: () => [],
      },
    })
    cleanUps.push(async () => {
      await meter.close()
      redis.close()
    })
    return meter
  }
  const decides = (meter: FailoverMeter, holder: 'redis' | 'postgres') =>
    eventually(() => meter.decidedBy() === holder, 20_000)
  const row = async () => {
    const [found] = await database.run(
      ({ sql }) => sql<{ epoch: number; holder: string }[]>`select epoch::float8, holder from limit_authority`,
    )
    return found
  }
  /** The database with the number of calls so far: a gateway without requests makes one with each heartbeat. */
  const counted = (stores: LimitDatabase) => {
    let calls = 0
    const run: LimitDatabase['run'] = (work, deadlineMs) => {
      calls++
      return stores.run(work, deadlineMs)
    }
    const more = (count: number) => {
      const until = calls + count
      return eventually(() => calls >= until, 20_000)
    }
    return { run, more }
  }
  let requests = 0
  const next = (accountId: string) => ask(`${accountId}-${requests++}`, { accountId })

  describe('limit authority', () => {
    test('moves to Postgres when Redis is killed, and back when every gateway reaches it again', async () => {
      const [one, other] = [gateway(), gateway()]
      await Promise.all([decides(one, 'redis'), decides(other, 'redis')])
      const seat = admitted(await one.admit(next('acc_moves')))
      await server.crash()
      expect((await other.admit(next('acc_moves'))).standing.seats.remaining).toBe(8)
      expect(other.decidedBy()).toBe('postgres')
      await one.settle(settlement(seat, 30, 20_000, Date.now()))
      await eventually(async () => (await one.loadStatus('acc_moves', wide)).seats.remaining === 9, 10_000)
      await server.start()
      await Promise.all([decides(one, 'redis'), decides(other, 'redis')])
      expect((await one.admit(next('acc_moves'))).standing.seats.remaining).toBe(8)
    })

    test('stays with Redis while the process is busy for 2 s', async () => {
      const meter = gateway()
      await decides(meter, 'redis')
      const before = await row()
      for (let turn = 0; turn < 10; turn++) {
        const until = performance.now() + 200
        while (performance.now() < until);
        await new Promise(done => setImmediate(done))
      }
      expect((await meter.admit(next('acc_busy'))).admitted).toBe(true)
      expect(await row()).toEqual(before)
    })

    test('stays with Postgres while one living gateway does not reach Redis', async () => {
      const proxy = startProxy(server.port)
      cleanUps.push(proxy.stop)
      const stores = counted(database)
      const [one, cutOff] = [gateway(server.url, stores), gateway(proxy.url)]
      await Promise.all([decides(one, 'redis'), decides(cutOff, 'redis')])
      proxy.cut()
      await Promise.all([decides(one, 'postgres'), decides(cutOff, 'postgres')])
      const before = await row()
      // Longer than the time after which an instance that reaches Redis would return to it.
      await stores.more(4)
      expect(await row()).toEqual(before)
      expect((await cutOff.admit(next('acc_cut'))).admitted).toBe(true)
    })

    test('does not wait for a gateway that was closed', async () => {
      const closedId = Bun.randomUUIDv7()
      const [one, closed] = [gateway(), gateway(server.url, database, closedId)]
      await Promise.all([decides(one, 'redis'), decides(closed, 'redis')])
      await closed.close()
      const gateways = await database.run(({ sql }) => sql<{ id: string }[]>`select id from limit_gateways`)
      expect(gateways.map(({ id }) => id)).not.toContain(closedId)
      await server.command('FLUSHALL')
      expect((await one.admit(next('acc_closed'))).admitted).toBe(true)
    })

    test('releases what a frozen store reserves after its callers have heard 503', async () => {
      let isAway = false
      const stores: LimitDatabase = {
        run: (work, deadlineMs) =>
          isAway ? Promise.reject(new GatewayError('service_unavailable', 'away')) : database.run(work, deadlineMs),
      }
      const meter = gateway(server.url, stores)
      await decides(meter, 'redis')
      const three = () => {
        const request = next('acc_frozen')
        return { ...request, limits: { ...request.limits, concurrentRequests: 3 } }
      }
      const one = admitted(await meter.admit(three()))
      await meter.settle(settlement(one, 10, 10, Date.now()))
      isAway = true
      server.freeze()
      const refused = await Promise.all([1, 2, 3].map(() => meter.admit(three()).catch(() => null)))
      expect(refused).toEqual([null, null, null])
      server.thaw()
      isAway = false
      const seats = new Set<string>()
      // Well within the unrenewed lease of 60 s.
      await eventually(async () => {
        const admission = await meter.admit(three()).catch(() => null)
        if (admission?.admitted === true) seats.add(admission.seat.requestId)
        return seats.size === 3
      }, 20_000)
    })

    test('stays with Redis while Postgres is away, and answers 503 if Redis is emptied then', async () => {
      const pool = openDatabase(postgres.url)
      cleanUps.push(() => pool.close())
      const stores = counted(pool)
      const meter = gateway(server.url, stores)
      await decides(meter, 'redis')
      expect((await meter.admit(next('acc_away'))).admitted).toBe(true)
      await postgres.crash()
      expect((await meter.admit(next('acc_away'))).admitted).toBe(true)
      await stores.more(3)
      expect((await meter.admit(next('acc_away'))).admitted).toBe(true)
      await server.command('FLUSHALL')
      await expect(meter.admit(next('acc_away'))).rejects.toMatchObject({
        code: 'service_unavailable',
        retryAfterMs: 1000,
      })
      await postgres.start()
      await eventually(async () => {
        const admission = await meter.admit(next('acc_away')).catch(() => null)
        return admission?.admitted === true
      }, 20_000)
    })
  })
}
