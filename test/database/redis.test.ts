import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLimitKeys, RedisUnavailableError, script } from '../../src/core/limits/redis.ts'
import { openRedis } from '../../src/database/redis.ts'
import { SharedMeter } from '../../src/limits/shared.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, reportSkipped, testNeeding } from '../harness/needs.ts'
import { patient } from '../harness/patience.ts'
import { startRedis, startRedisCluster, startSentinel } from '../harness/redis.ts'
import { admitted, send, settlement } from '../limits/meter.contract.ts'
import { emptyLedger, memoryJournal, openLimitRedis } from '../limits/rig.ts'
import { temporaryFolder } from './support.ts'

const server = await startRedis()
afterAll(() => server?.stop())

if (server === null) reportSkipped('redis', 'the connection to Redis')
else {
  /** How a command ends that waits for nothing outside of this process; null = it waits. */
  const atOnce = (command: Promise<unknown>): Promise<unknown> =>
    Promise.race([command.catch(cause => cause), new Promise(done => setImmediate(() => done(null)))])

  test('Redis client: waits 250 ms per command on a frozen server, not at all after three, and recovers within 2 s [B22a, B22b]', async () => {
    const events: string[] = []
    const redis = openRedis({ urls: [server.url], onEvent: event => events.push(event) })
    await eventually(redis.isReady, 2000)
    server.freeze()
    for (let index = 0; index < 3; index++) {
      await expect(redis.send('k', ['INCR', 'given-up'])).rejects.toBeInstanceOf(RedisUnavailableError)
    }
    expect(redis.isReady()).toBe(false)
    expect(await atOnce(redis.send('k', ['PING']))).toBeInstanceOf(RedisUnavailableError)
    server.thaw()
    await eventually(redis.isReady, 10_000)
    // After a timeout the outcome is unknown, not failed.
    await eventually(async () => (await redis.send('k', ['GET', 'given-up'])) === '3', 1000)
    expect(events).toEqual(['redis_connected', 'redis_unavailable', 'redis_recovered'])
    redis.close()
  })

  test('Redis client: fails at once when the server is killed and reconnects within 2 s of its return [B22d, B22e]', async () => {
    const heard: boolean[] = []
    const redis = openRedis({ urls: [server.url] })
    redis.onChange(isReady => heard.push(isReady))
    await eventually(redis.isReady, 2000)
    await server.crash()
    await eventually(() => !redis.isReady(), 500)
    expect(await atOnce(redis.send('k', ['PING']))).toBeInstanceOf(RedisUnavailableError)
    await server.start()
    await eventually(redis.isReady, 2000)
    expect(heard).toEqual([true, false, true])
    redis.close()
  })

  test('Redis client: counts many late commands sent together as one failure', async () => {
    const redis = openRedis({ urls: [server.url] })
    await eventually(redis.isReady, 2000)
    server.freeze()
    const all = await Promise.all(Array.from({ length: 100 }, () => redis.send('k', ['PING']).catch(() => 'late')))
    server.thaw()
    expect(all).toContain('late')
    expect(redis.isReady()).toBe(true)
    redis.close()
  })

  test('Redis client: reloads a forgotten script, and stays connected on error replies', async () => {
    const redis = openRedis({ urls: [server.url] })
    await eventually(redis.isReady, 2000)
    const twice = script('return ARGV[1] * 2')
    expect(await redis.evaluate(twice, ['k'], ['21'])).toBe(42)
    await redis.send('k', ['SCRIPT', 'FLUSH'])
    expect(await redis.evaluate(twice, ['k'], ['21'])).toBe(42)
    for (let index = 0; index < 10; index++)
      await expect(redis.send('k', ['NOSUCH'])).rejects.toThrow('unknown command')
    expect(redis.isReady()).toBe(true)
    redis.close()
  })
}

testNeeding(
  'redis',
  'Redis client: meters every account of a cluster on the node of its partition',
  async () => {
    const nodes = needed(await startRedisCluster())
    const { keys, redis } = openLimitRedis(nodes.map(node => node.url))
    const meter = new SharedMeter({
      redis,
      keys,
      ledger: emptyLedger,
      reportGraceMs: 0,
      clock: { now: () => Date.now(), monotonic: () => performance.now() },
      journal: memoryJournal(),
      gatewayId: Bun.randomUUIDv7(),
      deadlines: patient,
    })
    try {
      const accounts = Array.from({ length: 40 }, (_, index) => `acc_${index}`)
      await eventually(() => meter.isShared(), 5000)
      for (const accountId of accounts) {
        const reservation = admitted(await meter.admit(send(`r-${accountId}`, { accountId })))
        await meter.settle(settlement(reservation, 120, 20_000, Date.now()))
        expect(meter.quotaStatus(accountId, send('').limits)).toMatchObject({ tokens: { remaining: 999_880 } })
      }
      const counts = await Promise.all(nodes.map(async node => Number(await node.command('DBSIZE'))))
      expect(Math.min(...counts)).toBeGreaterThan(0)
      expect(meter.isShared()).toBe(true)
    } finally {
      await meter.close()
      redis.close()
      for (const node of nodes) await node.stop()
    }
  },
  240_000,
)

test("createLimitKeys: puts a partition's keys into one slot in a cluster, and all accounts into one on one server", () => {
  const keys = createLimitKeys(['redis://a', 'redis://b'])
  const counts = new Map<number, number>()
  for (let index = 0; index < 1600; index++) {
    const partition = keys.partition(`acc_${index}`)
    counts.set(partition, (counts.get(partition) ?? 0) + 1)
    const names = [keys.account(`acc_${index}`), keys.state(partition), keys.instances(partition)]
    for (const name of names) expect(/\{(.*?)\}/.exec(name)?.[1]).toBe(String(partition))
  }
  expect(counts.size).toBe(16)
  expect(keys.partitions).toHaveLength(16)
  for (const urls of [['redis://a'], ['redis+sentinel://a/m', 'redis+sentinel://b/m']])
    expect(createLimitKeys(urls).partitions).toEqual([0])
})

testNeeding(
  ['redis', 'openssl'],
  'Redis client: trusts TLS servers and Sentinels by NODE_EXTRA_CA_CERTS and reports why it rejects others',
  async () => {
    const folder = temporaryFolder()
    const certificates = makeCertificates(folder.path)
    const server = needed(await startRedis({ tls: certificates, password: 'of servers' }))
    const sentinel = await startSentinel(server, 'limits', {
      login: { username: 'gateway', password: 'of-sentinels' },
      tls: certificates,
    })
    const own = `rediss://:of%20servers@127.0.0.1:${server.tlsPort}`
    try {
      const send = async (url: string, expected: string, more: Readonly<Record<string, string>>) => {
        // A connection of a busy process can miss its deadline: another one follows.
        const program = `import { openRedis } from ${JSON.stringify(new URL('../../src/database/redis.ts', import.meta.url).pathname)}
        let heard = ''
        for (let tries = 0; tries < 20 && !heard.includes('${expected}'); tries++) {
          const { promise, resolve } = Promise.withResolvers()
          const redis = openRedis({ urls: ['${url}'], onEvent: (event, detail) => resolve(event + ' ' + detail) })
          heard = (await promise) + ' ' + (await redis.send('k', ['PING'], 10_000).catch(() => 'no'))
          redis.close()
        }
        console.log(heard)
        process.exit(0)`
        const child = Bun.spawn([process.execPath, '-e', program], {
          env: { PATH: process.env.PATH ?? '', ...more },
          stdout: 'pipe',
        })
        return child.stdout.text()
      }
      const trusted = { NODE_EXTRA_CA_CERTS: certificates.authority }
      for (const url of [own, sentinel.url]) {
        const [believed, refused] = await Promise.all([send(url, 'PONG', trusted), send(url, 'certificate', {})])
        expect(believed).toBe('redis_connected  PONG\n')
        expect(refused).toMatch(/^redis_unavailable .*certificate.* no\n$/)
      }
    } finally {
      await Promise.all([sentinel.stop(), server.stop()])
      folder.remove()
    }
  },
  240_000,
)

/** Creates an authority and a server certificate. */
function makeCertificates(folder: string) {
  const openssl = (...words: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(['openssl', ...words], { cwd: folder, stdout: 'ignore', stderr: 'pipe' })
    if (exitCode !== 0) throw new Error(stderr.toString())
  }
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-days', '2', '-subj', '/CN=an authority')
  openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=a server')
  writeFileSync(join(folder, 'names'), 'subjectAltName=IP:127.0.0.1')
  openssl(
    'x509',
    '-req',
    '-in',
    'server.csr',
    '-CA',
    'ca.crt',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-out',
    'server.crt',
    '-days',
    '2',
    '-extfile',
    'names',
  )
  const at = (name: string) => join(folder, name)
  return { authority: at('ca.crt'), certificate: at('server.crt'), key: at('server.key') }
}
