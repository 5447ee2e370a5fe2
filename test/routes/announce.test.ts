/** Which requests tell all gateways to look again: those that changed a key, a user, a session or a plan, and no others. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import type { Caller } from '../../src/core/limits/plans.ts'
import { createKeyDirectory } from '../../src/database/repositories/keys.ts'
import { createSessionDirectory } from '../../src/database/repositories/sessions.ts'
import { eventually } from '../database/database.contract.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, ask, createKeyFor, upgraded as operatorUpgrades, owner, type Person } from '../harness/users.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(30_000)

let gateway: Gateway
/** The same gateway, whose announcements are counted. */
let counted: { readonly url: string }
/** What another gateway on the same database has in memory. */
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
}, 60_000)
afterAll(async () => {
  await closeCounted()
  await other.keys.close()
  await gateway.stop()
})

/** Everything that a change is made on. */
type Stage = { readonly boss: Person; readonly member: Person; readonly key: string; readonly keyId: string }

async function newStage(): Promise<Stage> {
  const boss = await owner(gateway)
  const [member, { id, key }] = [await addMember(gateway, boss, 'member'), await createKeyFor(gateway, boss)]
  await recalled(key)
  return { boss, member, key, keyId: id }
}

const recalled = async (key: string): Promise<Caller | null> => await other.keys.find(key)
const isSignedIn = async ({ token }: Person) => {
  const claims = await gateway.deps.tokens.verify(token)
  return claims !== null && (await other.sessions.find(claims.sessionId)) !== null
}
const sessionOf = async ({ token }: Person) => (await gateway.deps.tokens.verify(token))?.sessionId ?? ''

type Change = {
  readonly body?: (stage: Stage) => object
  readonly path?: (stage: Stage) => string | Promise<string>
  readonly by?: (stage: Stage) => Person
  /** Done before, at the other application, which is not counted. */
  readonly first?: (stage: Stage) => Promise<unknown>
  /** Holds at the other gateway once it has heard of the change, and not before. Null = nothing that is kept in memory. */
  readonly seen: ((stage: Stage, answer: { readonly key?: string }) => Promise<boolean>) | null
}

const at = (method: string, path: string, { token }: Person, body?: object) =>
  ask<{ key?: string; id?: string }>(gateway, method, path, { token, ...(body === undefined ? {} : { body }) })
/** Moved to plan `usage` by the operator: without a payment provider no owner can. */
const upgraded = ({ boss }: Stage) => operatorUpgrades(gateway, boss)
const downgraded = async (stage: Stage) => {
  await upgraded(stage)
  await at('POST', '/api/v1/billing/downgrade', stage.boss, { confirm: true })
}

/** Every route that changes something of an account; `announces` is whether `seen` is given. */
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
  'PATCH /api/v1/account': {
    body: () => ({ web: false }),
    seen: async ({ key }) => (await recalled(key))?.webOff === true,
  },
  'POST /api/v1/auth/logout': { by: ({ member }) => member, seen: async ({ member }) => !(await isSignedIn(member)) },
  'DELETE /api/v1/auth/sessions/:id': {
    by: ({ member }) => member,
    path: async ({ member }) => `/api/v1/auth/sessions/${await sessionOf(member)}`,
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
    seen: async ({ member }) => (await other.sessions.find(await sessionOf(member)))?.role === 'admin',
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
  // Takes back a downgrade that is not in effect yet.
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
  'DELETE /api/v1/billing/payment-method': {
    first: upgraded,
    seen: async ({ key }) => (await recalled(key))?.refusedFrom !== undefined,
  },
  'PUT /api/v1/billing/payment-method': {
    first: async stage => {
      await upgraded(stage)
      await at('DELETE', '/api/v1/billing/payment-method', stage.boss)
    },
    body: () => ({}),
    seen: async ({ key }) => (await recalled(key))?.refusedFrom === undefined,
  },
  'PUT /api/v1/billing/soft-cap': {
    body: () => ({ monthly_usd: 7 }),
    seen: async ({ key }) => (await recalled(key))?.softCapMicrocents === 700_000_000,
  },
  'DELETE /api/v1/insights/data': { seen: null },
}

/** Routes of signed-in users and of keys that change nothing a gateway keeps, or only by means that have tests of their own. */
const withoutChange = [
  'POST /api/v1/auth/verification',
  'POST /api/v1/billing/payment-method/setup',
  'POST /api/v1/billing/invoices/:id/payment-page',
  'POST /api/v1/insights/feedback',
  'POST /api/v1/route',
  'POST /api/v1/chat',
  'POST /v1/chat/completions',
  'POST /v1/embeddings',
  'POST /v1/messages',
  'POST /v1/messages/count_tokens',
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

test('every route that needs a credential and is no GET stands in the tables of this file', () => {
  const named = guarded().map(({ method, path }) => `${method} ${path}`)
  expect(named.sort()).toEqual([...Object.keys(changes), ...withoutChange].sort())
})

describe('a change', () => {
  test.each(Object.entries(changes))('%s is announced once, and acts at another gateway', async (route, change) => {
    const stage = await newStage()
    await change.first?.(stage)
    const [method = '', pattern = ''] = route.split(' ')
    const path = (await change.path?.(stage)) ?? pattern.replace(':id', stage.keyId)
    const { token } = change.by?.(stage) ?? stage.boss
    const body = change.body?.(stage)
    let answer: { readonly status: number; readonly body: { readonly key?: string } } | null = null
    const count = await countedDuring(async () => {
      answer = await ask<{ key?: string }>(counted, method, path, { token, ...(body === undefined ? {} : { body }) })
    })
    const { status, body: got } = answer ?? { status: 0, body: {} }
    expect([status < 300, count]).toEqual([true, change.seen === null ? 0 : 1])
    if (change.seen !== null) await eventually(() => change.seen?.(stage, got) ?? true, 5_000)
    // Once more: what is gone cannot go again, and what is the same may be said again.
    if (method === 'DELETE' && pattern !== '/api/v1/insights/data')
      expect(await countedDuring(() => ask(counted, method, path, { token }))).toBe(0)
  })
})

describe('nothing is announced', () => {
  test('by OPTIONS, HEAD and GET of any route under a session or a key', async () => {
    const { boss, key } = await newStage()
    const count = await countedDuring(async () => {
      for (const { path } of routes())
        for (const method of ['OPTIONS', 'HEAD', 'GET'])
          for (const token of [boss.token, key])
            if (!path.includes('export')) await ask<unknown>(counted, method, filled(path), { token }).catch(() => null)
    })
    expect(count).toBe(0)
  })

  test('by a request that is refused: no credential, a wrong one, a bad body, a foreign id', async () => {
    const { boss, member } = await newStage()
    const count = await countedDuring(async () => {
      for (const { method, path } of routes().filter(route => route.method !== 'GET'))
        for (const token of [undefined, 'x', `${boss.token}x`, boss.token, member.token])
          await ask(counted, method, filled(path), { token, body: { nothing: true } }).catch(() => null)
    })
    expect(count).toBe(0)
  })

  test('by what a key does: a chat, a dry run, an estimate', async () => {
    const { key } = await newStage()
    const body = { prompt: 'Good morning!' }
    const count = await countedDuring(async () => {
      for (const path of ['/api/v1/chat', '/api/v1/route', '/api/v1/chat/estimate', '/api/v1/chat/enhance'])
        expect((await ask(counted, 'POST', path, { token: key, body })).status).toBe(200)
    })
    expect(count).toBe(0)
  })

  test('by a sign-in, a registration or a failed sign-in', async () => {
    const count = await countedDuring(async () => {
      const person = await owner(counted)
      await ask(counted, 'POST', '/api/v1/auth/login', { body: { email: person.email, password: person.password } })
      await ask(counted, 'POST', '/api/v1/auth/login', { body: { email: person.email, password: 'a wrong one' } })
    })
    expect(count).toBe(0)
  })
})
