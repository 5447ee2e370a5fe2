/** Limits, models, tags, expiry and strategy of API keys, and limits of tags, over HTTP. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { shellCommand } from '../../src/core/validation/errors.ts'
import { systemClock } from '../../src/database/clock.ts'
import { newAccount } from '../harness/account.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { createManagementKey, owner, sendRequest } from '../harness/users.ts'

setDefaultTimeout(240_000)

type Key = { readonly id: string; readonly key: string; readonly limits: Record<string, number | null> | null }
type Refused = {
  readonly error: {
    readonly code: string
    readonly limit?: string
    readonly message: string
    readonly param: string | null
  }
}

/** Milliseconds by which the gateway's clock is ahead. */
let ahead = 0
const clock = { ...systemClock, now: () => systemClock.now() + ahead }
let gateway: Gateway
let token: string
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' }, { clock })
  const { firstAccount } = gateway.deps
  const login = await gateway.post('/api/v1/auth/login', {
    email: firstAccount?.email,
    password: firstAccount?.password,
  })
  token = ((await login.json()) as { token: string }).token
})
afterAll(() => gateway.stop())

const call = (method: string, path: string, body?: object) =>
  fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
const json = async <T>(answer: Promise<Response>): Promise<T> => (await answer).json() as Promise<T>
const newKey = (rules: object) => json<Key>(call('POST', '/api/v1/keys', { name: 'limited', ...rules }))
const body = { model: 'gpt-5.5', prompt: 'Say hello.', max_output_tokens: 20, web: 'off' }
const chat = ({ key }: Pick<Key, 'key'>, fields: object = {}, headers: Record<string, string> = {}) =>
  gateway.post('/api/v1/chat', { ...body, ...fields }, { authorization: `Bearer ${key}`, ...headers })

test.each([
  ['requests_per_minute_exceeded', 'key.requests_per_minute', { requests_per_minute: 0 }],
  ['concurrent_requests_exceeded', 'key.concurrent_requests', { concurrent_requests: 0 }],
  ['daily_tokens_exceeded', 'key.daily_tokens', { daily_tokens: 1 }],
  ['daily_cost_exceeded', 'key.daily_cost_usd', { daily_cost_usd: 0 }],
  ['monthly_cost_exceeded', 'key.monthly_cost_usd', { monthly_cost_usd: 0 }],
])('key limits: %s names %s in every dialect, and in the dry run', async (code, limit, limits) => {
  const key = await newKey({ limits })
  const headers = { authorization: `Bearer ${key.key}` }
  const messages = [{ role: 'user', content: 'Say hello.' }]
  const asked = [
    chat(key),
    gateway.post('/api/v1/route', body, headers),
    gateway.post('/v1/chat/completions', { model: 'gpt-5.5', messages, max_tokens: 20 }, headers),
    gateway.post('/v1/responses', { model: 'gpt-5.5', input: 'Say hello.' }, headers),
    gateway.post('/v1/messages', { model: 'gpt-5.5', messages, max_tokens: 20 }, headers),
    gateway.post('/v1/embeddings', { model: 'text-embedding-3-small', input: 'Hello' }, headers),
  ]
  for (const answer of await Promise.all(asked)) {
    const told = (await answer.json()) as Refused
    expect({ url: answer.url, status: answer.status >= 402 && answer.status <= 429, ...told.error }).toMatchObject({
      status: true,
      code,
      limit,
      message: expect.stringMatching(/this API key.*an owner or an admin can change it: .*PATCH \/api\/v1\/keys/),
    })
    expect(answer.headers.get('x-gateway-limit')).toBe(limit)
  }
})

test('account limits: the refusal names the account', async () => {
  const { headers } = await newAccount(gateway, { dailyTokens: 1 })
  const answer = await gateway.post('/api/v1/chat', body, headers)
  expect(answer.headers.get('x-gateway-limit')).toBe('account.daily_tokens')
})

test.each([
  ['requests_per_minute_exceeded', { requestsPerMinute: 0 }, '--rpm N'],
  ['concurrent_requests_exceeded', { concurrentRequests: 0 }, '--concurrent N'],
  ['daily_tokens_exceeded', { dailyTokens: 1 }, '--daily-tokens N'],
  ['daily_cost_exceeded', { dailyCostMicrocents: 0 }, '--daily-cost-usd N'],
])('account limits: %s names the command that changes it in every dialect', async (code, limits, option) => {
  const { headers } = await newAccount(gateway, limits)
  const messages = [{ role: 'user', content: 'Say hello.' }]
  const asked = [
    gateway.post('/api/v1/chat', body, headers),
    gateway.post('/api/v1/route', body, headers),
    gateway.post('/v1/chat/completions', { model: 'gpt-5.5', messages, max_tokens: 20, stream: true }, headers),
    gateway.post('/v1/responses', { model: 'gpt-5.5', input: 'Say hello.' }, headers),
    gateway.post('/v1/messages', { model: 'gpt-5.5', messages, max_tokens: 20 }, headers),
    gateway.post('/v1/embeddings', { model: 'text-embedding-3-small', input: 'Hello' }, headers),
  ]
  for (const answer of await Promise.all(asked)) {
    const { error } = (await answer.json()) as Refused
    expect({ url: answer.url, ...error }).toMatchObject({ code })
    expect(error.message).toContain(
      `The operator of this gateway can change it: \`${shellCommand(`accounts limits <email> ${option}`)}\`, for the operator's own account also page Settings.`,
    )
  }
})

test('account limits: change by owners of the operator’s account only, hold at once, and null is the plan’s', async () => {
  type Limits = Record<string, number | null>
  type Account = { limits: Limits; own_limits: Limits; may_change_limits: boolean }
  const change = (limits: object) => json<Account>(call('PATCH', '/api/v1/account', { limits }))
  const before = await json<Account>(call('GET', '/api/v1/account'))
  expect([before.may_change_limits, before.own_limits]).toEqual([true, before.limits])
  const key = await newKey({})
  expect(await change({ requests_per_minute: 0 })).toMatchObject({ limits: { requests_per_minute: 0 } })
  await eventually(async () => (await chat(key)).status === 429, 10_000)
  const plan = await change({ requests_per_minute: null, daily_cost_usd: 7.5 })
  expect(plan.own_limits).toEqual({ ...before.own_limits, requests_per_minute: null, daily_cost_usd: 7.5 })
  expect(plan.limits.requests_per_minute).toBe(gateway.deps.config.plans.usage.requestsPerMinute)
  expect((await call('PATCH', '/api/v1/account', { limits: { requests_per_minute: -1 } })).status).toBe(400)
  await change(before.own_limits)
  await eventually(async () => (await chat(key)).status === 200, 10_000)
  const tenant = await owner(gateway)
  const own = await sendRequest<Account>(gateway, 'GET', '/api/v1/account', { token: tenant.token })
  expect(own.body.may_change_limits).toBe(false)
  const automation = await createManagementKey(gateway, { token }, ['budgets:write'])
  const ofKey = await sendRequest<Account>(gateway, 'GET', '/api/v1/account', { token: automation.key })
  expect([ofKey.status, ofKey.body.may_change_limits]).toEqual([200, false])
  const body = { limits: { requests_per_minute: 9_999 } }
  const refused = await sendRequest<Refused>(gateway, 'PATCH', '/api/v1/account', { token: tenant.token, body })
  expect([refused.status, refused.body.error.message]).toEqual([
    403,
    expect.stringContaining('accounts limits <email>'),
  ])
  expect((await sendRequest<Account>(gateway, 'GET', '/api/v1/account', { token: tenant.token })).body.limits).toEqual(
    own.body.limits,
  )
})

test('keys: a change sets single limits, null removes one, and null removes all', async () => {
  const key = await newKey({ limits: { daily_cost_usd: 5, requests_per_minute: 60 } })
  const change = async (fields: object) => (await json<Key>(call('PATCH', `/api/v1/keys/${key.id}`, fields))).limits
  const none = { concurrent_requests: null, daily_tokens: null, monthly_cost_usd: null }
  expect(key.limits).toEqual({ ...none, daily_cost_usd: 5, requests_per_minute: 60 })
  expect(await change({ limits: { daily_cost_usd: 7 } })).toEqual({
    ...none,
    daily_cost_usd: 7,
    requests_per_minute: 60,
  })
  expect(await change({ limits: { requests_per_minute: null } })).toEqual({
    ...none,
    daily_cost_usd: 7,
    requests_per_minute: null,
  })
  expect(await change({ name: 'renamed' })).toMatchObject({ daily_cost_usd: 7 })
  expect(await change({ limits: null })).toBeNull()
  for (const wrong of [
    { limits: { daily_cost_usd: -1 } },
    { limits: { weekly: 1 } },
    { models: [] },
    { models: ['gpt'] },
    { tags: { 'a b': 'c' } },
    { strategy: 'best' },
    { expires_at: '2001-01-01T00:00:00Z' },
  ])
    expect((await call('PATCH', `/api/v1/keys/${key.id}`, wrong)).status).toBe(400)
})

test('keys: rotation keeps the rules, and the new key counts in the same limits', async () => {
  const key = await newKey({
    limits: { requests_per_minute: 1 },
    models: ['openai/*'],
    tags: { team: 'rotated' },
    strategy: 'cost',
  })
  expect((await chat(key)).status).toBe(200)
  const rotated = await json<Key>(call('POST', `/api/v1/keys/${key.id}/rotate`, {}))
  expect(rotated).toMatchObject({
    limits: { requests_per_minute: 1 },
    models: ['openai/*'],
    tags: { team: 'rotated' },
    strategy: 'cost',
  })
  const told = await json<Refused>(chat(rotated))
  expect(told.error).toMatchObject({ limit: 'key.requests_per_minute' })
})

test('keys: only the allowed models are used, listed and offered as fallbacks', async () => {
  const key = await newKey({ models: ['anthropic/*', 'openai/gpt-5.5'] })
  const headers = { authorization: `Bearer ${key.key}` }
  expect((await chat(key)).status).toBe(200)
  const refused = await chat(key, { model: 'gemini-3.5-flash' })
  const told = (await refused.json()) as Refused
  expect([refused.status, told.error]).toMatchObject([
    403,
    { code: 'forbidden', param: 'model', message: expect.stringContaining('anthropic/*, openai/gpt-5.5') },
  ])
  const embedded = await gateway.post('/v1/embeddings', { model: 'text-embedding-3-small', input: 'Hello' }, headers)
  expect(embedded.status).toBe(403)
  const { data } = await json<{ data: { id: string; owned_by: string }[] }>(
    fetch(`${gateway.url}/v1/models`, { headers }),
  )
  expect(new Set(data.map(model => model.owned_by))).toEqual(new Set(['gateway-ai', 'anthropic', 'openai']))
  expect(data.filter(model => model.owned_by === 'openai')).toHaveLength(1)
  const own = await fetch(`${gateway.url}/api/v1/models`, { headers })
  expect(own.headers.get('cache-control')).toBe('private, no-cache')
  const dry = await json<{ candidates: { model: string }[] }>(
    gateway.post('/api/v1/route', { prompt: 'Say hello.', web: 'off' }, headers),
  )
  expect(dry.candidates.length).toBeGreaterThan(1)
  for (const { model } of dry.candidates) expect(model).toMatch(/^anthropic\/|^openai\/gpt-5\.5$/)
  // Nothing is left for automatic routing.
  const nothing = await chat(await newKey({ models: ['nobody/nothing'] }), { model: 'gateway-ai' })
  expect(nothing.status).toBe(403)
})

test('keys: the strategy of a key applies to requests that name none', async () => {
  const key = await newKey({ strategy: 'cost' })
  const automatic = { ...body, model: 'gateway-ai' }
  const getStrategy = async (fields: object) => {
    const answer = await json<{ routing: { strategy: string } }>(chat(key, { ...automatic, ...fields }))
    return answer.routing.strategy
  }
  expect([await getStrategy({}), await getStrategy({ strategy: 'quality' })]).toEqual(['cost', 'quality'])
})

test('keys: an expired key receives 401 with the reason', async () => {
  const key = await newKey({ expires_at: new Date(Date.now() + 60_000).toISOString() })
  expect((await chat(key)).status).toBe(200)
  ahead = 61_000
  const refused = await chat(key)
  ahead = 0
  expect(refused.status).toBe(401)
  const told = await json<Refused>(Promise.resolve(refused))
  expect(told.error).toMatchObject({ code: 'invalid_api_key', message: expect.stringContaining('has expired') })
})

test('tags: a limit applies to the tag from metadata, header, key and agent session, within 1 s', async () => {
  const plain = await newKey({})
  const tagged = await newKey({ tags: { team: 'search' } })
  const set = (fields: object) => call('PUT', '/api/v1/tags', fields)
  expect((await set({ name: 'team', value: 'search', limits: { daily_cost_usd: 0 } })).status).toBe(200)
  expect((await set({ name: 'session', value: 'abc-1', limits: { requests_per_minute: 0 } })).status).toBe(200)
  await eventually(async () => (await chat(tagged)).status === 429, 5_000)
  const getLimit = async (answer: Promise<Response>) => (await answer).headers.get('x-gateway-limit')
  expect(await getLimit(chat(tagged))).toBe('tag:team=search.daily_cost_usd')
  expect(await getLimit(chat(plain, { metadata: { team: 'search' } }))).toBe('tag:team=search.daily_cost_usd')
  expect(await getLimit(chat(plain, {}, { 'x-gateway-tags': 'env=prod, team=search' }))).toBe(
    'tag:team=search.daily_cost_usd',
  )
  expect(await getLimit(chat(plain, {}, { 'x-claude-code-session-id': 'abc-1' }))).toBe(
    'tag:session=abc-1.requests_per_minute',
  )
  // A request cannot replace the tag of its key.
  expect(await getLimit(chat(tagged, {}, { 'x-gateway-tags': 'team=other' }))).toBe('tag:team=search.daily_cost_usd')
  expect((await chat(plain, { metadata: { team: 'other' } })).status).toBe(200)
  expect((await chat(plain, {}, { 'x-gateway-tags': 'team' })).status).toBe(400)
  const { data } = await json<{ data: { name: string }[] }>(call('GET', '/api/v1/tags'))
  expect(data.map(({ name }) => name)).toEqual(['session', 'team'])
  for (const [name, value] of [
    ['team', 'search'],
    ['session', 'abc-1'],
  ] as const)
    expect((await set({ name, value, limits: null })).status).toBe(200)
  await eventually(async () => (await chat(tagged)).status === 200, 5_000)
  type Entry = { target: string | null; actor: { type: string }; details: Record<string, number | null> }
  const { data: entries } = await json<{ data: Entry[] }>(call('GET', '/api/v1/audit?action=limits.changed'))
  const ofTag = entries.filter(({ target }) => target === 'tag:team=search')
  expect(ofTag.map(({ actor, details }) => [actor.type, details.daily_cost_usd])).toEqual([
    ['user', null],
    ['user', 0],
  ])
  expect((await set({ name: 'a b', value: 'c', limits: null })).status).toBe(400)
})

test('usage: grouped and filtered by tag, and by member', async () => {
  const key = await newKey({ tags: { team: 'charts' } })
  const tags = { 'x-gateway-tags': 'env=charts' }
  await chat(key, {}, tags)
  await chat(key, { metadata: { env: 'other' } })
  type Usage = { data: { tag?: string; email?: string; requests: number }[]; total: { requests: number } }
  const usage = (query: string) => json<Usage>(call('GET', `/api/v1/usage?${query}`))
  await eventually(async () => (await usage('tag=team%3Dcharts')).total.requests === 2, 10_000)
  const byTag = await usage('group_by=tag&tag=env')
  expect(byTag.data.map(({ tag, requests }) => [tag, requests])).toContainEqual(['env=charts', 1])
  const all = await usage('group_by=tag')
  const days = await usage('group_by=day')
  expect(all.total.requests).toBe(days.total.requests)
  expect((await usage('group_by=member')).data[0]?.email).toContain('@')
  const log = await json<{ data: { tags: object; metadata: object | null }[] }>(
    call('GET', '/api/v1/requests?tag=team%3Dcharts&dialect=native'),
  )
  expect(log.data.map(item => item.tags)).toEqual([
    { team: 'charts', env: 'other' },
    { team: 'charts', env: 'charts' },
  ])
  const split = (query: string) =>
    json<{ series: { tag?: string; email?: string; dialect?: string; requests: number[] }[] }>(
      call('GET', `/api/v1/usage?group_by=month&tag=team%3Dcharts&${query}`),
    )
  const counted = async (query: string) =>
    (await split(query)).series.map(({ tag, email, dialect, requests }) => [tag ?? email ?? dialect, requests.at(-1)])
  expect(await counted('split_by=tag')).toEqual([['team=charts', 2]])
  expect(await counted('split_by=member')).toEqual([[expect.stringContaining('@'), 2]])
  expect(await counted('split_by=dialect')).toEqual([['native', 2]])
  const byDialect = await json<{ data: { dialect: string; requests: number }[] }>(
    call('GET', '/api/v1/usage?group_by=dialect&tag=team'),
  )
  expect(byDialect.data).toMatchObject([{ dialect: 'native' }])
  expect((await call('GET', '/api/v1/usage?split_by=tag')).status).toBe(400)
  const user = (await json<{ data: { id: string }[] }>(call('GET', '/api/v1/team'))).data[0] ?? { id: '' }
  type Log = { data: { user_id: string; user_email: string; tags: object | null }[] }
  const ofMember = await json<Log>(call('GET', `/api/v1/requests?tag=team&member=${user.id}`))
  expect(ofMember.data.length).toBeGreaterThanOrEqual(2)
  expect(new Set(ofMember.data.map(item => item.user_id))).toEqual(new Set([user.id]))
  expect((await json<Log>(call('GET', '/api/v1/requests?member=usr_none'))).data).toEqual([])
  expect((await usage('group_by=tag&tag=env&member=usr_none')).total.requests).toBe(0)
  const listed = await json<{ data: { id: string; used: { daily_tokens: number } }[] }>(call('GET', '/api/v1/keys'))
  expect(listed.data.find(item => item.id === key.id)?.used.daily_tokens).toBeGreaterThan(0)
})
