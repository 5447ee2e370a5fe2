/** Every route of the console, from its table: wrong bodies, IDs of other accounts, and scopes of management keys. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { moveOperator } from '../../src/console/provider-keys/store.ts'
import { actions, managementScopes, neededScope } from '../../src/core/accounts/roles.ts'
import { bodyLimits } from '../../src/http/body.ts'
import type { ApiDocument, Operation } from '../../src/http/reference/document.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, createKeyFor, createManagementKey, fromAnotherIp, owner, type Person } from '../harness/users.ts'

setDefaultTimeout(240_000)

type Route = { readonly method: string; readonly path: string; readonly operation: Operation }

let gateway: Gateway
/** Owner of the operator's account, and an owner of another one. */
let boss: Person
let stranger: Person
let routes: readonly Route[]
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  boss = await owner(gateway)
  stranger = await owner(gateway)
  await moveOperator(gateway.deps.database, boss.accountId)
  const { paths } = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as ApiDocument
  routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { security }]) => JSON.stringify(security) === '[{"session":[]}]')
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
})
afterAll(() => gateway.stop())

const withBody = () => routes.filter(({ operation }) => operation.requestBody !== undefined)
const findExample = ({ operation }: Route) =>
  Object.values(operation.requestBody?.content['application/json']?.examples ?? {})[0]?.value as object | undefined
const describeRoute = ({ method, path }: Route) => `${method} ${path}`

const missing = ({ path }: Route) => path.replace(/\{\w+\}/g, 'usr_missing')

type Sent = {
  readonly body?: string | Uint8Array<ArrayBuffer> | undefined
  readonly headers?: Record<string, string>
}

async function send({ method }: Pick<Route, 'method'>, path: string, token: string, { body, headers }: Sent = {}) {
  const answer = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...fromAnotherIp(), ...headers },
    ...(body === undefined ? {} : { body }),
  })
  const text = await answer.text()
  const { error } = (answer.status < 400 ? {} : JSON.parse(text)) as {
    error?: { code: string; message: string; param?: string }
  }
  return { status: answer.status, error, text }
}

const json = { 'content-type': 'application/json' }
const compressed = (text: string) => new Uint8Array(gzipSync(text))
const tooLong = JSON.stringify({ name: 'x'.repeat(bodyLimits.other) })

const gzipped = { ...json, 'content-encoding': 'gzip' }

const wrongBodies: readonly (readonly [name: string, sent: Sent, code: string])[] = [
  ['that is no JSON', { body: '{"canary', headers: json }, 'invalid_json'],
  ['of an array', { body: '[]', headers: json }, 'invalid_request'],
  ['with an unknown field', { body: '{"canary":1}', headers: json }, 'invalid_request'],
  ['with a field twice', { body: '{"a":1,"a":2}', headers: json }, 'invalid_request'],
  ['of another type', { body: '{}', headers: { 'content-type': 'text/plain' } }, 'invalid_request'],
  ['without a type', { body: new Uint8Array(Buffer.from('{}')) }, 'invalid_request'],
  ['that is too large', { body: tooLong, headers: json }, 'body_too_large'],
  ['that decodes to one that is too large', { body: compressed(tooLong), headers: gzipped }, 'body_too_large'],
  ['in an unknown encoding', { body: '{}', headers: { ...json, 'content-encoding': 'br' } }, 'invalid_request'],
  ['compressed with an unknown field', { body: compressed('{"canary":1}'), headers: gzipped }, 'invalid_request'],
]

describe('every route of the console with a body', () => {
  test.each(wrongBodies)('refuses one %s, also under an `Idempotency-Key`', async (_, { body, headers }, code) => {
    const found: string[] = []
    for (const route of withBody())
      for (const once of [{}, { 'idempotency-key': crypto.randomUUID() }]) {
        const { status, error } = await send(route, missing(route), boss.token, {
          body,
          headers: { ...headers, ...once },
        })
        if (error?.code !== code) found.push(`${describeRoute(route)} → ${status} ${error?.code}`)
      }
    expect(found).toEqual([])
    expect(withBody().length).toBeGreaterThan(25)
  })

  test('needs one where its description says so', async () => {
    const found: string[] = []
    for (const route of withBody().filter(({ operation }) => operation.requestBody?.required)) {
      const { status } = await send(route, missing(route), boss.token)
      if (status !== 400) found.push(`${describeRoute(route)} → ${status}`)
    }
    // No field of this body is required, and no payment processor is configured.
    expect(found).toEqual(['PUT /api/v1/billing/payment-method → 404'])
  })
})

test('routes of the console that accept `Idempotency-Key`: run once for a compressed and an uncompressed body', async () => {
  const accepting = routes.filter(({ operation }) =>
    operation.parameters.some(parameter => 'name' in parameter && parameter.name === 'Idempotency-Key'),
  )
  expect(accepting.map(describeRoute).sort()).toEqual([
    'POST /api/v1/billing/downgrade',
    'POST /api/v1/billing/upgrade',
    'POST /api/v1/keys',
    'POST /api/v1/keys/{id}/rotate',
  ])
  const person = await owner(gateway)
  for (const path of ['/api/v1/keys', `/api/v1/keys/${(await createKeyFor(gateway, person)).id}/rotate`]) {
    const name = crypto.randomUUID()
    const text = JSON.stringify(path.endsWith('/rotate') ? { overlap_seconds: 60 } : { name: 'compressed' })
    const zstd = new Uint8Array(zstdCompressSync(text))
    const made = await send({ method: 'POST' }, path, person.token, {
      body: compressed(text),
      headers: { ...gzipped, 'idempotency-key': name },
    })
    expect([path, made.status]).toEqual([path, 201])
    const { id } = JSON.parse(made.text) as { id: string }
    for (const again of [
      { body: compressed(text), headers: gzipped },
      { body: zstd, headers: { ...json, 'content-encoding': 'zstd' } },
      { body: text, headers: json },
    ]) {
      const { status, error } = await send({ method: 'POST' }, path, person.token, {
        body: again.body,
        headers: { ...again.headers, 'idempotency-key': name },
      })
      expect([status, error]).toMatchObject([409, { code: 'already_completed', result_id: id }])
    }
    const other = await send({ method: 'POST' }, path, person.token, {
      body: compressed(text.replace('{', '{ ')),
      headers: { ...gzipped, 'idempotency-key': name },
    })
    expect([other.status, other.error?.code]).toEqual([409, 'conflict'])
  }
})

/** Makes one resource of each kind in the account of `boss`; the names are those in `ownIds`. */
async function resources() {
  const make = async (path: string, body: object) => {
    const { status, text } = await send({ method: 'POST' }, `/api/v1${path}`, boss.token, {
      body: JSON.stringify(body),
      headers: json,
    })
    expect([path, status]).toEqual([path, 201])
    return (JSON.parse(text) as { id: string }).id
  }
  const key = await createKeyFor(gateway, boss)
  const chat = await gateway.post('/api/v1/chat', { prompt: 'hi' }, { authorization: `Bearer ${key.key}` })
  const member = await addMember(gateway, boss, 'member')
  const listed = await send({ method: 'GET' }, '/api/v1/auth/sessions', boss.token)
  const sessions = JSON.parse(listed.text) as { data: { id: string }[] }
  const { database, newId } = gateway.deps
  const delivery = newId('msg')
  const webhook = await make('/webhooks', { url: 'https://example.com/' })
  await database.run(async ({ sql }) => {
    await sql`
      insert into webhook_deliveries (id, account_id, endpoint_id, type, body, status)
      values (${delivery}, ${boss.accountId}, ${webhook}, 'key.created', '{}', 'failed')`
  })
  return {
    sessions: sessions.data[0]?.id,
    keys: key.id,
    'management-keys': (await createManagementKey(gateway, boss, ['keys:read'])).id,
    projects: await make('/projects', { name: 'one' }),
    team: member.id,
    invitations: await make('/team/invitations', { email: 'someone@example.test' }),
    alerts: await make('/alerts', { metric: 'spend', threshold: 5 }),
    requests: ((await chat.json()) as { request_id: string }).request_id,
    webhooks: webhook,
    deliveries: delivery,
    members: member.id,
    'provider-keys': await make('/provider-keys', { provider: 'mistral', key: 'sk-canary-0123456789abcdef' }),
    // `billing.test.ts` has invoices.
    invoices: newId('inv'),
  }
}

test('routes of the console: answer an ID of another account as an unknown one, and change nothing', async () => {
  const own: Readonly<Record<string, string | undefined>> = await resources()
  const found: string[] = []
  const before = await dump()
  for (const route of routes.filter(({ path }) => path.includes('{'))) {
    // The ID of a provider belongs to no account.
    if (route.path.startsWith('/api/v1/providers/')) continue
    const path = (isOwn: boolean) =>
      route.path.replace(/(?<=\/([\w-]+)\/)\{\w+\}/g, (_, kind: string) => {
        const id = own[kind]
        if (id === undefined) throw new Error(`no resource of the kind ${kind}`)
        return isOwn ? id : `${id.slice(0, -4)}zzzz`
      })
    const sent = findExample(route)
    const options = sent === undefined ? {} : { body: JSON.stringify(sent), headers: json }
    const theirs = await send(route, path(true), stranger.token, options)
    const unknown = await send(route, path(false), stranger.token, options)
    const seen = ({ status, error }: typeof theirs) => `${status} ${error?.code} ${error?.message}`
    if (seen(theirs) !== seen(unknown) || theirs.status < 400)
      found.push(`${describeRoute(route)} → ${seen(theirs)} / ${seen(unknown)}`)
  }
  expect(found).toEqual([])
  expect(await dump()).toEqual(before)
})

/** The rows of the account of `boss` that these routes change. */
function dump() {
  const tables = ['projects', 'users', 'invitations', 'alert_rules', 'webhook_endpoints', 'provider_keys']
  const { accountId } = boss
  return gateway.deps.database.run(async ({ sql }) => {
    // The time of the last use of a key is written later.
    const keys =
      await sql`select id, name, revoked_at, line_id, expires_at from api_keys where account_id = ${accountId}`
    const texts = [JSON.stringify(keys)]
    for (const table of tables)
      texts.push(JSON.stringify(await sql`select * from ${sql(table)} where account_id = ${accountId} order by id`))
    return texts
  })
}

test('routes of the console: accept a management key with the scope of the route only', async () => {
  const found: string[] = []
  for (const scope of managementScopes) {
    const { key } = await createManagementKey(gateway, boss, [scope])
    for (const route of routes) {
      const action = actions.find(item => item === route.operation['x-action'])
      if (action === undefined) throw new Error(`${describeRoute(route)} has no action`)
      const needed = neededScope(action, route.method === 'GET' ? 'read' : 'write')
      const isAllowed = needed === scope || (needed?.endsWith(':read') && needed.replace('read', 'write') === scope)
      const { status } = await send(
        route,
        missing(route),
        key,
        route.operation.requestBody === undefined ? {} : { body: '{"canary', headers: json },
      )
      if ((status === 403) === isAllowed || status === 401) found.push(`${scope}: ${describeRoute(route)} → ${status}`)
    }
  }
  expect(found).toEqual([])
})
