/**
 * Projects over HTTP: the matrix of routes, roles and projects, and the enforcement, records and totals of a project's requests.
 * One account has the projects `one` and `other`; each has a key of its own whose requests carry a canary.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import type { ProjectRole } from '../../src/core/accounts/roles.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, createKeyFor, owner, type Person, sendRequest, upgraded } from '../harness/users.ts'

setDefaultTimeout(240_000)

const people = [
  'owner',
  'admin',
  'member',
  'viewer',
  'admin of one',
  'member of one',
  'viewer of one',
  'admin of other',
  'foreign owner',
] as const
type Name = (typeof people)[number]
type Project = { readonly id: string; readonly key: { readonly id: string; readonly key: string } }

let gateway: Gateway
const persons = new Map<Name, Person>()
const projects = new Map<'one' | 'other', Project>()
/** ID of an alert of the project `one`. */
let alertOfOne = ''

const person = (name: Name): Person => {
  const found = persons.get(name)
  if (found === undefined) throw new Error(`no ${name}`)
  return found
}
const project = (name: 'one' | 'other'): Project => {
  const found = projects.get(name)
  if (found === undefined) throw new Error(`no project ${name}`)
  return found
}

/** One request as one of the people; `path` is below `/api/v1`. */
const as = <T = Record<string, unknown>>(name: Name, method: string, path: string, body?: object) =>
  sendRequest<T>(gateway, method, `/api/v1${path}`, {
    token: person(name).token,
    ...(body === undefined ? {} : { body }),
  })

const chat = (key: string, fields: object = {}, headers: Record<string, string> = {}) =>
  gateway.post(
    '/api/v1/chat',
    { model: 'gpt-5.5', prompt: 'Say hello.', max_output_tokens: 20, web: 'off', ...fields },
    { authorization: `Bearer ${key}`, ...headers },
  )

beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  const boss = await owner(gateway)
  await upgraded(gateway, boss)
  persons.set('owner', boss)
  persons.set('foreign owner', await owner(gateway))
  for (const role of ['admin', 'member', 'viewer'] as const) persons.set(role, await addMember(gateway, boss, role))
  for (const name of ['admin of one', 'member of one', 'viewer of one', 'admin of other'] as const)
    persons.set(name, await addMember(gateway, boss, 'viewer'))
  for (const name of ['one', 'other'] as const) {
    const { body } = await as<{ id: string }>('owner', 'POST', '/projects', { name: `canary project ${name}` })
    const made = await as<{ id: string; key: string }>('owner', 'POST', '/keys', {
      name: `canary key ${name}`,
      project_id: body.id,
    })
    expect(made.status).toBe(201)
    projects.set(name, { id: body.id, key: made.body })
  }
  const join = async (name: Name, where: 'one' | 'other', role: ProjectRole) => {
    const path = `/projects/${project(where).id}/members/${person(name).id}`
    expect((await as('owner', 'PUT', path, { role })).status).toBe(200)
  }
  await join('admin of one', 'one', 'admin')
  await join('member of one', 'one', 'member')
  await join('viewer of one', 'one', 'viewer')
  await join('admin of other', 'other', 'admin')
  for (const name of ['one', 'other'] as const) {
    const answer = await chat(project(name).key.key, { metadata: { note: `canary request ${name}` } })
    expect(answer.status).toBe(200)
    expect((await chat(project(name).key.key, { model: `canary model ${name}` })).status).toBe(404)
  }
  const alert = { metric: 'spend', threshold: 5, project_id: project('one').id }
  alertOfOne = (await as<{ id: string }>('owner', 'POST', '/alerts', alert)).body.id
  const plain = await createKeyFor(gateway, person('owner'), 'canary key none')
  expect((await chat(plain.key, { metadata: { note: 'canary request none' } })).status).toBe(200)
  const counted = async () => (await as<{ total: { requests: number } }>('owner', 'GET', '/usage')).body.total.requests
  await eventually(async () => (await counted()) === 3, 15_000)
}, 240_000)
afterAll(() => gateway.stop())

describe('projects', () => {
  type Row = readonly [route: string, path: () => string, body: (() => object) | undefined, expected: readonly number[]]
  const item = () => `/projects/${project('one').id}`
  const keyOfOne = () => `/keys/${project('one').key.id}`
  const alert = () => `/alerts/${alertOfOne}`
  // Statuses in the order of `people`. 404 = a project that the user does not see is like a missing one.
  const table: readonly Row[] = [
    ['GET project', item, undefined, [200, 200, 404, 404, 200, 200, 200, 404, 404]],
    ['PATCH project', item, () => ({ name: 'canary project one' }), [200, 200, 403, 403, 200, 403, 403, 404, 404]],
    ['PATCH project', item, () => ({ limits: null }), [200, 200, 403, 403, 403, 403, 403, 404, 404]],
    ['DELETE project', item, undefined, [409, 409, 403, 403, 403, 403, 403, 403, 404]],
    [
      'PUT viewer',
      () => `${item()}/members/${person('viewer of one').id}`,
      () => ({ role: 'viewer' }),
      [200, 200, 403, 403, 200, 403, 403, 404, 404],
    ],
    [
      'PUT admin',
      () => `${item()}/members/${person('member of one').id}`,
      () => ({ role: 'admin' }),
      [-1, -1, 403, 403, 403, 403, 403, 404, 404],
    ],
    ['DELETE member', () => `${item()}/members/usr_missing`, undefined, [404, 404, 403, 403, 404, 403, 403, 404, 404]],
    [
      'POST key',
      () => '/keys',
      () => ({ name: 'canary key one', project_id: project('one').id }),
      [201, 201, 404, 403, 201, 201, 403, 404, 404],
    ],
    ['POST key', () => '/keys', () => ({ name: 'mine' }), [201, 201, 201, 403, 403, 403, 403, 403, 201]],
    ['GET key', keyOfOne, undefined, [200, 200, 404, 404, 200, 200, 200, 404, 404]],
    ['PATCH key', keyOfOne, () => ({ name: 'canary key one' }), [200, 200, 404, 403, 200, 403, 403, 404, 404]],
    ['PATCH key', keyOfOne, () => ({ project_id: project('other').id }), [-1, -1, 404, 403, 404, 403, 403, 404, 404]],
    ['PATCH key', keyOfOne, () => ({ project_id: null }), [-1, -1, 404, 403, 403, 403, 403, 404, 404]],
    ['DELETE key', keyOfOne, undefined, [-1, -1, 404, 403, -1, 403, 403, 404, 404]],
    [
      'POST alert',
      () => '/alerts',
      () => ({ metric: 'spend', threshold: 5, project_id: project('one').id }),
      [201, 201, 403, 403, 201, 403, 403, 404, 404],
    ],
    [
      'POST alert',
      () => '/alerts',
      () => ({ metric: 'spend', threshold: 5 }),
      [201, 201, 403, 403, 403, 403, 403, 403, 201],
    ],
    [
      'POST webhook',
      () => '/webhooks',
      () => ({ url: 'https://example.com/', project_id: project('one').id }),
      [201, 201, 403, 403, 403, 403, 403, 403, 404],
    ],
    ['GET alerts', () => '/alerts', undefined, [200, 200, 403, 403, 200, 403, 403, 200, 200]],
    ['PATCH alert', alert, () => ({ threshold: 6 }), [200, 200, 403, 403, 200, 403, 403, 404, 404]],
    ['PATCH alert', alert, () => ({ project_id: project('other').id }), [-1, -1, 403, 403, 404, 403, 403, 404, 404]],
    ['PATCH alert', alert, () => ({ project_id: null }), [-1, -1, 403, 403, 403, 403, 403, 404, 404]],
    ['DELETE alert', alert, undefined, [-1, -1, 403, 403, -1, 403, 403, 404, 404]],
  ]

  test('each route × role × project: answers as the table says', async () => {
    const wrong: string[] = []
    for (const [route, path, body, expected] of table)
      for (const [index, name] of people.entries()) {
        if (expected[index] === -1) continue
        const [method = ''] = route.split(' ')
        const { status } = await as(name, method, path(), body?.())
        if (status !== expected[index])
          wrong.push(`${name}: ${route} ${JSON.stringify(body?.())} → ${status}, not ${expected[index]}`)
      }
    expect(wrong).toEqual([])
  })

  test('every GET route of a session × role: contains no data of a project that the user is not in', async () => {
    const seen: Record<Name, readonly string[]> = {
      owner: ['one', 'other', 'none'],
      admin: ['one', 'other', 'none'],
      member: [],
      viewer: [],
      'admin of one': ['one'],
      'member of one': ['one'],
      'viewer of one': ['one'],
      'admin of other': ['other'],
      'foreign owner': [],
    }
    const log = await as<{ data: { request_id: string }[] }>('owner', 'GET', '/requests')
    const rejected = await as<{ data: { request_id: string }[] }>('owner', 'GET', '/requests?status=rejected')
    const requests = [...log.body.data, ...rejected.body.data].map(({ request_id }) => request_id)
    expect(requests.length).toBeGreaterThanOrEqual(3)
    const ids = [...projects.values()].map(({ id }) => id)
    const paths = createApp(gateway.deps)
      .routes.filter(
        ({ method, hooks }) => method === 'GET' && JSON.stringify(hooks?.detail ?? {}).includes('"session"'),
      )
      .flatMap(({ path }) =>
        path.includes(':')
          ? (path.includes('/requests/') ? requests : ids).map(id => path.replace(/:\w+/, id))
          : [path],
      )
    const queries = ['one', 'other'].flatMap(name => {
      const { id } = project(name === 'one' ? 'one' : 'other')
      const groups = ['hour', 'day', 'model', 'key', 'member', 'tag', 'project']
      return [
        ...groups.map(group => `/api/v1/usage?group_by=${group}&project_id=${id}`),
        ...[`/api/v1/requests?project_id=${id}`, `/api/v1/requests/export?format=csv&project_id=${id}`],
        ...[`/api/v1/usage?group_by=key&project_id=${id}`, `/api/v1/keys?project_id=${id}`],
      ]
    })
    const groups = [
      ...['hour', 'day', 'model', 'key', 'member', 'tag', 'project'].map(group => `/api/v1/usage?group_by=${group}`),
      ...['day', 'hour'].map(group => `/api/v1/usage?group_by=${group}&split_by=project`),
    ]
    const wrong: string[] = []
    const reached = new Map<Name, Set<string>>(people.map(name => [name, new Set()]))
    const visit = async (path: string, name: Name) => {
      // Exports are not JSON.
      const answer = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${person(name).token}` } })
      const [status, text] = [answer.status, await answer.text()]
      if (status >= 500 || status === 429) wrong.push(`${name}: ${path} → ${status}`)
      const found = [...text.matchAll(/canary (?:project|key|request) (one|other|none)/g)].map(([, of = '']) => of)
      for (const of of found) reached.get(name)?.add(of)
      for (const of of new Set(found)) if (!seen[name].includes(of)) wrong.push(`${name}: ${path} has data of ${of}`)
    }
    // An account runs two exports at once.
    for (const path of new Set([...paths, ...queries, ...groups, '/api/v1/requests?status=rejected']))
      if (path.includes('/export')) for (const name of people) await visit(path, name)
      else await Promise.all(people.map(name => visit(path, name)))
    expect(wrong).toEqual([])
    // Each user does see what the role allows.
    expect(Object.fromEntries([...reached].map(([name, of]) => [name, [...of].sort()]))).toEqual(
      Object.fromEntries(people.map(name => [name, [...seen[name]].sort()])),
    )
  })

  test('usage × role: counts the requests of the user’s projects and no others', async () => {
    type Usage = {
      total: { requests: number }
      data: { project_id?: string; project_name?: string; requests: number }[]
    }
    const usage = async (name: Name, query = '') => (await as<Usage>(name, 'GET', `/usage?${query}`)).body
    const counts = async (query: string) =>
      Object.fromEntries(await Promise.all(people.map(async name => [name, (await usage(name, query)).total.requests])))
    const [own, none] = [
      { member: 0, viewer: 0, 'foreign owner': 0 },
      { 'admin of one': 0, 'member of one': 0, 'viewer of one': 0, 'admin of other': 0 },
    ]
    const inOne = { 'admin of one': 1, 'member of one': 1, 'viewer of one': 1 }
    for (const group of ['day', 'hour', 'model', 'key', 'project'])
      expect([group, await counts(`group_by=${group}`)]).toEqual([
        group,
        { owner: 3, admin: 3, ...own, ...inOne, 'admin of other': 1 },
      ])
    for (const group of ['day', 'hour', 'model', 'key', 'project', 'tag'])
      expect([group, await counts(`group_by=${group}&project_id=${project('one').id}`)]).toEqual([
        group,
        { owner: 1, admin: 1, ...own, ...none, ...inOne },
      ])
    const byProject = (await usage('owner', 'group_by=project')).data.map(entry => [entry.project_name, entry.requests])
    expect(byProject.sort()).toEqual([
      ['canary project one', 1],
      ['canary project other', 1],
    ])
    // A chart has a part without a project too, so that its columns add up to the total.
    type Split = { total: { requests: number }; series: { project_name: string | null; requests: number[] }[] }
    const split = async (name: Name, query: string) => {
      const { total, series } = (await as<Split>(name, 'GET', `/usage?split_by=project&${query}`)).body
      const parts = series.map(
        sery => [sery.project_name, sery.requests.reduce((sum, count) => sum + count, 0)] as const,
      )
      return [total.requests, Object.fromEntries(parts)]
    }
    const ofOne = { 'canary project one': 1 }
    for (const query of ['group_by=day', 'group_by=hour', 'group_by=month&model=openai/gpt-5.5']) {
      const all = { ...ofOne, 'canary project other': 1, null: 1 }
      expect([query, await split('owner', query)]).toEqual([query, [3, all]])
      expect([query, await split('viewer of one', query)]).toEqual([query, [1, ofOne]])
      expect([query, await split('member', query)]).toEqual([query, [0, {}]])
      expect([query, await split('owner', `${query}&project_id=${project('one').id}`)]).toEqual([query, [1, ofOne]])
    }
    expect(await split('owner', 'tag=note%3Dcanary%20request%20one')).toEqual([1, ofOne])
    const tags = await as<{ data: { tag: string }[] }>('owner', 'GET', '/usage?group_by=tag')
    expect(tags.body.data.map(({ tag }) => tag).filter(tag => tag.startsWith('$'))).toEqual([])
    const noted = await usage('owner', 'group_by=project&tag=note%3Dcanary%20request%20one')
    expect(noted.data.map(({ project_id, requests }) => [project_id, requests])).toEqual([[project('one').id, 1]])
    expect((await as('admin of one', 'GET', '/usage?group_by=tag&from=2026-01-01&to=2026-03-31')).status).toBe(400)
    // The tag of the gateway is no tag of a client.
    expect((await as('owner', 'GET', `/usage?tag=%24project%3D${project('one').id}`)).status).toBe(400)
  })
})

test('project of a request: the key’s at that time, after the key has moved as well', async () => {
  const name = (await as<{ id: string }>('owner', 'POST', '/projects', { name: 'before' })).body.id
  const later = (await as<{ id: string }>('owner', 'POST', '/projects', { name: 'after' })).body.id
  const key = (await as<{ id: string; key: string }>('owner', 'POST', '/keys', { name: 'moved', project_id: name }))
    .body
  // Neither a header nor metadata can name a project.
  const forged = { 'x-gateway-tags': `project=${later}` }
  expect((await chat(key.key, { metadata: { $project: later } }, forged)).status).toBe(200)
  expect((await chat(key.key, {}, { 'x-gateway-tags': `$project=${later}` })).status).toBe(400)
  const moved = await as<{ project_id: string }>('owner', 'PATCH', `/keys/${key.id}`, { project_id: later })
  expect([moved.status, moved.body.project_id]).toEqual([200, later])
  type Log = { data: { project_id: string | null; tags: object | null }[] }
  await eventually(async () => {
    await chat(key.key)
    return (await as<Log>('owner', 'GET', `/requests?project_id=${later}`)).body.data.length > 0
  }, 240_000)
  const { data } = (await as<Log>('owner', 'GET', `/requests?project_id=${name}`)).body
  // The oldest one: until the move is announced, further requests count in the former project.
  expect(data.at(-1)?.tags).toEqual({ project: later })
  expect(new Set(data.map(({ project_id }) => project_id))).toEqual(new Set([name]))
  // A key moves only to a project where its user may have keys.
  const own = (await as<{ id: string }>('member', 'POST', '/keys', { name: 'of a member' })).body.id
  const refused = await as<{ error: { message: string } }>('owner', 'PATCH', `/keys/${own}`, { project_id: later })
  expect([refused.status, refused.body.error.message]).toEqual([
    404,
    expect.stringContaining('may not have keys there'),
  ])
  // A project's admin moves keys of others only to where it manages all keys.
  const ofOne = { name: 'of the member', project_id: project('one').id }
  const foreign = (await as<{ id: string }>('member of one', 'POST', '/keys', ofOne)).body.id
  await as('owner', 'PATCH', `/team/${person('admin of one').id}`, { role: 'member' })
  expect((await as('admin of one', 'PATCH', `/keys/${foreign}`, { project_id: null })).status).toBe(403)
  await as('owner', 'PATCH', `/team/${person('admin of one').id}`, { role: 'viewer' })
  const rotated = await as<{ project_id: string }>('owner', 'POST', `/keys/${key.id}/rotate`, {})
  expect(rotated.body.project_id).toBe(later)
})

test.each([
  ['requests_per_minute_exceeded', 'project.requests_per_minute', { requests_per_minute: 0 }],
  ['concurrent_requests_exceeded', 'project.concurrent_requests', { concurrent_requests: 0 }],
  ['daily_tokens_exceeded', 'project.daily_tokens', { daily_tokens: 1 }],
  ['daily_cost_exceeded', 'project.daily_cost_usd', { daily_cost_usd: 0 }],
  ['monthly_cost_exceeded', 'project.monthly_cost_usd', { monthly_cost_usd: 0 }],
])('project limits: %s names %s, and other keys of the account go on', async (code, limit, limits) => {
  const { body } = await as<{ id: string; limits: object }>('owner', 'POST', '/projects', { name: code, limits })
  expect(body.limits).toMatchObject(limits)
  const key = (await as<{ key: string }>('owner', 'POST', '/keys', { name: code, project_id: body.id })).body.key
  const answer = await chat(key)
  const told = (await answer.json()) as { readonly error: object }
  expect(told.error).toMatchObject({ code, limit, message: expect.stringContaining('the project of this API key') })
  expect(answer.headers.get('x-gateway-limit')).toBe(limit)
  expect((await chat(project('one').key.key)).status).toBe(200)
  // Without its limits, the project's requests pass.
  expect((await as('owner', 'PATCH', `/projects/${body.id}`, { limits: null })).status).toBe(200)
  await eventually(async () => (await chat(key)).status === 200, 5_000)
})

test('keys in a project: end with the role that allowed them, and stay with a role that allows them', async () => {
  const user = await addMember(gateway, person('owner'), 'viewer')
  persons.set('viewer', user)
  const { id } = (await as<{ id: string }>('owner', 'POST', '/projects', { name: 'roles' })).body
  const set = (role: ProjectRole) => as('owner', 'PUT', `/projects/${id}/members/${user.id}`, { role })
  const make = async () => (await as<{ id: string }>('viewer', 'POST', '/keys', { name: 'k', project_id: id })).body.id
  type Keys = { data: { id: string; revoked_at: string | null }[] }
  const active = async () =>
    (await as<Keys>('owner', 'GET', `/keys?project_id=${id}`)).body.data.filter(item => item.revoked_at === null).length
  expect((await set('member')).status).toBe(200)
  await make()
  expect((await set('admin')).status).toBe(200)
  expect(await active()).toBe(1)
  // A role in the account does not end the keys of a project.
  expect((await as('owner', 'PATCH', `/team/${user.id}`, { role: 'member' })).status).toBe(200)
  expect((await as('owner', 'PATCH', `/team/${user.id}`, { role: 'viewer' })).status).toBe(200)
  expect(await active()).toBe(1)
  expect((await set('viewer')).status).toBe(200)
  expect(await active()).toBe(0)
  expect((await set('member')).status).toBe(200)
  await make()
  expect((await as('owner', 'DELETE', `/projects/${id}/members/${user.id}`)).status).toBe(204)
  expect(await active()).toBe(0)
  expect((await as('viewer', 'GET', `/projects/${id}`)).status).toBe(404)
  expect((await set('member')).status).toBe(200)
  const expired = await make()
  await gateway.deps.database.run(
    ({ sql }) => sql`update api_keys set expires_at = clock_timestamp() - interval '1 minute' where id = ${expired}`,
  )
  expect((await as('owner', 'DELETE', `/projects/${id}`)).status).toBe(204)
  expect((await as('owner', 'DELETE', `/projects/${id}`)).status).toBe(204)
  // An expired key of an archived project stays expired, and its members can leave.
  expect((await as('owner', 'PATCH', `/keys/${expired}`, { expires_at: null })).status).toBe(409)
  expect((await as('viewer', 'GET', `/projects/${id}`)).status).toBe(200)
  expect((await as('owner', 'DELETE', `/projects/${id}/members/${user.id}`)).status).toBe(204)
  expect((await as('viewer', 'GET', `/projects/${id}`)).status).toBe(404)
  expect((await as('owner', 'POST', '/keys', { name: 'late', project_id: id })).status).toBe(404)
  expect((await set('member')).status).toBe(409)
  type Entry = { data: { action: string; target: string | null }[] }
  const entries = (await as<Entry>('owner', 'GET', '/audit?limit=200')).body.data.filter(({ target }) => target === id)
  expect(entries.map(({ action }) => action)).toEqual([
    'project.member_removed',
    'project.archived',
    'project.member_added',
    'project.member_removed',
    'project.member_role_changed',
    'project.member_role_changed',
    'project.member_role_changed',
    'project.member_added',
    'project.created',
  ])
})

test('invitations: a user joins the account and a project, and sees only that project', async () => {
  const { id } = (await as<{ id: string }>('owner', 'POST', '/projects', { name: 'joined' })).body
  const invite = (fields: object) =>
    as<{ id: string; token: string; project_role: string }>('owner', 'POST', '/team/invitations', {
      email: `guest-${id.toLowerCase()}@example.test`,
      role: 'viewer',
      ...fields,
    })
  expect((await invite({ project_id: 'prj_missing' })).status).toBe(404)
  expect((await invite({ project_role: 'admin' })).status).toBe(400)
  const { body } = await invite({ project_id: id, project_role: 'member' })
  expect(body.project_role).toBe('member')
  const joined = await sendRequest<{ token: string }>(
    gateway,
    'POST',
    `/api/v1/team/invitations/${body.token}/accept`,
    {
      body: { password: 'a password of a guest' },
    },
  )
  const { token } = joined.body
  const listed = await sendRequest<{ data: { id: string; role: string }[] }>(gateway, 'GET', '/api/v1/projects', {
    token,
  })
  expect(listed.body.data.map(item => [item.id, item.role])).toEqual([[id, 'member']])
  const make = (project_id: string) =>
    sendRequest(gateway, 'POST', '/api/v1/keys', { token, body: { name: 'guest', project_id } })
  expect([(await make(id)).status, (await make(project('one').id)).status]).toEqual([201, 404])
})
