/** Every route of audit log, webhooks, alerts and single sign-on for every kind of client. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, createKeyFor, owner, type Person, sendRequest } from '../harness/users.ts'

const clients = ['anonymous', 'key', 'viewer', 'member', 'admin', 'owner', 'other'] as const
type Client = (typeof clients)[number]
/** Statuses in the order of `clients`; `other` = owner of another account, who must not learn of an ID. */
type Statuses = readonly [number, number, number, number, number, number, number]

const team = (status: number, other = status): Statuses => [401, 401, 403, 403, status, status, other]
const redirected: Statuses = [404, 404, 404, 404, 404, 404, 404]

/** `W`, `D` and `A` stand for a webhook, its delivery and an alert of the account, new for each request. */
const matrix: Readonly<Record<string, { readonly body?: object; readonly statuses: Statuses }>> = {
  'GET /api/v1/audit': { statuses: team(200) },
  'GET /api/v1/audit/export': { statuses: team(200) },
  'GET /api/v1/webhooks': { statuses: team(200) },
  'POST /api/v1/webhooks': { body: { url: 'https://example.com/' }, statuses: team(201) },
  'PATCH /api/v1/webhooks/:W': { body: { enabled: false }, statuses: team(200, 404) },
  'DELETE /api/v1/webhooks/:W': { statuses: team(204, 404) },
  'POST /api/v1/webhooks/:W/rotate': { body: {}, statuses: team(200, 404) },
  'POST /api/v1/webhooks/:W/test': { body: {}, statuses: team(202, 404) },
  'GET /api/v1/webhooks/:W/deliveries': { statuses: team(200, 404) },
  'POST /api/v1/webhooks/:W/deliveries/:D/redeliver': { body: {}, statuses: team(202, 404) },
  'GET /api/v1/alerts': { statuses: team(200) },
  'POST /api/v1/alerts': { body: { metric: 'spend', threshold: 5 }, statuses: team(201) },
  'PATCH /api/v1/alerts/:A': { body: { threshold: 6 }, statuses: team(200, 404) },
  'DELETE /api/v1/alerts/:A': { statuses: team(204, 404) },
  'POST /api/v1/alerts/:A/test': { body: {}, statuses: team(200, 404) },
  'GET /api/v1/auth/oidc/settings': { statuses: [401, 401, 403, 403, 403, 200, 200] },
  // Without configuration these do not exist; `single-sign-on.test.ts` covers them with one.
  'GET /api/v1/auth/oidc/start': { statuses: redirected },
  'GET /api/v1/auth/oidc/callback': { statuses: redirected },
  'GET /api/v1/auth/oidc/logout': { statuses: redirected },
  'POST /api/v1/auth/oidc/session': { body: {}, statuses: redirected },
}

let gateway: Gateway
let tokens: Readonly<Record<Client, string | undefined>>
let boss: Person
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  boss = await owner(gateway)
  const [viewer, member, admin] = [
    await addMember(gateway, boss, 'viewer'),
    await addMember(gateway, boss, 'member'),
    await addMember(gateway, boss, 'admin'),
  ]
  tokens = {
    anonymous: undefined,
    key: (await createKeyFor(gateway, boss)).key,
    viewer: viewer.token,
    member: member.token,
    admin: admin.token,
    owner: boss.token,
    other: (await owner(gateway)).token,
  }
}, 240_000)
afterAll(() => gateway.stop())

/** Stores webhook, delivery and alert directly: an account may have few of them, and tests of them are limited. */
async function fresh(): Promise<Readonly<Record<'W' | 'D' | 'A', string>>> {
  const { database, newId, webhooks } = gateway.deps
  const [W, D, A] = [newId('whk'), newId('msg'), newId('alr')]
  const { accountId } = boss
  const secret = webhooks.seal.seal(W, webhooks.newSecret())
  await database.run(async ({ sql }) => {
    for (const table of ['webhook_endpoints', 'alert_rules'])
      await sql`delete from ${sql(table)} where account_id = ${accountId}`
    await sql`
      insert into webhook_endpoints (id, account_id, url, events, secret, created_at)
      values (${W}, ${accountId}, 'https://example.com/', '{key.created}', ${secret}, now())`
    await sql`
      insert into webhook_deliveries (id, account_id, endpoint_id, type, body, status)
      values (${D}, ${accountId}, ${W}, 'key.created', '{}', 'failed')`
    await sql`
      insert into alert_rules (id, account_id, metric, threshold, window_minutes, created_at)
      values (${A}, ${accountId}, 'spend', 5, 15, now())`
  })
  return { W, D, A }
}

describe('route and role', () => {
  test.each(Object.entries(matrix))('%s: answers each client as the table says', async (route, { body, statuses }) => {
    const [method = '', path = ''] = route.split(' ')
    const found: Record<string, number> = {}
    for (const client of clients) {
      const ids = await fresh()
      const filled = path.replace(/:([WDA])/g, (_, name: 'W' | 'D' | 'A') => ids[name])
      found[client] = (await sendRequest(gateway, method, filled, { token: tokens[client], body })).status
    }
    expect(found).toEqual(Object.fromEntries(clients.map((client, index) => [client, statuses[index] ?? 0])))
  })

  test('table: has every route of these resources', () => {
    const subject = /^\/api\/v1\/(audit|webhooks|alerts|auth\/oidc)(\/|$)/
    const registered = createApp(gateway.deps)
      .routes.filter(({ path }) => subject.test(path))
      .map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ':')}`)
    expect(registered.sort()).toEqual(
      Object.keys(matrix)
        .map(route => route.replace(/:\w+/g, ':'))
        .sort(),
    )
  })
})
