/**
 * Which requests notify other gateway instances: those that changed a key, a user, a session or a plan, and no others.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { createSessionDirectory } from '../../src/console/auth/stores/sessions.ts'
import { createKeyDirectory } from '../../src/console/keys/stores/keys.ts'
import type { Caller } from '../../src/core/limits/plans.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import {
  addMember,
  createKeyFor,
  upgraded as operatorUpgrades,
  owner,
  type Person,
  sendRequest,
} from '../harness/users.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

let gateway: Gateway
/** The same gateway with counted notifications. */
let counted: { readonly url: string }
/** State in the memory of another gateway instance on the same database. */
let other: {
  readonly keys: ReturnType<typeof createKeyDirectory>
  readonly sessions: ReturnType<typeof createSessionDirectory>
}
let announced = 0
let closeCounted = async () => {}

beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  const { database, clock, config, announce } = gateway.deps
  const app = createApp({
    ...gateway.deps,
    announce() {
      announced++
      announce()
    },
  }).listen({ port: 0, hostname: '127.0.0.1' })
  counted = { url: `http://127.0.0.1:${app.server?.port}` }
  closeCounted = async () => void (await app.server?.stop(true))
  other = {
    keys: createKeyDirectory({ database, clock, plans: config.plans, random: Math.random }),
    sessions: createSessionDirectory({ database, clock }),
  }
}, 240_000)
afterAll(async () => {
  await closeCounted()
  await other.keys.close()
  await gateway.stop()
})

/** Resources for the changes. */
type Stage = {
  readonly boss: Person
  readonly member: Person
  readonly key: string
  readonly keyId: string
  readonly projectId: string
}

async function newStage(): Promise<Stage> {
  const boss = await owner(gateway)
  const [member, { id, key }] = [await addMember(gateway, boss, 'member'), await createKeyFor(gateway, boss)]
  await recalled(key)
  const { body: project } = await at('POST', '/api/v1/projects', boss, { name: 'search' })
  return { boss, member, key, keyId: id, projectId: project.id ?? '' }
}

const recalled = async (key: string): Promise<Caller | null> => await other.keys.find(key)
const isSignedIn = async ({ token }: Person) => {
  const claims = await gateway.deps.tokens.verify(token)
  return claims !== null && (await other.sessions.find(claims.sessionId)) !== null
}
const getSession = async ({ token }: Person) => (await gateway.deps.tokens.verify(token))?.sessionId ?? ''

type Change = {
  readonly body?: (stage: Stage) => object
  readonly path?: (stage: Stage) => string | Promise<string>
  readonly by?: (stage: Stage) => Person
  /** Preparation at the other application, which is not counted. */
  readonly first?: (stage: Stage) => Promise<unknown>
  /** True at the other gateway after it received the change, and not before. Null = the change is in no memory. */
  readonly seen: ((stage: Stage, answer: { readonly key?: string }) => Promise<boolean>) | null
}

const at = (method: string, path: string, { token }: Person, body?: object) =>
  sendRequest<{ key?: string; id?: string }>(gateway, method, path, { token, ...(body === undefined ? {} : { body }) })
/** The operator moved it to plan `usage`: without a payment processor no owner can. */
const upgraded = ({ boss }: Stage) => operatorUpgrades(gateway, boss)
const downgraded = async (stage: Stage) => {
  await upgraded(stage)
  await at('POST', '/api/v1/billing/downgrade', stage.boss, { confirm: true })
}

/** Every route that changes an account; `announces` = `seen` is given. */
const changes: Readonly<Record<string, Change>> = {
  'POST /api/v1/keys': {
    body: () => ({ name: 'new' }),
    seen: async (_, { key = '' }) => (await recalled(key)) !== null,
  },
  'PATCH /api/v1/keys/:id': {
    body: () => ({ web: false }),
    seen: async ({ key }) => (await recalled(key))?.webOff === true,
  },
  'POST /api/v1/keys/:id/rotate': { body: () => ({}), seen: async ({ key }) => (await recalled(key)) === null },
  'DELETE /api/v1/keys/:id': { seen: async ({ key }) => (await recalled(key)) === null },
  'PUT /api/v1/tags': {
    body: () => ({ name: 'team', value: 'search', limits: { requests_per_minute: 5 } }),
    seen: async ({ key }) => (await recalled(key))?.tagLimits?.size === 1,
  },
  'POST /api/v1/projects': { body: () => ({ name: 'new' }), seen: null },
  'PATCH /api/v1/projects/:id': {
    path: ({ projectId }) => `/api/v1/projects/${projectId}`,
    body: () => ({ limits: { requests_per_minute: 5 } }),
    seen: async ({ key }) => (await recalled(key))?.tagLimits?.size === 1,
  },
  'DELETE /api/v1/projects/:id': { path: ({ projectId }) => `/api/v1/projects/${projectId}`, seen: null },
  'PUT /api/v1/projects/:id/members/:user': {
    path: ({ projectId, member }) => `/api/v1/projects/${projectId}/members/${member.id}`,
    body: () => ({ role: 'admin' }),
    seen: async ({ projectId, member }) =>
      (await other.sessions.find(await getSession(member)))?.projects.get(projectId) === 'admin',
  },
  'DELETE /api/v1/projects/:id/members/:user': {
    first: ({ projectId, member, boss }) =>
      at('PUT', `/api/v1/projects/${projectId}/members/${member.id}`, boss, { role: 'admin' }),
    path: ({ projectId, member }) => `/api/v1/projects/${projectId}/members/${member.id}`,
    seen: async ({ member }) => (await other.sessions.find(await getSession(member)))?.projects.size === 0,
  },
  'PATCH /api/v1/account': {
    body: () => ({ web: false }),
    seen: async ({ key }) => (await recalled(key))?.webOff === true,
  },
  'DELETE /api/v1/account': {
    body: ({ boss }) => ({ name: boss.email, password: boss.password }),
    seen: async ({ key }) => (await recalled(key)) === null,
  },
  'POST /api/v1/auth/logout': { by: ({ member }) => member, seen: async ({ member }) => !(await isSignedIn(member)) },
  'DELETE /api/v1/auth/sessions/:id': {
    by: ({ member }) => member,
    path: async ({ member }) => `/api/v1/auth/sessions/${await getSession(member)}`,
    seen: async ({ member }) => !(await isSignedIn(member)),
  },
  'PUT /api/v1/auth/password': {
    by: ({ member }) => member,
    body: ({ member }) => ({ current_password: member.password, new_password: 'quite another password' }),
    seen: ({ member }) => isSignedIn(member),
  },
  'PATCH /api/v1/team/:id': {
    path: ({ member }) => `/api/v1/team/${member.id}`,
    body: () => ({ role: 'admin' }),
    seen: async ({ member }) => (await other.sessions.find(await getSession(member)))?.role === 'admin',
  },
  'DELETE /api/v1/team/:id': {
    path: ({ member }) => `/api/v1/team/${member.id}`,
    seen: async ({ member }) => !(await isSignedIn(member)),
  },
  'POST /api/v1/team/invitations': { body: () => ({ email: `guest${Math.random()}@example.test` }), seen: null },
  'DELETE /api/v1/team/invitations/:id': {
    path: async ({ boss }) => {
      const { body } = await at('POST', '/api/v1/team/invitations', boss, {
        email: `guest${Math.random()}@example.test`,
      })
      return `/api/v1/team/invitations/${body.id}`
    },
    seen: null,
  },
  // Cancels a downgrade that is not in effect yet.
  'POST /api/v1/billing/upgrade': {
    first: downgraded,
    body: () => ({ confirm: true }),
    seen: async ({ key }) => (await recalled(key))?.plan === 'usage',
  },
  'POST /api/v1/billing/downgrade': {
    first: upgraded,
    body: () => ({ confirm: true }),
    seen: async ({ key }) => (await recalled(key))?.plan === 'usage',
  },
  // Without a payment processor it has no effect; `billing-cards.test.ts` has the effect of a card.
  'DELETE /api/v1/billing/payment-method': { first: upgraded, seen: null },
  'PUT /api/v1/billing/soft-cap': {
    body: () => ({ monthly_usd: 7 }),
    seen: async ({ key }) => (await recalled(key))?.softCapMicrocents === 700_000_000,
  },
  'DELETE /api/v1/insights/data': { seen: null },
}

/** Routes of signed-in users and keys that change no cached state, or only in ways with their own tests. */
const withoutChange = [
  'POST /api/v1/auth/two-factor',
  'POST /api/v1/auth/two-factor/confirm',
  'POST /api/v1/auth/two-factor/disable',
  'POST /api/v1/management-keys',
  'DELETE /api/v1/management-keys/:id',
  // `provider-keys.test.ts` covers other instances.
  'POST /api/v1/provider-keys',
  'POST /api/v1/provider-keys/:id/rotate',
  'PATCH /api/v1/provider-keys/:id',
  'POST /api/v1/provider-keys/:id/test',
  'DELETE /api/v1/provider-keys/:id',
  'POST /api/v1/providers/:id/test',
  // `model-switches.test.ts` covers other instances.
  'PATCH /api/v1/model-switches',
  'POST /api/v1/webhooks',
  'PATCH /api/v1/webhooks/:id',
  'DELETE /api/v1/webhooks/:id',
  'POST /api/v1/webhooks/:id/rotate',
  'POST /api/v1/webhooks/:id/test',
  'POST /api/v1/webhooks/:id/deliveries/:delivery/redeliver',
  'POST /api/v1/alerts',
  'PATCH /api/v1/alerts/:id',
  'DELETE /api/v1/alerts/:id',
  'POST /api/v1/alerts/:id/test',
  'POST /api/v1/auth/verification',
  'POST /api/v1/billing/payment-method/setup',
  'PUT /api/v1/billing/payment-method',
  'POST /api/v1/billing/invoices/:id/payment-page',
  'POST /api/v1/insights/feedback',
  'POST /api/v1/route',
  'POST /api/v1/chat',
  'POST /v1/chat/completions',
  'POST /v1/embeddings',
  'POST /v1/messages',
  'POST /v1/messages/count_tokens',
  'POST /v1/models/*',
  'POST /v1beta/*',
  'POST /v1/decisions',
  'POST /v1/moderations',
  'POST /v1/responses',
  'POST /v1/responses/input_tokens',
]

type Route = { readonly method: string; readonly path: string; readonly isOpen: boolean }
function routes(): readonly Route[] {
  return createApp(gateway.deps).routes.map(({ method, path, hooks }) => {
    const { security = [] } = (hooks as { detail?: { security?: readonly object[] } } | undefined)?.detail ?? {}
    return { method, path, isOpen: security.length === 0 }
  })
}
const guarded = () => routes().filter(({ method, isOpen }) => method !== 'GET' && !isOpen)
const filled = (path: string) => path.replace(/:\w+/g, 'nothing').replace('*', 'nothing')

async function countedDuring(work: () => Promise<unknown>): Promise<number> {
  const before = announced
  await work()
  return announced - before
}

test('announcement: covers every route with credentials except GET in the tables of this file', () => {
  const named = guarded().map(({ method, path }) => `${method} ${path}`)
  expect(named.sort()).toEqual([...Object.keys(changes), ...withoutChange].sort())
})

describe('change of an account', () => {
  test.each(Object.entries(changes))('notifies once and takes effect at another gateway: %s', async (route, change) => {
    const stage = await newStage()
    await change.first?.(stage)
    const [method = '', pattern = ''] = route.split(' ')
    const path = (await change.path?.(stage)) ?? pattern.replace(':id', stage.keyId)
    const { token } = change.by?.(stage) ?? stage.boss
    const body = change.body?.(stage)
    let answer: { readonly status: number; readonly body: { readonly key?: string } } | null = null
    const count = await countedDuring(async () => {
      answer = await sendRequest<{ key?: string }>(counted, method, path, {
        token,
        ...(body === undefined ? {} : { body }),
      })
    })
    const { status, body: got } = answer ?? { status: 0, body: {} }
    expect([status < 300, count]).toEqual([true, change.seen === null ? 0 : 1])
    if (change.seen !== null) await eventually(() => change.seen?.(stage, got) ?? true, 5_000)
    // The second request of a removal finds no resource; a repeated setting is accepted.
    if (method === 'DELETE' && pattern !== '/api/v1/insights/data')
      expect(await countedDuring(() => sendRequest(counted, method, path, { token }))).toBe(0)
  })
})

describe('announcement', () => {
  test('does not follow OPTIONS, HEAD and GET of any route with a session or a key', async () => {
    const { boss, key } = await newStage()
    const count = await countedDuring(async () => {
      for (const { path } of routes())
        for (const method of ['OPTIONS', 'HEAD', 'GET'])
          for (const token of [boss.token, key])
            if (!path.includes('export'))
              await sendRequest<unknown>(counted, method, filled(path), { token }).catch(() => null)
    })
    expect(count).toBe(0)
  })

  test('does not follow a rejected request: missing or wrong credential, bad body, foreign ID', async () => {
    const { boss, member } = await newStage()
    const count = await countedDuring(async () => {
      for (const { method, path } of routes().filter(route => route.method !== 'GET'))
        for (const token of [undefined, 'x', `${boss.token}x`, boss.token, member.token])
          await sendRequest(counted, method, filled(path), { token, body: { nothing: true } }).catch(() => null)
    })
    expect(count).toBe(0)
  })

  test('does not follow requests of a key: chat, dry run, estimate', async () => {
    const { key } = await newStage()
    const body = { prompt: 'Good morning!' }
    const count = await countedDuring(async () => {
      for (const path of ['/api/v1/chat', '/api/v1/route', '/api/v1/chat/estimate', '/api/v1/chat/enhance'])
        expect((await sendRequest(counted, 'POST', path, { token: key, body })).status).toBe(200)
    })
    expect(count).toBe(0)
  })

  test('does not follow a sign-in, a registration or a failed sign-in', async () => {
    const count = await countedDuring(async () => {
      const person = await owner(counted)
      await sendRequest(counted, 'POST', '/api/v1/auth/login', {
        body: { email: person.email, password: person.password },
      })
      await sendRequest(counted, 'POST', '/api/v1/auth/login', {
        body: { email: person.email, password: 'a wrong one' },
      })
    })
    expect(count).toBe(0)
  })
})
