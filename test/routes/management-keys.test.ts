/** Management keys over a real socket: what they may do, and every way to end them. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import {
  addMember,
  createManagementKey,
  fromAnotherIp,
  owner,
  type Person,
  sendRequest,
  signIn,
} from '../harness/users.ts'

let gateway: Gateway
let boss: Person
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  boss = await owner(gateway)
})
afterAll(() => gateway.stop())

type Answer = { id: string; key: string; data: Record<string, unknown>[]; error: { code: string; message: string } }
const send = (token: string, method: string, path: string, body?: unknown) =>
  sendRequest<Answer>(gateway, method, `/api/v1${path}`, { token, body })
const see = async (token: string) => (await send(token, 'GET', '/keys')).status

describe('management keys', () => {
  test('create a key with a budget, and read what it spent', async () => {
    const { key } = await createManagementKey(gateway, boss, ['keys:write', 'usage:read'])
    const made = await send(key, 'POST', '/keys', { name: 'intern', limits: { monthly_cost_usd: 5 } })
    expect(made.status).toBe(201)
    const body = { prompt: 'hi' }
    expect((await sendRequest(gateway, 'POST', '/api/v1/chat', { token: made.body.key, body })).status).toBe(200)
    expect((await send(key, 'GET', '/usage?group_by=key')).status).toBe(200)
    expect((await send(key, 'DELETE', `/keys/${made.body.id}`)).status).toBe(204)
  })

  test('need the scope of a route, and get an error that names it', async () => {
    const { key } = await createManagementKey(gateway, boss, ['keys:read', 'audit:write'])
    const refused = async (method: string, path: string, body?: unknown) => {
      const { status, body: answer } = await send(key, method, path, body)
      return [status, answer.error.code, /"(.*)"/.exec(answer.error.message)?.[1] ?? null]
    }
    expect(await see(key)).toBe(200)
    // To write includes to read.
    expect((await send(key, 'GET', '/audit')).status).toBe(200)
    expect(await refused('POST', '/keys', { name: 'x' })).toEqual([403, 'forbidden', 'keys:write'])
    expect(await refused('PUT', '/tags', {})).toEqual([403, 'forbidden', 'budgets:write'])
    expect(await refused('GET', '/usage')).toEqual([403, 'forbidden', 'usage:read'])
    // No scope allows more credentials, users, or payments; `console-routes.test.ts` sends every scope to every route.
    for (const path of ['/management-keys', '/auth/sessions', '/billing'])
      expect(await refused('GET', path)).toEqual([403, 'forbidden', null])
  })

  test('answer no chat, in any dialect', async () => {
    const { key: token } = await createManagementKey(gateway, boss, ['keys:write'])
    for (const [path, body] of [
      ['/api/v1/chat', { prompt: 'hi' }],
      ['/v1/chat/completions', { model: 'gateway-ai', messages: [{ role: 'user', content: 'hi' }] }],
      ['/v1/messages', { model: 'gateway-ai', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }],
      ['/v1/responses', { model: 'gateway-ai', input: 'hi' }],
    ] as const)
      expect([path, (await sendRequest(gateway, 'POST', path, { token, body })).status]).toEqual([path, 401])
  })

  test('show once, keep only a digest, and appear in the audit log', async () => {
    const { id, key } = await createManagementKey(gateway, boss, ['projects:write'])
    const { body: listed } = await send(boss.token, 'GET', '/management-keys')
    expect(listed.data.find(row => row.id === id)).toMatchObject({ name: 'automation', scopes: ['projects:write'] })
    const stored = await gateway.deps.database.run(({ sql }) => sql`select * from sessions where id = ${id}`)
    expect(JSON.stringify([listed, stored, await send(boss.token, 'GET', '/audit')])).not.toContain(key.slice(10))
    const made = await send(key, 'POST', '/projects', { name: 'by a program' })
    expect(made.status).toBe(201)
    const { body } = await send(boss.token, 'GET', '/audit?action=project.created')
    expect(body.data[0]).toMatchObject({ target: made.body.id, details: { management_key: 'automation' } })
    // A person's own list of sessions has no program in it.
    const { body: own } = await send(boss.token, 'GET', '/auth/sessions')
    expect(own.data.map(session => session.id)).not.toContain(id)
  })

  test('appear in the audit log when they export the requests', async () => {
    const { id, key } = await createManagementKey(gateway, boss, ['usage:read'])
    for (const [token, format] of [
      [key, 'csv'],
      [key, 'json'],
      [boss.token, 'csv'],
    ]) {
      const headers = { authorization: `Bearer ${token}` }
      const exported = await fetch(`${gateway.url}/api/v1/requests/export?format=${format}`, { headers })
      expect([exported.status, (await exported.text()).length > 0]).toEqual([200, true])
    }
    const { body } = await send(boss.token, 'GET', '/audit?action=requests.exported')
    expect(body.data).toMatchObject([
      { details: { format: 'csv' } },
      { actor: { user_id: boss.id }, details: { format: 'json', management_key: 'automation' } },
      { actor: { user_id: boss.id }, details: { format: 'csv', management_key: 'automation' } },
    ])
    expect(body.data[0]?.details).not.toHaveProperty('management_key')
    expect(JSON.stringify(body)).not.toContain(id)
  })

  test('have the role of their user, and end with that user', async () => {
    const admin = await addMember(gateway, boss, 'admin')
    const { key } = await createManagementKey(gateway, admin, ['keys:write', 'audit:read'])
    expect((await send(key, 'GET', '/audit')).status).toBe(200)
    expect((await send(boss.token, 'PATCH', `/team/${admin.id}`, { role: 'viewer' })).status).toBeLessThan(300)
    gateway.deps.sessions.forget()
    expect((await send(key, 'GET', '/audit')).status).toBe(403)
    expect((await send(boss.token, 'DELETE', `/team/${admin.id}`)).status).toBe(204)
    gateway.deps.sessions.forget()
    expect(await see(key)).toBe(401)
  })

  test('survive five sign-ins and a new password, and end when revoked or expired', async () => {
    const person = await owner(gateway)
    const { id, key } = await createManagementKey(gateway, person, ['keys:read'])
    for (let count = 0; count < 6; count++) await signIn(gateway, person)
    const again = await signIn(gateway, person)
    const change = { current_password: person.password, new_password: 'another password' }
    expect((await send(again?.token ?? '', 'PUT', '/auth/password', change)).status).toBe(204)
    gateway.deps.sessions.forget()
    expect(await see(key)).toBe(200)
    expect((await send(again?.token ?? '', 'DELETE', `/management-keys/${id}`)).status).toBe(204)
    expect(await see(key)).toBe(401)
    expect((await send(again?.token ?? '', 'DELETE', `/management-keys/${id}`)).status).toBe(404)
    const { id: late, key: short } = await createManagementKey(gateway, again ?? person, ['keys:read'])
    await gateway.deps.database.run(({ sql }) => sql`update sessions set expires_at = now() where id = ${late}`)
    expect(await see(short)).toBe(401)
  })

  test('belong to one account: another one neither lists nor revokes them', async () => {
    const other = await owner(gateway)
    const { id, key } = await createManagementKey(gateway, boss, ['keys:read'])
    expect((await send(other.token, 'GET', '/management-keys')).body.data).toEqual([])
    expect((await send(other.token, 'DELETE', `/management-keys/${id}`)).status).toBe(404)
    expect(await see(key)).toBe(200)
  })

  test('are not guessed: an address that sends unknown ones is limited', async () => {
    const headers = fromAnotherIp()
    const guesses = Array.from({ length: 200 }, (_, count) => `gw_manage_${String(count).padStart(43, 'x')}`)
    const guess = async (token: string) =>
      (await sendRequest(gateway, 'GET', '/api/v1/keys', { token, headers })).status
    expect([...new Set(await Promise.all(guesses.map(guess)))].sort()).toEqual([401, 429])
    const { key } = await createManagementKey(gateway, boss, ['keys:read'])
    expect(await see(key)).toBe(200)
  })
})
