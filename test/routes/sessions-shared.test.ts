/** Several gateways on one real Postgres: changes reach all of them, and their responses when it is unavailable. */
import { afterAll, beforeAll, expect } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { createDeps, type Deps, type DepsOptions } from '../../src/compose/deps.ts'
import { readConfig } from '../../src/config/config.ts'
import { createPasswords } from '../../src/console/auth/password-hashing.ts'
import {
  isAnyLocked,
  listSessions,
  mailSubject,
  recordFailure,
  twoFactorSubject,
} from '../../src/console/auth/stores/sessions.ts'
import { listUsers } from '../../src/console/auth/stores/users.ts'
import { recentKeys } from '../../src/console/keys/stores/key-lineages.ts'
import { temporaryFolder } from '../database/support.ts'
import { eventually } from '../harness/eventually.ts'
import { cheapHashing } from '../harness/gateway.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientEnvironment } from '../harness/patience.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'
import { addMember, createKeyFor, owner, type Person, sendRequest, signIn } from '../harness/users.ts'

type Served = { readonly url: string; readonly deps: Deps; readonly log: string[]; stop(): Promise<void> }
type Failure = { error: { code: string } }

const secrets = { old: 'the first secret, of 32 bytes at least', new: 'the second secret, of 32 bytes at least' }
let postgres: PrivatePostgres | null = null
let gateways: readonly [Served, Served] | null = null

async function serve(
  url: string,
  environment: Record<string, string>,
  options: Pick<DepsOptions, 'deadlines'> = {},
): Promise<Served> {
  const folder = temporaryFolder()
  const log: string[] = []
  const config = readConfig({
    ...patientEnvironment,
    REGISTRATION: 'open',
    DATABASE_URL: url,
    GATEWAY_DATA_DIR: folder.path,
    TRUSTED_PROXIES: '127.0.0.1',
    LOG_LEVEL: 'debug',
    ...environment,
  })
  const deps = await createDeps(config, {
    writeLog: line => void log.push(line),
    passwords: createPasswords(cheapHashing),
    ...options,
  })
  const app = createApp(deps).listen({ port: 0, hostname: '127.0.0.1' })
  return {
    url: `http://127.0.0.1:${app.server?.port}`,
    deps,
    log,
    async stop() {
      await app.server?.stop(true)
      await deps.close()
      folder.remove()
    },
  }
}

beforeAll(async () => {
  postgres = await startPostgres()
  if (postgres === null) return
  gateways = [
    await serve(postgres.url, { JWT_SECRET: secrets.old }),
    await serve(postgres.url, { JWT_SECRET: secrets.new, JWT_SECRET_PREVIOUS: secrets.old }),
  ]
}, 240_000)
afterAll(async () => {
  for (const gateway of gateways ?? []) await gateway.stop()
  await postgres?.stop()
}, 240_000)

function shared(title: string, body: (served: Served, other: Served, server: PrivatePostgres) => Promise<void>) {
  testNeeding('postgres', title, () => body(...needed(gateways), needed(postgres)), 60_000)
}

const see = (at: Served, token: string) => sendRequest<Failure>(at, 'GET', '/api/v1/account', { token })
const refreshAt = (at: Served, refresh_token: string) =>
  sendRequest<{ token: string; refresh_token: string }>(at, 'POST', '/api/v1/auth/refresh', { body: { refresh_token } })
const within = (check: () => Promise<boolean>) => eventually(check, 1000)

shared('J5 fifty sign-ins racing over two gateways leave exactly five sessions', async (served, other) => {
  const person = await owner(served)
  // All wait for one row. A client that waits for over 1 s gets 503 and signs in again.
  const untilSignedIn = async (at: Served) => {
    for (let attempt = 0; attempt < 20; attempt++) if ((await signIn(at, person)) !== null) return true
    return false
  }
  const signedIn = await Promise.all(
    Array.from({ length: 50 }, (_, index) => untilSignedIn(index % 2 ? served : other)),
  )
  expect(signedIn.filter(isIn => !isIn)).toEqual([])
  const rows = await listSessions(served.deps.database, person.accountId, person.id, '')
  expect(rows).toHaveLength(5)
})

shared(
  'J2 the previous secret verifies and does not sign; taken out, its tokens are refused',
  async (served, other) => {
    const person = await owner(served)
    expect((await see(other, person.token)).status).toBe(200)
    const newer = (await signIn(other, person)) as Person
    expect((await see(other, newer.token)).status).toBe(200)
    expect((await see(served, newer.token)).body.error.code).toBe('invalid_token')
  },
)

shared(
  'an Idempotency-Key under a session counts at both gateways while the secret is rotated',
  async (served, other) => {
    const person = await owner(served)
    const make = (at: Served) =>
      sendRequest<Failure>(at, 'POST', '/api/v1/keys', {
        token: person.token,
        body: { name: 'once' },
        headers: { 'idempotency-key': 'rotated' },
      })
    expect((await make(served)).status).toBe(201)
    expect((await make(other)).body.error.code).toBe('already_completed')
  },
)

shared(
  'J3 a refresh token presented at two gateways at once makes one session token chain and no alarm',
  async served => {
    const person = await owner(served)
    for (let round = 0, token = person.refreshToken; round < 10; round++) {
      const answers = await Promise.all([1, 2, 3].map(() => refreshAt(served, token)))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1)
      token = answers[0]?.body.refresh_token ?? ''
    }
  },
)

shared(
  'J4 K6 what one gateway ends, the other refuses within a second: session, role, key, member',
  async (served, other) => {
    const boss = await owner(served)
    const person = await addMember(served, boss, 'admin')
    const { id, key } = await createKeyFor(served, person)
    const chat = () =>
      sendRequest(other, 'POST', '/api/v1/chat', { token: key, body: { prompt: 'Hello', max_output_tokens: 5 } })
    const rename = () =>
      sendRequest(other, 'PATCH', '/api/v1/account', { token: person.token, body: { name: 'Renamed' } })
    expect([(await chat()).status, (await rename()).status]).toEqual([200, 200])
    await sendRequest(served, 'PATCH', `/api/v1/team/${person.id}`, { token: boss.token, body: { role: 'member' } })
    await within(async () => (await rename()).status === 403)
    await sendRequest(served, 'DELETE', `/api/v1/keys/${id}`, { token: boss.token })
    await within(async () => (await chat()).status === 401)
    await sendRequest(served, 'DELETE', `/api/v1/team/${person.id}`, { token: boss.token })
    await within(async () => (await see(other, person.token)).status === 401)
    await sendRequest(served, 'POST', '/api/v1/auth/logout', { token: boss.token })
    await within(async () => (await see(other, boss.token)).status === 401)
  },
)

shared('A1 over two gateways, owners who remove and demote each other leave one', async (served, other) => {
  for (let round = 0; round < 6; round++) {
    const boss = await owner(served)
    const second = await addMember(served, boss, 'admin')
    await sendRequest(served, 'PATCH', `/api/v1/team/${second.id}`, { token: boss.token, body: { role: 'owner' } })
    const answers = await Promise.all([
      sendRequest(served, 'DELETE', `/api/v1/team/${second.id}`, { token: boss.token }),
      sendRequest(other, 'PATCH', `/api/v1/team/${boss.id}`, { token: second.token, body: { role: 'member' } }),
      sendRequest(other, 'DELETE', `/api/v1/team/${boss.id}`, { token: second.token }),
    ])
    for (const { status } of answers) expect([200, 204, 401, 403, 404, 409]).toContain(status)
    const users = await listUsers(served.deps.database, boss.accountId)
    expect(users.filter(({ role }) => role === 'owner')).toHaveLength(1)
  }
})

shared('P7 an invitation accepted at two gateways at once makes one user', async (served, other) => {
  const boss = await owner(served)
  const invited = await sendRequest<{ token: string }>(served, 'POST', '/api/v1/team/invitations', {
    token: boss.token,
    body: { email: `race-${boss.id.toLowerCase()}@example.test` },
  })
  const path = `/api/v1/team/invitations/${invited.body.token}/accept`
  const answers = await Promise.all(
    [served, other, served, other].map(at => sendRequest(at, 'POST', path, { body: { password: 'long enough' } })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 404, 404, 404])
})

shared('K7 of keys made while their maker is removed at the other gateway, none is left', async (served, other) => {
  for (let round = 0; round < 5; round++) {
    const boss = await owner(served)
    const member = await addMember(served, boss, 'member')
    const creations = Array.from({ length: 6 }, () =>
      sendRequest(served, 'POST', '/api/v1/keys', { token: member.token, body: { name: 'late' } }),
    )
    await Promise.all([...creations, sendRequest(other, 'DELETE', `/api/v1/team/${member.id}`, { token: boss.token })])
    const keys = await recentKeys(served.deps.database, boss.accountId, { userId: null })
    expect(keys.filter(({ revokedAt }) => revokedAt === null)).toEqual([])
  }
})

shared('P5 failures counted at two gateways at once lock once, at the tenth', async (served, other) => {
  const subjects = [mailSubject('count@example.test'), twoFactorSubject('usr_count')]
  const fail = (count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        recordFailure((index % 2 ? served : other).deps.database, index % 3 ? subjects : [...subjects].reverse()),
      ),
    )
  expect((await fail(9)).flat()).toEqual([])
  expect(await isAnyLocked(served.deps.database, subjects)).toBe(false)
  expect((await fail(8)).flat().sort()).toEqual([...subjects].sort())
  expect(await isAnyLocked(other.deps.database, subjects)).toBe(true)
  const rows = await served.deps.database.run(
    ({ sql }) => sql<{ locks: number }[]>`
      select locks from sign_in_failures where subject in (select json_array_elements_text(${JSON.stringify(subjects)}::text::json))`,
  )
  expect(rows.map(({ locks }) => locks)).toEqual([1, 1])
})

shared('P7 a sign-in with the old password that races its change leaves no session behind', async (served, other) => {
  for (let round = 0; round < 5; round++) {
    const person = await owner(served)
    const attempts = Array.from({ length: 8 }, () => signIn(other, person))
    const change = sendRequest(served, 'PUT', '/api/v1/auth/password', {
      token: person.token,
      body: { current_password: person.password, new_password: 'a new password' },
    })
    const [changed] = await Promise.all([change, ...attempts])
    // The concurrent sign-ins may have ended the changing session itself.
    if (changed.status !== 204) continue
    const left = await listSessions(served.deps.database, person.accountId, person.id, '')
    expect(left.length).toBeLessThanOrEqual(1)
  }
})

shared(
  'J4 Postgres gone: 503 with retry-after in time on every such route, never 401, never let through',
  async (served, _, server) => {
    const person = await owner(served)
    const hasty = await serve(server.url, { JWT_SECRET: secrets.old }, { deadlines: { postgresMs: 200 } })
    // Without email, a reset is rejected before a query, and the registration rules come from the configuration.
    const unasked = new Set(['/api/v1/auth/reset', '/api/v1/auth/registration'])
    const routes = createApp(hasty.deps).routes.filter(
      // Single sign-on is not configured here.
      ({ path }) => /^\/api\/v1\/(auth(?!\/oidc)|account|keys|team)/.test(path) && !unasked.has(path),
    )
    const [email, password] = [person.email, person.password]
    const bodies: Readonly<Record<string, object>> = {
      '/api/v1/auth/register': { email: 'later@example.test', password },
      '/api/v1/auth/login': { email, password },
      '/api/v1/auth/refresh': { refresh_token: person.refreshToken },
      '/api/v1/team/invitations/:token/accept': { password },
      '/api/v1/auth/reset/:token': { password },
      '/api/v1/auth/verify/:token': { password },
    }
    await server.crash()
    try {
      for (const { method, path } of routes) {
        const answer = await sendRequest<Failure>(hasty, method, path.replace(/:\w+/, 'usr_1'), {
          token: person.token,
          ...(method === 'GET' ? {} : { body: bodies[path] ?? {} }),
        })
        expect([`${method} ${path}`, answer.status, answer.body.error.code]).toEqual([
          `${method} ${path}`,
          503,
          'service_unavailable',
        ])
        expect(answer.headers.get('retry-after')).toBe('1')
      }
      expect(routes.length).toBeGreaterThan(15)
    } finally {
      await server.start()
    }
    await eventually(async () => (await see(hasty, person.token)).status === 200, 20_000)
    // Other connections of the pool may be older ones.
    await eventually(async () => (await refreshAt(hasty, person.refreshToken)).status === 200, 20_000)
    await hasty.stop()
  },
)
