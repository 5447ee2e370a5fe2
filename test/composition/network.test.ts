import { expect, test } from 'bun:test'
import { systemNetwork } from '../../src/composition/network.ts'

test('network: never sends a call that is aborted in its own turn, and sends its neighbors', async () => {
  const seen: string[] = []
  using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      seen.push(new URL(request.url).pathname)
      return new Response('here')
    },
  })
  const ended = new AbortController()
  const gone = systemNetwork.fetch(new URL('/gone', server.url).href, { signal: ended.signal })
  const stays = systemNetwork.fetch(new URL('/stays', server.url).href, {})
  ended.abort()
  await expect(gone).rejects.toThrow('abort')
  expect(await (await stays).text()).toBe('here')
  expect(await (await systemNetwork.fetch(new URL('/later', server.url).href, {})).text()).toBe('here')
  expect(seen).toEqual(['/stays', '/later'])
})
