/** Hints between gateways over a real Redis. */
import { afterAll, beforeAll } from 'bun:test'
import { openChannel } from '../../src/database/channel.ts'
import { openRedis } from '../../src/database/redis.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { type PrivateRedis, startRedis, startRedisCluster } from '../harness/redis.ts'

let server: PrivateRedis | null = null
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server?.stop())

function gatewayOn(urls: readonly string[]) {
  const redis = openRedis({ urls })
  let hints = 0
  const channel = openChannel({
    urls,
    redis,
    onHint: () => {
      hints++
    },
  })
  return {
    redis,
    publish: channel.publish,
    hints: () => hints,
    close() {
      channel.close()
      redis.close()
    },
  }
}

testNeeding(
  'redis',
  'channel: forwards hints between gateways and causes a read after Redis was unavailable',
  async () => {
    const redis = needed(server)
    const [item, other] = [gatewayOn([redis.url]), gatewayOn([redis.url])]
    await eventually(() => item.redis.isReady() && other.hints() === 1 && item.hints() === 1, 5000)
    item.publish()
    await eventually(() => other.hints() === 2, 5000)

    await redis.crash()
    item.publish()
    await redis.start()
    await eventually(() => other.hints() === 3, 10_000)
    await eventually(() => item.redis.isReady(), 10_000)
    item.publish()
    await eventually(() => other.hints() === 4, 5000)
    item.close()
    other.close()
  },
  240_000,
)

testNeeding(
  'redis',
  'channel: forwards hints in a cluster from any node',
  async () => {
    const nodes = needed(await startRedisCluster())
    const urls = nodes.map(node => node.url)
    const [item, other] = [gatewayOn(urls), gatewayOn([...urls].reverse())]
    await eventually(() => item.redis.isReady() && other.hints() === 1, 10_000)
    item.publish()
    await eventually(() => other.hints() >= 2, 5000)
    item.close()
    other.close()
    for (const node of nodes) await node.stop()
  },
  240_000,
)
