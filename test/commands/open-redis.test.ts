import { afterAll, expect } from 'bun:test'
import { withRedis } from '../../src/commands/open-database.ts'
import { usualDeadlines } from '../../src/core/request/deadlines.ts'
import { startProxy } from '../faults/tcp-proxy.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { startRedis } from '../harness/redis.ts'

const server = await startRedis()
afterAll(() => server?.stop())

testNeeding('redis', 'withRedis: waits for a Redis that takes longer than a request may wait', async () => {
  const proxy = startProxy(needed(server).port, { roundTripMs: 800 })
  try {
    const pong = await withRedis([`redis://127.0.0.1:${proxy.port}`], usualDeadlines, redis =>
      redis.send('k', ['PING']),
    )
    expect(pong).toBe('PONG')
  } finally {
    proxy.stop()
  }
})

testNeeding('redis', 'withRedis: names the reason when no Redis answers', async () => {
  await expect(withRedis(['redis://127.0.0.1:1'], usualDeadlines, async () => 'answered')).rejects.toThrow(
    /^Redis is unreachable: .*ECONNREFUSED/,
  )
})
