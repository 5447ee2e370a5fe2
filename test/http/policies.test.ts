/** Requests to every route of the table: each has a policy, and only the permitted clients pass. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { moveOperator } from '../../src/console/provider-keys/store.ts'
import { mintApiKey } from '../../src/core/accounts/api-keys.ts'
import {
  type Action,
  actions,
  isAllowed,
  managementScopes,
  neededScope,
  outranks,
  roles,
} from '../../src/core/accounts/roles.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, createKeyFor, createManagementKey, owner, type Person, sendRequest } from '../harness/users.ts'

let gateway: Gateway
const people: Record<string, Person> = {}
const credentials: Record<string, string | undefined> = { nobody: undefined }
const clients = [
  'nobody',
  'owner',
  'admin',
  'member',
  'viewer',
  'owner of another account',
  'bad key',
  'bad token',
  'key',
  'management key',
]
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  const boss = await owner(gateway)
  // Only its owners manage keys of providers.
  await moveOperator(gateway.deps.database, boss.accountId)
  Object.assign(people, {
    owner: boss,
    admin: await addMember(gateway, boss, 'admin'),
    member: await addMember(gateway, boss, 'member'),
    viewer: await addMember(gateway, boss, 'viewer'),
    'owner of another account': await owner(gateway),
  })
  for (const [name, person] of Object.entries(people)) credentials[name] = person.token
  credentials['bad key'] = mintApiKey(count => crypto.getRandomValues(new Uint8Array(count))).key
  credentials['bad token'] = `${boss.token.slice(0, -4)}AAAA`
  credentials['management key'] = (await createManagementKey(gateway, boss, managementScopes)).key
  credentials.key = (await createKeyFor(gateway, people.member as Person)).key
}, 240_000)
afterAll(() => gateway.stop())

type Route = { readonly method: string; readonly path: string; readonly detail: Record<string, unknown> }
type Need =
  | { readonly kind: 'open' }
  | { readonly kind: 'key' }
  | { readonly kind: 'operator' }
  | { readonly kind: 'session' | 'either'; readonly action: Action }

function routes(): Route[] {
  return createApp(gateway.deps).routes.map(({ method, path, hooks }) => ({
    method,
    path,
    detail: (hooks as { detail?: Record<string, unknown> } | undefined)?.detail ?? {},
  }))
}

/** Policy of a route; null = none that this test understands. */
function findNeed({ detail }: Route): Need | null {
  const said = JSON.stringify(detail.security)
  if (said === '[]') return { kind: 'open' }
  if (said === '[{"apiKey":[]}]') return { kind: 'key' }
  if (said === '[{"metricsToken":[]}]') return { kind: 'operator' }
  const action = actions.find(item => item === detail['x-action'])
  if (action === undefined) return null
  if (said === '[{"apiKey":[]},{"session":[]}]') return { kind: 'either', action }
  return said === '[{"session":[]}]' ? { kind: 'session', action } : null
}

describe('every route', () => {
  test('has a policy [R2]', () => {
    const without = routes().filter(route => findNeed(route) === null)
    expect(
      without.map(({ method, path }) => `${method} ${path}: put a policy of http/route-docs.ts into its detail`),
    ).toEqual([])
    expect(routes().length).toBeGreaterThan(25)
  })

  test.each(clients)(
    'answers 401 without authentication and 403 without permission, never 2xx, whatever the body: %s',
    async name => {
      expect(Object.keys(credentials).sort()).toEqual(clients.toSorted())
      const wrong: string[] = []
      for (const route of routes()) {
        const need = findNeed(route)
        // Access to operator routes depends on machine and token: see `routes/metrics.test.ts`.
        if (need === null || need.kind === 'open' || need.kind === 'operator') continue
        // `provider-keys.test.ts` covers that account.
        if ('action' in need && need.action === 'provider_keys.manage' && name === 'owner of another account') continue
        const path = route.path.replace(/:\w+|\*/g, 'usr_missing')
        const person = people[name]
        for (const body of route.method === 'GET' ? [undefined] : ['{"canary', {}]) {
          const { status } = await sendRequest(gateway, route.method, path, { token: credentials[name], body })
          const hasKey = need.kind !== 'session' && name === 'key'
          const isManaging = name === 'management key'
          const known = hasKey || (need.kind !== 'key' && (person !== undefined || isManaging))
          const does = route.method === 'GET' ? 'read' : 'write'
          const allowed =
            known &&
            (need.kind === 'key' ||
              (isManaging ? neededScope(need.action, does) !== null : isAllowed(person?.role ?? 'member', need.action)))
          const expected = !known ? status === 401 : !allowed ? status === 403 : status !== 401 && status !== 403
          if (!expected) wrong.push(`${name}: ${route.method} ${path} → ${status}`)
          // A session that the requests ended would make the remaining checks meaningless.
          if (path.endsWith('/logout') && status === 204) {
            const { body: again } = await sendRequest<{ token: string }>(gateway, 'POST', '/api/v1/auth/login', {
              body: { email: person?.email, password: person?.password },
            })
            credentials[name] = again.token
          }
        }
      }
      expect(wrong).toEqual([])
    },
  )

  test('stays protected from every crafted path [B20]', async () => {
    for (const path of [
      '/ab/api/v1/keys',
      '//api/v1/keys',
      '/api/v1/keys/',
      '/healthz/../api/v1/keys',
      '/api/v1/KEYS',
      '/api/v1/keys?x=/healthz',
    ]) {
      const { status } = await sendRequest(gateway, 'GET', path)
      expect([401, 404]).toContain(status)
    }
  })

  test('treats IDs that no store should see as missing ones', async () => {
    for (const id of ['%00', '..%2f..', "'%20or%201=1--", 'x'.repeat(200), '%ff', '__proto__', '%E2%80%A8']) {
      const { status } = await sendRequest(gateway, 'DELETE', `/api/v1/keys/${id}`, { token: credentials.owner })
      expect([400, 404]).toContain(status)
    }
  })
})

test('roles: match the agreed matrix', () => {
  const table = Object.fromEntries(
    actions.map(action => [action, roles.filter(role => isAllowed(role, action)).join(' ')]),
  )
  expect(table).toStrictEqual({
    'account.change': 'admin owner',
    'account.delete': 'owner',
    'account.secure': 'owner',
    'account.see': 'viewer member admin owner',
    'alerts.manage': 'admin owner',
    'audit.see': 'admin owner',
    'billing.change': 'owner',
    'billing.see': 'owner',
    'feedback.give': 'member admin owner',
    'insights.see': 'viewer member admin owner',
    'keys.all': 'admin owner',
    'keys.own': 'member admin owner',
    'keys.see': 'viewer member admin owner',
    'learning.delete': 'admin owner',
    'management_keys.manage': 'admin owner',
    'provider_keys.manage': 'owner',
    'projects.all': 'admin owner',
    'projects.change': 'admin owner',
    'projects.see': 'viewer member admin owner',
    'providers.see': 'admin owner',
    'requests.all': 'admin owner',
    'requests.export_all': 'admin owner',
    'requests.export_own': 'viewer member admin owner',
    'requests.own': 'viewer member admin owner',
    'sessions.own': 'viewer member admin owner',
    'tags.change': 'admin owner',
    'tags.see': 'viewer member admin owner',
    'team.change_roles': 'owner',
    'team.invite': 'admin owner',
    'team.remove': 'admin owner',
    'team.see': 'viewer member admin owner',
    'usage.all': 'admin owner',
    'usage.own': 'viewer member admin owner',
    'webhooks.manage': 'admin owner',
  })
  const pairs = roles.flatMap(role => roles.filter(other => outranks(role, other)).map(other => `${role} > ${other}`))
  expect(pairs).toEqual([
    'member > viewer',
    'admin > viewer',
    'admin > member',
    'owner > viewer',
    'owner > member',
    'owner > admin',
    'owner > owner',
  ])
})
