import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Elysia } from 'elysia'
import { usage } from '../../src/console/usage/routes.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { type Database, migrate, openDatabase } from '../../src/database/database.ts'
import { type Embedded, openEmbedded } from '../../src/database/embedded.ts'
import type { Principal } from '../../src/http/authentication.ts'
import { errorResponse, toGatewayError } from '../../src/http/error-response.ts'
import { pruneRejections } from '../../src/ledger/find-request.ts'
import { journalSource } from '../../src/ledger/reconcile/sources.ts'
import { audit } from '../../src/ledger/reconcile.ts'
import { storeRecords } from '../../src/ledger/shipper.ts'
import { generateUsage, newTeam } from '../database/ledger-rows.ts'
import { temporaryFolder, toTexts, usageRecord } from '../database/support.ts'
import { freshDataFolder } from '../harness/data-folder.ts'
import { eventually } from '../harness/eventually.ts'
import { startGateway } from '../harness/gateway.ts'
import { identified, principalIn } from '../harness/identified.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'
import { openRaw, rawText } from '../harness/raw.ts'
import { isLongVariant } from '../harness/variants.ts'

const folder = temporaryFolder()
let embedded: Embedded | null = null
let server: PrivatePostgres | null = null
let database: Database | null = null
let real: Database | null = null

beforeAll(async () => {
  embedded = await openEmbedded(await freshDataFolder(join(folder.path, 'data')))
  database = openDatabase(embedded.address, patientStore)
  await migrate(database)
  server = await startPostgres()
  if (server === null) return
  real = openDatabase(server.url, patientStore)
  await migrate(real)
}, 240_000)
afterAll(async () => {
  await database?.close()
  await embedded?.close()
  await real?.close()
  await server?.stop()
  folder.remove()
}, 240_000)

const now = Date.UTC(2026, 10, 20, 12)
const start = Date.UTC(2026, 10, 1)
const minute = 60_000

const principal = (accountId: string, userId: string, role: Principal['role']) => principalIn(role, accountId, userId)

/** The module over a database; the `x-test-as` header names the caller. */
function appOn(over: Database, principals: Readonly<Record<string, Principal>>) {
  return new Elysia({ normalize: false, serve: { idleTimeout: 10 } })
    .onError(({ error }) => errorResponse(toGatewayError(error), 'req_test'))
    .use(
      usage(
        { clock: { now: () => now }, describeField: () => null },
        identified(({ headers }) => {
          const found = principals[headers.get('x-test-as') ?? '']
          if (found === undefined) throw new GatewayError('invalid_token', 'Sign in.')
          return found
        }, over),
      ),
    )
}

async function start1000() {
  if (database === null) throw new Error('the embedded database is open')
  const team = await newTeam(database)
  await generateUsage(database, {
    ...team,
    keyIds: [...team.ownerKeys, ...team.memberKeys],
    count: 1000,
    start,
    stepMs: 10 * minute,
  })
  const app = appOn(database, {
    owner: principal(team.accountId, team.ownerId, 'owner'),
    admin: principal(team.accountId, 'usr_admin', 'admin'),
    member: principal(team.accountId, team.memberId, 'member'),
    stranger: principal('acc_other', 'usr_other', 'owner'),
  })
  const get = (path: string, as = 'owner') =>
    app.handle(new Request(`http://localhost${path}`, { headers: { 'x-test-as': as } }))
  return { team, get }
}

let running: ReturnType<typeof start1000> | null = null
const shared = () => (running ??= start1000())
const json = async (path: string, as?: string) => read(await (await shared()).get(path, as))

type Row = {
  request_id: string
  key_id: string
  key_name: string
  model: string
  month: string
  requests: number
  failed: number
  total_tokens: number
  cost_usd: number
}
type Lines = {
  requests: number[]
  failed: number[]
  total_tokens: number[]
  cost_usd: number[]
  latency_p50_ms: (number | null)[]
  latency_p95_ms: (number | null)[]
}
type Body = {
  data: Row[]
  rejected: number | null
  split_by: string | null
  series: (Lines & { key_id: string })[]
  others: Lines | null
  next_cursor: string | null
  total: { requests: number; failed: number }
  error: { code: string; param: string | null }
}
type LoggedAttempts = {
  request_id: string
  attempts: number
  tried: { model: string; outcome: string; after_ms: number; duration_ms: number }[]
  latency_ms: number
}
const read = async (response: Response) => (await response.json()) as Body

describe('GET /api/v1/requests', () => {
  test('200: lists newest first, 50 per page, with routing mode, streamed and money in dollars', async () => {
    const { team } = await shared()
    const { data, next_cursor } = await json('/api/v1/requests')
    expect(data).toHaveLength(50)
    expect(next_cursor).toBeString()
    expect<unknown>(data[0]).toEqual({
      request_id: expect.stringMatching(/^req_/),
      created_at: new Date(start + 999 * 10 * minute).toISOString(),
      key_id: team.ownerKeys[0],
      key_name: 'production',
      model: 'openai/model-0',
      requested_model: null,
      upstream_id: null,
      provider: 'openai',
      routing_mode: 'auto',
      strategy: null,
      query_type: 'code',
      effort: null,
      streamed: false,
      dialect: null,
      status: 'failed',
      error_code: 'upstream_failed',
      finish_reason: 'stop',
      input_tokens: 100,
      cached_input_tokens: 10,
      cache_write_tokens: 0,
      output_tokens: 50,
      reasoning_tokens: 5,
      total_tokens: 150,
      estimated: false,
      cost_usd: 0.00001,
      search_cost_usd: 0,
      fetch_cost_usd: 0,
      hedge_cost_usd: 0,
      own_key_cost_usd: null,
      unpriced: null,
      routing_saved_usd: null,
      cache_saved_usd: null,
      constraints: null,
      receivers: null,
      tags: null,
      user_id: expect.stringMatching(/^usr_/),
      user_email: expect.stringContaining('@'),
      project_id: null,
      attempts: 1,
      tried: [{ model: 'openai/model-0', outcome: 'served', after_ms: 2, duration_ms: 298 }],
      latency_ms: 1200,
      first_token_ms: 300,
      metadata: { team: 'search' },
    })
  })

  test('200: continues at the cursor to the last page', async () => {
    const seen: string[] = []
    let path = '/api/v1/requests?limit=200&routing_mode=auto'
    for (let pages = 0; pages < 10; pages++) {
      const { data, next_cursor } = await json(path)
      seen.push(...data.map(row => row.request_id))
      if (next_cursor === null) break
      path = `/api/v1/requests?limit=200&routing_mode=auto&cursor=${next_cursor}`
    }
    expect(new Set(seen).size).toBe(500)
    expect(seen).toHaveLength(500)
  })

  test.each([
    ['model=openai/model-0', 50],
    ['model=model-0', 50],
    ['provider=google', 200],
    ['status=failed', 2],
    ['error_code=upstream_failed', 2],
    ['error_code=upstream_timeout', 0],
    ['dialect=messages', 0],
    ['min_latency_ms=1200&provider=google', 200],
    ['min_latency_ms=1201', 0],
    ['max_latency_ms=1199', 0],
    ['streamed=true', 200],
    ['metadata[team]=search', 100],
    ['metadata%5Bteam%5D=search&metadata[other]=x', 0],
    ['metadata[__proto__]=x', 0],
    ['from=2026-11-03&to=2026-11-03', 144],
    ['from=2026-11-03T00:00:00Z&to=2026-11-03T01:00:00%2B01:00', 0],
    ['from=2026-11-03T00:00:00Z&to=2026-11-03T01:00:00Z', 6],
    ["key=' or 1=1 --", 0],
  ])('200: filter %s finds %d', async (query, count) => {
    expect((await json(`/api/v1/requests?limit=200&${query}`)).data).toHaveLength(count)
  })

  test('200: shows a member the requests of own keys only, an admin all, another account none', async () => {
    const { team } = await shared()
    const keys = async (as: string) =>
      new Set((await json('/api/v1/requests?limit=200', as)).data.map(row => row.key_id))
    expect(await keys('member')).toEqual(new Set(team.memberKeys))
    expect((await keys('admin')).size).toBe(4)
    expect((await keys('stranger')).size).toBe(0)
    expect((await json(`/api/v1/requests?key=${team.ownerKeys[0]}`, 'member')).data).toEqual([])
  })

  test.each([
    ['limit=0', 'limit'],
    ['limit=201', 'limit'],
    ['limit=1e2', 'limit'],
    ['cursor=nonsense', 'cursor'],
    ['status=done', 'status'],
    ['dialect=grpc', 'dialect'],
    ['min_latency_ms=-1', 'min_latency_ms'],
    ['error_code=%00', 'error_code'],
    ['streamed=yes', 'streamed'],
    ['from=yesterday', 'from'],
    ['from=2026-02-30', 'from'],
    ['to=2026-02-30T00:00:00Z', 'to'],
    ['to=2026-11-03T00:00:00', 'to'],
    ['to=9999-01-01', 'to'],
    ['from=2026-11-04&to=2026-11-01', 'from'],
    ['provider=google&model=openai/x', 'provider'],
    ['key=a&key=b', 'key'],
    ['key=%00', 'key'],
    ['model=', 'model'],
    ['metadata=x', 'metadata'],
    ['account_id=acc_1', 'account_id'],
    ['metadata[a]=1&metadata[a]=2', 'metadata[a]'],
    ['metadata[a]=%00', 'metadata.a'],
  ])('400: %s', async (query, param) => {
    const response = await (await shared()).get(`/api/v1/requests?${query}`)
    const { error } = await read(response)
    expect([response.status, error.code, error.param]).toEqual([400, 'invalid_request', param])
  })

  test('401: returns nothing and checks no parameter', async () => {
    for (const path of ['/api/v1/requests?limit=x', '/api/v1/requests/export?format=x', '/api/v1/usage?from=x'])
      expect((await (await shared()).get(path, 'nobody')).status).toBe(401)
  })
})

describe('GET /api/v1/usage', () => {
  test('200: has every day of the last 30 by default, with parts that add up to the total', async () => {
    const body = await json('/api/v1/usage')
    expect(body).toMatchObject({ from: '2026-10-22', to: '2026-11-20', group_by: 'day' })
    expect(body.data).toHaveLength(30)
    expect<unknown>(body.data[0]).toEqual({ ...zeros, day: '2026-10-22' })
    expect(body.data[10]).toMatchObject({ day: '2026-11-01', requests: 144, total_tokens: 21_600, cost_usd: 0.0001044 })
    expect<unknown>(body.total).toEqual({
      requests: 1000,
      completed: 998,
      input_tokens: 100_000,
      cached_input_tokens: 10_000,
      output_tokens: 50_000,
      reasoning_tokens: 5_000,
      total_tokens: 150_000,
      cost_usd: 0.005005,
      own_key_cost_usd: 0,
      routing_saved_usd: 0,
      cache_saved_usd: 0,
      failed: 2,
      latency_p50_ms: 1250,
      latency_p95_ms: 1475,
      first_token_p50_ms: 275,
    })
    expect<unknown>([body.split_by, body.series, body.others]).toEqual([null, [], null])
  })

  test('200: splits by model or key with parts that add up to the day; a member sees own keys only', async () => {
    const { team } = await shared()
    for (const splitBy of ['model', 'key']) {
      const { data, series, others } = await json(`/api/v1/usage?split_by=${splitBy}`)
      expect(series).toHaveLength(splitBy === 'model' ? 8 : 4)
      expect(others === null).toBe(splitBy === 'key')
      const parts = others === null ? series : [...series, others]
      for (const measure of ['requests', 'failed', 'total_tokens', 'cost_usd'] as const)
        for (const [day, whole] of data.entries())
          expect(parts.reduce((sum, part) => sum + (part[measure][day] ?? 0), 0)).toBeCloseTo(whole[measure], 8)
      expect(parts.every(part => part.latency_p95_ms.length === data.length)).toBe(true)
      expect(series[0]?.latency_p50_ms[0]).toBeNull()
      expect(series[0]?.latency_p50_ms[12]).toBeWithin(1_000, 1_500)
    }
    const own = await json('/api/v1/usage?split_by=key&group_by=month', 'member')
    expect(own.series.map(({ key_id }) => key_id).toSorted()).toEqual([...team.memberKeys].toSorted())
  })

  test('200: groups by model, by key with its name, by month', async () => {
    const { team } = await shared()
    const models = await json('/api/v1/usage?group_by=model')
    expect(models.data).toHaveLength(20)
    expect(models.data[0]?.model).toBe('openai/model-0')
    const keys = await json('/api/v1/usage?group_by=key', 'member')
    expect(keys.data.map(key => [key.key_id, key.key_name]).toSorted()).toEqual(
      [
        [team.memberKeys[0], 'laptop'],
        [team.memberKeys[1], 'batch'],
      ].toSorted(),
    )
    expect(keys.total.requests).toBe(500)
    const months = await json('/api/v1/usage?group_by=month&from=2026-09-15&to=2026-11-20')
    expect(months.data.map(month => [month.month, month.requests])).toEqual([
      ['2026-09', 0],
      ['2026-10', 0],
      ['2026-11', 1000],
    ])
  })

  test('200: sums the log like the daily totals', async () => {
    const { team } = await shared()
    for (const [coarse, fine] of [
      ['', 'min_latency_ms=0'],
      ['model=openai/model-0&split_by=key', 'model=openai/model-0&split_by=key&min_latency_ms=0'],
      [`key=${team.ownerKeys[0]}&group_by=model`, `key=${team.ownerKeys[0]}&group_by=model&max_latency_ms=99999`],
      ['provider=google&group_by=key', 'provider=google&group_by=key&from=2026-10-22T00:00:00Z'],
    ]) {
      const daily = await json(`/api/v1/usage?${coarse}`)
      expect(daily.data.length).toBeGreaterThan(0)
      expect(await json(`/api/v1/usage?${fine}`)).toEqual(daily)
    }
  })

  test('200: filters totals like the log, down to the hour', async () => {
    const hours = await json('/api/v1/usage?group_by=hour&from=2026-11-03T07:00:00Z&to=2026-11-03T10:00:00Z')
    expect<unknown>(hours.data.map(row => ['hour' in row && row.hour, row.requests])).toEqual([
      ['2026-11-03T07', 6],
      ['2026-11-03T08', 6],
      ['2026-11-03T09', 6],
    ])
    const minutes = await json('/api/v1/usage?group_by=minute&from=2026-11-03T07:05:00Z&to=2026-11-03T07:25:00Z')
    expect<unknown>(minutes.data.flatMap(row => ('minute' in row && row.requests > 0 ? [row.minute] : []))).toEqual([
      '2026-11-03T07:10',
      '2026-11-03T07:20',
    ])
    expect(minutes.data.length).toBe(20)
    for (const query of [
      'status=failed',
      'status=failed_or_blocked',
      'streamed=true',
      'metadata[team]=search',
      'model=model-0&min_latency_ms=1',
    ])
      expect((await json(`/api/v1/usage?${query}`, 'member')).total.requests).toBe(
        (await json(`/api/v1/requests?limit=200&${query}`, 'member')).data.length,
      )
  })

  test('200: counts as failed what the filter `failed_or_blocked` lists', async () => {
    if (database === null) throw new Error('the embedded database is open')
    const team = await newTeam(database)
    await generateUsage(database, { ...team, keyIds: team.ownerKeys, count: 100, start, stepMs: minute })
    const [key_id = ''] = team.ownerKeys
    const added = (['failed', 'blocked', 'client_closed'] as const).map(status =>
      usageRecord({
        request_id: `${team.accountId}_${status}`,
        account_id: team.accountId,
        key_id,
        at_ms: start,
        status,
      }),
    )
    await storeRecords(database, toTexts(added))
    const app = appOn(database, { owner: principal(team.accountId, team.ownerId, 'owner') })
    const send = async (path: string) =>
      read(await app.handle(new Request(`http://localhost${path}`, { headers: { 'x-test-as': 'owner' } })))
    // With a filter the totals come from the log.
    const { total } = await send('/api/v1/usage?min_latency_ms=0')
    const listed = await send('/api/v1/requests?limit=200&status=failed_or_blocked')
    expect(total.failed).toBeGreaterThanOrEqual(2)
    expect(listed.data).toHaveLength(total.failed)
    expect((await send('/api/v1/usage?status=failed_or_blocked')).total.requests).toBe(total.failed)
  })

  test('200: counts the rejected requests that the log lists', async () => {
    if (database === null) throw new Error('the embedded database is open')
    const { team, get } = await shared()
    const [own, of] = [team.ownerKeys[0] ?? '', team.memberKeys[0] ?? '']
    const rejected = [
      ['req_early', '2026-09-02', own, 'invalid_request'],
      ['req_first', '2026-11-10T01:00:00Z', own, 'invalid_request'],
      ['req_second', '2026-11-10T07:00:00Z', own, 'requests_per_minute_exceeded'],
      ['req_third', '2026-11-11T07:00:00Z', of, 'invalid_request'],
    ]
    for (const [id = '', at = '', key = '', code = ''] of rejected)
      await database.run(
        ({ sql }) => sql`
          insert into rejected_requests (request_id, at, account_id, key_id, streamed, error_code, latency_ms)
          values (${id}, ${at}::timestamptz, ${team.accountId}, ${key}, false, ${code}, 1)`,
      )
    for (const [query, as, expected] of [
      ['from=2026-11-01&to=2026-11-20', 'owner', 3],
      ['from=2026-11-01&to=2026-11-20', 'member', 1],
      ['from=2026-11-10T00:00:00Z&to=2026-11-10T06:00:00Z', 'owner', 1],
      [`from=2026-11-01&to=2026-11-20&key=${own}`, 'owner', 2],
      ['from=2026-11-01&to=2026-11-20&error_code=invalid_request', 'owner', 2],
    ] as const) {
      const usage = await read(await get(`/api/v1/usage?${query}`, as))
      const log = await read(await get(`/api/v1/requests?status=rejected&${query}`, as))
      expect([query, usage.rejected, log.data.length]).toEqual([query, expected, expected])
    }
    for (const query of ['group_by=model', 'split_by=key', 'tag=team', 'status=failed', 'metadata[team]=search'])
      expect([query, (await read(await get(`/api/v1/usage?${query}`))).rejected]).toEqual([query, null])
  })

  test('200: rejected requests are deleted after 30 days', async () => {
    if (database === null) throw new Error('the embedded database is open')
    const { team } = await shared()
    for (const [id, days] of [
      ['req_31_days', 31],
      ['req_29_days', 29],
    ] as const)
      await database.run(
        ({ sql }) => sql`
          insert into rejected_requests (request_id, at, account_id, key_id, streamed, error_code, latency_ms)
          values (${id}, clock_timestamp() - make_interval(days => ${days}), ${team.accountId}, ${team.ownerKeys[0] ?? ''},
            false, 'invalid_request', 1)`,
      )
    expect(await pruneRejections(database, 1_000)).toBeGreaterThan(0)
    const left = await database.run(
      ({ sql }) =>
        sql<{ id: string }[]>`select request_id as id from rejected_requests where request_id like '%\\_days'`,
    )
    expect(left.map(({ id }) => id)).toEqual(['req_29_days'])
  })

  test.each([
    ['from=2026-11-20&to=2026-11-01', 'from'],
    ['from=2020-01-01', 'from'],
    ['group_by=second', 'group_by'],
    ['group_by=minute', 'from'],
    ['group_by=minute&from=2026-11-03&to=2026-11-03', 'from'],
    ['group_by=minute&from=2026-11-03T00:00:00Z&to=2026-11-03T12:01:00Z', 'from'],
    ['group_by=hour&from=2026-10-01', 'from'],
    ['status=failed&from=2026-10-01', 'from'],
    ['to=2026-13-01', 'to'],
    ['from=2026-11-01T00:00:00', 'from'],
    ['group_by=model&split_by=key', 'split_by'],
    ['split_by=day', 'split_by'],
  ])('400: %s', async (query, param) => {
    const response = await (await shared()).get(`/api/v1/usage?${query}`)
    expect([response.status, (await read(response)).error.param]).toEqual([400, param])
  })
})

const zeros = {
  requests: 0,
  completed: 0,
  failed: 0,
  latency_p50_ms: null,
  latency_p95_ms: null,
  first_token_p50_ms: null,
  input_tokens: 0,
  cached_input_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  total_tokens: 0,
  cost_usd: 0,
  own_key_cost_usd: 0,
  routing_saved_usd: 0,
  cache_saved_usd: 0,
}

describe('GET /api/v1/requests/export', () => {
  test('200: CSV with a header, every request once, escaped formulas, exact money', async () => {
    const response = await (await shared()).get('/api/v1/requests/export?format=csv')
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': 'attachment; filename="requests-2026-11-20.csv"',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    })
    const [header = '', ...lines] = (await response.text()).trimEnd().split('\r\n')
    expect(header).toStartWith('"request_id","created_at","key_id","key_name","model","provider","routing_mode",')
    expect(header).toContain('"streamed"')
    expect(lines).toHaveLength(1000)
    expect(lines.every(line => line.split('","').length === header.split('","').length)).toBe(true)
    expect(lines[0]).toContain('"0.00001000"')
    expect(lines[0]).toContain('"{""team"":""search""}"')
    expect(lines[0]).toMatch(
      /"openai\/model-0 served 2\+298 ms","","","0.00000000","","usr_\w+","[^"]+@[^"]+","","","","","","","",""$/,
    )
    expect(lines.filter(line => line.includes(`"'=cmd()"`))).toHaveLength(250)
    expect(lines.some(line => line.includes('"=cmd'))).toBe(false)
  })

  test('200: JSON in the form of the page, with filters; an empty result is a complete document', async () => {
    const whole = await json('/api/v1/requests/export?format=json&streamed=true')
    expect(whole.data).toHaveLength(333)
    const page = await json('/api/v1/requests?streamed=true&limit=200')
    expect(whole.data.slice(0, 200)).toEqual(page.data)
    expect<unknown>(await json('/api/v1/requests/export?format=json', 'stranger')).toEqual({ data: [] })
    expect(
      (await (await (await shared()).get('/api/v1/requests/export?format=csv', 'stranger')).text()).split('\r\n'),
    ).toHaveLength(2)
  })

  test('200: exports only the requests of a member’s own keys', async () => {
    const { team } = await shared()
    const { data } = await json('/api/v1/requests/export?format=json', 'member')
    expect(data).toHaveLength(500)
    expect(new Set(data.map(row => row.key_id))).toEqual(new Set(team.memberKeys))
  })

  test('429: rejects a third concurrent export of one account until one has ended or its client disconnected', async () => {
    const { get } = await shared()
    const path = '/api/v1/requests/export?format=json'
    const [first, second] = [await get(path), await get(path)]
    const refused = await get(path)
    expect([refused.status, (await read(refused)).error.code]).toEqual([429, 'concurrent_requests_exceeded'])
    expect(refused.headers.get('retry-after')).toBe('5')
    await first.body?.cancel()
    const third = await get(path)
    expect(third.status).toBe(200)
    expect((await read(third)).data).toHaveLength(1000)
    expect((await read(second)).data).toHaveLength(1000)
    expect((await get(path)).status).toBe(200)
  })
})

/** More than the buffers between the database and a reader hold. */
const exported = isLongVariant() ? 100_000 : 50_000

describe(`the export over a socket, ${exported.toLocaleString('en')} requests on real Postgres`, () => {
  async function startReal() {
    const on = needed(real)
    const team = await newTeam(on)
    await generateUsage(on, { ...team, keyIds: team.ownerKeys, count: exported, start, stepMs: 1000 })
    const app = appOn(on, { owner: principal(team.accountId, team.ownerId, 'owner') })
    app.listen({ port: 0, hostname: '127.0.0.1', development: false })
    return { app, port: app.server?.port ?? 0 }
  }
  let started: ReturnType<typeof startReal> | null = null
  const gateway = () => (started ??= startReal())
  const onReal = (title: string, body: (port: number) => Promise<void>) =>
    testNeeding('postgres', title, async () => body((await gateway()).port), 120_000)
  afterAll(async () => {
    await (await started)?.app.server?.stop(true)
  })

  for (const format of ['csv', 'json'] as const)
    onReal(`${format}: every request arrives`, async port => {
      // By half of the export, memory has its final level.
      const peaks = { early: 0, late: 0 }
      let lines = 0
      let bytes = 0
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/requests/export?format=${format}`, {
        headers: { 'x-test-as': 'owner' },
      })
      for await (const piece of response.body ?? []) {
        bytes += piece.length
        for (let at = piece.indexOf(10); at !== -1; at = piece.indexOf(10, at + 1)) lines++
        const half = lines < exported / 2 ? 'early' : 'late'
        peaks[half] = Math.max(peaks[half], process.memoryUsage.rss())
      }
      expect(lines).toBe(format === 'csv' ? exported + 1 : exported + 2)
      expect(bytes).toBeGreaterThan(200 * exported)
      // Half of 100,000 rows are 10 MB in the response, and several times that as objects.
      const growth = ((peaks.late - peaks.early) / 1e6).toFixed(0)
      process.stdout.write(`export as ${format}: RSS + ${growth} MB in the second half\n`)
    })

  onReal('a reader who stops reading stops the reading of the database, and holds no connection', async port => {
    const { socket, received } = await openRaw(
      port,
      rawText('GET /api/v1/requests/export?format=csv', { host: 'localhost', 'x-test-as': 'owner' }),
    )
    await eventually(() => received().length > 0, 15_000)
    socket.pause()
    // Between two reads of its pages, a connection is idle for a moment; a stopped export leaves it idle.
    let idleLooks = 0
    await eventually(async () => {
      const busy = await real?.run(
        ({ sql }) => sql`
        select count(*)::int as busy from pg_stat_activity where application_name = 'gateway-ai' and state <> 'idle' and pid <> pg_backend_pid()`,
      )
      idleLooks = busy?.[0]?.busy === 0 ? idleLooks + 1 : 0
      return idleLooks === 20
    }, 240_000)
    expect(received().length).toBeLessThan(10_000_000)
    socket.destroy()
  })

  onReal('Postgres killed halfway: the file is cut off, never finished', async port => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/requests/export?format=csv`, {
      headers: { 'x-test-as': 'owner' },
    })
    const reader = response.body?.getReader()
    await reader?.read()
    await server?.crash()
    const rest = async () => {
      for (let step = await reader?.read(); step?.done === false; step = await reader?.read());
    }
    await expect(rest()).rejects.toThrow()
    expect(
      (await fetch(`http://127.0.0.1:${port}/api/v1/requests/export`, { headers: { 'x-test-as': 'owner' } })).status,
    ).toBe(503)
    await server?.start()
  })
})

describe('usage of a whole gateway', () => {
  test('lists every attempt of a request as its response did, with times, and no upstream text', async () => {
    const gateway = await startGateway()
    try {
      const answer = await gateway.post('/api/v1/chat', {
        prompt: '[[sim:only=openai, status=503]] Say hello.',
        model: 'openai/gpt-4.1',
      })
      const { request_id, routing } = (await answer.json()) as {
        request_id: string
        routing: { attempts: { model: string; outcome: string }[] }
      }
      expect(routing.attempts.length).toBeGreaterThan(1)
      const { token } = (await (
        await gateway.post('/api/v1/auth/login', { ...gateway.deps.firstAccount, key: undefined })
      ).json()) as { token: string }
      const log = async (path = '') =>
        fetch(`${gateway.url}/api/v1/requests${path}`, { headers: { authorization: `Bearer ${token}` } })
      const logged = async () =>
        ((await (await log()).json()) as { data: LoggedAttempts[] }).data.find(
          loggedAttempts => loggedAttempts.request_id === request_id,
        )
      await eventually(async () => (await logged()) !== undefined, 5_000)
      const { attempts, tried, latency_ms } = (await logged()) ?? { attempts: 0, tried: [], latency_ms: 0 }
      expect(tried.map(({ model, outcome }) => ({ model, outcome }))).toEqual(routing.attempts)
      expect(attempts).toBe(routing.attempts.length)
      let end = 0
      for (const { after_ms, duration_ms } of tried) {
        // Each value is rounded separately.
        expect(after_ms).toBeGreaterThanOrEqual(end - 1)
        end = after_ms + duration_ms
      }
      expect(end).toBeLessThanOrEqual(latency_ms + 1)
      const line = (await (await log('/export?format=csv')).text()).split('\r\n')[1] ?? ''
      expect(line).toMatch(/"openai\/gpt-4\.1 \w+ \d+\+\d+ ms; [\w./-]+ \w+ \d+\+\d+ ms[^"]*","openai\/gpt-4\.1"/)
    } finally {
      await gateway.stop()
    }
  }, 240_000)

  test('shows a key’s usage in log, totals and export to signed-in users, and not to a key', async () => {
    const gateway = await startGateway()
    try {
      const ids: string[] = []
      for (const stream of [false, true]) {
        const answer = await gateway.post('/api/v1/chat', {
          prompt: 'Say hello.',
          stream,
          ...(stream ? {} : { model: 'openai/gpt-4.1' }),
          metadata: { team: '=search' },
        })
        await answer.text()
        expect(answer.status).toBe(200)
        ids.unshift(answer.headers.get('x-request-id') ?? '')
      }
      const account = gateway.deps.firstAccount
      const login = await gateway.post('/api/v1/auth/login', { email: account?.email, password: account?.password })
      const { token } = (await login.json()) as { token: string }
      const get = (path: string, credential = token) =>
        fetch(gateway.url + path, { headers: { authorization: `Bearer ${credential}` } })
      await eventually(async () => (await read(await get('/api/v1/requests'))).data.length === 2, 5_000)

      const log = await get('/api/v1/requests')
      expect(log.headers.get('x-request-id')).toMatch(/^req_/)
      const { data } = (await log.json()) as { data: Record<string, unknown>[] }
      expect(
        data.map(item => [item.request_id, item.streamed, item.dialect, item.routing_mode, item.metadata]),
      ).toEqual([
        [ids[0], true, 'native', 'auto', { team: '=search' }],
        [ids[1], false, 'native', 'manual', { team: '=search' }],
      ])
      expect((await read(await get('/api/v1/usage'))).total.requests).toBe(2)
      expect((await (await get('/api/v1/requests/export?format=csv&streamed=true')).text()).split('\r\n')).toHaveLength(
        3,
      )
      for (const path of ['/api/v1/requests', '/api/v1/requests/export', '/api/v1/usage'])
        expect([path, (await get(path, gateway.key)).status]).toEqual([path, 401])
      const journal = join(gateway.deps.config.dataDirectory, 'journal')
      const today = new Date().toISOString().slice(0, 10)
      expect(
        await audit(gateway.deps.database, [journalSource(journal)], { from: today, to: today, accountId: null }),
      ).toMatchObject({ isWhole: true, requests: 2, waiting: { requests: 0 } })
    } finally {
      await gateway.stop()
    }
  }, 240_000)
})
