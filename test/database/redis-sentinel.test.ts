/** Logins at real Sentinels, whose password differs from that of the servers. */
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import { primaryUrl } from '../../src/database/redis-sentinel.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { startRedis, startSentinel } from '../harness/redis.ts'

setDefaultTimeout(240_000)

const server = await startRedis({ password: 'of+the@servers' })
afterAll(() => server?.stop())

const rejected = 'a Sentinel rejects the login; check sentinel_password in REDIS_URL'
const password = 'of=the,Sentinels'
const ofServer = `redis://:of%2Bthe%40servers@127.0.0.1:${server?.port}`

/** Returns the first outcome that contains `expected`, else the last: a busy machine misses the deadline of 1 s. */
async function lookedUp(urls: readonly string[], expected: string): Promise<string> {
  for (let tries = 1; ; tries++) {
    const found = await primaryUrl(urls).catch((cause: unknown) => String(cause))
    if (found.includes(expected) || tries === 10) return found
  }
}

for (const [title, login, change, expected] of [
  ['returns the primary with the login of the servers', { password }, null, ofServer],
  ['uses a user that may only look up the primary', { username: 'gateway', password }, null, ofServer],
  ['needs no login where Sentinels have none', undefined, null, ofServer],
  ['reports a missing login', { password }, /\?.*/, `${rejected} (NOAUTH Authentication required.)`],
  ['reports a wrong password', { password }, /the%2C/, `${rejected} (WRONGPASS`],
  ['reports an unknown user', { username: 'gateway', password }, /(?<=username=)gate/, `${rejected} (WRONGPASS`],
] as const)
  testNeeding('redis', `primaryUrl: ${title}`, async () => {
    const sentinel = await startSentinel(needed(server), 'limits', login === undefined ? {} : { login })
    try {
      const url = change === null ? sentinel.url : sentinel.url.replace(change, '')
      expect(await lookedUp([url], expected)).toContain(expected)
    } finally {
      await sentinel.stop()
    }
  })

testNeeding('redis', 'primaryUrl: reports a rejected login before Sentinels that do not answer', async () => {
  const sentinel = await startSentinel(needed(server), 'limits', { login: { password } })
  try {
    const urls = [
      'redis+sentinel://127.0.0.1:1/limits?sentinel_password=wrong',
      sentinel.url.replace(/[^/]*@|\?.*/g, ''),
    ]
    expect(await lookedUp(urls, rejected)).toContain(rejected)
  } finally {
    await sentinel.stop()
  }
})
