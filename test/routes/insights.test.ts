/** Insights, feedback and erasure over a real socket, and their effect on the next choice. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { changeAccount } from '../../src/database/repositories/accounts.ts'
import { untilFound } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, createKeyFor, owner, type Person, sendRequest } from '../harness/users.ts'

let gateway: Gateway
let boss: Person
let member: Person
let stranger: Person
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  // No exploration in this file; another test covers it.
  Object.assign(gateway.deps, { random: () => 1 })
  // Nor measured latencies, which would rank the models otherwise from one request to the next.
  Object.assign(gateway.deps.health, { report() {} })
  boss = await owner(gateway)
  member = await addMember(gateway, boss, 'member')
  stranger = await owner(gateway)
}, 240_000)
afterAll(() => gateway.stop())

type Learning = {
  readonly state: string
  readonly entries: number
  readonly since: string | null
  readonly query_types: { query_type: string; requests: number; best_model: string | null; confidence: string }[]
  readonly enhancement: { requests: number; quality_with: number | null; quality_without: number | null }
  readonly influence: { classified_pct: number; influenced_pct: number }
  readonly models: Model[]
  readonly recommendations: object[]
}
type Model = {
  model: string
  query_type: string
  requests: number
  confidence: string
  bias: number
  rating: number | null
}
type Answer = {
  readonly request_id: string
  readonly model_used: string
  readonly routing: { readonly learned: boolean; readonly query_type: string }
}

const prompt = 'Write a poem about the sea and its weather.'
const insights = async (token: string, path = 'learning') =>
  (await sendRequest<Learning & { data: Model[] }>(gateway, 'GET', `/api/v1/insights/${path}`, { token })).body

const birds = ['robin', 'raven', 'eagle', 'goose', 'stork', 'finch', 'heron', 'egret']
let chats = 0
function ownWords(): string {
  const count = chats++
  return [0, 3, 6, 9].map(shift => birds[(count >> shift) % 8]).join(' ')
}

async function chat(key: string, changes: object = {}): Promise<Answer> {
  // Four own words each: a repeated prompt would count as a repeat. Equal lengths keep the level.
  const body = { prompt: `${prompt} ${ownWords()}`, ...changes }
  const answer = await fetch(`${gateway.url}/api/v1/chat`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  expect(answer.status).toBe(200)
  return (await answer.json()) as Answer
}

const rate = (token: string | undefined, request_id: string, score: unknown, more: object = {}) =>
  sendRequest(gateway, 'POST', '/api/v1/insights/feedback', { token, body: { request_id, score, ...more } })

/** Removes the limits; another test covers the five requests per minute of the plan. */
async function newPerson(): Promise<{ readonly person: Person; readonly key: string }> {
  const person = await owner(gateway)
  await changeAccount(gateway.deps.database, person.accountId, {
    requestsPerMinute: 100_000,
    concurrentRequests: 100,
    dailyTokens: 1e12,
    dailyCostMicrocents: 1e15,
  })
  return { person, key: (await createKeyFor(gateway, person)).key }
}

function untilEntries(token: string, count: number): Promise<Learning> {
  return untilFound(async () => {
    const learning = await insights(token)
    return learning.entries === count ? learning : null
  })
}

test('new account: starts cold without entries', async () => {
  expect(await insights(stranger.token)).toEqual({
    state: 'cold_start',
    entries: 0,
    since: null,
    query_types: [],
    enhancement: { requests: 0, quality_with: null, quality_without: null },
    influence: { classified_pct: 0, influenced_pct: 0 },
    models: [],
    recommendations: [],
  } as never)
  for (const path of ['models', 'recommendations'])
    expect(await insights(stranger.token, path)).toEqual({ data: [] } as never)
})

test('successful request: adds one entry with the documented fields, the same for key and session', async () => {
  const { person, key } = await newPerson()
  const answers = [await chat(key), await chat(key), await chat(key, { model: 'openai/gpt-5.4-nano' })]
  // Blocked and rejected requests add none.
  await fetch(`${gateway.url}/api/v1/chat`, { method: 'POST', headers: { 'x-api-key': key }, body: '{"prompt":7}' })
  const found = await untilEntries(person.token, 3)
  const queryType = answers[0]?.routing.query_type ?? ''
  expect(found).toMatchObject({
    state: 'cold_start',
    query_types: [{ query_type: queryType, requests: 3, best_model: null, confidence: 'cold_start' }],
    enhancement: { requests: 0, quality_with: null },
    influence: { classified_pct: queryType === 'other' ? 0 : 100, influenced_pct: 0 },
    recommendations: [],
  })
  expect(Date.parse(found.since ?? '')).toBeWithin(Date.now() - 60_000, Date.now() + 1)
  const { data } = await insights(person.token, 'models')
  expect(data).toEqual(found.models)
  expect(data.map(({ model }) => model).sort()).toEqual([...new Set(answers.map(answer => answer.model_used))].sort())
  for (const row of data) {
    expect(Object.keys(row)).toEqual([
      'model',
      'query_type',
      'requests',
      'quality',
      'latency_ms',
      'ttft_ms',
      'cost_usd',
      'rating',
      'confidence',
      'bias',
    ])
    expect(row).toMatchObject({ query_type: queryType, rating: null, confidence: 'cold_start', bias: 0 })
  }
  expect(await insights(key)).toEqual(found as never)
  const byHeader = await sendRequest(gateway, 'GET', '/api/v1/insights/models', { headers: { 'x-api-key': key } })
  expect([byHeader.status, byHeader.body]).toEqual([200, { data } as never])
})

test('feedback and erasure: require a session, and reading requires a credential [J7]', async () => {
  const { key } = await createKeyFor(gateway, boss)
  for (const token of [undefined, key, 'x', `${boss.token}x`]) {
    expect((await rate(token, 'req_1', 5)).status).toBe(401)
    expect((await sendRequest(gateway, 'DELETE', '/api/v1/insights/data', { token })).status).toBe(401)
  }
  expect((await sendRequest(gateway, 'DELETE', '/api/v1/insights/data', { token: member.token })).status).toBe(403)
  for (const path of ['learning', 'models', 'recommendations'])
    for (const token of [undefined, 'x', `${boss.token}x`, `${key}x`])
      expect((await sendRequest(gateway, 'GET', `/api/v1/insights/${path}`, { token })).status).toBe(401)
})

describe('feedback', () => {
  test('counts for a request of any key of the account, and a later one replaces it', async () => {
    const { key } = await createKeyFor(gateway, boss)
    const answer = await chat(key)
    const first = await rate(boss.token, answer.request_id, 2)
    expect([first.status, first.body]).toEqual([
      200,
      { accepted: true, query_type: answer.routing.query_type, model: answer.model_used },
    ])
    expect((await rate(boss.token, answer.request_id, 5, { is_helpful: true })).status).toBe(200)
    const [row] = (await insights(boss.token, 'models')).data
    expect(row).toMatchObject({ model: answer.model_used, requests: 1, rating: 5 })
  })

  test('answers a member the same 404 for a request of another user as for an unknown one', async () => {
    const { request_id } = await chat((await createKeyFor(gateway, boss)).key)
    expect((await rate(boss.token, request_id, 4)).status).toBe(200)
    const unknown = request_id.replace(/.$/, digit => (digit === '0' ? '1' : '0'))
    const [foreign, none] = [await rate(member.token, request_id, 1), await rate(member.token, unknown, 1)]
    const shown = ({ status, body }: typeof foreign) => [status, { ...(body.error as object), request_id: null }]
    expect(shown(foreign)).toEqual(shown(none))
    expect(foreign.status).toBe(404)
  })

  test('counts for a member’s requests: of own keys, and of keys of a project', async () => {
    const own = await chat((await createKeyFor(gateway, member)).key)
    expect((await rate(member.token, own.request_id, 4)).status).toBe(200)
    const project = await sendRequest<{ id: string }>(gateway, 'POST', '/api/v1/projects', {
      token: boss.token,
      body: { name: 'rated' },
    })
    const made = await sendRequest<{ key: string }>(gateway, 'POST', '/api/v1/keys', {
      token: boss.token,
      body: { name: 'of the project', project_id: project.body.id },
    })
    const { request_id } = await chat(made.body.key)
    expect((await rate(member.token, request_id, 4)).status).toBe(404)
    const path = `/api/v1/projects/${project.body.id}/members/${member.id}`
    expect(
      (await sendRequest(gateway, 'PUT', path, { token: boss.token, body: { role: 'viewer' } })).status,
    ).toBeLessThan(300)
    expect((await rate(member.token, request_id, 4)).status).toBe(200)
  })

  test('answers the same 404 for another account’s request as for an unknown one [A7]', async () => {
    const { key } = await createKeyFor(gateway, boss)
    const { request_id } = await chat(key)
    const [foreign, none] = [await rate(stranger.token, request_id, 1), await rate(stranger.token, 'req_none', 1)]
    const shown = ({ status, body }: typeof foreign) => {
      const { request_id: _, ...rest } = body.error as Record<string, unknown>
      return { status, rest }
    }
    expect(shown(foreign)).toEqual(shown(none))
    expect(foreign.status).toBe(404)
  })

  test('answers 400 with the invalid field', async () => {
    for (const [body, param] of [
      [{ score: 5 }, 'request_id'],
      [{ request_id: 'req_1' }, 'score'],
      [{ request_id: 'req_1', score: 0 }, 'score'],
      [{ request_id: 'req_1', score: 6 }, 'score'],
      [{ request_id: 'req_1', score: 4.5 }, 'score'],
      [{ request_id: 'req_1', score: '5' }, 'score'],
      [{ request_id: 'req_1', score: 5, is_helpful: 'yes' }, 'is_helpful'],
      [{ request_id: 'req_1', score: 5, comment: 'good' }, 'comment'],
      [{ request_id: '\u0000', score: 5 }, 'request_id'],
    ] as const) {
      const answer = await sendRequest<{ error: { param: string } }>(gateway, 'POST', '/api/v1/insights/feedback', {
        token: boss.token,
        body,
      })
      expect([answer.status, answer.body.error.param]).toEqual([400, param])
    }
  })
})

describe('learning', () => {
  test('shows a rating in the dry run of the next request, from the first one', async () => {
    const { person, key } = await newPerson()
    const { request_id, model_used } = await chat(key)
    await untilEntries(person.token, 1)
    const dryRun = async () => {
      const answer = await fetch(`${gateway.url}/api/v1/route`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ prompt: `${prompt} ${ownWords()}` }),
      })
      const { candidates } = (await answer.json()) as { candidates: { model: string }[] }
      return JSON.stringify(candidates.find(({ model }) => model === model_used))
    }
    expect(await dryRun()).not.toContain('learnt')
    expect((await rate(person.token, request_id, 1)).status).toBe(200)
    expect(await dryRun()).toContain('learnt −5.0')
    expect((await rate(person.token, request_id, 5)).status).toBe(200)
    expect(await dryRun()).toContain('learnt +2.3')
  }, 240_000)

  test('changes the next request after a rating, is reported, and ends with an erasure', async () => {
    const { person, key } = await newPerson()
    const other = await newPerson()
    const usual = await chat(key)
    expect(usual.routing.learned).toBe(false)
    // Twenty requests for a named model, all rated poor: sixty entries.
    const poor = await Promise.all(Array.from({ length: 20 }, () => chat(key, { model: usual.model_used })))
    await untilEntries(person.token, 21)
    for (const { request_id } of poor) expect((await rate(person.token, request_id, 1)).status).toBe(200)
    const next = await chat(key)
    expect([next.routing.learned, next.model_used === usual.model_used]).toEqual([true, false])
    const found = await untilEntries(person.token, 22)
    expect(found.state).toBe('established')
    expect(found.influence.influenced_pct).toBeGreaterThan(0)
    const row = found.models.find(({ model }) => model === usual.model_used)
    expect(row).toMatchObject({ confidence: 'established', rating: 1 })
    expect(row?.bias).toBeWithin(-0.2, -0.05)
    // Neither a strategy without a quality weight nor another account is affected.
    for (const strategy of ['cost', 'speed']) {
      const [here, there] = [await chat(key, { strategy }), await chat(other.key, { strategy })]
      expect([here.routing.learned, here.model_used]).toEqual([false, there.model_used])
    }
    expect((await chat(other.key)).routing.learned).toBe(false)

    const erased = await sendRequest(gateway, 'DELETE', '/api/v1/insights/data', { token: person.token })
    expect(erased.status).toBe(204)
    expect((await insights(person.token)).entries).toBe(0)
    // Twenty concurrent requests may measure the model as slow for all accounts: a new account makes the same choice.
    const [again, elsewhere] = [await chat(key), await chat(other.key)]
    expect([again.routing.learned, again.model_used]).toEqual([false, elsewhere.model_used])
    await untilEntries(person.token, 1)
    expect((await rate(person.token, poor[0]?.request_id ?? '', 5)).status).toBe(404)
  }, 240_000)

  test('contains nothing of prompt or output', async () => {
    const { person, key } = await newPerson()
    const secret = 'xylophone-canary-7731'
    await chat(key, { prompt: `Repeat: ${secret}` })
    await untilEntries(person.token, 1)
    const rows = await gateway.deps.database.run(
      ({ sql }) => sql<{ line: string }[]>`
        select learning_state::text as line from learning_state
        union all select usage_records::text from usage_records`,
    )
    expect(rows.length).toBeGreaterThan(2)
    const digest = new Bun.CryptoHasher('sha256').update(`Repeat: ${secret}`).digest('hex')
    expect(rows.filter(({ line }) => line.includes(secret) || line.includes(digest))).toEqual([])
  })
})
