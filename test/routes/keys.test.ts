/** One key: its lineage, who may read it, what a change of its expiry may do, hedging, and its audit entries. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createKey } from '../../src/console/keys/stores/keys.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { getUnderPolicy } from '../../src/request/answer.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, createKeyFor, owner, type Person, sendRequest } from '../harness/users.ts'

// A bound against a hang, for a machine with many other processes.
setDefaultTimeout(240_000)

let gateway: Gateway
let boss: Person
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  boss = await owner(gateway)
})
afterAll(() => gateway.stop())

type LineageKey = { readonly id: string; readonly revoked_at: string | null; readonly expires_at: string | null }
type Key = LineageKey & {
  readonly key: string
  readonly hedge: boolean | null
  readonly continue: string | null
  readonly replaces: string | null
  readonly replaced_by: string | null
  readonly requests_last_minute: number
  readonly lineage: readonly LineageKey[]
  readonly error: { readonly code: string; readonly param: string | null }
}

const as = (person: Person, method: string, path: string, body?: object) =>
  sendRequest<Key>(gateway, method, `/api/v1${path}`, { token: person.token, body })
const made = () => createKeyFor(gateway, boss)
const rotated = async (id: string, overlap_seconds: number) =>
  (await as(boss, 'POST', `/keys/${id}/rotate`, { overlap_seconds })).body
const later = '2099-01-31T00:00:00.000Z'
const expire = (id: string) =>
  gateway.deps.database.run(
    ({ sql }) => sql`update api_keys set expires_at = clock_timestamp() - interval '1 minute' where id = ${id}`,
  )

describe('GET /api/v1/keys/:id', () => {
  test('names the neighbors and the whole lineage of a rotated key, and when the old one ends', async () => {
    const first = await made()
    const second = await rotated(first.id, 3600)
    const third = await rotated(second.id, 0)
    const ids = [first.id, second.id, third.id]
    for (const [at, id] of ids.entries()) {
      const { status, body } = await as(boss, 'GET', `/keys/${id}`)
      expect([status, body.id, body.replaces, body.replaced_by]).toEqual([
        200,
        id,
        ids[at - 1] ?? null,
        ids[at + 1] ?? null,
      ])
      expect(body.lineage.map(key => key.id)).toEqual(ids)
      expect(body.lineage.map(key => [key.revoked_at === null, key.expires_at === null])).toEqual([
        [true, false],
        [false, true],
        [true, true],
      ])
      expect(JSON.stringify(body)).not.toContain(third.key)
    }
  })

  test('counts the requests of the last minute once they are in the ledger', async () => {
    const { id, key } = await made()
    await sendRequest(gateway, 'POST', '/api/v1/chat', { token: key, body: { prompt: 'Say hello.', web: 'off' } })
    await eventually(async () => (await as(boss, 'GET', `/keys/${id}`)).body.requests_last_minute === 1, 10_000)
  })

  test('answers 401 without a session, and 404 for unknown, foreign and other users’ keys', async () => {
    const { id } = await made()
    const [member, viewer, stranger] = [
      await addMember(gateway, boss, 'member'),
      await addMember(gateway, boss, 'viewer'),
      await owner(gateway),
    ]
    expect((await sendRequest(gateway, 'GET', `/api/v1/keys/${id}`)).status).toBe(401)
    for (const person of [member, viewer, stranger]) expect((await as(person, 'GET', `/keys/${id}`)).status).toBe(404)
    expect((await as(boss, 'GET', '/keys/key_unknown')).status).toBe(404)
    const own = await createKeyFor(gateway, member)
    expect((await as(member, 'GET', `/keys/${own.id}`)).status).toBe(200)
    expect((await as(boss, 'GET', `/keys/${own.id}`)).status).toBe(200)
  })
})

describe('PATCH /api/v1/keys/:id', () => {
  const moved = async (id: string, expires_at: string | null) => {
    const { status, body } = await as(boss, 'PATCH', `/keys/${id}`, { expires_at })
    return status === 200 ? status : [status, body.error.code, body.error.param]
  }
  const refused = [409, 'conflict', 'expires_at']

  test('makes an expired key valid again', async () => {
    const { id, key } = await made()
    await expire(id)
    expect(await moved(id, later)).toBe(200)
    expect((await sendRequest(gateway, 'GET', '/v1/models', { token: key })).status).toBe(200)
  })

  test('revives no key that a rotation ended, and lets it only end earlier', async () => {
    const { id } = await made()
    await rotated(id, 3600)
    for (const time of [later, null]) expect(await moved(id, time)).toEqual(refused)
    expect(await moved(id, new Date(Date.now() + 60_000).toISOString())).toBe(200)
    await expire(id)
    for (const time of [later, null]) expect(await moved(id, time)).toEqual(refused)
    expect((await as(boss, 'PATCH', `/keys/${id}`, { name: 'old' })).status).toBe(200)
  })

  test('revives no revoked key', async () => {
    const { id } = await made()
    await as(boss, 'DELETE', `/keys/${id}`)
    expect(await moved(id, later)).toEqual(refused)
    const ended = await made()
    await rotated(ended.id, 0)
    expect(await moved(ended.id, later)).toEqual(refused)
  })

  test('sets hedging of a key over that of the account, and a rotation keeps it', async () => {
    const { id, key } = await made()
    const { keys } = gateway.deps
    const hedges = async (text: string) => {
      await keys.look()
      return (await keys.find(text))?.hedges === true
    }
    await as(boss, 'PATCH', '/account', { hedge: true })
    expect(await hedges(key)).toBe(true)
    expect((await as(boss, 'PATCH', `/keys/${id}`, { hedge: false })).body.hedge).toBe(false)
    expect(await hedges(key)).toBe(false)
    expect((await rotated(id, 0)).hedge).toBe(false)
    await as(boss, 'PATCH', '/account', { hedge: false })
    const own = await as(boss, 'POST', '/keys', { name: 'fast', hedge: true })
    expect([own.status, await hedges(own.body.key)]).toEqual([201, true])
    expect((await as(boss, 'PATCH', `/keys/${id}`, { hedge: 'on' })).status).toBe(400)
  })

  test('limits who continues cut texts by the strictest of account, key and request, and a rotation keeps it', async () => {
    const { id, key } = await made()
    const { keys } = gateway.deps
    const policies = async (text: string) => {
      await keys.look()
      const caller = await keys.find(text)
      if (caller == null) throw new Error('no caller')
      return [undefined, 'any', 'same_model', 'off'].map(field => {
        const body = { prompt: 'Hi', ...(field !== undefined && { continue: field }) }
        return getUnderPolicy(gateway.deps, caller, readNative(body, new Headers(), 100), undefined).continuation
      })
    }
    // Without any of the three, a text stays with its model.
    expect(await policies(key)).toEqual([null, 'any', 'same_model', 'none'])
    expect((await as(boss, 'PATCH', `/keys/${id}`, { continue: 'any' })).body.continue).toBe('any')
    expect(await policies(key)).toEqual(['any', 'any', 'same_model', 'none'])
    expect((await as(boss, 'PATCH', '/account', { continue: 'same_model' })).body.continue).toBe('same_model')
    expect(await policies(key)).toEqual(['same_model', 'same_model', 'same_model', 'none'])
    await as(boss, 'PATCH', `/keys/${id}`, { continue: 'off' })
    expect(await policies(key)).toEqual(['none', 'none', 'none', 'none'])
    expect((await rotated(id, 0)).continue).toBe('off')
    expect((await as(boss, 'PATCH', '/account', { continue: null })).body.continue).toBe(null)
    const own = await as(boss, 'POST', '/keys', { name: 'whole', continue: 'off' })
    expect([own.status, own.body.continue]).toEqual([201, 'off'])
    expect(await policies(own.body.key)).toEqual(['none', 'none', 'none', 'none'])
    for (const path of ['/account', `/keys/${own.body.id}`])
      expect((await as(boss, 'PATCH', path, { continue: 'none' })).status).toBe(400)
  })

  test('records the change by the names of the API', async () => {
    const { id } = await made()
    const rules = { limits: { daily_cost_usd: 5 }, models: ['openai/*'], tags: { team: 'search' } }
    await as(boss, 'PATCH', `/keys/${id}`, {
      ...rules,
      expires_at: later,
      fallback: 'none',
      continue: 'off',
      hedge: true,
    })
    const { body } = await sendRequest<{ data: { target: string; details: Record<string, unknown> }[] }>(
      gateway,
      'GET',
      '/api/v1/audit?action=key.changed',
      { token: boss.token },
    )
    const none = { requests_per_minute: null, concurrent_requests: null, daily_tokens: null, monthly_cost_usd: null }
    const details = body.data.find(({ target }) => target === id)?.details ?? {}
    expect(JSON.parse(String(details.limits))).toEqual({ ...none, daily_cost_usd: 5 })
    const { limits: _, ...others } = details
    expect(others).toEqual({
      expires_at: later,
      models: '["openai/*"]',
      tags: '{"team":"search"}',
      fallback: 'none',
      continue: 'off',
      hedge: true,
    })
  })
})

test('createKey: stores no key of a viewer', async () => {
  const viewer = await addMember(gateway, boss, 'viewer')
  const { database, newId } = gateway.deps
  const [id, createdAt] = [newId('key'), new Date()]
  const row = { id, userId: viewer.id, accountId: viewer.accountId, name: 'key', publicId: id, digest: id, createdAt }
  expect(await createKey(database, row)).toBe(false)
  expect((await as(boss, 'GET', `/keys/${id}`)).status).toBe(404)
})
