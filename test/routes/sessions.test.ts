/** Sessions over a real socket: sign-in, refresh, lockout, and every way to end them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { createPasswords } from '../../src/console/auth/password-hashing.ts'
import { mailSubject } from '../../src/console/auth/stores/sessions.ts'
import { eventually } from '../harness/eventually.ts'
import { cheapHashing, type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, createKeyFor, fromAnotherIp, owner, type Person, sendRequest, signIn } from '../harness/users.ts'

// Passwords take time to hash, more so beside other tests.
setDefaultTimeout(240_000)

/** Differs from the parameters of `cheapHashing`. */
const localHashing = { memoryCost: 128, timeCost: 1 }

let gateway: Gateway
/** On the embedded database. */
let local: Gateway
/** A password whose checks wait for `until`, so that a queue fills. */
let held: { readonly password: string; readonly until: Promise<void> } | null = null
const verify = Bun.password.verify
const spy = spyOn(Bun.password, 'verify').mockImplementation(async (password, ...rest) => {
  if (password === held?.password) await held.until
  return verify(password, ...rest)
})
/** Number of hashes for sign-ins at `gateway`. */
let hashes = 0
beforeAll(async () => {
  const environment = { TRUSTED_PROXIES: '127.0.0.1' }
  const passwords = createPasswords(cheapHashing)
  gateway = await startGateway(environment, {
    passwords: {
      hash: passwords.hash,
      verify(...asked) {
        hashes++
        return passwords.verify(...asked)
      },
    },
  })
  local = await startGateway(environment, { embedded: true, passwords: createPasswords(localHashing) })
}, 240_000)
afterAll(async () => {
  spy.mockRestore()
  await Promise.all([gateway.stop(), local.stop()])
})

type Failure = { error: { code: string; param: string | null; request_id: string } }
const account = '/api/v1/account'
const see = (token: string | undefined) => sendRequest<Failure>(gateway, 'GET', account, { token })
const refresh = (refresh_token: string) =>
  sendRequest<{ token: string; refresh_token: string } & Failure>(gateway, 'POST', '/api/v1/auth/refresh', {
    body: { refresh_token },
  })
const logIn = (email: string, password: string, headers = fromAnotherIp(), at = gateway) =>
  sendRequest<Failure>(at, 'POST', '/api/v1/auth/login', { body: { email, password }, headers })

const secretPath = ({ deps }: Gateway) => join(deps.config.dataDirectory, 'session-secret')

/** The owner of a new account, who registered from the network address of these headers. */
async function registered(headers: Record<string, string>): Promise<Person> {
  const person = await owner(gateway, headers)
  await sql(({ sql: query }) => query`delete from sessions where user_id = ${person.id}`)
  return person
}

/** Removes the fields that differ each time. */
const plain = (text: string) => text.replace(/req_[0-9a-f]+/, 'req')
const sql = <T>(work: Parameters<typeof gateway.deps.database.run<T>>[0]) => gateway.deps.database.run(work)

describe('registration', () => {
  test('returns a session, the user and an account on the evaluation plan', async () => {
    const answer = await sendRequest(gateway, 'POST', '/api/v1/auth/register', {
      body: { email: 'Ada@Example.test', password: 'correct horse', name: 'Ada & Co' },
    })
    expect(answer.status).toBe(201)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.body).toEqual({
      token: expect.any(String),
      expires_at: expect.any(String),
      refresh_token: expect.stringMatching(/^gw_refresh_[\w-]{43}$/),
      user: {
        id: expect.any(String),
        email: 'ada@example.test',
        role: 'owner',
        verification_pending: false,
        created_at: expect.any(String),
      },
      account: {
        id: expect.any(String),
        name: 'Ada & Co',
        plan: 'evaluation',
        web: true,
        hedge: false,
        fallback: null,
        continue: null,
        baseline_model: null,
        shadow: null,
        constraints: null,
        requires_two_factor: false,
        limits: { requests_per_minute: 5, concurrent_requests: 1, daily_tokens: 20_000, daily_cost_usd: 0.17 },
        created_at: expect.any(String),
      },
      two_factor_setup_required: false,
      single_sign_on: false,
    })
    expect(await signIn(gateway, { email: ' ADA@example.test'.trim(), password: 'correct horse' })).not.toBeNull()
  })

  test('answers 409 for a known address, and signs no client in [P6]', async () => {
    const known = await owner(gateway)
    const { status, text } = await sendRequest(gateway, 'POST', '/api/v1/auth/register', {
      body: { email: known.email.toUpperCase(), password: 'another one' },
    })
    expect(status).toBe(409)
    expect(text).not.toContain('token')
    expect(await signIn(gateway, { ...known, password: 'another one' })).toBeNull()
  })

  test('creates one account for two concurrent requests of one address', async () => {
    const body = { email: 'twice@example.test', password: 'correct horse' }
    const answers = await Promise.all(
      [1, 2, 3].map(() => sendRequest(gateway, 'POST', '/api/v1/auth/register', { body })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    const rows = await sql(({ sql: query }) => query`select 1 from accounts where name = 'twice@example.test'`)
    expect(rows).toHaveLength(1)
  })

  test('delays the sixth request per hour from one IP address [P6]', async () => {
    const headers = fromAnotherIp()
    const statuses: number[] = []
    for (let count = 0; count < 6; count++) {
      const body = { email: `many${count}@example.test`, password: 'correct horse' }
      const answer = await sendRequest(gateway, 'POST', '/api/v1/auth/register', { body, headers })
      statuses.push(answer.status)
      if (answer.status === 429) expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(3500)
    }
    expect(statuses).toEqual([201, 201, 201, 201, 201, 429])
  })

  test('requires 8 to 128 password characters after NFKC, in any composition [P2]', async () => {
    const register = (password: string) =>
      sendRequest<Failure>(gateway, 'POST', '/api/v1/auth/register', { body: { email: 'nfkc@example.test', password } })
    for (const password of ['', '1234567', 'x'.repeat(129), 'ﬀ'.repeat(100)]) {
      const { status, body } = await register(password)
      expect([status, body.error.param]).toEqual([400, 'password'])
    }
    expect((await register('cafe\u0301 cafe\u0301')).status).toBe(201)
    expect(await signIn(gateway, { email: 'nfkc@example.test', password: 'café café' })).not.toBeNull()
  })

  test('answers 400 with the field for unknown fields, duplicate keys and wrong values, never repeated', async () => {
    const good = { email: 'strict@example.test', password: 'canary-9f1 horse' }
    const wrong: readonly (readonly [string, unknown])[] = [
      ['role', { ...good, role: 'owner' }],
      ['plan', { ...good, plan: 'usage' }],
      ['account_id', { ...good, account_id: gateway.accountId }],
      ['email', { ...good, email: 'canary-9f1' }],
      ['email', { ...good, email: 'a@canary-9f1\u0000' }],
      ['email', { ...good, email: ['canary-9f1@example.test'] }],
      ['name', { ...good, name: 'canary-9f1\u0000' }],
      ['password', { email: good.email }],
      ['email', `{"email":"one@example.test","password":"canary-9f1 horse","em\\u0061il":"two@example.test"}`],
    ]
    for (const [param, body] of wrong) {
      const answer = await sendRequest<Failure>(gateway, 'POST', '/api/v1/auth/register', { body })
      expect([answer.status, answer.body.error.param]).toEqual([400, param])
      expect(answer.text).not.toContain('canary-9f1')
    }
    expect(gateway.logLines.join('')).not.toContain('canary-9f1')
  })
})

/** Fails this many sign-ins from one IP address, each for another email address. */
async function failOverAccounts(times: number, headers: Record<string, string>) {
  for (let count = 0; count < times; count++)
    await logIn(`guess-${count}@${headers['x-forwarded-for']}.test`, 'x', headers)
}

describe('failed sign-in', () => {
  test('has one status, body and header set for unknown address, wrong password and lock [P3]', async () => {
    const { email, password } = await owner(gateway)
    const wrong = await logIn(email, 'not the password')
    const unknown = await logIn('nobody@example.test', password)
    const removedUser = await logIn('usr_x@removed.invalid', password)
    for (let count = 0; count < 9; count++) await logIn(email, 'not the password')
    const locked = await logIn(email, password)
    const names = (headers: Headers) => [...headers.keys()].sort()
    for (const other of [unknown, removedUser, locked]) {
      expect(other.status).toBe(401)
      expect(plain(other.text)).toBe(plain(wrong.text))
      expect(names(other.headers)).toEqual(names(wrong.headers))
    }
    expect(wrong.body.error.code).toBe('invalid_credentials')
  })

  test('locks new IP addresses only after ten failures; time ends a lock, and each is longer [P5]', async () => {
    const person = await owner(gateway)
    expect((await see(person.token)).status).toBe(200)
    const lockOut = async () => {
      for (let count = 0; count < 10; count++) await logIn(person.email, 'not the password')
      expect(await signIn(gateway, person)).toBeNull()
    }
    const minutesLocked = async () => {
      const rows = await sql(
        ({ sql: query }) => query<{ minutes: number }[]>`
          select extract(epoch from locked_until - clock_timestamp())::float8 / 60 as minutes from sign_in_failures
          where subject = ${mailSubject(person.email)}`,
      )
      return Math.round(rows[0]?.minutes ?? 0)
    }
    const wait = (minutes: number) =>
      sql(
        ({ sql: query }) => query`
          update sign_in_failures set locked_until = locked_until - make_interval(mins => ${minutes})
          where subject = ${mailSubject(person.email)}`,
      )
    await lockOut()
    expect(await minutesLocked()).toBe(15)
    // The session continues, and can be refreshed.
    expect((await see(person.token)).status).toBe(200)
    const renewed = await refresh(person.refreshToken)
    expect(renewed.status).toBe(200)
    expect((await see(renewed.body.token)).status).toBe(200)
    await wait(16)
    await lockOut()
    expect(await minutesLocked()).toBe(30)
    await wait(31)
    expect(await signIn(gateway, person)).not.toBeNull()
    expect(gateway.logLines.join('')).toContain('sign_in_locked')
    expect(gateway.logLines.join('')).not.toContain(person.email)
  })

  test('leaves a known IP address open while other clients keep the email address locked [P5]', async () => {
    const home = fromAnotherIp()
    const person = await registered(home)
    for (let round = 0; round < 3; round++) {
      for (let count = 0; count < 15; count++) await logIn(person.email, 'not the password')
      expect(await signIn(gateway, person)).toBeNull()
      expect(await signIn(gateway, person, home)).not.toBeNull()
      // The owner's success does not end the lock for others.
      expect(await signIn(gateway, person)).toBeNull()
    }
    expect((await logIn(person.email, 'not the password', home)).status).toBe(401)
  })

  test('leaves a known IP address open after ten failures from that address itself [P5]', async () => {
    const home = fromAnotherIp()
    const person = await registered(home)
    const other = await owner(gateway)
    for (let count = 0; count < 30; count++) await logIn(person.email, 'not the password', home)
    expect(await signIn(gateway, person, home)).not.toBeNull()
    // The email address is locked elsewhere; the IP address is open to other users.
    expect(await signIn(gateway, person)).toBeNull()
    expect(await signIn(gateway, other, home)).not.toBeNull()
  })

  test('makes a known IP address new after 100 failures without a success [P5]', async () => {
    const home = fromAnotherIp()
    const person = await registered(home)
    const fail = async (times: number) => {
      for (let count = 0; count < times; count++) await logIn(person.email, 'not the password', home)
    }
    await fail(99)
    expect(await signIn(gateway, person, home)).not.toBeNull()
    await fail(99)
    expect(await signIn(gateway, person, home)).not.toBeNull()
    // The user's 198 failures do not lock the IP address for others.
    expect(await signIn(gateway, await owner(gateway), home)).not.toBeNull()
    await fail(100)
    expect(await signIn(gateway, person, home)).toBeNull()
  })

  test('keeps ten known addresses per user, keyed, for 90 days [P5]', async () => {
    const home = fromAnotherIp()
    const person = await registered(home)
    const rows = () =>
      sql(
        ({ sql: query }) =>
          query<{ digest: string }[]>`select digest from known_addresses where user_id = ${person.id}`,
      )
    expect(await rows()).toHaveLength(1)
    const lock = async () => {
      for (let count = 0; count < 10; count++) await logIn(person.email, 'not the password')
    }
    await lock()
    expect(await signIn(gateway, person, home)).not.toBeNull()
    await sql(
      ({ sql: query }) =>
        query`update known_addresses set last_used_at = last_used_at - interval '91 days' where user_id = ${person.id}`,
    )
    expect(await signIn(gateway, person, home)).toBeNull()
    await sql(({ sql: query }) => query`delete from sign_in_failures`)
    for (let count = 0; count < 12; count++) expect(await signIn(gateway, person)).not.toBeNull()
    const kept = await rows()
    expect(kept).toHaveLength(10)
    for (const { digest } of kept) expect(digest).toMatch(/^[0-9a-f]{64}$/)
    await lock()
    expect(await signIn(gateway, person, home)).toBeNull()
  })

  test('hashes nothing at a locked IP address, for known and unknown emails alike [P4]', async () => {
    const person = await owner(gateway)
    const locked = fromAnotherIp()
    await failOverAccounts(100, locked)
    for (let count = 0; count < 10; count++) await logIn('locked-too@example.test', 'x')
    const before = hashes
    // After 100 failures in a minute, the rate limit of failed credentials may answer in place of the lock.
    for (const [email, headers] of [
      [person.email, locked],
      ['nobody@example.test', locked],
      ['locked-too@example.test', fromAnotherIp()],
    ] as const)
      expect([401, 429]).toContain((await logIn(email, person.password, headers)).status)
    expect(hashes).toBe(before)
    await logIn(person.email, 'not the password')
    expect(hashes).toBe(before + 1)
  })

  test('blocks password changes after ten wrong current passwords, which other clients cannot cause [P7]', async () => {
    const person = await owner(gateway)
    const change = (current_password: string) =>
      sendRequest<Failure>(gateway, 'PUT', '/api/v1/auth/password', {
        token: person.token,
        body: { current_password, new_password: 'a password that is new' },
      })
    for (let count = 0; count < 12; count++) await logIn(person.email, 'not the password')
    for (let count = 0; count < 10; count++) expect((await change('wrong')).body.error.code).toBe('invalid_credentials')
    expect((await change(person.password)).body.error.code).toBe('invalid_credentials')
    expect((await see(person.token)).status).toBe(200)
    const other = await owner(gateway)
    for (let count = 0; count < 12; count++) await logIn(other.email, 'not the password')
    const changed = await sendRequest(gateway, 'PUT', '/api/v1/auth/password', {
      token: other.token,
      body: { current_password: other.password, new_password: 'a password that is new' },
    })
    expect(changed.status).toBe(204)
  })

  test('extends no lock while locked, and nine failures in 15 minutes do not lock [P5]', async () => {
    const person = await owner(gateway)
    for (let count = 0; count < 9; count++) await logIn(person.email, 'not the password')
    await sql(
      ({ sql: query }) => query`
        update sign_in_failures set failed_at = array(select at - interval '16 minutes' from unnest(failed_at) as at)
        where subject = ${mailSubject(person.email)}`,
    )
    for (let count = 0; count < 9; count++) await logIn(person.email, 'not the password')
    expect(await signIn(gateway, person)).not.toBeNull()
  })

  test('leaves an IP address open to new users after 99 failures, however many one user adds [P5]', async () => {
    const [person, forgetful] = [await owner(gateway), await owner(gateway)]
    const office = fromAnotherIp()
    for (let count = 0; count < 120; count++) await logIn(forgetful.email, 'not the password', office)
    await failOverAccounts(89, office)
    expect(await signIn(gateway, person, office)).not.toBeNull()
    expect(await signIn(gateway, forgetful, office)).toBeNull()
    await logIn('one-more@example.test', 'x', office)
    expect(await signIn(gateway, await owner(gateway), office)).toBeNull()
  })

  test('locks an IP address for every account after 100 failures, IPv6 by /64, and no other address [P5]', async () => {
    const person = await owner(gateway)
    for (let count = 0; count < 100; count++)
      await logIn(`guess${count}@example.test`, 'x', { 'x-forwarded-for': `2001:db8:7:7::${(count + 1).toString(16)}` })
    expect(await signIn(gateway, person, { 'x-forwarded-for': '2001:db8:7:7:ffff::1' })).toBeNull()
    expect(await signIn(gateway, person, { 'x-forwarded-for': '2001:db8:7:8::1' })).not.toBeNull()
  })

  test('rejects the right password as the last of 40 concurrent guesses', async () => {
    const person = await owner(gateway)
    const guesses = Array.from({ length: 40 }, () => logIn(person.email, 'not the password'))
    // Ten failures lock the address; the others are not answered yet.
    const tenth = Promise.withResolvers<void>()
    let answered = 0
    for (const guess of guesses) void guess.then(() => (++answered === 10 ? tenth.resolve() : undefined))
    await tenth.promise
    const answers = await Promise.all([...guesses, logIn(person.email, person.password)])
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 41 }, () => 401))
  })

  test('returns a retry time to 56 of 120 concurrent sign-ins and serves the others [P1]', async () => {
    const { email, password } = await owner(local)
    const answers = await whileHeld(password, 56, () =>
      Array.from({ length: 120 }, () => logIn(email, password, fromAnotherIp(), local)),
    )
    const rejected = answers.filter(({ status }) => status === 503)
    expect(rejected.map(({ headers }) => headers.get('retry-after'))).toEqual(Array(56).fill('1'))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(64)
  })
})

/** Sends sign-ins whose password is checked only after `rejected` of them have been answered. Returns all responses. */
async function whileHeld<T>(
  password: string,
  rejected: number,
  send: () => readonly Promise<T>[],
  meanwhile = async () => {},
): Promise<readonly T[]> {
  const [full, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  held = { password, until: end.promise }
  const answers = send()
  let count = 0
  for (const answer of answers) void answer.then(() => (++count === rejected ? full.resolve() : undefined))
  await full.promise
  await meanwhile()
  held = null
  end.resolve()
  return Promise.all(answers)
}

test('sign-in: serves another IP address while one sends a hundred concurrent sign-ins [P1]', async () => {
  const person = await owner(local)
  const attacker = fromAnotherIp()
  const flood = await whileHeld(
    'x',
    92,
    () => Array.from({ length: 100 }, (_, index) => logIn(`flood-${index}@example.test`, 'x', attacker, local)),
    async () => expect(await signIn(local, person)).not.toBeNull(),
  )
  expect(flood.filter(({ status }) => status === 401)).toHaveLength(8)
  expect(flood.filter(({ status }) => status === 429)).toHaveLength(92)
})

describe('session refresh', () => {
  test('exchanges a refresh token for the next; both tabs of a browser get the same [J3]', async () => {
    const person = await owner(gateway)
    const both = await Promise.all([refresh(person.refreshToken), refresh(person.refreshToken)])
    expect(both.map(({ status }) => status)).toEqual([200, 200])
    const [next, same] = both.map(({ body }) => body.refresh_token)
    expect(same).toBe(next ?? '')
    expect(next).not.toBe(person.refreshToken)
    expect((await see(both[0]?.body.token)).status).toBe(200)
    expect((await refresh(next ?? '')).status).toBe(200)
    // It is no longer the newest, and still valid within seconds.
    expect((await refresh(person.refreshToken)).status).toBe(401)
    expect((await see(person.token)).status).toBe(200)
  })

  test('ends the whole session after a copied token, for thief and owner [J3]', async () => {
    const person = await owner(gateway)
    const stolen = person.refreshToken
    const { body } = await refresh(stolen)
    await sql(
      ({ sql: query }) =>
        query`update session_tokens set used_at = used_at - interval '11 seconds' where used_at is not null`,
    )
    expect((await refresh(stolen)).body.error.code).toBe('invalid_token')
    expect((await refresh(body.refresh_token)).status).toBe(401)
    expect((await see(body.token)).status).toBe(401)
    expect(gateway.logLines.join('')).toContain('refresh_token_reused')
  })

  test('rejects invented refresh tokens, session tokens and keys [J3]', async () => {
    const person = await owner(gateway)
    for (const token of [`gw_refresh_${'A'.repeat(43)}`, person.token, gateway.key, ' ', `${person.refreshToken}x`])
      expect((await refresh(token)).body.error.code).toBe(token.length > 256 ? 'invalid_request' : 'invalid_token')
  })

  test('leaves exactly the five newest sessions after fifty concurrent sign-ins [J5]', async () => {
    const person = await owner(gateway)
    const signedIn = await Promise.all(Array.from({ length: 50 }, () => signIn(gateway, person)))
    expect(signedIn.every(item => item !== null)).toBe(true)
    gateway.deps.sessions.forget()
    const alive = await Promise.all(signedIn.map(async item => (await see(item?.token)).status === 200))
    expect(alive.filter(Boolean)).toHaveLength(5)
    expect((await see(person.token)).status).toBe(401)
    const survivor = signedIn[alive.indexOf(true)]
    const list = await sendRequest<{ data: { id: string; current: boolean }[] }>(
      gateway,
      'GET',
      '/api/v1/auth/sessions',
      {
        token: survivor?.token,
      },
    )
    expect(list.body.data).toHaveLength(5)
    expect(list.body.data.filter(({ current }) => current)).toHaveLength(1)
  })

  test('lists and ends the user’s own sessions only', async () => {
    const person = await owner(gateway)
    const second = (await signIn(gateway, person)) as Person
    const stranger = await owner(gateway)
    const path = '/api/v1/auth/sessions'
    const { body } = await sendRequest<{ data: { id: string; current: boolean }[] }>(gateway, 'GET', path, {
      token: person.token,
    })
    const other = body.data.find(({ current }) => !current)?.id ?? ''
    expect(Object.keys(body.data[0] ?? {}).sort()).toEqual([
      'created_at',
      'current',
      'expires_at',
      'id',
      'last_used_at',
      'user_agent',
    ])
    const foreign = await sendRequest(gateway, 'DELETE', `${path}/${other}`, { token: stranger.token })
    const missing = await sendRequest(gateway, 'DELETE', `${path}/ses_missing`, { token: stranger.token })
    expect([foreign.status, plain(foreign.text)]).toEqual([404, plain(missing.text)])
    expect((await see(second.token)).status).toBe(200)
    expect((await sendRequest(gateway, 'DELETE', `${path}/${other}`, { token: person.token })).status).toBe(204)
    expect((await see(second.token)).status).toBe(401)
    expect((await see(person.token)).status).toBe(200)
  })
})

describe('session end', () => {
  test('takes effect immediately at sign-out, for the refresh token too [J4]', async () => {
    const person = await owner(gateway)
    expect((await sendRequest(gateway, 'POST', '/api/v1/auth/logout', { token: person.token })).status).toBe(204)
    expect((await see(person.token)).body.error.code).toBe('invalid_token')
    expect((await refresh(person.refreshToken)).status).toBe(401)
  })

  test('takes effect within 1 s when another process ended the session [J4]', async () => {
    const person = await owner(gateway)
    expect((await see(person.token)).status).toBe(200)
    await sql(({ sql: query }) => query`delete from sessions where user_id = ${person.id}`)
    await eventually(async () => (await see(person.token)).status === 401, 1000)
  })

  test('follows a new password for all other sessions, which requires the old one [P7]', async () => {
    const person = await owner(gateway)
    const other = (await signIn(gateway, person)) as Person
    const change = (current_password: string, new_password: string) =>
      sendRequest<Failure>(gateway, 'PUT', '/api/v1/auth/password', {
        token: person.token,
        body: { current_password, new_password },
      })
    expect((await change('not the password', 'a new password')).body.error.code).toBe('invalid_credentials')
    expect((await change(person.password, 'short')).body.error.param).toBe('new_password')
    expect((await change(person.password, 'a new password')).status).toBe(204)
    expect((await see(other.token)).status).toBe(401)
    expect((await refresh(other.refreshToken)).status).toBe(401)
    expect((await see(person.token)).status).toBe(200)
    expect(await signIn(gateway, person)).toBeNull()
    expect(await signIn(gateway, { ...person, password: 'a new password' })).not.toBeNull()
  })

  test('sign-in: replaces a hash with old parameters [P1]', async () => {
    const person = await owner(local)
    const old = await Bun.password.hash(person.password, { algorithm: 'argon2id', memoryCost: 1024, timeCost: 1 })
    await local.deps.database.run(
      ({ sql: query }) => query`update users set password_hash = ${old} where id = ${person.id}`,
    )
    expect(await signIn(local, person)).not.toBeNull()
    const rows = await local.deps.database.run(
      ({ sql: query }) => query<{ password_hash: string }[]>`select password_hash from users where id = ${person.id}`,
    )
    expect(rows[0]?.password_hash).toStartWith(
      `$argon2id$v=19$m=${localHashing.memoryCost},t=${localHashing.timeCost},p=1$`,
    )
    expect(await signIn(local, person)).not.toBeNull()
  })
})

describe('session token', () => {
  const getClaims = (token: string) =>
    JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>
  const getHeader = (token: string) =>
    JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as Record<string, unknown>
  const secret = () => Buffer.from(gateway.deps.config.jwtSecret ?? readFileSync(secretPath(gateway)))
  const forge = (header: Record<string, unknown>, claims: Record<string, unknown>, key = secret()) =>
    new SignJWT(claims).setProtectedHeader({ alg: 'HS256', ...header }).sign(key)
  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

  test('passes with HS256, every claim and at most 15 minutes of age; all others get the same 401 [J1]', async () => {
    const { token } = await owner(gateway)
    const [header, claims] = [getHeader(token), getClaims(token)]
    expect(Object.keys(claims).sort()).toEqual(['aud', 'exp', 'iat', 'iss', 'sid', 'sub'])
    expect(Number(claims.exp) - Number(claims.iat)).toBeLessThanOrEqual(900)
    expect((await see(await forge(header, claims))).status).toBe(200)
    const now = Math.floor(Date.now() / 1000)
    const without = (name: string) => Object.fromEntries(Object.entries(claims).filter(([key]) => key !== name))
    const forged: Record<string, string> = {
      ...Object.fromEntries(
        await Promise.all(
          ['sub', 'sid', 'iat', 'exp', 'iss', 'aud'].map(async name => [
            `no ${name}`,
            await forge(header, without(name)),
          ]),
        ),
      ),
      'wrong iss': await forge(header, { ...claims, iss: 'else' }),
      'wrong aud': await forge(header, { ...claims, aud: 'else' }),
      'wrong sub': await forge(header, { ...claims, sub: 'usr_else' }),
      'sid of nobody': await forge(header, { ...claims, sid: 'ses_else' }),
      'sid no string': await forge(header, { ...claims, sid: ['x'] }),
      expired: await forge(header, { ...claims, iat: now - 600, exp: now - 31 }),
      old: await forge(header, { ...claims, iat: now - 931, exp: now + 900 }),
      'of the future': await forge(header, { ...claims, iat: now + 60 }),
      'not before': await forge(header, { ...claims, nbf: now + 60 }),
      'another secret': await forge(header, claims, Buffer.from('another secret of at least 32 bytes')),
      HS384: await forge({ ...header, alg: 'HS384' }, claims, Buffer.concat([secret(), secret()])),
      HS512: await forge({ ...header, alg: 'HS512' }, claims, Buffer.concat([secret(), secret()])),
      none: `${encoded({ ...header, alg: 'none' })}.${encoded(claims)}.`,
      RS256: `${encoded({ ...header, alg: 'RS256' })}.${token.split('.').slice(1).join('.')}`,
      'exp in the year 9999': await forge(header, { ...claims, exp: 253_402_300_799 }),
      'exp beyond every date': await forge(header, { ...claims, exp: 1e300 }),
      'exp a second too late': await forge(header, { ...claims, exp: Number(claims.exp) + 1 }),
      'NUL in sid': await forge(header, { ...claims, sid: `${claims.sid}\u0000` }),
      'NUL in sub': await forge(header, { ...claims, sub: `\u0000${claims.sub}` }),
      'half a character in sid': await forge(header, { ...claims, sid: 'ses_\ud800' }),
      'empty sid': await forge(header, { ...claims, sid: '' }),
      'no kid': await forge({ typ: 'JWT' }, claims),
      'unknown kid': await forge({ ...header, kid: '0123456789abcdef' }, claims),
      'kid with a path': await forge({ ...header, kid: '../../dev/null' }, claims),
      crit: `${encoded({ ...header, crit: ['exp'] })}.${token.split('.').slice(1).join('.')}`,
      'no signature': token.split('.').slice(0, 2).join('.'),
      nonsense: 'a.b.c',
      long: `${token}${'x'.repeat(4000)}`,
    }
    for (const [name, text] of Object.entries(forged)) {
      const { status, body } = await see(text)
      expect([name, status, body.error.code]).toEqual([name, 401, 'invalid_token'])
    }
    // Additional claims and a shorter lifetime change nothing.
    expect((await see(await forge(header, { ...claims, exp: now + 60, jti: '\u0000' }))).status).toBe(200)
    // Within the leeway of 30 s.
    expect((await see(await forge(header, { ...claims, iat: now - 600, exp: now - 20 }))).status).toBe(200)
  })

  test('counts only in Authorization and not as a key, nor a key as a session [J6] [J7]', async () => {
    const person = await owner(gateway)
    const { key } = await createKeyFor(gateway, person)
    for (const headers of [{ 'x-api-key': person.token }, { cookie: `token=${person.token}` }, { 'x-api-key': key }])
      expect((await sendRequest(gateway, 'GET', account, { headers: { ...fromAnotherIp(), ...headers } })).status).toBe(
        401,
      )
    expect((await sendRequest(gateway, 'GET', `${account}?token=${person.token}`)).status).toBe(401)
    expect((await see(key)).body.error.code).toBe('invalid_token')
    const chat = await gateway.post('/api/v1/chat', { prompt: 'Hello' }, { authorization: `Bearer ${person.token}` })
    expect(chat.status).toBe(401)
  })

  test('stays valid after a restart, because the embedded gateway keeps its secret with mode 0600 [J2] [C5]', () => {
    const path = secretPath(local)
    expect(existsSync(path)).toBe(true)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readFileSync(path).length).toBeGreaterThanOrEqual(32)
  })

  test('appears in no table, nor does a password, refresh token or invitation [K2]', async () => {
    const person = await owner(gateway)
    await addMember(gateway, person, 'member')
    const dump = await sql(
      ({ sql: query }) => query<{ text: string }[]>`
        select (select json_agg(users)::text from users) || (select json_agg(sessions)::text from sessions)
          || (select json_agg(session_tokens)::text from session_tokens)
          || (select json_agg(invitations)::text from invitations) as text`,
    )
    for (const secretText of [person.password, person.refreshToken, person.refreshToken.slice(11), 'gw_invite_'])
      expect(dump[0]?.text).not.toContain(secretText)
  })

  test('passes from an IP address that is rate limited for failures [K9]', async () => {
    const person = await owner(gateway)
    const headers = fromAnotherIp()
    const tell = (token: string) => sendRequest<Failure>(gateway, 'GET', account, { token, headers })
    let refused = 0
    let last = await tell('nobody')
    for (; last.status === 401 && refused < 400; refused++) last = await tell('nobody')
    // The bucket of 100 refills by one a second meanwhile.
    expect([last.status, last.body.error.code, refused >= 100]).toEqual([429, 'ip_rate_limited', true])
    expect((await tell(person.token)).status).toBe(200)
    expect((await see('nobody')).status).toBe(401)
    const chat = () => gateway.post('/api/v1/chat', { prompt: 'Hello' }, { authorization: 'Bearer nobody', ...headers })
    await eventually(async () => (await chat()).status === 429, 30_000)
  })
})
