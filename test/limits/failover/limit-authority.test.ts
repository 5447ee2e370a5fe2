import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { usualDeadlines } from '../../../src/core/request/deadlines.ts'
import { GatewayError } from '../../../src/core/validation/errors.ts'
import { migrate, openDatabase } from '../../../src/database/database.ts'
import { openRedis } from '../../../src/database/redis.ts'
import { DecidingStore } from '../../../src/limits/failover/deciding-store.ts'
import { FailoverMeter } from '../../../src/limits/failover/failover.ts'
import { LimitAuthority } from '../../../src/limits/failover/limit-authority.ts'
import type { AdmissionRequest } from '../../../src/limits/meter.ts'
import type { LimitDatabase, LimitRedis } from '../../../src/limits/ports.ts'
import { epochScript, meterScripts } from '../../../src/limits/redis/upkeep-scripts.ts'
import { startProxy } from '../../faults/tcp-proxy.ts'
import { eventually } from '../../harness/eventually.ts'
import { oneTurn } from '../../harness/moved-clock.ts'
import { reportSkipped } from '../../harness/needs.ts'
import { patientStore } from '../../harness/patience.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { startRedis, startSentinel } from '../../harness/redis.ts'
import { admitted, send, settlement, wide } from '../meter.contract.ts'

setDefaultTimeout(240_000)

const [server, postgres] = await Promise.all([startRedis(), startPostgres()])
const database = postgres === null ? null : openDatabase(postgres.url, patientStore)
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
      hasSilent: async () => false,
      register: async () => ({ isOpen: false }),
      change: async () => {},
      claim: async () => true,
      open: async () => true,
      leave: async () => {},
    },
    redis: { isReady: () => true, failedConnections: () => 0 },
    store: { partitions: async () => [] },
    monotonic: () => performance.now(),
    registered: () => [],
  })
  const steps = eventually(() => beats >= 6)
  let isOver = false
  const hurrying = (async () => {
    for (; !isOver; await oneTurn()) authority.hurry()
  })()
  await steps.finally(() => {
    isOver = true
  })
  await hurrying
  await authority.close()
})

for (const [name, isOpenRequest, isOpenAtBeat, expected] of [
  ['starts a new epoch if it has open requests, since Redis has loaded accounts without them', true, true, ['5 redis']],
  ['joins the open epoch if it has no open requests', false, true, []],
  ['starts a new epoch if the others opened it after its heartbeat', true, false, ['5 redis']],
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
          const seenOpen = isOpen && (registered === epoch || isOpenAtBeat)
          return { epoch, holder: 'redis', isOpen: seenOpen, isComplete: registered === epoch, living: [] }
        },
        hasSilent: async () => false,
        async register(epoch) {
          state.registered = epoch
          return { isOpen: state.isOpen }
        },
        async change(known, holder) {
          changes.push(`${known} ${holder}`)
          Object.assign(state, { epoch: known + 1, isOpen: false })
        },
        claim: async () => true,
        async open() {
          state.isOpen = true
          return true
        },
        leave: async () => {},
      },
      redis: { isReady: () => true, failedConnections: () => 0 },
      store: { partitions: async () => [{ state: 1, text: 'key', oldestEntry: '' }] },
      monotonic: () => performance.now(),
      registered: () => [{ ...row, requestId: 'req_1', isOpen: isOpenRequest }],
    })
    const epoch = await authority.ready(20_000)
    await authority.close()
    expect(changes).toEqual([...expected])
    expect(epoch?.number).toBe(5 + expected.length)
  })

test('limit authority: Postgres decides while Redis answers and cannot confirm its partitions', async () => {
  const state: { epoch: number; holder: 'redis' | 'postgres' } = { epoch: 5, holder: 'redis' }
  const [seen, changes]: [boolean[], string[]] = [[], []]
  let checks = 0
  const authority = new LimitAuthority({
    postgres: {
      async beat(_registered, seesRedis) {
        if (state.holder === 'postgres') seen.push(seesRedis)
        return { ...state, isOpen: true, isComplete: true, living: [] }
      },
      hasSilent: async () => false,
      register: async () => ({ isOpen: true }),
      async change(known, holder) {
        changes.push(`${known} ${holder}`)
        Object.assign(state, { epoch: known + 1, holder })
      },
      claim: async () => true,
      open: async () => true,
      leave: async () => {},
    },
    redis: { isReady: () => true, failedConnections: () => 0 },
    store: {
      partitions() {
        checks++
        return Promise.reject(new GatewayError('service_unavailable', 'a node of the cluster is lost'))
      },
    },
    monotonic: () => performance.now(),
    registered: () => [],
    returnAfterMs: 0,
  })
  expect(await authority.ready(20_000)).toMatchObject({ number: 6, holder: 'postgres' })
  await authority.changed(20_000)
  await authority.close()
  expect([changes, checks]).toEqual([['5 postgres'], 8])
  expect(new Set(seen)).toEqual(new Set([false]))
})

type GatewayOptions = {
  readonly redisUrl?: string
  readonly stores?: LimitDatabase
  /** Its name for the others. */
  readonly gatewayId?: string
  readonly around?: (redis: LimitRedis) => LimitRedis
  readonly monotonic?: () => number
}

/** An authority of one epoch after another, on a clock that the test moves. */
function steppedAuthority(claims: (epoch: number) => boolean) {
  const state = { epoch: 5, isOpen: false, now: 0, changes: 0, sets: 0, beatMs: 0, isAway: false, inRedis: 1 }
  const authority = new LimitAuthority({
    postgres: {
      async beat() {
        state.now += state.beatMs
        if (state.isAway) throw new GatewayError('service_unavailable', 'away')
        return { epoch: state.epoch, holder: 'redis', isOpen: state.isOpen, isComplete: true, living: [] }
      },
      hasSilent: async () => false,
      register: async () => ({ isOpen: false }),
      async change(known) {
        state.changes++
        Object.assign(state, { epoch: known + 1, isOpen: false })
      },
      claim: async epoch => claims(epoch),
      async open() {
        state.isOpen = true
        return true
      },
      leave: async () => {},
    },
    redis: { isReady: () => true, failedConnections: () => 0 },
    store: {
      async partitions(_, isToBeSet) {
        if (isToBeSet) state.sets++
        return [{ state: state.inRedis, text: 'key', oldestEntry: '' }]
      },
    },
    monotonic: () => state.now,
    registered: () => [],
  })
  cleanUps.push(() => authority.close())
  return { authority, state }
}

test('limit authority: sets no epoch that another instance has claimed, and starts a new one if that is not opened', async () => {
  const { authority, state } = steppedAuthority(epoch => epoch > 5)
  await eventually(() => authority.current !== null, 20_000)
  expect(authority.current?.number).toBe(6)
  expect(state).toMatchObject({ changes: 1, sets: 1 })
})

test('limit authority: a reply that is read after 3 s without a heartbeat counts only if the epoch still holds', async () => {
  const { authority, state } = steppedAuthority(() => true)
  const before = await authority.ready(20_000)
  if (before === null) throw new Error('no epoch')
  state.now += 3_000
  expect(authority.isFresh()).toBe(false)
  expect(await authority.holds(before)).toBe(true)
  state.now += 3_000
  state.epoch++
  expect(await authority.holds(before)).toBe(false)
})

for (const [name, inRedis, expected] of [
  ['counts if Redis confirms the epoch', 1, true],
  ['is void if Redis has lost the epoch', 0, false],
] as const)
  test(`limit authority: a reply that is read after the process was stopped, without Postgres, ${name}`, async () => {
    const { authority, state } = steppedAuthority(() => true)
    const before = await authority.ready(20_000)
    if (before === null) throw new Error('no epoch')
    state.isAway = true
    await eventually(() => !authority.isPostgresThere, 20_000)
    Object.assign(state, { now: state.now + 10_000, inRedis })
    expect(authority.isFresh()).toBe(false)
    expect(await authority.holds(before)).toBe(expected)
  })

for (const [name, changes, expected] of [
  ['counts if the epoch still holds', {}, 'taken'],
  ['is void if another epoch was opened', { epoch: 6 }, 'given up'],
] as const)
  test(`deciding store: a reply that is read after the process was stopped for 10 s ${name}`, async () => {
    const { authority, state } = steppedAuthority(() => true)
    const unused = () => Promise.reject(new Error('not called'))
    const stub = { admit: unused, check: unused, raise: unused, status: unused, settle: unused }
    const store = new DecidingStore({
      authority,
      postgres: stub,
      redis: stub,
      monotonic: () => state.now,
      leaseMs: 8_000,
      deadlines: usualDeadlines,
    })
    let result = 'unknown'
    const decided = store.decided({
      async send() {
        Object.assign(state, { now: state.now + 10_000, ...changes })
        return [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
      },
      take() {
        result = 'taken'
      },
      giveUp() {
        result = 'given up'
      },
    })
    if (expected === 'taken') await decided
    else await expect(decided).rejects.toMatchObject({ code: 'service_unavailable' })
    expect(result).toBe(expected)
  })

if (server === null || postgres === null || database === null)
  reportSkipped(['redis', 'postgres'], 'the limit authority of several gateways')
else {
  const gateway = (options: GatewayOptions = {}) => {
    const { redisUrl = server.url, stores = database, gatewayId = Bun.randomUUIDv7() } = options
    const { around = redis => redis, monotonic = () => performance.now() } = options
    const redis = openRedis({ urls: [redisUrl], scripts: meterScripts })
    const meter = new FailoverMeter({
      redis: around(redis),
      database: stores,
      clock: { now: () => Date.now(), monotonic },
      gatewayId,
      returnAfterMs: 300,
      leaseMs: 60_000,
      deadlines: usualDeadlines,
      journal: {
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
  /** The first decision that is not 503. */
  const untilDecided = async (meter: FailoverMeter, request: () => AdmissionRequest) => {
    for (let tries = 0; ; tries++) {
      const admission = await meter.admit(request()).catch(() => null)
      if (admission !== null || tries === 20) return admission
    }
  }
  let requests = 0
  const next = (accountId: string) => send(`${accountId}-${requests++}`, { accountId })

  describe('limit authority', () => {
    test('moves to Postgres when Redis is killed, and back when every gateway reaches it again', async () => {
      const [failoverMeter, other] = [gateway(), gateway()]
      await Promise.all([decides(failoverMeter, 'redis'), decides(other, 'redis')])
      const reservation = admitted(await failoverMeter.admit(next('acc_moves')))
      await server.crash()
      expect((await other.admit(next('acc_moves'))).quotaStatus.reservations.remaining).toBe(8)
      expect(other.decidedBy()).toBe('postgres')
      await failoverMeter.settle(settlement(reservation, 30, 20_000, Date.now()))
      await eventually(
        async () => (await failoverMeter.loadStatus('acc_moves', wide)).reservations.remaining === 9,
        10_000,
      )
      await server.start()
      await Promise.all([decides(failoverMeter, 'redis'), decides(other, 'redis')])
      expect((await failoverMeter.admit(next('acc_moves'))).quotaStatus.reservations.remaining).toBe(8)
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
      const [failoverMeter, cutOff] = [gateway({ stores }), gateway({ redisUrl: proxy.url })]
      await Promise.all([decides(failoverMeter, 'redis'), decides(cutOff, 'redis')])
      proxy.cut()
      await Promise.all([decides(failoverMeter, 'postgres'), decides(cutOff, 'postgres')])
      const before = await row()
      // Longer than the time after which an instance that reaches Redis would return to it.
      await stores.more(4)
      expect(await row()).toEqual(before)
      expect((await cutOff.admit(next('acc_cut'))).admitted).toBe(true)
    })

    test('does not wait for a gateway that was closed', async () => {
      const closedId = Bun.randomUUIDv7()
      const [failoverMeter, closed] = [gateway(), gateway({ gatewayId: closedId })]
      await Promise.all([decides(failoverMeter, 'redis'), decides(closed, 'redis')])
      await closed.close()
      const gateways = await database.run(({ sql }) => sql<{ id: string }[]>`select id from limit_gateways`)
      expect(gateways.map(({ id }) => id)).not.toContain(closedId)
      await server.command('FLUSHALL')
      expect(await untilDecided(failoverMeter, () => next('acc_closed'))).toMatchObject({ admitted: true })
    })

    test('releases what a frozen store reserves after its callers have heard 503', async () => {
      let isAway = false
      const stores: LimitDatabase = {
        run: (work, deadlineMs) =>
          isAway ? Promise.reject(new GatewayError('service_unavailable', 'away')) : database.run(work, deadlineMs),
      }
      const meter = gateway({ stores })
      await decides(meter, 'redis')
      const three = () => {
        const request = next('acc_frozen')
        return { ...request, limits: { ...request.limits, concurrentRequests: 3 } }
      }
      const item = admitted(await meter.admit(three()))
      await meter.settle(settlement(item, 10, 10, Date.now()))
      isAway = true
      server.freeze()
      const refused = await Promise.all([1, 2, 3].map(() => meter.admit(three()).catch(() => null)))
      expect(refused).toEqual([null, null, null])
      server.thaw()
      isAway = false
      const reservations = new Set<string>()
      // Well within the unrenewed lease of 60 s.
      await eventually(async () => {
        const admission = await meter.admit(three()).catch(() => null)
        if (admission?.admitted === true) reservations.add(admission.reservation.requestId)
        return reservations.size === 3
      }, 240_000)
    })

    test('counts open requests when Redis is emptied before another instance sets the epoch', async () => {
      const [arrived, released, done] = [0, 1, 2].map(() => Promise.withResolvers<void>())
      const holdFirstSet = (redis: LimitRedis): LimitRedis => {
        let isFirst = true
        return {
          ...redis,
          async evaluate(script, keys, values, deadlineMs) {
            if (!isFirst || script !== epochScript || values[1] !== '1')
              return redis.evaluate(script, keys, values, deadlineMs)
            isFirst = false
            arrived?.resolve()
            await released?.promise
            return redis.evaluate(script, keys, values, deadlineMs).finally(() => done?.resolve())
          },
        }
      }
      await database.run(({ sql }) => sql`select limit_switch(epoch, 'redis', 0) from limit_authority`)
      gateway({ around: holdFirstSet })
      await arrived?.promise
      const meter = gateway()
      await decides(meter, 'redis')
      const single = () => ({ ...next('acc_late_set'), limits: { ...wide, concurrentRequests: 1 } })
      admitted(await meter.admit(single()))
      await server.command('FLUSHALL')
      released?.resolve()
      await done?.promise
      expect(await untilDecided(meter, single)).toMatchObject({ code: 'concurrent_requests_exceeded' })
    })

    test('counts open requests when the connection leads to a replica that lacks them', async () => {
      const [primary, replica] = await Promise.all([startRedis(), startRedis()])
      if (primary === null || replica === null) throw new Error('no Redis')
      cleanUps.push(primary.stop, replica.stop)
      const proxy = startProxy(primary.port)
      cleanUps.push(proxy.stop)
      let isMoved = false
      // The check of the epoch takes longer than an admission.
      const slowCheck = (redis: LimitRedis): LimitRedis => ({
        ...redis,
        async evaluate(script, keys, values, deadlineMs) {
          if (isMoved && script === epochScript) await Bun.sleep(300)
          return redis.evaluate(script, keys, values, deadlineMs)
        },
      })
      const meter = gateway({ redisUrl: proxy.url, around: slowCheck })
      await decides(meter, 'redis')
      const single = () => ({ ...next('acc_replica'), limits: { ...wide, concurrentRequests: 1 } })
      await meter.settle(settlement(admitted(await meter.admit(single())), 1, 1, Date.now()))
      await replica.command('REPLICAOF', '127.0.0.1', String(primary.port))
      const copied = async () => Number(await replica.command('DBSIZE')) === Number(await primary.command('DBSIZE'))
      await eventually(copied, 20_000)
      await replica.command('REPLICAOF', 'NO', 'ONE')
      admitted(await meter.admit(single()))
      isMoved = true
      proxy.leadTo(replica.port)
      proxy.drop()
      const attempts = Array.from({ length: 50 }, async (_, index) => {
        await Bun.sleep(index * 2)
        return untilDecided(meter, single)
      })
      for (const result of await Promise.all(attempts))
        expect(result).toMatchObject({ code: 'concurrent_requests_exceeded' })
    })

    test('follows the primary that a Sentinel names, and counts open requests over its failover', async () => {
      // Servers and Sentinels usually have passwords, and different ones.
      const password = 'p@ss+of:servers/#1'
      const [primary, replica] = await Promise.all([startRedis({ password }), startRedis({ password })])
      if (primary === null || replica === null) throw new Error('no Redis')
      cleanUps.push(primary.stop, replica.stop)
      await replica.command('REPLICAOF', '127.0.0.1', String(primary.port))
      const sentinel = await startSentinel(primary, 'limits', { login: { password: 'of=sentinels+&%' } })
      cleanUps.push(sentinel.stop)
      const meter = gateway({ redisUrl: sentinel.url })
      await decides(meter, 'redis')
      const two = () => ({ ...next('acc_sentinel'), limits: { ...wide, concurrentRequests: 2 } })
      const reservation = admitted(await meter.admit(two()))
      // A replica refuses commands while it loads, and closes its connections when it becomes the primary.
      const ofReplica = async (...words: string[]) => String(await replica.command(...words).catch(() => ''))
      const isCopied = async () => (await ofReplica('KEYS', '*acc_sentinel')) !== ''
      await eventually(isCopied, 20_000)
      // Sentinel learns of replicas every 10 s, and fails over to those that it knows.
      await eventually(sentinel.knowsReplica, 20_000)
      await primary.crash()
      expect(await untilDecided(meter, two)).toMatchObject({ admitted: true })
      await eventually(async () => (await ofReplica('ROLE')).startsWith('master'), 20_000)
      await decides(meter, 'redis')
      expect(await untilDecided(meter, two)).toMatchObject({ code: 'concurrent_requests_exceeded' })
      await meter.settle(settlement(reservation, 1, 1, Date.now()))
      expect(await untilDecided(meter, two)).toMatchObject({ admitted: true })
    })

    // After the short outage no heartbeat is 3 s old yet, and the other instance still does not reach Postgres.
    test.each([
      ['an outage', '1 minute', 60_000],
      ['a short outage', '2.8 seconds', 0],
    ])('waits for the others when Redis was emptied during %s of Postgres', async (_, silence, silentMs) => {
      let [areAway, aheadMs] = [new Set(['one', 'other']), 0]
      const failed = new Set<string>()
      const behind = (name: string): LimitDatabase => ({
        run(work, deadlineMs, isUrgent) {
          if (!areAway.has(name)) return database.run(work, deadlineMs, isUrgent)
          failed.add(name)
          return Promise.reject(new GatewayError('service_unavailable', 'away'))
        },
      })
      const otherId = Bun.randomUUIDv7()
      areAway = new Set()
      const failoverMeter = gateway({ stores: behind('one'), monotonic: () => performance.now() + aheadMs })
      const other = gateway({ stores: behind('other'), gatewayId: otherId })
      await Promise.all([decides(failoverMeter, 'redis'), decides(other, 'redis')])
      const single = () => ({ ...next(`acc_outage_${silentMs}`), limits: { ...wide, concurrentRequests: 1 } })
      admitted(await other.admit(single()))
      areAway = new Set(['one', 'other'])
      // No heartbeat is on its way any more.
      await eventually(() => failed.size === 2, 20_000)
      await server.command('FLUSHALL')
      await database.run(({ sql }) => sql`update limit_gateways set at = at - ${silence}::text::interval`)
      aheadMs = silentMs
      areAway = new Set(['other'])
      // It would have admitted by now.
      expect(await failoverMeter.admit(single()).catch(({ code }: GatewayError) => code)).toBe('service_unavailable')
      areAway = new Set()
      const isRegistered = async () => {
        const [found] = await database.run(
          ({ sql }) => sql<{ is: boolean }[]>`
            select exists (select from limit_gateways as one, limit_authority as two
              where one.id = ${otherId} and one.epoch = two.epoch) as is`,
        )
        return found?.is === true
      }
      await eventually(isRegistered, 20_000)
      aheadMs += 60_000
      expect(await untilDecided(failoverMeter, single)).toMatchObject({ code: 'concurrent_requests_exceeded' })
    })

    test('stays with Redis while Postgres is away, and answers 503 if Redis is emptied then', async () => {
      const pool = openDatabase(postgres.url, patientStore)
      cleanUps.push(() => pool.close())
      const stores = counted(pool)
      const meter = gateway({ stores })
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
      }, 240_000)
    })
  })
}
