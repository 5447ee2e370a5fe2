import { describe, expect, test } from 'bun:test'
import { type AddressInfo, createServer } from 'node:net'
import { systemNetwork } from '../../src/web/network.ts'

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

describe('network, when the server closes a connection', () => {
  type Act = 'answer' | 'reset' | 'end' | 'cut'

  /** Starts a server that takes one act per request, and the last one for all further requests. */
  async function startServer(...acts: Act[]) {
    const seen: { readonly connection: number; readonly body: string }[] = []
    let connections = 0
    const server = createServer(socket => {
      const connection = ++connections
      let text = ''
      socket.on('error', () => {})
      socket.on('data', bytes => {
        text += bytes.toString()
        const end = text.indexOf('\r\n\r\n')
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
        if (end === -1 || text.length < end + 4 + length) return
        seen.push({ connection, body: text.slice(end + 4) })
        text = ''
        const act = (acts.length > 1 ? acts.shift() : acts[0]) ?? 'answer'
        if (act === 'reset') socket.resetAndDestroy()
        else if (act === 'end') socket.end()
        else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n')
        if (act === 'answer') socket.write('fine')
        if (act === 'cut') setImmediate(() => socket.resetAndDestroy())
      })
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    const { port } = server.address() as AddressInfo
    const post = async (body: string, init: RequestInit = {}) => {
      const response = await systemNetwork.fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body, ...init })
      return response.text()
    }
    return { seen, post, [Symbol.dispose]: () => void server.close() }
  }

  test.each(['reset', 'end'] as const)('repeats a request once on a new connection after: pooled, %s', async act => {
    using server = await startServer('answer', act, 'answer')
    expect(await server.post('first')).toBe('fine')
    expect(await server.post('second')).toBe('fine')
    expect(server.seen).toEqual([
      { connection: 1, body: 'first' },
      { connection: 1, body: 'second' },
      { connection: 2, body: 'second' },
    ])
  })

  test('sends a request once to a server that closes new connections too', async () => {
    using server = await startServer('answer', 'reset')
    await server.post('first')
    await expect(server.post('second')).rejects.toThrow('ECONNRESET')
    await expect(server.post('third')).rejects.toThrow('ECONNRESET')
    expect(server.seen.map(({ body }) => body)).toEqual(['first', 'second', 'second', 'third'])
  })

  test('repeats nothing on a first connection', async () => {
    using server = await startServer('end', 'answer')
    await expect(server.post('first')).rejects.toThrow('ECONNRESET')
    expect(server.seen).toHaveLength(1)
  })

  test('repeats nothing after the headers of a response', async () => {
    using server = await startServer('answer', 'cut', 'answer')
    await server.post('first')
    await expect(server.post('second')).rejects.toThrow()
    expect(server.seen).toHaveLength(2)
  })

  test('repeats nothing after an abort', async () => {
    using server = await startServer('answer', 'end', 'answer')
    await server.post('first')
    const ended = new AbortController()
    const second = server.post('second', { signal: ended.signal })
    ended.abort()
    await expect(second).rejects.toThrow('abort')
    expect(server.seen).toHaveLength(1)
  })
})
