/** Alerts: the thresholds as a table, their evaluation from daily sums, and who may manage them. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ShownAlert } from '../../src/console/alerts/schemas.ts'
import { deleteAlert, evaluateNextAlert, type FiredAlert } from '../../src/console/alerts/store.ts'
import { alertChange, maximumAlerts, sumsBetween, windowValue } from '../../src/core/alerts/alerts.ts'
import { projectTag } from '../../src/core/request/tags.ts'
import { dayMs } from '../../src/core/text/utc-days.ts'
import { type Gateway, startGateway, withoutTimer } from '../harness/gateway.ts'
import { addMember, owner, type Person, sendRequest } from '../harness/users.ts'

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' }, withoutTimer)
}, 240_000)
afterAll(() => gateway.stop())

describe('alert rule', () => {
  test('fires once at its threshold, and resolves below 80% of it', () => {
    let isFiring = false
    const changes = [0.04, 0.05, 0.06, 0.045, null, 0.041, 0.039, 0.045, 0.05].map(value => {
      const change = alertChange({ isFiring, threshold: 0.05 }, value)
      if (change !== null) isFiring = change === 'fired'
      return change
    })
    expect(changes).toEqual([null, 'fired', null, null, null, null, 'resolved', null, 'fired'])
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
async function evaluated(at: number): Promise<FiredAlert[]> {
  const fired: FiredAlert[] = []
  for (;;) {
    const results = await Promise.all([1, 2, 3].map(() => evaluateNextAlert(gateway.deps.database, at)))
    fired.push(...results.filter(result => result !== null && result !== 'none'))
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
        project_id: text,
        project_name: 'search',
      },
    ])
    // Another project: neither the state nor the window of the former one.
    const moved = await call(person, 'PATCH', `/${created.body.id}`, { project_id: other })
    expect(moved.body).toMatchObject({ project_id: other, firing: false, value: null, changed_at: null })
    // Rights that were checked for the former project do not reach it.
    const former = { id: created.body.id, projectId: text }
    expect(await deleteAlert(gateway.deps.database, person.accountId, former)).toBe(false)
    await used(person, start, { requests: 600, failed: 520, microcents: 600_000_000 }, other)
    expect(await evaluated(start + window + 60_000)).toEqual([])
    await used(person, start, { requests: 700, failed: 570, microcents: 600_000_000 }, other)
    expect(await evaluated(start + 2 * window + 60_000)).toMatchObject([{ value: 0.5, project: 'chat' }])
    expect([await listed(admin), (await call(admin, 'DELETE', `/${created.body.id}`)).status]).toEqual([[text], 404])
    await as('DELETE', `/projects/${other}`)
    expect((await call(person, 'POST', '', { metric: 'spend', threshold: 5, project_id: other })).status).toBe(404)
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
    expect((await call(other, 'DELETE', `/${id}`)).status).toBe(404)
    expect((await call(person, 'DELETE', `/${id}`)).status).toBe(204)
  })
})
