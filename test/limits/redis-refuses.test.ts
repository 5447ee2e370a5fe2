/** A Redis that answers and does not do its work: Postgres decides at once, and Redis again when it serves. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { createClient } from 'redis'
import { openRedis } from '../../src/database/redis.ts'
import { checkScript, meterChecks, meterScripts } from '../../src/limits/redis/upkeep-scripts.ts'
import { testedDatabases } from '../database/tested-databases.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { type PrivateRedis, startRedis } from '../harness/redis.ts'
import { admitted, send, settlement } from './meter.contract.ts'
import { failoverRig } from './rig.ts'

setDefaultTimeout(60_000)

const databases = testedDatabases()
const server = await startRedis()
afterAll(() => server?.stop())

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
      // A folder in the place of the file that Redis renames its snapshot to.
      Bun.spawnSync(['mkdir', '-p', `${redis.folder}/dump.rdb/full`])
      await redis.command('BGSAVE')
      await replies(redis, 'MISCONF')
    },
    async heal(redis) {
      rmSync(`${redis.folder}/dump.rdb`, { recursive: true, force: true })
      await redis.command('BGSAVE')
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
    strike: redis => redis.command('ACL', 'SETUSER', 'default', '-hset'),
    heal: redis => redis.command('ACL', 'SETUSER', 'default', '+hset'),
  },
]

for (const { code, strike, heal } of refusals)
  testNeeding('redis', `limits: Postgres decides while Redis replies ${code}, and no request is rejected`, async () => {
    const redis = needed(server)
    const rig = await failoverRig({ database: needed(databases[0][1]()), redis })
    try {
      const { meter } = rig
      const open = admitted(await meter.admit(send('before')))
      await strike(redis)
      const during = admitted(await meter.admit(send('during')))
      expect(meter.decidedBy()).toBe('postgres')
      for (const [reservation, tokens] of [
        [open, 100],
        [during, 10],
      ] as const)
        await meter.settle(settlement(reservation, tokens, 1_000, rig.clock.now()))
      expect(rig.written.map(record => record.request_id).sort()).toEqual(['before', 'during'])
      await heal(redis)
      await eventually(() => meter.decidedBy() === 'redis', 20_000)
      const after = await meter.admit(send('after'))
      expect(after).toMatchObject({ admitted: true })
      await meter.settle(settlement(admitted(after), 1, 1, rig.clock.now()))
    } finally {
      await heal(redis).catch(() => {})
      await rig.close()
    }
  })

testNeeding('redis', 'Redis client: stays connected when a command is refused that limits do not need', async () => {
  const redis = needed(server)
  await redis.command('ACL', 'SETUSER', 'default', '-publish')
  const events: string[] = []
  const client = openRedis({ urls: [redis.url], checks: meterChecks, onEvent: event => events.push(event) })
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

test('checkScript: runs each command of the scripts of the meter', () => {
  const getCommands = (source: string) => [...source.matchAll(/call\('([A-Z]+)'/g)].map(([, command]) => command)
  const checked = new Set(getCommands(checkScript.source))
  const used = new Set(meterScripts.flatMap(({ source }) => getCommands(source)))
  expect([...used].filter(command => !checked.has(command))).toEqual([])
})
