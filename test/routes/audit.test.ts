/** The audit log over a real socket: its entries, their actors, and its readers. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import type { ShownAuditEntry } from '../../src/console/audit/schemas.ts'
import { actingAs } from '../../src/core/audit/audit.ts'
import { changeAccount } from '../../src/database/repositories/accounts.ts'
import { pruneAudit } from '../../src/database/repositories/audit.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, createKeyFor, owner, type Person, sendRequest, signIn } from '../harness/users.ts'

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
}, 240_000)
afterAll(() => gateway.stop())

type List = { data: ShownAuditEntry[]; next_cursor: string | null; error: { code: string; param: string | null } }
const getLog = (person: Person, query = '') =>
  sendRequest<List>(gateway, 'GET', `/api/v1/audit${query}`, { token: person.token })
const getExport = (person: Person, route = '/audit/export') =>
  fetch(`${gateway.url}/api/v1${route}`, { headers: { authorization: `Bearer ${person.token}` } })
const getActions = async (person: Person, query = '') =>
  (await getLog(person, query)).body.data.map(item => item.action)
const as = (person: Person, method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  sendRequest<{ id: string }>(gateway, method, `/api/v1${path}`, {
    token: person.token,
    body,
    ...(headers === undefined ? {} : { headers }),
  })
const sql = <T>(work: Parameters<typeof gateway.deps.database.run<T>>[0]) => gateway.deps.database.run(work)

describe('audit log', () => {
  test('names user, network address, action, target and new values of a change', async () => {
    const person = await owner(gateway)
    const headers = { 'x-forwarded-for': '2001:db8:1:2:3:4:5:6' }
    const { id } = (await as(person, 'POST', '/keys', { name: 'production' }, headers)).body
    const [entry] = (await getLog(person)).body.data
    expect(entry).toMatchObject({
      actor: { type: 'user', user_id: person.id, email: person.email },
      address: '2001:db8:1:2::/64',
      action: 'key.created',
      target: id,
      details: { name: 'production', web: true, expires_at: null },
    })
  })

  test('has one entry per change of keys, members, account, caps and sessions, newest first', async () => {
    const person = await owner(gateway)
    const { id } = await createKeyFor(gateway, person)
    await as(person, 'PATCH', `/keys/${id}`, { name: 'new' })
    const rotated = (await as(person, 'POST', `/keys/${id}/rotate`, {})).body
    await as(person, 'DELETE', `/keys/${rotated.id}`)
    await as(person, 'DELETE', `/keys/${rotated.id}`)
    const member = await addMember(gateway, person, 'member')
    await as(person, 'PATCH', `/team/${member.id}`, { role: 'admin' })
    await createKeyFor(gateway, member)
    await as(person, 'DELETE', `/team/${member.id}`)
    const invited = (await as(person, 'POST', '/team/invitations', { email: 'later@example.test' })).body
    await as(person, 'DELETE', `/team/invitations/${invited.id}`)
    await as(person, 'PATCH', '/account', { name: 'Engines' })
    await as(person, 'PUT', '/billing/soft-cap', { monthly_usd: 20 })
    await as(person, 'DELETE', '/insights/data')
    expect((await getExport(person, '/requests/export?format=csv')).status).toBe(200)
    const changed = { current_password: person.password, new_password: 'another long password' }
    await as(person, 'PUT', '/auth/password', changed)
    const again = await signIn(gateway, { email: person.email, password: changed.new_password })
    if (again === null) throw new Error('the sign-in failed')
    await as(again, 'POST', '/auth/logout', {})
    expect((await getActions(person)).reverse()).toEqual([
      'account.created',
      'session.created',
      'key.created',
      'key.changed',
      'key.rotated',
      'key.revoked',
      'member.invited',
      'member.joined',
      'session.created',
      'member.role_changed',
      'key.created',
      'key.revoked',
      'member.removed',
      'member.invited',
      'invitation.withdrawn',
      'account.changed',
      'soft_cap.changed',
      'alert.created',
      'alert.created',
      'learning.deleted',
      'requests.exported',
      'password.changed',
      'session.created',
      'session.ended',
    ])
  })

  test('contains no key, password or token', async () => {
    const person = await owner(gateway)
    const { key } = await createKeyFor(gateway, person)
    await as(person, 'POST', '/team/invitations', { email: 'later@example.test' })
    const { text } = await getLog(person)
    for (const secret of [key.slice(20), person.password, person.refreshToken, 'gw_invite_'])
      expect(text).not.toContain(secret)
  })

  test('has an entry if and only if the change is stored', async () => {
    const person = await owner(gateway)
    const before = await getActions(person)
    await sql(
      ({ sql: query }) => query`alter table audit_log add constraint broken check (action <> 'key.created') not valid`,
    )
    const failed = await as(person, 'POST', '/keys', { name: 'unrecorded' })
    await sql(({ sql: query }) => query`alter table audit_log drop constraint broken`)
    expect(failed.status).toBe(503)
    const keys = await sendRequest<{ data: unknown[] }>(gateway, 'GET', '/api/v1/keys', { token: person.token })
    expect(keys.body.data).toEqual([])
    expect(await getActions(person)).toEqual(before)
  })

  test('can be read by owners and admins of its account only', async () => {
    const [person, other] = [await owner(gateway), await owner(gateway)]
    const admin = await addMember(gateway, person, 'admin')
    const member = await addMember(gateway, person, 'member')
    const statuses = await Promise.all(
      [person, admin, member].flatMap(item => [getLog(item), getExport(item)].map(async log => (await log).status)),
    )
    expect(statuses).toEqual([200, 200, 200, 200, 403, 403])
    const seen = (await getLog(other)).body.data.map(item => item.actor.user_id)
    expect(new Set(seen)).toEqual(new Set([other.id]))
  })

  test('pages through every entry once, and filters by action, actor, user and time', async () => {
    const person = await owner(gateway)
    const admin = await addMember(gateway, person, 'admin')
    for (let count = 0; count < 4; count++) await createKeyFor(gateway, admin, `key ${count}`)
    await changeAccount(actingAs(gateway.deps.database, { kind: 'cli' }), person.accountId, { requestsPerMinute: 7 })
    const all = (await getLog(person)).body.data.map(item => item.id)
    const paged: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body } = await getLog(person, `?limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`)
      paged.push(...body.data.map(item => item.id))
      cursor = body.next_cursor
    }
    expect(paged).toEqual(all)
    expect(await getActions(person, '?actor=cli')).toEqual(['limits.changed'])
    expect(await getActions(person, '?action=key.created')).toHaveLength(4)
    expect(await getActions(person, `?user=${admin.id}`)).toHaveLength(6)
    expect(await getActions(person, '?to=2020-01-01')).toEqual([])
    expect(await getActions(person, '?from=2020-01-01')).toHaveLength(all.length)
    for (const wrong of ['cursor=x', 'limit=0', 'action=other', 'from=yesterday', 'limit=1&limit=2', 'color=red'])
      expect([wrong, (await getLog(person, `?${wrong}`)).status]).toEqual([wrong, 400])
  })

  test('exports as JSON lines and CSV, and records the export', async () => {
    const person = await owner(gateway)
    await createKeyFor(gateway, person, '=1+1')
    const lines = await (await getExport(person)).text()
    const entries: ShownAuditEntry[] = lines
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(entries.map(entry => entry.action)).toEqual([
      'audit.exported',
      'key.created',
      'session.created',
      'account.created',
    ])
    const csv = await getExport(person, '/audit/export?format=csv&action=key.created')
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect((await csv.text()).split('\r\n')[1]).toContain('"key.created"')
  })

  test('rejects a third concurrent export until one has ended or its client disconnected', async () => {
    const person = await owner(gateway)
    // More than one batch: a small export ends before its client reads it.
    await sql(
      ({ sql: query }) => query`insert into audit_log (id, account_id, actor, action, details)
        select 'aud_f' || lpad(n::text, 31, '0'), ${person.accountId}, 'system', 'key.created', '{}'
        from generate_series(1, 1200) as n`,
    )
    const app = createApp(gateway.deps)
    const headers = { host: 'localhost', authorization: `Bearer ${person.token}` }
    const start = () => app.handle(new Request('http://localhost/api/v1/audit/export', { headers }))
    const [first, second] = [await start(), await start()]
    const refused = await start()
    const { error } = (await refused.json()) as { error: { code: string } }
    expect([refused.status, error.code]).toEqual([429, 'concurrent_requests_exceeded'])
    await first.body?.cancel()
    const third = await start()
    for (const response of [second, third]) expect((await response.text()).split('\n').length).toBeGreaterThan(1200)
    expect((await start()).status).toBe(200)
    // A rejected export is not recorded.
    expect(await getActions(person, '?action=audit.exported')).toHaveLength(4)
  })

  test('cannot be changed, and only entries older than a year can be deleted', async () => {
    const person = await owner(gateway)
    const { accountId } = person
    for (const tampering of [
      () => sql(({ sql: query }) => query`update audit_log set action = 'x' where account_id = ${accountId}`),
      () => sql(({ sql: query }) => query`delete from audit_log where account_id = ${accountId}`),
      () => sql(({ sql: query }) => query`truncate audit_log`),
    ])
      await expect(tampering()).rejects.toThrow('append-only')
    const old = (id: string, days: number) =>
      sql(
        ({ sql: query }) => query`insert into audit_log (id, account_id, at, actor, action, details)
          values (${id}, ${accountId}, now() - make_interval(days => ${days}), 'system', 'key.created', '{}')`,
      )
    await old('aud_00000000000000000000000000000001', 401)
    await old('aud_00000000000000000000000000000002', 399)
    expect(await pruneAudit(gateway.deps.database, 100)).toBe(1)
    expect((await getLog(person)).body.data.at(-1)?.id).toBe('aud_00000000000000000000000000000002')
  })
})
