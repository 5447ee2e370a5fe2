/** A gateway that is killed between the request to a receiver and its record. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { freshFolder, onEmbedded, startProcess, stopProcesses } from '../harness/processes.ts'
import { sendRequest } from '../harness/users.ts'

setDefaultTimeout(240_000)

afterAll(() => stopProcesses())

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
