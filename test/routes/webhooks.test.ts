/** Webhooks over a real socket, to a real receiver. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { removeUser } from '../../src/console/auth/stores/users.ts'
import type { ShownDelivery, ShownWebhook } from '../../src/console/webhooks/schemas.ts'
import { pruneDeliveries } from '../../src/console/webhooks/stores/webhook-log.ts'
import { claimDeliveries, settleDelivery } from '../../src/console/webhooks/stores/webhooks.ts'
import { actingAs } from '../../src/core/audit/audit.ts'
import { disabledAfterMs, maximumPending, maximumRefused, retryWaitsMs } from '../../src/core/webhooks/events.ts'
import { enqueueEvent, retentionDeadlineMs } from '../../src/database/repositories/audit.ts'
import { type Gateway, startGateway, withoutTimer } from '../harness/gateway.ts'
import { addMember, createKeyFor, owner, type Person, sendRequest } from '../harness/users.ts'

type Received = { readonly path: string; readonly headers: Headers; readonly body: string }

let gateway: Gateway
let receiver: Bun.Server<undefined>
const received: Received[] = []
/** Status per path; absent = 204. */
const statuses = new Map<string, number>()

beforeAll(async () => {
  receiver = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const path = new URL(request.url).pathname
      received.push({ path, headers: request.headers, body: await request.text() })
      return new Response(null, { status: statuses.get(path) ?? 204 })
    },
  })
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1', WEBHOOKS_PRIVATE_HOSTS: 'allow' }, withoutTimer)
}, 240_000)
afterAll(async () => {
  await gateway.stop()
  await receiver.stop(true)
})

type Webhook = ShownWebhook & { secret: string; error: { code: string; param: string | null } }
const call = <T = Webhook>(person: Person, method: string, path: string, body?: unknown) =>
  sendRequest<T>(gateway, method, `/api/v1/webhooks${path}`, { token: person.token, body })
let paths = 0
async function webhook(person: Person, events?: readonly string[]) {
  const path = `/hook${++paths}`
  const url = `http://127.0.0.1:${receiver.port}${path}`
  const { status, body } = await call(person, 'POST', '', { url, ...(events === undefined ? {} : { events }) })
  expect(status).toBe(201)
  return { ...body, path }
}
const getDeliveries = async (person: Person, id: string) =>
  (await call<{ data: ShownDelivery[] }>(person, 'GET', `/${id}/deliveries`)).body.data
const at = (path: string) => received.filter(item => item.path === path)
const run = () => gateway.deps.webhooks.worker.run()
const sql = <T>(work: Parameters<typeof gateway.deps.database.run<T>>[0]) => gateway.deps.database.run(work)
/** Makes every delivery due, as if its wait were over: also by a clock of whole milliseconds. */
const passTime = () =>
  sql(
    ({ sql: query }) =>
      query`update webhook_deliveries set due_at = now() - interval '1 second' where status = 'pending'`,
  )

function getSignature({ headers, body }: Received, secret: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signed = `${headers.get('webhook-id')}.${headers.get('webhook-timestamp')}.${body}`
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
}

describe('webhook', () => {
  test('delivers subscribed events, signed, with the ID of the log', async () => {
    const person = await owner(gateway)
    const { id, path, secret } = await webhook(person, ['key.created'])
    const key = await createKeyFor(gateway, person, 'production')
    await sendRequest(gateway, 'DELETE', `/api/v1/keys/${key.id}`, { token: person.token })
    await run()
    const [item, ...others] = at(path)
    if (item === undefined) throw new Error('nothing arrived')
    expect(others).toEqual([])
    expect(JSON.parse(item.body)).toMatchObject({ type: 'key.created', data: { key_id: key.id, name: 'production' } })
    expect(item.body).not.toContain(key.key.slice(20))
    expect(item.headers.get('webhook-signature')).toBe(getSignature(item, secret))
    const [logged] = await getDeliveries(person, id)
    expect(logged).toMatchObject({
      id: item.headers.get('webhook-id'),
      status: 'delivered',
      attempts: 1,
      response_status: 204,
      error: null,
    })
  })

  test('sends a Slack-compatible sentence for alerts and other events, escaped, with the path of its URL unaudited', async () => {
    const person = await owner(gateway)
    const as = <T>(method: string, path: string, body?: unknown) =>
      sendRequest<T>(gateway, method, `/api/v1${path}`, { token: person.token, body })
    const url = `http://127.0.0.1:${receiver.port}/slack${++paths}`
    const made = (await call(person, 'POST', '', { url, format: 'slack', events: ['key.created', 'alert.fired'] })).body
    expect(made.format).toBe('slack')
    const path = new URL(url).pathname
    await createKeyFor(gateway, person, 'a <b> & c')
    const { id } = (await as<{ id: string }>('POST', '/alerts', { metric: 'latency', threshold: 900 })).body
    expect((await as<object>('POST', `/alerts/${id}/test`)).body).toEqual({
      emails: { sent: 0, failed: 0 },
      webhooks: 1,
    })
    await run()
    const texts = at(path).map(({ body }) => JSON.parse(body))
    expect(texts).toContainEqual({ text: 'This is a test of an alert.' })
    expect(texts.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(/^key\.created, key_id: key_\w+, name: a &lt;b&gt; &amp; c/),
    )
    expect(texts.flatMap(Object.keys)).toEqual(['text', 'text'])
    const log = await as<{ data: unknown }>('GET', '/audit?action=webhook.created')
    expect(log.text).not.toContain(path)
    expect((await getDeliveries(person, made.id)).map(({ status }) => status)).toEqual(['delivered', 'delivered'])
  })

  test('repeats a failed delivery with the same ID and body until the receiver accepts it', async () => {
    const person = await owner(gateway)
    const { id, path } = await webhook(person, ['key.created'])
    statuses.set(path, 500)
    await createKeyFor(gateway, person)
    await run()
    expect((await getDeliveries(person, id))[0]).toMatchObject({ status: 'pending', attempts: 1, error: 'status' })
    await run()
    expect(at(path)).toHaveLength(1)
    await passTime()
    statuses.set(path, 200)
    await run()
    const [first, second, ...others] = at(path)
    expect(others).toEqual([])
    expect(second?.headers.get('webhook-id')).toBe(first?.headers.get('webhook-id') ?? '')
    expect(second?.body).toBe(first?.body ?? '')
    expect((await getDeliveries(person, id))[0]).toMatchObject({ status: 'delivered', attempts: 2 })
  })

  test('shows its secret once, stores it sealed, and signs with both secrets during a rotation', async () => {
    const person = await owner(gateway)
    const made = await webhook(person)
    expect((await call(person, 'GET', '')).text).not.toContain('whsec_')
    const rows = await sql(({ sql: query }) => query`select secret from webhook_endpoints where id = ${made.id}`)
    expect(JSON.stringify(rows)).not.toContain(made.secret.slice(6))
    const rotated = await call(person, 'POST', `/${made.id}/rotate`, { overlap_seconds: 3600 })
    expect((await call(person, 'POST', `/${made.id}/test`)).status).toBe(202)
    await run()
    const [item] = at(made.path)
    if (item === undefined) throw new Error('nothing arrived')
    const both = [rotated.body.secret, made.secret].map(secret => getSignature(item, secret)).join(' ')
    expect(item.headers.get('webhook-signature')).toBe(both)
    await call(person, 'POST', `/${made.id}/rotate`, { overlap_seconds: 0 })
    await call(person, 'POST', `/${made.id}/test`)
    await run()
    expect(at(made.path)[1]?.headers.get('webhook-signature')?.split(' ')).toHaveLength(1)
  })

  test('ends when a delivery fails for a day without a success, and continues when enabled', async () => {
    const person = await owner(gateway)
    const { id, path } = await webhook(person, ['key.created'])
    statuses.set(path, 503)
    await createKeyFor(gateway, person)
    await run()
    await sql(
      ({ sql: query }) =>
        query`update webhook_deliveries set attempts = ${retryWaitsMs.length} where endpoint_id = ${id}`,
    )
    await sql(
      ({ sql: query }) => query`
        update webhook_endpoints set failing_since = now() - make_interval(secs => ${disabledAfterMs / 1000}) where id = ${id}`,
    )
    await passTime()
    await run()
    const [shown] = (await call<{ data: ShownWebhook[] }>(person, 'GET', '')).body.data
    expect(shown).toMatchObject({ enabled: false, disabled_by: 'failures' })
    expect((await getDeliveries(person, id))[0]).toMatchObject({ status: 'failed', response_status: 503 })
    await createKeyFor(gateway, person)
    expect(await getDeliveries(person, id)).toHaveLength(1)
    expect((await call(person, 'POST', `/${id}/test`)).status).toBe(409)
    expect((await call(person, 'PATCH', `/${id}`, { enabled: true })).body).toMatchObject({
      enabled: true,
      failing_since: null,
    })
    const log = await sendRequest<{ data: { action: string }[] }>(gateway, 'GET', '/api/v1/audit?actor=system', {
      token: person.token,
    })
    expect(log.body.data.map(item => item.action)).toContain('webhook.disabled')
  })

  test('stays enabled when the gateway cannot read its secret for a day', async () => {
    const person = await owner(gateway)
    const { id } = await webhook(person, ['key.created'])
    await sql(
      ({ sql: query }) => query`
        update webhook_endpoints set secret = 'unreadable', failing_since = now() - make_interval(secs => ${disabledAfterMs / 1000})
        where id = ${id}`,
    )
    await createKeyFor(gateway, person)
    await sql(
      ({ sql: query }) =>
        query`update webhook_deliveries set attempts = ${retryWaitsMs.length} where endpoint_id = ${id}`,
    )
    await run()
    expect((await getDeliveries(person, id))[0]).toMatchObject({ status: 'failed', error: 'secret_unreadable' })
    expect((await call<{ data: ShownWebhook[] }>(person, 'GET', '')).body.data[0]?.enabled).toBe(true)
  })

  test('ends at once when the receiver answers 410', async () => {
    const person = await owner(gateway)
    const { id, path } = await webhook(person, ['key.created'])
    statuses.set(path, 410)
    await createKeyFor(gateway, person)
    await run()
    expect((await call<{ data: ShownWebhook[] }>(person, 'GET', '')).body.data[0]?.enabled).toBe(false)
    expect((await getDeliveries(person, id))[0]).toMatchObject({ status: 'failed', attempts: 1 })
  })

  test('can be claimed by one sender, and again after the lease of a killed one', async () => {
    const person = await owner(gateway)
    const { id } = await webhook(person, ['key.created'])
    const { database } = gateway.deps
    await sql(({ sql: query }) => query`update webhook_deliveries set status = 'failed' where status = 'pending'`)
    await createKeyFor(gateway, person)
    const now = Date.now() + 1_000
    const options = { leaseMs: 60_000, limit: 16 }
    const [lost, ...none] = (await Promise.all([1, 2, 3].map(() => claimDeliveries(database, now, options)))).flat()
    if (lost === undefined) throw new Error('nothing was claimed')
    expect(none).toEqual([])
    expect(await claimDeliveries(database, now + 59_000, options)).toEqual([])
    const [again] = await claimDeliveries(database, now + 61_000, options)
    expect(again).toMatchObject({ id: lost.id, body: lost.body, attempts: 2 })
    // The killed sender was only slow: its late result no longer counts.
    expect(await settleDelivery(database, lost, { status: 500, error: 'status', durationMs: 1 }, now)).toBeNull()
    if (again === undefined) throw new Error('nothing was claimed')
    expect(await settleDelivery(database, again, { status: 200, error: null, durationMs: 1 }, now)).toBe('delivered')
    expect((await getDeliveries(person, id))[0]?.status).toBe('delivered')
  })

  test('delivers an event that several gateways report once', async () => {
    const person = await owner(gateway)
    const { id } = await webhook(person, ['model.unhealthy'])
    const { database } = gateway.deps
    const event = { type: 'model.unhealthy', key: 'model.unhealthy a/b 1', data: { model: 'a/b' } } as const
    for (let count = 0; count < 3; count++)
      await database.run(({ sql: query }) => query.begin(step => enqueueEvent(step, null, event)))
    expect(await getDeliveries(person, id)).toHaveLength(1)
  })

  test('receives only events of its project, which name it', async () => {
    const person = await owner(gateway)
    const as = <T>(method: string, path: string, body?: unknown) =>
      sendRequest<T>(gateway, method, `/api/v1${path}`, { token: person.token, body })
    const project = async (name: string) => (await as<{ id: string }>('POST', '/projects', { name })).body.id
    const [text, other] = [await project('search'), await project('chat')]
    const [ofAll, ofOne] = [await webhook(person), await webhook(person)]
    expect((await call(person, 'PATCH', `/${ofOne.id}`, { project_id: 'prj_missing' })).status).toBe(404)
    expect((await call(person, 'PATCH', `/${ofOne.id}`, { project_id: text })).body.project_id).toBe(text)
    const key = async (name: string, projectId: string | null) =>
      (await as<{ id: string }>('POST', '/keys', { name, project_id: projectId })).body.id
    const [inOne] = [await key('in one', text), await key('in the other', other), await key('in none', null)]
    const rotated = await as<{ id: string }>('POST', `/keys/${inOne}/rotate`, {})
    await as('DELETE', `/keys/${rotated.body.id}`)
    const told = async (id: string) =>
      (await getDeliveries(person, id))
        .map(({ type, body }) => {
          const { data } = JSON.parse(body)
          return [type, data.name, data.project_id ?? null, data.project_name ?? null]
        })
        .sort()
    const ofProject = [
      ['key.revoked', 'in one', text, 'search'],
      ['key.created', 'in one', text, 'search'],
      ['key.created', 'in one', text, 'search'],
    ]
    expect(await told(ofOne.id)).toEqual(ofProject.sort())
    expect(await told(ofAll.id)).toEqual(
      [...ofProject, ['key.created', 'in the other', other, 'chat'], ['key.created', 'in none', null, null]].sort(),
    )
    // An event of no project: neither a model nor an invoice belongs to one.
    const { database } = gateway.deps
    const event = { type: 'model.unhealthy', key: 'model.unhealthy c/d 1', data: { model: 'c/d' } } as const
    await database.run(({ sql: query }) => query.begin(step => enqueueEvent(step, null, event)))
    expect([(await told(ofOne.id)).length, (await told(ofAll.id)).length]).toEqual([3, 6])
    expect((await call(person, 'PATCH', `/${ofOne.id}`, { project_id: null })).body.project_id).toBeNull()
  })

  test('belongs to its account, and to owners and admins of it', async () => {
    const [person, other] = [await owner(gateway), await owner(gateway)]
    const member = await addMember(gateway, person, 'member')
    const { id, url } = await webhook(person)
    expect((await call(member, 'GET', '')).status).toBe(403)
    expect((await call(member, 'POST', '', { url })).status).toBe(403)
    for (const [method, path, body] of [
      ['PATCH', `/${id}`, { enabled: false }],
      ['DELETE', `/${id}`, undefined],
      ['POST', `/${id}/rotate`, {}],
      ['POST', `/${id}/test`, {}],
      ['GET', `/${id}/deliveries`, undefined],
    ] as const)
      expect([path, (await call(other, method, path, body)).status]).toEqual([path, 404])
    expect((await call<{ data: ShownWebhook[] }>(other, 'GET', '')).body.data).toEqual([])
  })

  test('rejects a wrong URL, unknown events and an eleventh endpoint, and ends with its deliveries', async () => {
    const person = await owner(gateway)
    for (const body of [{ url: 'ftp://x.example' }, { url: 'no url' }, { url: 'https://a.example', events: ['x'] }])
      expect([body, (await call(person, 'POST', '', body)).status]).toEqual([body, 400])
    const made: string[] = []
    for (let count = 0; count < 10; count++) made.push((await webhook(person, ['key.created'])).id)
    expect((await call(person, 'POST', '', { url: 'https://example.com' })).body.error.code).toBe('conflict')
    await createKeyFor(gateway, person)
    expect((await call(person, 'DELETE', `/${made[0]}`)).status).toBe(204)
    expect((await call(person, 'GET', `/${made[0]}/deliveries`)).status).toBe(404)
  })

  test('stores an event beyond 1,000 pending ones as failed, and rejects a test event', async () => {
    const person = await owner(gateway)
    const { id, path } = await webhook(person, ['key.created'])
    await sql(
      ({ sql: query }) => query`
        insert into webhook_deliveries (id, account_id, endpoint_id, type, body, due_at)
        select 'msg_00' || n, ${person.accountId}, ${id}, 't', '{}', now() + interval '1 day'
        from generate_series(1, ${maximumPending - 1}::int) as n`,
    )
    const kept = await createKeyFor(gateway, person)
    // Older refused deliveries: the newest 99 stay beside a new one.
    await sql(
      ({ sql: query }) => query`
        insert into webhook_deliveries (id, account_id, endpoint_id, type, body, status, error)
        select 'msg_00r' || lpad(n::text, 3, '0'), ${person.accountId}, ${id}, 't', '{}', 'failed', 'queue_full'
        from generate_series(1, 200) as n`,
    )
    await createKeyFor(gateway, person)
    const rows = await sql(
      ({ sql: query }) => query<{ count: number; oldest: string }[]>`
        select count(*)::int, min(id) as oldest from webhook_deliveries where endpoint_id = ${id} and error = 'queue_full'`,
    )
    expect(rows[0]).toEqual({ count: maximumRefused, oldest: 'msg_00r102' })
    const [full, last] = await getDeliveries(person, id)
    expect(full).toMatchObject({ status: 'failed', error: 'queue_full', attempts: 0 })
    expect(last).toMatchObject({ status: 'pending', error: null })
    for (const rest of ['/test', `/deliveries/${full?.id}/redeliver`])
      expect((await call(person, 'POST', `/${id}${rest}`)).body.error.code).toBe('conflict')
    await run()
    expect(at(path).map(item => JSON.parse(item.body).data.key_id)).toEqual([kept.id])
    await sql(({ sql: query }) => query`delete from webhook_deliveries where id like 'msg_00%' and endpoint_id = ${id}`)
    expect((await call(person, 'POST', `/${id}/deliveries/${full?.id}/redeliver`)).status).toBe(202)
    await run()
    expect(at(path)[1]?.headers.get('webhook-id')).toBe(full?.id ?? '')
  })

  test('sends a settled delivery again, with the same ID and body and all attempts', async () => {
    const [person, other] = [await owner(gateway), await owner(gateway)]
    const { id, path } = await webhook(person, ['key.created'])
    const second = await webhook(person, ['key.revoked'])
    await createKeyFor(gateway, person)
    const [delivery] = await getDeliveries(person, id)
    const again = (who: Person, endpoint: string) =>
      call(who, 'POST', `/${endpoint}/deliveries/${delivery?.id}/redeliver`)
    expect((await again(person, id)).body.error.code).toBe('conflict')
    await run()
    expect((await again(other, id)).status).toBe(404)
    expect((await again(person, second.id)).status).toBe(404)
    statuses.set(path, 500)
    expect((await again(person, id)).body).toEqual({ id: delivery?.id } as never)
    await run()
    const [first, repeated] = at(path)
    expect(repeated?.headers.get('webhook-id')).toBe(first?.headers.get('webhook-id') ?? '')
    expect(repeated?.body).toBe(first?.body ?? '')
    expect((await getDeliveries(person, id))[0]).toMatchObject({ status: 'pending', attempts: 1, body: first?.body })
    await call(person, 'PATCH', `/${id}`, { enabled: false })
    await sql(({ sql: query }) => query`update webhook_deliveries set status = 'failed' where endpoint_id = ${id}`)
    expect((await again(person, id)).body.error.code).toBe('conflict')
    const log = await sendRequest<{ data: { action: string }[] }>(
      gateway,
      'GET',
      '/api/v1/audit?action=webhook.redelivered',
      {
        token: person.token,
      },
    )
    expect(log.body.data).toHaveLength(1)
  })

  test('sends at most 10 test events per minute and account', async () => {
    const [person, other] = [await owner(gateway), await owner(gateway)]
    const { id } = await webhook(person)
    const answers = await Promise.all(Array.from({ length: 12 }, () => call(person, 'POST', `/${id}/test`)))
    const rejected = answers.filter(({ status }) => status === 429)
    expect(rejected).toHaveLength(2)
    expect(rejected[0]?.body.error.code).toBe('requests_per_minute_exceeded')
    expect(Number(rejected[0]?.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await getDeliveries(person, id)).toHaveLength(10)
    expect((await call(other, 'POST', `/${(await webhook(other)).id}/test`)).status).toBe(202)
  })

  test('keeps at most 1,000 settled deliveries per endpoint', async () => {
    const person = await owner(gateway)
    const { id } = await webhook(person)
    await sql(
      ({ sql: query }) => query`
        insert into webhook_deliveries (id, account_id, endpoint_id, type, body, status)
        select 'msg_' || lpad(n::text, 8, '0'), ${person.accountId}, ${id}, 't', '{}', 'delivered'
        from generate_series(1, 1010) as n`,
    )
    // It has a deadline of its own: the one of requests is too short for a large table.
    const { database } = gateway.deps
    let givenMs = 0
    const observed: typeof database = {
      ...database,
      run(work, deadlineMs = 0) {
        givenMs = deadlineMs
        return database.run(work)
      },
    }
    expect(await pruneDeliveries(observed, 100)).toBe(10)
    expect(givenMs).toBe(retentionDeadlineMs)
  })

  test('reports a revoked key also when its member is removed', async () => {
    const person = await owner(gateway)
    const member = await addMember(gateway, person, 'member')
    const { id } = await createKeyFor(gateway, member)
    const { path } = await webhook(person, ['key.revoked'])
    const { database } = gateway.deps
    const actor = { kind: 'user', userId: person.id, address: '192.0.2.1' } as const
    expect(await removeUser(actingAs(database, actor), person.accountId, person.id, member.id)).toBe('done')
    await run()
    expect(at(path).map(item => JSON.parse(item.body).data.key_id)).toEqual([id])
  })
})
