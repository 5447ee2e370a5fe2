/** Hints between gateways over a real Redis. */
import { afterAll, beforeAll, test } from 'bun:test'
import { openChannel } from '../../src/database/channel.ts'
import { openRedis } from '../../src/database/redis.ts'
import { type PrivateRedis, startRedis, startRedisCluster } from '../harness/redis.ts'
import { eventually } from './database.contract.ts'

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

test('channel: forwards hints between gateways and causes a read after Redis was unavailable', async () => {
  if (server === null) return
  const [one, other] = [gatewayOn([server.url]), gatewayOn([server.url])]
  await eventually(() => one.redis.isReady() && other.hints() === 1 && one.hints() === 1, 5000)
  one.publish()
  await eventually(() => other.hints() === 2, 5000)

  await server.crash()
  one.publish()
  await server.start()
  await eventually(() => other.hints() === 3, 10_000)
  await eventually(() => one.redis.isReady(), 10_000)
  one.publish()
  await eventually(() => other.hints() === 4, 5000)
  one.close()
  other.close()
}, 40_000)

test('channel: forwards hints in a cluster from any node', async () => {
  const nodes = await startRedisCluster()
  if (nodes === null) return
  const urls = nodes.map(node => node.url)
  const [one, other] = [gatewayOn(urls), gatewayOn([...urls].reverse())]
  await eventually(() => one.redis.isReady() && other.hints() === 1, 10_000)
  one.publish()
  await eventually(() => other.hints() >= 2, 5000)
  one.close()
  other.close()
  for (const node of nodes) await node.stop()
}, 40_000)
