/** Keys and team over a real socket: ownership, permissions of roles, and the end of a membership. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { addKey } from '../../src/console/keys/stores/key-lineages.ts'
import { getDigest } from '../../src/core/accounts/api-keys.ts'
import { systemClock } from '../../src/database/clock.ts'
import { usageRecord } from '../database/support.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, createKeyFor, owner, type Person, sendRequest, signIn } from '../harness/users.ts'

/** Milliseconds by which the gateway's clock is ahead. */
let ahead = 0
const clock = { ...systemClock, now: () => systemClock.now() + ahead }
let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' }, { clock })
}, 240_000)
afterAll(() => gateway.stop())

type Failure = { error: { code: string; param: string | null } }
type Key = {
  id: string
  key: string
  prefix: string
  revoked_at: string | null
  expires_at: string | null
  user_id: string
}
type Keys = { data: (Key & { usage: Record<string, number> })[] }
const as = (person: Person, method: string, path: string, body?: unknown) =>
  sendRequest<Failure>(gateway, method, `/api/v1${path}`, { token: person.token, body })
const getKeys = async (person: Person) =>
  (await sendRequest<Keys>(gateway, 'GET', '/api/v1/keys', { token: person.token })).body.data
const works = async (key: string) =>
  (await gateway.post('/api/v1/chat', { prompt: 'Hello', max_output_tokens: 5 }, { authorization: `Bearer ${key}` }))
    .status !== 401
const gone = (key: string) => eventually(async () => !(await works(key)), 1000)
const sql = <T>(work: Parameters<typeof gateway.deps.database.run<T>>[0]) => gateway.deps.database.run(work)
const plain = (text: string) => text.replace(/req_[0-9a-f]+/, 'req')

describe('API key', () => {
  test('appears once, works, and appears in lists by its prefix only [K3]', async () => {
    const person = await owner(gateway)
    const made = await createKeyFor(gateway, person, '=cmd|1')
    expect(await works(made.key)).toBe(true)
    const list = await sendRequest<Keys>(gateway, 'GET', '/api/v1/keys', { token: person.token })
    expect(Object.keys(list.body.data[0] ?? {}).sort()).toEqual([
      'constraints',
      'continue',
      'created_at',
      'expires_at',
      'fallback',
      'hedge',
      'id',
      'last_used_at',
      'limits',
      'models',
      'name',
      'prefix',
      'project_id',
      'revoked_at',
      'strategy',
      'tags',
      'usage',
      'used',
      'user_id',
      'web',
    ])
    expect(list.body.data[0]).toMatchObject({ id: made.id, name: '=cmd|1', prefix: `${made.key.slice(0, 20)}…` })
    expect(list.text).not.toContain(made.key.slice(21))
    expect(list.text).not.toContain(getDigest(made.key))
  })

  test('stops within 1 s after a revocation, also when revoked twice [K6]', async () => {
    const person = await owner(gateway)
    const { id, key } = await createKeyFor(gateway, person)
    expect(await works(key)).toBe(true)
    expect((await as(person, 'DELETE', `/keys/${id}`)).status).toBe(204)
    await gone(key)
    const revokedAt = (await getKeys(person))[0]?.revoked_at
    expect((await as(person, 'DELETE', `/keys/${id}`)).status).toBe(204)
    expect((await getKeys(person))[0]?.revoked_at).toBe(revokedAt ?? '')
  })

  test('ends at its rotation or after the overlap, and both keys share one usage history [K5]', async () => {
    const person = await owner(gateway)
    const first = await createKeyFor(gateway, person)
    await works(first.key)
    const rotate = (id: string, body?: unknown) =>
      sendRequest<Key & Failure>(gateway, 'POST', `/api/v1/keys/${id}/rotate`, { token: person.token, body })
    const second = (await rotate(first.id, { overlap_seconds: 3600 })).body
    expect([await works(first.key), await works(second.key)]).toEqual([true, true])
    const third = (await rotate(second.id)).body
    await gone(second.key)
    expect([await works(first.key), await works(third.key)]).toEqual([true, true])
    for (const old of [first.id, second.id]) expect((await rotate(old)).status).toBe(409)
    const records = [first.id, second.id, third.id].map((key_id, index) =>
      usageRecord({
        request_id: `${key_id}_${index}`,
        account_id: person.accountId,
        key_id,
        billed_microcents: 10 ** index,
        reserved_microcents: 1000,
      }),
    )
    await sql(
      ({ sql: query }) => query`
        insert into usage_daily (account_id, day, key_id, model, requests, completed, input_tokens, cached_input_tokens,
          output_tokens, reasoning_tokens, billed_microcents)
        select account_id, '2026-01-05', key_id, model, 1, 1, input_tokens, 0, output_tokens, 0, billed_microcents
        from json_to_recordset(${JSON.stringify(records)}::text::json) as record(
          account_id text, key_id text, model text, input_tokens bigint, output_tokens bigint, billed_microcents bigint)`,
    )
    const rows = await getKeys(person)
    const expires = Date.parse(rows.find(({ id }) => id === first.id)?.expires_at ?? '') - Date.now()
    expect(Math.abs(expires - 3_600_000)).toBeLessThan(60_000)
    const usages = rows.map(({ usage }) => usage)
    expect(usages).toHaveLength(3)
    for (const usage of usages) {
      expect(usage).toEqual(usages[0] ?? {})
      expect(usage.cost_usd).toBeGreaterThanOrEqual(111e-8)
      expect(usage.requests).toBeGreaterThanOrEqual(3)
    }
  })

  test('rotates once for ten concurrent rotations [K5]', async () => {
    const person = await owner(gateway)
    const { id } = await createKeyFor(gateway, person)
    const answers = await Promise.all(Array.from({ length: 10 }, () => as(person, 'POST', `/keys/${id}/rotate`, {})))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 9 }, () => 409)])
    expect(await getKeys(person)).toHaveLength(2)
  })

  test('expires at its time, which must be a future ISO 8601 time', async () => {
    const person = await owner(gateway)
    for (const expires_at of [
      '2020-01-01T00:00:00Z',
      'tomorrow',
      '2999-13-01T00:00:00Z',
      '2999-02-30T00:00:00Z',
      '1',
      7,
    ]) {
      const { status, body } = await as(person, 'POST', '/keys', { name: 'k', expires_at })
      expect([status, body.error.param]).toEqual([400, 'expires_at'])
    }
    const expires_at = new Date(Date.now() + 60_000).toISOString()
    const { body } = await sendRequest<Key>(gateway, 'POST', '/api/v1/keys', {
      token: person.token,
      body: { name: 'k', expires_at },
    })
    expect([body.expires_at, await works(body.key)]).toEqual([expires_at, true])
    ahead = 61_000
    expect(await works(body.key)).toBe(false)
    ahead = 0
  })

  test('accepts only documented fields [A5]', async () => {
    const person = await owner(gateway)
    const wrong: readonly (readonly [string, unknown])[] = [
      ['name', {}],
      ['name', { name: '' }],
      ['name', { name: 'x\u0000' }],
      ['name', { name: 'x'.repeat(101) }],
      ['user_id', { name: 'k', user_id: 'usr_1' }],
      ['account_id', { name: 'k', account_id: 'acc_1' }],
      ['budget', { name: 'k', budget: {} }],
      ['__proto__', '{"name":"k","__proto__":{"a":1}}'],
    ]
    for (const [param, body] of wrong) {
      const answer = await as(person, 'POST', '/keys', body)
      expect([answer.status, answer.body.error.param]).toEqual([400, param])
    }
    for (const overlap_seconds of [-1, 604_801, 1.5, '60'])
      expect((await as(person, 'POST', '/keys/key_1/rotate', { overlap_seconds })).body.error.param).toBe(
        'overlap_seconds',
      )
  })

  test('belongs to its member, admins and owners; others get 404 [A3]', async () => {
    const boss = await owner(gateway)
    const [admin, member, other] = [
      await addMember(gateway, boss, 'admin'),
      await addMember(gateway, boss, 'member'),
      await addMember(gateway, boss, 'member'),
    ]
    const stranger = await owner(gateway)
    const key = await createKeyFor(gateway, member)
    const ids = async (person: Person) => (await getKeys(person)).map(({ id }) => id)
    expect([await ids(member), await ids(admin), await ids(boss)]).toEqual([[key.id], [key.id], [key.id]])
    expect([await ids(other), await ids(stranger)]).toEqual([[], []])
    for (const person of [other, stranger])
      for (const [method, path] of [
        ['DELETE', ''],
        ['POST', '/rotate'],
      ] as const) {
        const foreign = await as(person, method, `/keys/${key.id}${path}`)
        const missing = await as(person, method, `/keys/key_missing${path}`)
        expect([foreign.status, plain(foreign.text)]).toEqual([404, plain(missing.text)])
      }
    expect(await works(key.key)).toBe(true)
    expect((await as(admin, 'DELETE', `/keys/${key.id}`)).status).toBe(204)
    await gone(key.key)
  })
})

describe('team', () => {
  test('accepts an invitation for one address, once, and signs in', async () => {
    const boss = await owner(gateway)
    const invited = await sendRequest<{ token: string }>(gateway, 'POST', '/api/v1/team/invitations', {
      token: boss.token,
      body: { email: 'New@Example.test', role: 'admin' },
    })
    const path = `/api/v1/team/invitations/${invited.body.token}/accept`
    const accept = (body: unknown) => sendRequest<Failure>(gateway, 'POST', path, { body })
    expect((await accept({ password: 'short' })).body.error.param).toBe('password')
    expect((await accept({ password: 'long enough', role: 'owner' })).body.error.param).toBe('role')
    expect((await accept({ password: 'long enough', email: 'else@example.test' })).body.error.param).toBe('email')
    const answers = await Promise.all([1, 2, 3].map(() => accept({ password: 'long enough' })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 404, 404])
    const person = await signIn(gateway, { email: 'new@example.test', password: 'long enough' })
    expect(person).toMatchObject({ accountId: boss.accountId, role: 'admin' })
    const missing = await sendRequest(gateway, 'POST', `/api/v1/team/invitations/gw_invite_x/accept`, {
      body: { password: 'long enough' },
    })
    expect(plain((await accept({ password: 'long enough' })).text)).toBe(plain(missing.text))
  })

  test('hides known addresses in invitations; a newer one replaces it; an old one expires [P6]', async () => {
    const [boss, known] = [await owner(gateway), await owner(gateway)]
    const inviteTo = (email: string) =>
      sendRequest<{ token: string }>(gateway, 'POST', '/api/v1/team/invitations', {
        token: boss.token,
        body: { email },
      })
    const [item, other] = [await inviteTo(known.email), await inviteTo('unknown@example.test')]
    expect(Object.keys(item.body)).toEqual(Object.keys(other.body))
    expect(item.status).toBe(other.status)
    const accept = (token: string) =>
      sendRequest(gateway, 'POST', `/api/v1/team/invitations/${token}/accept`, { body: { password: 'long enough' } })
    expect((await accept(item.body.token)).status).toBe(409)
    expect(await signIn(gateway, known)).toMatchObject({ accountId: known.accountId })
    const newer = await inviteTo('unknown@example.test')
    expect((await accept(other.body.token)).status).toBe(404)
    await sql(
      ({ sql: query }) =>
        query`update invitations set expires_at = clock_timestamp() where email = 'unknown@example.test'`,
    )
    expect((await accept(newer.body.token)).status).toBe(404)
  })

  test('revokes keys, sessions and invitations of a removed member within 1 s, and frees the address [K7]', async () => {
    const boss = await owner(gateway)
    const admin = await addMember(gateway, boss, 'admin')
    const { key } = await createKeyFor(gateway, admin)
    const invited = await sendRequest<{ token: string }>(gateway, 'POST', '/api/v1/team/invitations', {
      token: admin.token,
      body: { email: 'friend@example.test' },
    })
    expect(await works(key)).toBe(true)
    expect((await as(boss, 'DELETE', `/team/${admin.id}`)).status).toBe(204)
    await gone(key)
    expect((await as(admin, 'GET', '/account')).status).toBe(401)
    expect(await signIn(gateway, admin)).toBeNull()
    const accept = await sendRequest(gateway, 'POST', `/api/v1/team/invitations/${invited.body.token}/accept`, {
      body: { password: 'long enough' },
    })
    expect(accept.status).toBe(404)
    expect((await as(boss, 'GET', '/team')).text).not.toContain(admin.id)
    expect((await as(boss, 'PATCH', `/team/${admin.id}`, { role: 'member' })).status).toBe(404)
    const { email, password } = admin
    expect((await sendRequest(gateway, 'POST', '/api/v1/auth/register', { body: { email, password } })).status).toBe(
      201,
    )
  })

  test('revokes keys that are created during the removal of their user [K7]', async () => {
    const boss = await owner(gateway)
    const member = await addMember(gateway, boss, 'member')
    const creations = Array.from({ length: 8 }, () => as(member, 'POST', '/keys', { name: 'late' }))
    const removal = as(boss, 'DELETE', `/team/${member.id}`)
    await Promise.all([...creations, removal])
    const keys = await getKeys(boss)
    expect(keys.filter(({ revoked_at }) => revoked_at === null)).toEqual([])
  })

  test('applies a new role immediately, in both directions [J4]', async () => {
    const boss = await owner(gateway)
    const person = await addMember(gateway, boss, 'member')
    const rename = () => as(person, 'PATCH', '/account', { name: 'Renamed' })
    expect((await rename()).status).toBe(403)
    expect((await as(boss, 'PATCH', `/team/${person.id}`, { role: 'admin' })).status).toBe(200)
    expect((await rename()).status).toBe(200)
    await as(boss, 'PATCH', `/team/${person.id}`, { role: 'member' })
    expect((await rename()).status).toBe(403)
  })

  test('lets only owners act at or above their own rank [A1]', async () => {
    const boss = await owner(gateway)
    const [admin, peer, member] = [
      await addMember(gateway, boss, 'admin'),
      await addMember(gateway, boss, 'admin'),
      await addMember(gateway, boss, 'member'),
    ]
    const statuses = async (person: Person, calls: readonly (readonly [string, string, unknown?])[]) =>
      Promise.all(calls.map(async ([method, path, body]) => (await as(person, method, path, body)).status))
    expect(
      await statuses(admin, [
        ['POST', '/team/invitations', { email: 'a@example.test', role: 'admin' }],
        ['PATCH', `/team/${member.id}`, { role: 'admin' }],
        ['PATCH', `/team/${admin.id}`, { role: 'owner' }],
        ['DELETE', `/team/${peer.id}`],
        ['DELETE', `/team/${boss.id}`],
        ['DELETE', `/team/${admin.id}`],
      ]),
    ).toEqual([403, 403, 403, 403, 403, 403])
    expect((await as(boss, 'POST', '/team/invitations', { email: 'a@example.test', role: 'owner' })).status).toBe(400)
    expect((await as(admin, 'DELETE', `/team/${member.id}`)).status).toBe(204)
    expect((await as(boss, 'PATCH', `/team/${peer.id}`, { role: 'owner' })).status).toBe(200)
    expect((await as(peer, 'DELETE', `/team/${boss.id}`)).status).toBe(204)
  })

  test('keeps one owner when the last two remove or demote each other [A1]', async () => {
    for (const [method, body] of [
      ['DELETE', undefined],
      ['PATCH', { role: 'member' }],
    ] as const)
      for (let round = 0; round < 5; round++) {
        const boss = await owner(gateway)
        const other = await addMember(gateway, boss, 'admin')
        expect((await as(boss, method, `/team/${boss.id}`, body)).status).toBe(409)
        await as(boss, 'PATCH', `/team/${other.id}`, { role: 'owner' })
        const answers = await Promise.all([
          as(boss, method, `/team/${other.id}`, body),
          as(other, method, `/team/${boss.id}`, body),
        ])
        expect(answers.filter(({ status }) => status < 300)).toHaveLength(1)
        const rows = await sql(
          ({ sql: query }) => query`
            select 1 from users where account_id = ${boss.accountId} and role = 'owner' and removed_at is null`,
        )
        expect(rows).toHaveLength(1)
      }
  })

  test('returns exactly the documented fields [A6]', async () => {
    const boss = await owner(gateway)
    const admin = await addMember(gateway, boss, 'admin')
    await as(admin, 'POST', '/team/invitations', { email: 'next@example.test' })
    const { body } = await sendRequest<{ data: object[]; invitations: object[] }>(gateway, 'GET', '/api/v1/team', {
      token: admin.token,
    })
    for (const user of body.data)
      expect(Object.keys(user).sort()).toEqual(['created_at', 'email', 'id', 'role', 'verification_pending'])
    expect(Object.keys(body.invitations[0] ?? {}).sort()).toEqual([
      ...['created_at', 'email', 'expires_at', 'id', 'project_id', 'project_role', 'role'],
    ])
    const account = await as(admin, 'GET', '/account')
    expect(Object.keys(account.body).sort()).toEqual([
      'baseline_model',
      'constraints',
      'continue',
      'created_at',
      'fallback',
      'hedge',
      'id',
      'limits',
      'may_change_limits',
      'name',
      'now',
      'own_limits',
      'plan',
      'requires_two_factor',
      'rules',
      'shadow',
      'today',
      'web',
    ])
    for (const [param, change] of [
      ['plan', { name: 'x', plan: 'usage' }],
      ['daily_tokens', { name: 'x', daily_tokens: 1 }],
    ] as const)
      expect((await as(admin, 'PATCH', '/account', change)).body.error.param).toBe(param)
  })

  test('reports daily usage equal to the bills immediately', async () => {
    const person = await owner(gateway)
    const { key } = await createKeyFor(gateway, person)
    const answer = await gateway.post(
      '/api/v1/chat',
      { prompt: 'Hello', max_output_tokens: 20 },
      { authorization: `Bearer ${key}` },
    )
    const { usage } = (await answer.json()) as { usage: { cost_usd: number; total_tokens: number } }
    const { body } = await sendRequest<{ today: { tokens: number; cost_usd: number } }>(
      gateway,
      'GET',
      '/api/v1/account',
      {
        token: person.token,
      },
    )
    expect(body.today).toMatchObject({ tokens: usage.total_tokens, cost_usd: usage.cost_usd })
  })
})

describe('invitation', () => {
  type Invited = { readonly id: string; readonly token: string }
  const invite = async (person: Person, role: 'admin' | 'member') =>
    (
      await sendRequest<Invited>(gateway, 'POST', '/api/v1/team/invitations', {
        token: person.token,
        body: { email: `${crypto.randomUUID()}@example.test`, role },
      })
    ).body
  const withdraw = (person: Person, id: string) => as(person, 'DELETE', `/team/invitations/${id}`)

  test('ends when a user with permission to invite withdraws it; its token then fails', async () => {
    const boss = await owner(gateway)
    const [admin, member] = [await addMember(gateway, boss, 'admin'), await addMember(gateway, boss, 'member')]
    const [forMember, forAdmin] = [await invite(boss, 'member'), await invite(boss, 'admin')]
    expect((await withdraw(member, forMember.id)).status).toBe(403)
    expect((await withdraw(admin, forAdmin.id)).status).toBe(403)
    expect((await withdraw(admin, forMember.id)).status).toBe(204)
    expect((await withdraw(boss, forAdmin.id)).status).toBe(204)
    for (const { token } of [forMember, forAdmin])
      expect(
        (
          await sendRequest(gateway, 'POST', `/api/v1/team/invitations/${token}/accept`, {
            body: { password: 'a password' },
          })
        ).status,
      ).toBe(404)
  })

  test('gets the same 404 for another account’s, an accepted and an unknown one [A3]', async () => {
    const [boss, other] = [await owner(gateway), await owner(gateway)]
    const open = await invite(boss, 'member')
    const accepted = await invite(boss, 'member')
    await sendRequest(gateway, 'POST', `/api/v1/team/invitations/${accepted.token}/accept`, {
      body: { password: 'a password' },
    })
    const answers = [
      await withdraw(other, open.id),
      await withdraw(boss, accepted.id),
      await withdraw(boss, 'inv_none'),
    ]
    expect(new Set(answers.map(({ status, text }) => `${status} ${plain(text)}`)).size).toBe(1)
    expect(answers[0]?.status).toBe(404)
    expect((await withdraw(boss, open.id)).status).toBe(204)
  })
})

test('viewer: loses its keys with the role, can create none and invites no one', async () => {
  const boss = await owner(gateway)
  const person = await addMember(gateway, boss, 'member')
  const { key } = await createKeyFor(gateway, person)
  expect(await works(key)).toBe(true)
  expect((await as(boss, 'PATCH', `/team/${person.id}`, { role: 'viewer' })).status).toBe(200)
  await gone(key)
  expect((await getKeys(person)).map(({ revoked_at }) => revoked_at === null)).toEqual([false])
  expect((await as(person, 'POST', '/keys', { name: 'new' })).status).toBe(403)
  // A request that was authorized before the change stores its key after it.
  const { database, newId } = gateway.deps
  const [running] = await sql(({ sql }) => sql<{ id: string }[]>`select id from sessions where user_id = ${person.id}`)
  const [id, rules] = [
    newId('key'),
    {
      limits: null,
      models: null,
      tags: null,
      strategy: null,
      fallback: null,
      continue: null,
      hedge: null,
      constraints: null,
    },
  ]
  const late = { id, userId: person.id, name: 'late', publicId: id, digest: getDigest(id), web: true, ...rules }
  const times = { createdAt: new Date(), expiresAt: null, projectId: null }
  expect(await addKey(database, person.accountId, running?.id ?? '', { ...late, ...times })).toBe('gone')
  expect((await as(person, 'POST', '/team/invitations', { email: 'a@b.example', role: 'viewer' })).status).toBe(403)
  const admin = await addMember(gateway, boss, 'admin')
  const viewer = await addMember(gateway, admin, 'viewer')
  expect((await as(viewer, 'DELETE', `/team/${person.id}`)).status).toBe(403)
  expect((await as(admin, 'DELETE', `/team/${viewer.id}`)).status).toBe(204)
})
