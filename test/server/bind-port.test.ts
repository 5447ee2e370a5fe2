/** The port while a gateway starts: who asks it too early, and its handover to the app. */
import { afterAll, expect, test } from 'bun:test'
import { type AddressInfo, createServer } from 'node:net'
import { Elysia } from 'elysia'
import packageJson from '../../package.json'
import { bindPort, serveOn } from '../../src/server/bind-port.ts'
import { freePort } from '../harness/free-port.ts'
import { dataFolder, run, stopProcesses } from '../harness/processes.ts'

afterAll(stopProcesses)

const health = { status: 'ok', version: packageJson.version, simulated: true }

test('start: answers /healthz and rejects other requests with 503 and retry-after before the database is open', async () => {
  const connected = Promise.withResolvers<void>()
  // Accepts the gateway and never replies, so that everything below happens during the start.
  const silent = createServer(() => connected.resolve()).listen(0, '127.0.0.1')
  const { port: postgresPort } = silent.address() as AddressInfo
  const port = freePort()
  const ended = run('main.ts', [], {
    PORT: String(port),
    GATEWAY_DATA_DIR: dataFolder(),
    DATABASE_URL: `postgres://postgres@127.0.0.1:${postgresPort}/postgres`,
    JWT_SECRET: 'a secret of the tests, long enough to be taken',
  })
  await connected.promise
  const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`)
  const [alive, other, ready, chat] = await Promise.all(
    ['/healthz', '/health', '/readyz', '/v1/chat/completions'].map(get),
  )
  await stopProcesses()
  silent.close()
  for (const response of [alive, other]) expect([response?.status, await response?.json()]).toEqual([200, health])
  expect([ready?.status, chat?.status, chat?.headers.get('retry-after')]).toEqual([503, 503, '1'])
  expect(await chat?.json()).toMatchObject({ error: { code: 'service_unavailable' } })
  expect((await ended).stdout).not.toContain('"event":"ready"')
}, 60_000)

test('bindPort: keeps a connection that waited for the app, which answers with its own routes', async () => {
  const server = bindPort({ host: '127.0.0.1', port: 0, workers: 1, providers: [] })
  try {
    const get = (path: string) => fetch(new URL(path, server.url))
    expect((await get('/later')).status).toBe(503)
    const app = new Elysia().get('/later', () => 'here')
    const { serve } = Bun
    serveOn(server, app)
    expect([Bun.serve, app.server]).toEqual([serve, server])
    expect(await (await get('/later')).text()).toBe('here')
    expect((await get('/other')).status).toBe(404)
  } finally {
    await server.stop(true)
  }
})

test('bindPort: shares the port with workers only', () => {
  const config = { host: '127.0.0.1', port: freePort(), providers: [] }
  const again = () =>
    Bun.serve({ port: config.port, hostname: config.host, reusePort: true, fetch: () => new Response() })
  const own = bindPort({ ...config, workers: 1 })
  expect(again).toThrow('in use')
  void own.stop(true)
  const shared = bindPort({ ...config, workers: 2 })
  void again().stop(true)
  void shared.stop(true)
})
