/** Alerts: the thresholds as a table, their evaluation from daily sums, and who may manage them. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ShownAlert } from '../../src/console/alerts/schemas.ts'
import { deleteAlert, evaluateNextAlert, type FiredAlert } from '../../src/console/alerts/store.ts'
import { startNoticeWorker } from '../../src/console/billing/worker.ts'
import {
  alertChanges,
  budgetReading,
  maximumAlerts,
  sessionReading,
  sumsBetween,
  valueReading,
  windowValue,
} from '../../src/core/alerts/alerts.ts'
import { projectTag } from '../../src/core/request/tags.ts'
import { dayMs } from '../../src/core/text/utc-days.ts'
import type { Delivery } from '../../src/mail/queue.ts'
import { type Gateway, startGateway, withoutTimer } from '../harness/gateway.ts'
import { addMember, owner, type Person, sendRequest } from '../harness/users.ts'

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' }, withoutTimer)
}, 240_000)
afterAll(() => gateway.stop())

describe('alert rule', () => {
  test('fires once at its threshold, and resolves below 80% of it', () => {
    let firing: readonly string[] = []
    const changes = [0.04, 0.05, 0.06, 0.045, null, 0.041, 0.039, 0.045, 0.05].map(value => {
      const rule = { metric: 'error_rate', threshold: 0.05, firing } as const
      const changed = alertChanges(rule, [valueReading('error_rate', value)])
      firing = changed.firing
      return changed.fired.length - changed.resolved.length
    })
    expect(changes).toEqual([0, 1, 0, 0, 0, 0, -1, 0, 1])
  })

  test('fires for each subject of its own, and forgets a budget whose period has ended, but no silent model', () => {
    const measured = (subject: string, value: number) => ({ subject, value, text: '', data: {}, project: null })
    const changed = (
      metric: 'budget' | 'model_failures',
      firing: readonly string[],
      values: Record<string, number>,
    ) => {
      const readings = Object.entries(values).map(([subject, value]) => measured(subject, value))
      const { fired, resolved, firing: next } = alertChanges({ metric, threshold: 0.8, firing }, readings)
      return [fired.map(({ subject }) => subject), resolved.map(({ subject }) => subject), next]
    }
    expect(changed('budget', ['a 01', 'b 01'], { 'a 01': 0.85, 'c 01': 0.9, 'd 01': 0.79, 'b 02': 0.1 })).toEqual([
      ['c 01'],
      [],
      ['a 01', 'c 01'],
    ])
    expect(changed('model_failures', ['x', 'y'], { y: 0.1 })).toEqual([[], ['y'], ['x']])
  })

  test('fires again for a budget whose limit rose, at the same share of the new limit', () => {
    let firing: readonly string[] = []
    const budget = { kind: 'key', id: 'k', name: 'k', span: 'day', period: '2026-01-01', project: null } as const
    const told = [
      [100, 85],
      [90, 86],
      [120, 90],
      [120, 96],
      [120, 110],
    ].map(([limit = 0, used = 0]) => {
      const changed = alertChanges({ metric: 'budget', threshold: 0.8, firing }, [
        budgetReading({ ...budget, limit, used }),
      ])
      firing = changed.firing
      return changed.fired.length
    })
    expect(told).toEqual([1, 0, 0, 1, 0])
  })

  test('reports a slow session once, while its requests are in sight', () => {
    let firing: readonly string[] = []
    const told = [0.1, null, 0.1, null, 0.8, null, 0.1].map(now => {
      const shares = { session: 's', before: now === null ? null : 0.9, now }
      const changed = alertChanges({ metric: 'cache_drop', threshold: 0.5, firing }, [sessionReading(shares)])
      firing = changed.firing
      return changed.fired.length
    })
    expect(told).toEqual([1, 0, 0, 0, 0, 0, 1])
  })

  test('computes a window from two readings, and nothing from fewer than 20 requests', () => {
    const before = { requests: 100, failed: 50, latency: [10, 0] }
    const after = { requests: 140, failed: 52, latency: [10, 0, 30] }
    expect(sumsBetween(before, after)).toEqual({ requests: 40, failed: 2, latency: [0, 0, 30] })
    expect(windowValue('error_rate', sumsBetween(before, after))).toBe(0.05)
    expect(windowValue('latency', sumsBetween(before, after))).toBeGreaterThan(10)
    expect(windowValue('error_rate', { requests: 19, failed: 19, latency: [] })).toBeNull()
    expect(windowValue('latency', { requests: 40, failed: 40, latency: [19] })).toBeNull()
  })
})

const call = <T = ShownAlert>(person: Person, method: string, path = '', body?: unknown) =>
  sendRequest<T>(gateway, method, `/api/v1/alerts${path}`, { token: person.token, body })
const sql = <T>(work: Parameters<typeof gateway.deps.database.run<T>>[0]) => gateway.deps.database.run(work)
type Used = { readonly requests: number; readonly failed: number; readonly microcents: number }
/** Sets the daily sums of the account, or those of a project in it. */
const used = (person: Person, at: number, row: Used, projectId?: string) =>
  sql(
    ({ sql: query }) => query`
      insert into ${projectId === undefined ? query`usage_daily (` : query`usage_tags_daily (tag,`} account_id, day, key_id,
        model, requests, completed, failed, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens,
        billed_microcents)
      values (${projectId === undefined ? query`` : query`${projectTag(projectId)},`} ${person.accountId},
        ${new Date(at).toISOString().slice(0, 10)}::text::date, 'key', 'a/b', ${row.requests},
        ${row.requests - row.failed}, ${row.failed}, 0, 0, 0, 0, ${row.microcents})
      on conflict (account_id, ${projectId === undefined ? query`` : query`tag,`} day, key_id, model) do update set
        requests = excluded.requests, completed = excluded.completed, failed = excluded.failed,
        billed_microcents = excluded.billed_microcents`,
  )
/** Evaluates what is due at `at` as three gateways would at once, and returns the alerts that began to fire. */
async function evaluated(at: number, failed: unknown[] = []): Promise<FiredAlert[]> {
  const fired: FiredAlert[] = []
  for (;;) {
    const results = await Promise.all(
      [1, 2, 3].map(() =>
        evaluateNextAlert(gateway.deps.database, {
          ...{ at, plans: gateway.deps.config.plans, sendsMail: true },
          budgets: new Map(),
        }),
      ),
    )
    for (const result of results) {
      if (result === null || result === 'none') continue
      if ('code' in result) failed.push(result.code)
      else fired.push(result)
    }
    if (results.every(result => result === 'none')) return fired
  }
}
const getEvents = async (person: Person) =>
  (
    await sql(
      ({ sql: query }) => query<{ type: string }[]>`
        select type from webhook_deliveries where account_id = ${person.accountId} order by id`,
    )
  ).map(({ type }) => type)

describe('alert', () => {
  test('tells owners and webhooks once per condition, from one gateway of several', async () => {
    const person = await owner(gateway)
    await sendRequest(gateway, 'POST', '/api/v1/webhooks', {
      token: person.token,
      body: { url: 'https://example.com/', events: ['alert.fired', 'alert.resolved'] },
    })
    expect((await call(person, 'POST', '', { metric: 'error_rate', threshold: 0.1 })).status).toBe(201)
    expect((await call(person, 'POST', '', { metric: 'spend', threshold: 5 })).status).toBe(201)
    // The start of a UTC day, so that no window crosses midnight.
    const start = (Math.floor(Date.now() / dayMs) + 1) * dayMs + 60_000
    const window = 15 * 60_000
    await used(person, start, { requests: 100, failed: 90, microcents: 0 })
    expect(await evaluated(start)).toEqual([])
    await used(person, start, { requests: 200, failed: 110, microcents: 600_000_000 })
    const fired = await evaluated(start + window)
    expect(
      fired.map(({ metric, value, project, recipients }) => ({ metric, value, project, recipients })),
    ).toContainEqual({
      metric: 'error_rate',
      value: 0.2,
      project: null,
      recipients: [person.email],
    })
    expect(fired.map(firedAlert => firedAlert.metric).sort()).toEqual(['error_rate', 'spend'])
    await used(person, start, { requests: 300, failed: 125, microcents: 600_000_000 })
    expect(await evaluated(start + 2 * window)).toEqual([])
    await used(person, start, { requests: 400, failed: 126, microcents: 600_000_000 })
    expect(await evaluated(start + 3 * window)).toEqual([])
    expect((await getEvents(person)).sort()).toEqual(['alert.fired', 'alert.fired', 'alert.resolved'])
    const { data } = (await call<{ data: ShownAlert[] }>(person, 'GET')).body
    expect(data.map(({ metric, firing }) => ({ metric, firing }))).toEqual([
      { metric: 'error_rate', firing: false },
      { metric: 'spend', firing: true },
    ])
  })

  test('changes its threshold and window; another window holds no earlier request', async () => {
    const [person, other] = [await owner(gateway), await owner(gateway)]
    const { id } = (await call(person, 'POST', '', { metric: 'error_rate', threshold: 0.1 })).body
    const start = (Math.floor(Date.now() / dayMs) + 1) * dayMs + 60_000
    const window = 15 * 60_000
    await used(person, start, { requests: 100, failed: 0, microcents: 0 })
    await evaluated(start)
    await used(person, start, { requests: 200, failed: 30, microcents: 0 })
    for (const [body, status] of [
      [{}, 400],
      [{ threshold: 5 }, 400],
      [{ window_minutes: 4 }, 400],
      [{ metric: 'spend' }, 400],
      [{ threshold: 0.5 }, 200],
    ] as const)
      expect([body, (await call(person, 'PATCH', `/${id}`, body)).status]).toEqual([body, status])
    expect(await evaluated(start + window)).toEqual([])
    expect((await call(other, 'PATCH', `/${id}`, { threshold: 0.1 })).status).toBe(404)
    const changed = await call(person, 'PATCH', `/${id}`, { threshold: 0.1, window_minutes: 5 })
    expect(changed.body).toMatchObject({ id, threshold: 0.1, window_minutes: 5, firing: false })
    await used(person, start, { requests: 300, failed: 130, microcents: 0 })
    // A new window begins: the requests before count nowhere.
    expect(await evaluated(start + window + 1_000)).toEqual([])
    await used(person, start, { requests: 400, failed: 150, microcents: 0 })
    const fired = await evaluated(start + window + 1_000 + 5 * 60_000)
    expect(fired).toMatchObject([{ threshold: 0.1, value: 0.2 }])
    const log = await sendRequest<{ data: { details: object }[] }>(
      gateway,
      'GET',
      '/api/v1/audit?action=alert.changed',
      {
        token: person.token,
      },
    )
    expect(log.body.data.map(item => item.details)).toEqual([{ threshold: 0.1, window_minutes: 5 }, { threshold: 0.5 }])
  })

  test('counts only the requests of its project, emails its admins, and names it in events', async () => {
    const person = await owner(gateway)
    const as = <T>(method: string, path: string, body?: unknown) =>
      sendRequest<T>(gateway, method, `/api/v1${path}`, { token: person.token, body })
    const made = async (name: string) => (await as<{ id: string }>('POST', '/projects', { name })).body.id
    const [text, other] = [await made('search'), await made('chat')]
    const [admin, member] = [await addMember(gateway, person, 'viewer'), await addMember(gateway, person, 'viewer')]
    await as('PUT', `/projects/${text}/members/${admin.id}`, { role: 'admin' })
    await as('PUT', `/projects/${text}/members/${member.id}`, { role: 'member' })
    const events = ['alert.fired', 'alert.resolved']
    for (const project_id of [null, other])
      await as('POST', '/webhooks', { url: 'https://example.com/', events, project_id })
    const created = await call(admin, 'POST', '', { metric: 'error_rate', threshold: 0.1, project_id: text })
    expect([created.status, created.body.project_id]).toEqual([201, text])
    expect((await call(admin, 'POST', '', { metric: 'spend', threshold: 5, project_id: text })).status).toBe(201)
    expect((await call(person, 'POST', '', { metric: 'spend', threshold: 500 })).status).toBe(201)
    const listed = async (by: Person) =>
      (await call<{ data: ShownAlert[] }>(by, 'GET')).body.data.map(({ project_id }) => project_id)
    expect([await listed(admin), await listed(person)]).toEqual([
      [text, text],
      [text, text, null],
    ])
    // A date of its own: evaluations of other tests store sums of other days.
    const start = (Math.floor(Date.now() / dayMs) + 3) * dayMs + 60_000
    const window = 15 * 60_000
    await used(person, start, { requests: 1_000, failed: 900, microcents: 600_000_000 })
    await used(person, start, { requests: 100, failed: 90, microcents: 0 }, text)
    await used(person, start, { requests: 500, failed: 500, microcents: 600_000_000 }, other)
    expect(await evaluated(start)).toEqual([])
    await used(person, start, { requests: 2_000, failed: 900, microcents: 600_000_000 })
    await used(person, start, { requests: 200, failed: 110, microcents: 0 }, text)
    const fired = await evaluated(start + window)
    expect(fired).toEqual([
      {
        metric: 'error_rate',
        threshold: 0.1,
        value: 0.2,
        project: 'search',
        texts: ['The share of failed requests is 20.0%'],
        recipients: expect.any(Array),
      },
    ])
    expect(fired[0]?.recipients.toSorted()).toEqual([admin.email, person.email].sort())
    const bodies = await sql(
      ({ sql: query }) => query<{ body: string }[]>`
        select body from webhook_deliveries where account_id = ${person.accountId}`,
    )
    expect(bodies.map(({ body }) => JSON.parse(body).data)).toEqual([
      {
        alert_id: created.body.id,
        metric: 'error_rate',
        threshold: 0.1,
        value: 0.2,
        text: 'search: The share of failed requests is 20.0%.',
        project_id: text,
        project_name: 'search',
      },
    ])
    // Another project: neither the state nor the window of the former one.
    const moved = await call(person, 'PATCH', `/${created.body.id}`, { project_id: other })
    expect(moved.body).toMatchObject({ project_id: other, firing: false, value: null, changed_at: null })
    // Rights that were checked for the former project do not reach it.
    const former = { id: created.body.id, project_id: text }
    expect(await deleteAlert(gateway.deps.database, person.accountId, former)).toBe('not_found')
    await used(person, start, { requests: 600, failed: 520, microcents: 600_000_000 }, other)
    expect(await evaluated(start + window + 60_000)).toEqual([])
    await used(person, start, { requests: 700, failed: 570, microcents: 600_000_000 }, other)
    expect(await evaluated(start + 2 * window + 60_000)).toMatchObject([{ value: 0.5, project: 'chat' }])
    expect([await listed(admin), (await call(admin, 'DELETE', `/${created.body.id}`)).status]).toEqual([[text], 404])
    await as('DELETE', `/projects/${other}`)
    expect((await call(person, 'POST', '', { metric: 'spend', threshold: 5, project_id: other })).status).toBe(404)
  })

  test('reports each budget of key, tag, project and account once per period, with the figures of the ledger', async () => {
    const person = await owner(gateway)
    const as = <T>(method: string, path: string, body?: unknown) =>
      sendRequest<T>(gateway, method, `/api/v1${path}`, { token: person.token, body })
    const project = (await as<{ id: string }>('POST', '/projects', { name: 'search', limits: { daily_cost_usd: 4 } }))
      .body.id
    const limits = { daily_cost_usd: 1, monthly_cost_usd: 5 }
    const intern = (await as<{ id: string }>('POST', '/keys', { name: 'intern', limits })).body.id
    const inProject = (await as<{ id: string }>('POST', '/keys', { name: 'job', project_id: project, limits })).body.id
    await as('PUT', '/tags', { name: 'team', value: 'a', limits: { monthly_cost_usd: 2 } })
    await as('POST', '/webhooks', { url: 'https://example.com/', events: ['budget.reached', 'alert.resolved'] })
    expect((await call(person, 'POST', '', { metric: 'budget', threshold: 1.2 })).status).toBe(400)
    expect((await call(person, 'POST', '', { metric: 'spend', threshold: 1, span: 'day' })).status).toBe(400)
    const all = (await call(person, 'POST', '', { metric: 'budget', threshold: 0.8 })).body
    expect(all).toMatchObject({ budget: null, span: null, firing: false, firing_subjects: 0, value: null })
    await call(person, 'POST', '', {
      metric: 'budget',
      threshold: 0.5,
      budget: 'key',
      span: 'month',
      project_id: project,
    })
    // The middle of a month that no other test uses.
    const now = new Date()
    const start = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 2, 15, 12)
    const day = (at: number) => new Date(at).toISOString().slice(0, 10)
    const spend = (at: number, usd: number, { key = 'none', tag }: { key?: string; tag?: string }) =>
      sql(
        ({ sql: query }) => query`
          insert into ${tag === undefined ? query`usage_daily (` : query`usage_tags_daily (tag,`} account_id, day, key_id, model,
            requests, completed, failed, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, billed_microcents)
          values (${tag === undefined ? query`` : query`${tag},`} ${person.accountId}, ${day(at)}::text::date, ${key}, 'a/b', 1, 1,
            0, 0, 0, 0, 0, ${usd * 1e8})`,
      )
    const texts = async (at: number) =>
      (await evaluated(at)).flatMap(({ threshold, texts: said }) => said.map(text => `${threshold} ${text}`)).sort()
    await spend(start, 0.85, { key: intern })
    await spend(start, 3.1, { key: inProject })
    await spend(start, 1.9, { tag: 'team=a' })
    await spend(start, 3.1, { tag: projectTag(project) })
    expect(await texts(start)).toEqual([
      `0.5 The key “job” used 62% of its budget of 5.00 USD for ${day(start).slice(0, 7)}`,
      `0.8 The account used 2323% of its budget of 0.17 USD for ${day(start)}`,
      `0.8 The key “intern” used 85% of its budget of 1.00 USD for ${day(start)}`,
      `0.8 The key “job” used 310% of its budget of 1.00 USD for ${day(start)}`,
      `0.8 The tag team=a used 95% of its budget of 2.00 USD for ${day(start).slice(0, 7)}`,
    ])
    // Another evaluation of the same period, as after a restart: state is only in the database.
    expect(await texts(start + 61_000)).toEqual([])
    const bodies = await sql(
      ({ sql: query }) => query<{ body: string }[]>`
        select body from webhook_deliveries where account_id = ${person.accountId} order by id`,
    )
    const sent = bodies.map(({ body }) => JSON.parse(body)).map(({ type, data }) => [type, data.budget, data.percent])
    expect(sent.toSorted()).toEqual([
      ['budget.reached', 'account', 80],
      ['budget.reached', 'key', 50],
      ['budget.reached', 'key', 80],
      ['budget.reached', 'key', 80],
      ['budget.reached', 'tag', 80],
    ])
    expect((await call<{ data: ShownAlert[] }>(person, 'GET')).body.data[0]).toMatchObject({ firing_subjects: 4 })
    // Names of keys are not in the alert's row.
    const [row] = await sql(({ sql: query }) => query`select * from alert_rules where id = ${all.id}`)
    expect(JSON.stringify(row)).not.toMatch(/intern|job|team/)
    // The next day: budgets of a day begin again, those of the month stay reported.
    await spend(start + dayMs, 0.9, { key: intern })
    expect(await texts(start + dayMs)).toEqual([
      `0.8 The account used 529% of its budget of 0.17 USD for ${day(start + dayMs)}`,
      `0.8 The key “intern” used 90% of its budget of 1.00 USD for ${day(start + dayMs)}`,
    ])
    const total = (
      await sql(({ sql: query }) => query`select from webhook_deliveries where account_id = ${person.accountId}`)
    ).length
    expect(total).toBe(7)
  })

  test('fires for a model whose calls fail, and for a session whose cache share collapses', async () => {
    const person = await owner(gateway)
    await call(person, 'POST', '', { metric: 'model_failures', threshold: 0.9 })
    await call(person, 'POST', '', { metric: 'cache_drop', threshold: 0.5 })
    const start = (Math.floor(Date.now() / dayMs) - 2) * dayMs + 12 * 3_600_000
    type Row = { readonly at: number; readonly tried: unknown; readonly session?: string; readonly cached?: number }
    let count = 0
    const record = ({ at, tried, session, cached = 0 }: Row) =>
      sql(
        ({ sql: query }) => query`
          insert into usage_records (request_id, at, account_id, key_id, provider, model, routing_mode, streamed, status,
            input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, estimated,
            billed_microcents, reserved_microcents, attempts, latency_ms, tried, tags)
          values (${`req_alert_${person.accountId}_${++count}`}, ${new Date(at).toISOString()}::text::timestamptz, ${person.accountId},
            'k', 'a', 'b', 'auto', false, 'completed', 1000, ${cached}, 0, 1, 0, false, 0, 0, 1, 1,
            ${JSON.stringify(tried)}::text::jsonb, ${session === undefined ? null : JSON.stringify({ session })}::text::jsonb)`,
      )
    const failed = [
      ['x/down', 'overloaded', 0, 5],
      ['y/up', 'served', 5, 9],
    ]
    const refused = [['y/up', 'request_refused', 0, 5]]
    const at = (minutes: number) => start + minutes * 60_000
    for (const minute of [1, 2, 3]) {
      await record({ at: at(minute), tried: failed, session: 'steady', cached: 800 })
      await record({ at: at(minute), tried: refused, session: 'broken', cached: 900 })
    }
    await sql(
      ({ sql: query }) => query`update alert_rules set due_at = ${new Date(at(4)).toISOString()}::text::timestamptz`,
    )
    const fired = async (minutes: number) => (await evaluated(at(minutes))).flatMap(({ texts }) => texts)
    expect(await fired(4)).toEqual(['100% of 3 calls of x/down failed'])
    for (const minute of [20, 21, 22]) {
      await record({ at: at(minute), tried: [], session: 'steady', cached: 700 })
      await record({ at: at(minute), tried: [], session: 'broken', cached: 90 })
    }
    expect(await fired(23)).toEqual(['The cached share of input tokens in session broken fell from 90% to 9%'])
    expect(await fired(25)).toEqual([])
    // Between two requests of a slow session its window holds too few; it is still the same loss.
    expect(await fired(36)).toEqual([])
    for (const minute of [37, 38, 39]) await record({ at: at(minute), tried: [], session: 'broken', cached: 90 })
    expect(await fired(40)).toEqual([])
    for (const minute of [41, 42, 43]) await record({ at: at(minute), tried: [['x/down', 'served', 0, 5]] })
    expect(await fired(44)).toEqual([])
    const { data } = (await call<{ data: ShownAlert[] }>(person, 'GET')).body
    expect(data.map(({ metric, firing }) => [metric, firing])).toEqual([
      ['model_failures', false],
      ['cache_drop', true],
    ])
  })

  test('fires for each model with requests of unknown price, and resolves when their price is known', async () => {
    const person = await owner(gateway)
    await call(person, 'POST', '', { metric: 'unpriced', threshold: 2, window_minutes: 5 })
    const start = (Math.floor(Date.now() / dayMs) - 3) * dayMs + 12 * 3_600_000
    const at = (minutes: number) => new Date(start + minutes * 60_000).toISOString()
    let count = 0
    const record = (minutes: number, model: string, unpriced: string | null) =>
      sql(
        ({ sql: query }) => query`
          insert into usage_records (request_id, at, account_id, key_id, provider, model, routing_mode, streamed, status,
            input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, estimated,
            billed_microcents, reserved_microcents, attempts, latency_ms, unpriced)
          values (${`req_unpriced_${person.accountId}_${++count}`}, ${at(minutes)}::text::timestamptz, ${person.accountId},
            'k', 'a', ${model}, 'auto', false, 'completed', 1000, 0, 0, 1, 0, false, 0, 0, 1, 1, ${unpriced})`,
      )
    for (const minute of [1, 2]) await record(minute, 'new', 'model')
    for (const minute of [1, 2]) await record(minute, 'old', null)
    await record(2, 'rare', 'tier')
    await sql(({ sql: query }) => query`update alert_rules set due_at = ${at(3)}::text::timestamptz`)
    const fired = async (minutes: number) => (await evaluated(start + minutes * 60_000)).flatMap(({ texts }) => texts)
    expect(await fired(3)).toEqual(['The price of 2 requests of a/new is not fully known'])
    expect(await fired(4)).toEqual([])
    const state = async () => (await call<{ data: ShownAlert[] }>(person, 'GET')).body.data.map(item => item.firing)
    expect(await state()).toEqual([true])
    await record(9, 'new', null)
    expect([await fired(10), await state()]).toEqual([[], [false]])
  })

  test('sends the stored email of a killed gateway once, by one of two others', async () => {
    const person = await owner(gateway)
    await call(person, 'POST', '', { metric: 'spend', threshold: 5 })
    const start = (Math.floor(Date.now() / dayMs) + 12) * dayMs
    await used(person, start, { requests: 1, failed: 0, microcents: 600_000_000 })
    // The gateway that evaluates sends nothing: it is killed after the commit.
    expect(await evaluated(start)).toMatchObject([{ metric: 'spend', recipients: [person.email] }])
    const sent: (readonly [string, readonly string[], string | undefined])[] = []
    let [answer, at]: [Delivery, number] = ['failed', start]
    const worker = () =>
      startNoticeWorker({
        database: gateway.deps.database,
        clock: { ...gateway.deps.clock, now: () => at },
        log: gateway.deps.log,
        ...withoutTimer,
        post: {
          billing: async () => 'refused',
          async alert(to, { texts }, id) {
            if (to === person.email) sent.push([to, texts, id])
            return answer
          },
        },
      })
    const workers = [worker(), worker()]
    const run = () => Promise.all(workers.map(({ run: start }) => start()))
    await run()
    expect(sent.length).toBe(1)
    answer = 'sent'
    at += 3_600_000
    await run()
    await run()
    expect(sent.length).toBe(2)
    expect(sent[0]).toEqual(sent[1])
    expect(sent[0]?.[1]).toEqual(['The spend of this UTC day is 6.00 USD'])
    // No name stays after the email.
    const left = await sql(({ sql: query }) => query`select from email_notices where account_id = ${person.accountId}`)
    expect(left.length).toBe(0)
    await Promise.all(workers.map(({ close }) => close()))
  })

  test('delays no other alert when its evaluation fails', async () => {
    const person = await owner(gateway)
    const broken = (await call(person, 'POST', '', { metric: 'error_rate', threshold: 0.1 })).body.id
    await call(person, 'POST', '', { metric: 'spend', threshold: 5 })
    const start = (Math.floor(Date.now() / dayMs) + 9) * dayMs
    await used(person, start, { requests: 1, failed: 0, microcents: 600_000_000 })
    await sql(
      ({ sql: query }) => query`
        update alert_rules set since = '{"day": "no day"}', due_at = '2020-01-01' where id = ${broken}`,
    )
    const failed: unknown[] = []
    expect(await evaluated(start, failed)).toMatchObject([{ metric: 'spend' }])
    expect(failed).toEqual(['22007'])
    // It waits for its next turn.
    expect(await evaluated(start + 4 * 60_000, failed)).toEqual([])
    await evaluated(start + 6 * 60_000, failed)
    expect(failed.length).toBe(2)
  })

  test('limit: 20 alerts of the account and of each project', async () => {
    const person = await owner(gateway)
    const body = { name: 'search' }
    const { id } = (
      await sendRequest<{ id: string }>(gateway, 'POST', '/api/v1/projects', { token: person.token, body })
    ).body
    const add = async (projectId: string | null) =>
      (await call(person, 'POST', '', { metric: 'spend', threshold: 5, project_id: projectId })).status
    for (let count = 0; count < maximumAlerts; count++) expect(await add(id)).toBe(201)
    expect([await add(id), await add(null)]).toEqual([409, 201])
    const { data } = (await call<{ data: ShownAlert[] }>(person, 'GET')).body
    expect((await call(person, 'PATCH', `/${data.at(-1)?.id}`, { project_id: id })).status).toBe(409)
  })

  test('belongs to owners and admins of its account, and has valid thresholds', async () => {
    const [person, other] = [await owner(gateway), await owner(gateway)]
    const member = await addMember(gateway, person, 'member')
    expect((await call(member, 'GET')).status).toBe(403)
    expect((await call(member, 'POST', '', { metric: 'spend', threshold: 5 })).status).toBe(403)
    for (const body of [
      { metric: 'error_rate', threshold: 5 },
      { metric: 'spend', threshold: 0 },
      { metric: 'luck', threshold: 1 },
      { metric: 'latency', threshold: 500, window_minutes: 4 },
    ])
      expect([body, (await call(person, 'POST', '', body)).status]).toEqual([body, 400])
    const { id } = (await call(person, 'POST', '', { metric: 'latency', threshold: 500 })).body
    const viewer = await addMember(gateway, person, 'viewer')
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['POST', '', { metric: 'spend', threshold: 5 }],
      ['PATCH', `/${id}`, { threshold: 6 }],
      ['POST', `/${id}/test`, undefined],
      ['DELETE', `/${id}`, undefined],
    ] as const) {
      expect([method, (await call(viewer, method, path, body)).status]).toEqual([method, 403])
      expect([method, (await call(member, method, path, body)).status]).toEqual([method, 403])
      if (path !== '') expect([method, (await call(other, method, path, body)).status]).toEqual([method, 404])
    }
    // Budgets of the account and of tags are in no project: such an alert would never fire.
    const name = { name: 'search' }
    const project = await sendRequest<{ id: string }>(gateway, 'POST', '/api/v1/projects', {
      token: person.token,
      body: name,
    })
    const in_project = { project_id: project.body.id }
    for (const budget of ['account', 'tag']) {
      const body = { metric: 'budget', threshold: 0.8, budget }
      expect((await call(person, 'POST', '', { ...body, ...in_project })).status).toBe(400)
      const made = (await call(person, 'POST', '', body)).body.id
      expect((await call(person, 'PATCH', `/${made}`, in_project)).status).toBe(400)
    }
    expect((await call(other, 'DELETE', `/${id}`)).status).toBe(404)
    expect((await call(person, 'DELETE', `/${id}`)).status).toBe(204)
  })
})
