/** A gateway that is killed between the request to a receiver and its record. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { openDatabase } from '../../src/database/database.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { dataFolder, freshFolder, onEmbedded, startProcess, stopProcesses } from '../harness/processes.ts'
import { sendRequest } from '../harness/users.ts'

setDefaultTimeout(240_000)

const postgres = await startPostgres()
afterAll(async () => {
  await stopProcesses()
  await postgres?.stop()
})

test('webhook delivery: arrives again with the same ID and body after the sender was killed', async () => {
  const arrived: { readonly id: string | null; readonly body: string }[] = []
  const first = Promise.withResolvers<void>()
  const second = Promise.withResolvers<void>()
  const receiver = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      arrived.push({ id: request.headers.get('webhook-id'), body: await request.text() })
      if (arrived.length > 1) {
        second.resolve()
        return new Response(null, { status: 204 })
      }
      first.resolve()
      // The response never comes: the sender dies while it waits.
      return new Promise<Response>(() => {})
    },
  })
  const folder = await freshFolder()
  const environment = { WEBHOOKS_PRIVATE_HOSTS: 'allow' }
  const gateway = await startProcess(folder, environment)
  const registered = await sendRequest<{ token: string }>(gateway, 'POST', '/api/v1/auth/register', {
    body: { email: 'owner@example.test', password: 'a long password' },
  })
  const { token } = registered.body
  const url = `http://127.0.0.1:${receiver.port}/`
  expect((await sendRequest(gateway, 'POST', '/api/v1/webhooks', { token, body: { url } })).status).toBe(201)
  expect((await sendRequest(gateway, 'POST', '/api/v1/keys', { token, body: { name: 'key' } })).status).toBe(201)
  await first.promise
  gateway.kill('SIGKILL')
  await gateway.exited
  await startProcess(folder, environment)
  // As if the lease of the killed sender had passed.
  await onEmbedded(folder, ({ sql }) => sql`update webhook_deliveries set due_at = now() where status = 'pending'`)
  await second.promise
  expect(arrived).toHaveLength(2)
  expect(arrived[1]).toEqual(arrived[0] ?? { id: null, body: '' })
  await receiver.stop(true)
})

testNeeding(
  ['postgres'],
  'alert: reaches its receiver, as one event, after one of two processes was killed during its delivery',
  async () => {
    const arrived: { readonly id: string | null; readonly type: string }[] = []
    const heard = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const killed = Promise.withResolvers<void>()
    const receiver = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        const { type } = (await request.json()) as { type: string }
        arrived.push({ id: request.headers.get('webhook-id'), type })
        heard[arrived.length - 1]?.resolve()
        // Either process may have sent it: the killed one records nothing, the other one a failure.
        await killed.promise
        return new Response(null, { status: arrived.length === 1 ? 503 : 204 })
      },
    })
    const environment = {
      DATABASE_URL: needed(postgres).url,
      JWT_SECRET: 'a secret of the tests, long enough to be taken',
      REGISTRATION: 'open',
      WEBHOOKS_PRIVATE_HOSTS: 'allow',
    }
    const [gateway] = await Promise.all([
      startProcess(dataFolder(), environment),
      startProcess(dataFolder(), environment),
    ])
    const registered = await sendRequest<{ token: string }>(gateway, 'POST', '/api/v1/auth/register', {
      body: { email: 'alerted@example.test', password: 'a long password' },
    })
    const { token } = registered.body
    const send = (path: string, body: object) =>
      sendRequest<{ key: string }>(gateway, 'POST', `/api/v1${path}`, { token, body })
    const url = `http://127.0.0.1:${receiver.port}/`
    const { key } = (await send('/keys', { name: 'key' })).body
    expect((await send('/webhooks', { url, events: ['alert.fired'] })).status).toBe(201)
    expect((await send('/alerts', { metric: 'spend', threshold: 0.00001 })).status).toBe(201)
    const body = { model: 'openai/gpt-5.5', prompt: 'Say hello.', max_output_tokens: 50 }
    expect((await sendRequest(gateway, 'POST', '/api/v1/chat', { token: key, body })).status).toBe(200)
    await heard[0]?.promise
    gateway.kill('SIGKILL')
    await gateway.exited
    killed.resolve()
    const database = openDatabase(needed(postgres).url, { connections: 1, ...patientStore })
    const makeDue = () =>
      database.run(({ sql }) => sql`update webhook_deliveries set due_at = now() where status = 'pending'`)
    // As if the lease of the killed sender, or the pause after the failure, had passed.
    const timer = setInterval(() => void makeDue().catch(() => undefined), 1_000)
    await heard[1]?.promise
    clearInterval(timer)
    expect(new Set(arrived.map(({ id, type }) => `${type} ${id}`)).size).toBe(1)
    const [row] = await database.run(
      ({ sql }) => sql<{ events: number }[]>`select count(*)::int as events from webhook_deliveries`,
    )
    expect([arrived[0]?.type, row?.events]).toEqual(['alert.fired', 1])
    await database.close()
    await receiver.stop(true)
  },
)
