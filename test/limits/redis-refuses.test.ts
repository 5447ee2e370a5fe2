/** A Redis that answers and does not do its work: allowances decide at once, and Redis again when it serves. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { createClient } from 'redis'
import { openRedis } from '../../src/database/redis.ts'
import { createIdempotencyStore } from '../../src/database/repositories/idempotency.ts'
import { limitScripts, sharedLimits } from '../../src/database/shared-limits.ts'
import type { Meter, Reservation } from '../../src/limits/meter.ts'
import { checkScript, meterScripts } from '../../src/limits/redis-upkeep-scripts.ts'
import { newAccount, quiet } from '../database/database.contract.ts'
import { movableClock } from '../database/support.ts'
import { testedDatabases } from '../database/tested-databases.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { type PrivateRedis, startRedis } from '../harness/redis.ts'
import { admitted, send, settlement, wide } from './meter.contract.ts'
import { sharedRig } from './rig.ts'

setDefaultTimeout(60_000)

const databases = testedDatabases()
const server = await startRedis()
/** The only node of a cluster. */
const node = await startRedis({ cluster: true })
afterAll(() => Promise.all([server?.stop(), node?.stop()]))
if (node !== null) {
  await node.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
  await eventually(async () => String(await node.command('CLUSTER', 'INFO')).includes('cluster_state:ok'), 10_000)
}

const set = (redis: PrivateRedis, name: string, value: string) => redis.command('CONFIG', 'SET', name, value)
/** Runs a command that does not answer until the fault is over. */
async function begin(redis: PrivateRedis, ...words: string[]): Promise<void> {
  const client = createClient({ url: redis.url, socket: { reconnectStrategy: false } })
  client.on('error', () => {})
  await client.connect()
  void client
    .sendCommand(words)
    .catch(() => {})
    .finally(() => client.destroy())
}
/** Resolves when the server replies with this error. */
const replies = (redis: PrivateRedis, code: string) =>
  eventually(
    () =>
      redis.command('SET', 'one', '1').then(
        () => false,
        (cause: unknown) => String(cause).includes(code),
      ),
    10_000,
    2,
  )

type Refusal = {
  readonly code: string
  readonly isCluster?: true
  readonly strike: (redis: PrivateRedis) => Promise<unknown>
  readonly heal: (redis: PrivateRedis) => Promise<unknown>
}

const refusals: readonly Refusal[] = [
  {
    code: 'OOM',
    strike: redis => set(redis, 'maxmemory', '1'),
    heal: redis => set(redis, 'maxmemory', '0'),
  },
  {
    code: 'READONLY',
    strike: redis => redis.command('REPLICAOF', '127.0.0.1', '1'),
    heal: redis => redis.command('REPLICAOF', 'NO', 'ONE'),
  },
  {
    code: 'MISCONF',
    async strike(redis) {
      await set(redis, 'save', '3600 1000000')
      rmSync(`${redis.folder}/dump.rdb`, { recursive: true, force: true })
      // A folder in the place of the file that Redis renames its snapshot to.
      Bun.spawnSync(['mkdir', '-p', `${redis.folder}/dump.rdb/full`])
      await redis.command('BGSAVE')
      await replies(redis, 'MISCONF')
    },
    async heal(redis) {
      rmSync(`${redis.folder}/dump.rdb`, { recursive: true, force: true })
      // Without snapshots a failed one hinders no writes. Another one might replace the folder of the next strike.
      await set(redis, 'save', '')
    },
  },
  {
    code: 'BUSY',
    async strike(redis) {
      await set(redis, 'busy-reply-threshold', '1')
      await begin(redis, 'EVAL', 'while true do end', '0')
      await replies(redis, 'BUSY')
    },
    heal: redis => redis.command('SCRIPT', 'KILL'),
  },
  {
    code: 'LOADING',
    async strike(redis) {
      await redis.command('DEBUG', 'POPULATE', '2000')
      await set(redis, 'loading-process-events-interval-bytes', '1024')
      await set(redis, 'key-load-delay', '2000')
      await begin(redis, 'DEBUG', 'RELOAD')
      await replies(redis, 'LOADING')
    },
    // Loading ends after 4 s, with all counters.
    heal: async () => {},
  },
  {
    code: 'NOPERM',
    strike: redis => redis.command('ACL', 'SETUSER', 'default', '-hset', '-rpush'),
    heal: redis => redis.command('ACL', 'SETUSER', 'default', '+hset', '+rpush'),
  },
  {
    code: 'NOREPLICAS',
    strike: redis => set(redis, 'min-replicas-to-write', '1'),
    heal: redis => set(redis, 'min-replicas-to-write', '0'),
  },
  {
    code: 'CLUSTERDOWN',
    isCluster: true,
    async strike(redis) {
      await redis.command('CLUSTER', 'DELSLOTSRANGE', '0', '0')
      await replies(redis, 'CLUSTERDOWN')
    },
    heal: redis => redis.command('CLUSTER', 'ADDSLOTSRANGE', '0', '0'),
  },
]

const checks = [{ script: checkScript, keys: ['gateway:{0}:check'] }]
const two = { ...wide, concurrentRequests: 2 }
const rule = { allowed: 2, windowMs: 90_000 }

for (const { code, strike, heal, isCluster } of refusals) {
  const getServer = () => needed(isCluster ? node : server)

  testNeeding('redis', `limits: allowances decide while Redis replies ${code}, and no count is lost`, async () => {
    await using rig = await sharedRig(getServer())
    const meters = [rig.meter, await rig.open()] as const
    const settle = (meter: Meter, reservation: Reservation, tokens: number) =>
      meter.settle(settlement(reservation, tokens, 1_000, rig.clock.now()))
    let isStruck = false
    try {
      const open = admitted(await meters[0].admit(send('before', { limits: two })))
      await settle(meters[1], admitted(await meters[1].admit(send('other', { limits: two }))), 10)
      for (const meter of meters) await meter.renew()
      isStruck = true
      await strike(getServer())
      const during = admitted(await meters[1].admit(send('during', { limits: two })))
      for (const [index, meter] of meters.entries()) {
        await expect(meter.admit(send(`third-${index}`, { limits: two }))).rejects.toThrow('Limits cannot be checked')
        expect(meter.isShared()).toBe(false)
      }
      await settle(meters[0], open, 100)
      await settle(meters[1], during, 10)
      expect(rig.written.map(record => record.request_id).sort()).toEqual(['before', 'during', 'other'])
      await heal(getServer())
      isStruck = false
      await eventually(() => meters.every(meter => meter.isShared()), 20_000)
      const after = admitted(await meters[1].admit(send('after', { limits: two })))
      await settle(meters[1], after, 1)
      // Until they go back, allowances count as spent.
      for (let times = 0; times < 8; times++) for (const meter of meters) await meter.renew()
      expect(await meters[0].loadStatus('acc_1', two)).toMatchObject({
        requests: { remaining: two.requestsPerMinute - 4 },
        tokens: { remaining: two.dailyTokens - 121 },
        costMicrocents: { remaining: two.dailyCostMicrocents - 4_000 },
        reservations: { remaining: 2 },
      })
    } finally {
      if (isStruck) await heal(getServer()).catch(() => {})
    }
  })

  testNeeding('redis', `IP limits and idempotency keys: hold while Redis replies ${code}`, async () => {
    const redis = getServer()
    const database = needed(databases[0][1]())
    const { accountId } = await newAccount(database)
    const client = openRedis({ urls: [redis.url], scripts: limitScripts, checks, ...patientStore })
    const store = createIdempotencyStore({ database, redis: client, log: quiet })
    const limiter = sharedLimits({ redis: client, clock: movableClock() })(code, rule)
    const claim = (holder: string, name: string) =>
      store.claim({ accountId, name, requestDigest: 'digest', holder, leaseMs: 60_000 })
    try {
      await eventually(client.isReady, 10_000)
      expect(await limiter.take('192.0.2.1')).toBe(0)
      expect(await claim('one', 'before')).toEqual({ outcome: 'taken' })
      await strike(redis)
      expect(await limiter.take('192.0.2.1')).toBe(0)
      expect(await limiter.take('192.0.2.1')).toBeGreaterThan(0)
      expect(await claim('two', 'before')).toEqual({ outcome: 'running' })
      expect(await claim('three', 'during')).toEqual({ outcome: 'taken' })
      expect(await claim('four', 'during')).toEqual({ outcome: 'running' })
      await heal(redis)
      await eventually(client.isReady, 20_000)
      expect(await limiter.take('192.0.2.1')).toBeGreaterThan(0)
      expect(await claim('five', 'during')).toEqual({ outcome: 'running' })
    } finally {
      await heal(redis).catch(() => {})
      await store.close()
      client.close()
    }
  })
}

testNeeding('redis', 'Redis client: stays connected when a command is refused that limits do not need', async () => {
  const redis = needed(server)
  await redis.command('ACL', 'SETUSER', 'default', '-publish')
  const events: string[] = []
  const client = openRedis({ urls: [redis.url], checks, onEvent: event => events.push(event) })
  try {
    await eventually(client.isReady, 10_000)
    for (let index = 0; index < 5; index++)
      await expect(client.send('k', ['PUBLISH', 'k', 'x'])).rejects.toThrow('NOPERM')
    expect(await client.send('k', ['PING'], 10_000)).toBe('PONG')
    expect(events).toEqual(['redis_connected'])
  } finally {
    client.close()
    await redis.command('ACL', 'SETUSER', 'default', '+publish')
  }
})

testNeeding('redis', 'Redis client: names the policy of a server that evicts keys, at each connection', async () => {
  const redis = needed(server)
  const connect = async () => {
    const events: string[] = []
    const client = openRedis({
      urls: [redis.url],
      checks,
      onEvent: (...event) => events.push(event.join(' ')),
      ...patientStore,
    })
    await eventually(client.isReady, 10_000)
    client.close()
    return events
  }
  try {
    await set(redis, 'maxmemory-policy', 'volatile-lru')
    // Without a bound nothing is evicted.
    expect(await connect()).toEqual(['redis_connected '])
    await set(redis, 'maxmemory', '1gb')
    expect(await connect()).toEqual(['redis_connected ', 'redis_evicts volatile-lru'])
    await set(redis, 'maxmemory-policy', 'noeviction')
    expect(await connect()).toEqual(['redis_connected '])
  } finally {
    await set(redis, 'maxmemory', '0')
    await set(redis, 'maxmemory-policy', 'noeviction')
  }
})

test('checkScript: runs each command of the scripts of the meter', () => {
  const getCommands = (source: string) => [...source.matchAll(/(?:call\(|{)'([A-Z]+)'/g)].map(([, command]) => command)
  const checked = new Set(getCommands(checkScript.source))
  const used = new Set(meterScripts.flatMap(({ source }) => getCommands(source)))
  expect([...used].filter(command => !checked.has(command))).toEqual([])
})
