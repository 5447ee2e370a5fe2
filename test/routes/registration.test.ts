/** Registration rules, and the permissions of an unconfirmed email address. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { execute } from '../../src/commands/execute.ts'
import { listUsers } from '../../src/console/auth/stores/users.ts'
import { recentKeys } from '../../src/console/keys/stores/key-lineages.ts'
import { shellCommand } from '../../src/core/validation/errors.ts'
import { eventually } from '../harness/eventually.ts'
import { freePort } from '../harness/free-port.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { type SmtpServer, startSmtpServer } from '../harness/smtp.ts'
import {
  addMember,
  confirmedOwner,
  createKeyFor,
  fromAnotherIp,
  owner,
  type Person,
  sendRequest,
  signIn,
} from '../harness/users.ts'

// A gateway takes seconds to start where other tests run beside this one.
setDefaultTimeout(240_000)

type Failure = { readonly error: { readonly code: string; readonly param: string | null; readonly message: string } }
type Session = {
  readonly token: string
  readonly refresh_token: string
  readonly user: { readonly id: string; readonly verification_pending: boolean }
  readonly account: { readonly id: string }
}

let smtp: SmtpServer
let gateway: Gateway
const getMail = (server: SmtpServer) => ({
  SMTP_URL: `smtp://127.0.0.1:${server.port}`,
  MAIL_FROM: 'gateway@example.test',
  PUBLIC_URL: 'http://gateway.internal:8080',
})
beforeAll(async () => {
  smtp = startSmtpServer()
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1', ...getMail(smtp) })
})
afterAll(async () => {
  await gateway.stop()
  smtp.stop()
})

const register = (email: string, password: string, at = gateway) =>
  sendRequest<Session & Failure>(at, 'POST', '/api/v1/auth/register', { body: { email, password } })
const verify = (token: string, password: string) =>
  sendRequest<Session & Failure>(gateway, 'POST', `/api/v1/auth/verify/${token}`, { body: { password } })
const see = (token: string) => sendRequest(gateway, 'GET', '/api/v1/account', { token })
const letters = (email: string, kind: 'verify' | 'reset') =>
  smtp.letters.filter(({ to, text }) => to.includes(email) && text.includes(`/#/${kind}/`))

/** Returns the token in the `count`th email of a kind. */
async function tokenFor(email: string, kind: 'verify' | 'reset', count = 1): Promise<string> {
  await eventually(() => letters(email, kind).length >= count, 5000)
  return /\/#\/\w+\/(gw_\w+_[\w-]{43})\s/.exec(letters(email, kind)[count - 1]?.text ?? '')?.[1] ?? 'none'
}

async function resetToken(email: string): Promise<string> {
  expect((await sendRequest(gateway, 'POST', '/api/v1/auth/reset', { body: { email } })).status).toBe(202)
  return tokenFor(email, 'reset')
}
const choose = (token: string, body: object) =>
  sendRequest<Failure>(gateway, 'POST', `/api/v1/auth/reset/${token}`, { body })

describe('an unverified user', () => {
  test('reads, signs out and requests another email, and changes nothing else', async () => {
    const { body } = await register('careful@example.test', 'a long password')
    expect(body.user.verification_pending).toBe(true)
    const { token } = body
    for (const path of ['/api/v1/account', '/api/v1/keys', '/api/v1/team', '/api/v1/billing'])
      expect((await sendRequest(gateway, 'GET', path, { token })).status).toBe(200)
    for (const [method, path, sent] of [
      ['POST', '/api/v1/keys', { name: 'mine' }],
      ['PATCH', '/api/v1/account', { name: 'Renamed' }],
      ['POST', '/api/v1/team/invitations', { email: 'spam@example.test' }],
      ['DELETE', '/api/v1/billing/payment-method', undefined],
      ['POST', '/api/v1/billing/upgrade', { confirm: true }],
      ['DELETE', '/api/v1/insights/data', undefined],
    ] as const) {
      const answer = await sendRequest<Failure>(gateway, method, path, { token, body: sent })
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 403, 'forbidden'])
      expect(answer.body.error.message).toContain('/api/v1/auth/verification')
    }
    expect(letters('spam@example.test', 'verify')).toEqual([])
    expect((await sendRequest(gateway, 'POST', '/api/v1/auth/verification', { token })).status).toBe(202)
    await tokenFor('careful@example.test', 'verify', 2)
    expect((await sendRequest(gateway, 'POST', '/api/v1/auth/logout', { token })).status).toBe(204)
  })

  test('fails to sign in with the response to a wrong password [P3]', async () => {
    await register('waiting@example.test', 'a long password')
    const logIn = (password: string) =>
      sendRequest(gateway, 'POST', '/api/v1/auth/login', { body: { email: 'waiting@example.test', password } })
    const [right, wrong] = [await logIn('a long password'), await logIn('another password')]
    const plain = ({ status, text, headers }: typeof right) => ({
      status,
      text: text.replace(/req_\w+/, 'req'),
      names: [...headers.keys()].sort(),
    })
    expect(right.status).toBe(401)
    expect(plain(right)).toEqual(plain(wrong))
  })

  test('becomes verified once, by the token from the email together with the password', async () => {
    const email = 'confirms@example.test'
    const { body } = await register(email, 'a long password')
    const token = await tokenFor(email, 'verify')
    expect((await verify(token, 'not the password')).body.error.code).toBe('invalid_credentials')
    const confirmed = await verify(token, 'a long password')
    expect([confirmed.status, confirmed.body.user.verification_pending]).toEqual([200, false])
    expect((await verify(token, 'a long password')).status).toBe(404)
    // The registration's session now has all permissions, and sign-in works.
    await eventually(
      async () =>
        (await sendRequest(gateway, 'POST', '/api/v1/keys', { token: body.token, body: { name: 'k' } })).status === 201,
      2000,
    )
    expect(await signIn(gateway, { email, password: 'a long password' })).not.toBeNull()
    expect(
      (await sendRequest<Failure>(gateway, 'POST', '/api/v1/auth/verification', { token: body.token })).status,
    ).toBe(409)
    expect((await register(email, 'a long password')).status).toBe(409)
  })

  test('stays unverified when the token expired, was replaced, or was sent to an older address', async () => {
    for (const change of ['expired', 'replaced', 'moved'] as const) {
      const email = `${change}@example.test`
      const { body } = await register(email, 'a long password')
      const token = await tokenFor(email, 'verify')
      const { id } = body.user
      if (change === 'replaced') {
        await sendRequest(gateway, 'POST', '/api/v1/auth/verification', { token: body.token })
        await tokenFor(email, 'verify', 2)
      } else
        await gateway.deps.database.run(({ sql }) =>
          change === 'expired'
            ? sql`update email_verifications set expires_at = created_at where user_id = ${id}`
            : sql`update users set email = 'moved-on@example.test' where id = ${id}`,
        )
      expect([change, (await verify(token, 'a long password')).status]).toEqual([change, 404])
    }
  })

  test('becomes verified by one of two concurrent requests, and is either verified or replaced, never both', async () => {
    for (let round = 0; round < 4; round++) {
      const email = `racing${round}@example.test`
      await register(email, 'a long password')
      const token = await tokenFor(email, 'verify')
      const [item, other, again] = await Promise.all([
        verify(token, 'a long password'),
        verify(token, 'a long password'),
        register(email, 'another password'),
      ])
      const confirmed = [item, other].filter(({ status }) => status === 200)
      expect(confirmed.length).toBeLessThanOrEqual(1)
      // 409 after the confirmation, 201 before it.
      expect(again.status).toBe(confirmed.length === 1 ? 409 : 201)
    }
  })

  test('receives at most three emails per hour, with unchanged responses', async () => {
    const email = 'patient@example.test'
    // The email is sent after the response, and not for a user that was replaced meanwhile.
    for (let count = 1; count <= 3; count++) {
      expect((await register(email, 'a long password')).status).toBe(201)
      await tokenFor(email, 'verify', count)
    }
    const { token } = (await register(email, 'a long password')).body
    expect((await sendRequest(gateway, 'POST', '/api/v1/auth/verification', { token })).status).toBe(202)
    // The queue sends in order: a fourth email would come before this one.
    await register('next@example.test', 'a long password')
    await tokenFor('next@example.test', 'verify')
    expect(letters(email, 'verify')).toHaveLength(3)
  })

  test('leaves no token in the database or the log', async () => {
    await register('secret@example.test', 'a long password')
    const token = await tokenFor('secret@example.test', 'verify')
    const rows = await gateway.deps.database.run(
      ({ sql }) => sql`select email_verifications::text from email_verifications`,
    )
    expect(JSON.stringify(rows)).not.toContain(token.slice(-43))
    expect(gateway.logLines.join('\n')).not.toContain(token.slice(-43))
    expect(gateway.logLines.join('\n')).not.toContain('secret@example.test')
  })
})

/** Returns the JSON of an operator's command, run beside the running gateway. */
async function command(words: readonly string[]): Promise<{ readonly password: string }> {
  const { databaseUrl, dataDirectory } = gateway.deps.config
  const own = process.env
  process.env = { GATEWAY_DATA_DIR: dataDirectory, ...(databaseUrl === null ? {} : { DATABASE_URL: databaseUrl }) }
  const printed: string[] = []
  const out = spyOn(process.stdout, 'write').mockImplementation(text => {
    printed.push(String(text))
    return true
  })
  try {
    expect(await execute([...words, '--json'], '0')).toBe(0)
  } finally {
    out.mockRestore()
    process.env = own
  }
  const { password } = JSON.parse(printed.join(''))
  return { password: String(password) }
}

describe('squatted email address', () => {
  /** A user who registered the address of another person, with an API key. */
  async function squatter(email: string) {
    const { body } = await register(email, 'password of the squatter')
    // Sent after the response: only then is no further email pending.
    await tokenFor(email, 'verify')
    const { database } = gateway.deps
    const set = async (isUnverified: boolean) => {
      await database.run(
        ({ sql }) => sql`
          update users set unverified_since = case when ${isUnverified}::boolean then now() end where id = ${body.user.id}`,
      )
      gateway.deps.sessions.forget()
    }
    await set(false)
    const { key } = await createKeyFor(gateway, body)
    await set(true)
    const use = () => sendRequest(gateway, 'GET', '/api/v1/insights/learning', { token: key })
    expect((await use()).status).toBe(200)
    const hasNothing = async () => {
      expect((await see(body.token)).status).toBe(401)
      const { refresh_token } = body
      expect((await sendRequest(gateway, 'POST', '/api/v1/auth/refresh', { body: { refresh_token } })).status).toBe(401)
      expect(await signIn(gateway, { email, password: 'password of the squatter' })).toBeNull()
      await eventually(async () => (await use()).status === 401, 1000)
      const known = await database.run(({ sql }) => sql`select 1 from known_addresses where user_id = ${body.user.id}`)
      return { known: known.length, users: await listUsers(database, body.account.id) }
    }
    return { ...body, hasNothing }
  }

  test('can be registered again by its owner, who confirms it; the squatter keeps nothing', async () => {
    const email = 'owned@example.test'
    const thief = await squatter(email)
    const stolen = await tokenFor(email, 'verify')
    const owned = await register(email, 'password of the owner')
    expect(owned.status).toBe(201)
    expect(owned.body.account.id).not.toBe(thief.account.id)
    expect(await thief.hasNothing()).toEqual({ known: 0, users: [] })
    // The earlier email confirms neither, with either password.
    for (const password of ['password of the squatter', 'password of the owner'])
      expect((await verify(stolen, password)).status).toBe(404)
    expect((await verify(await tokenFor(email, 'verify', 2), 'password of the owner')).status).toBe(200)
    expect((await register(email, 'password of the squatter')).status).toBe(409)
    expect(await signIn(gateway, { email, password: 'password of the owner' })).not.toBeNull()
  })

  test('belongs to its owner after a reset, which confirms it and always revokes keys', async () => {
    const email = 'reset-by-owner@example.test'
    const thief = await squatter(email)
    expect((await choose(await resetToken(email), { password: 'password of the owner' })).status).toBe(204)
    const { known, users } = await thief.hasNothing()
    expect([known, users.length]).toEqual([1, 1])
    const mine = await signIn(gateway, { email, password: 'password of the owner' })
    expect(mine).not.toBeNull()
    expect(
      (await sendRequest(gateway, 'POST', '/api/v1/keys', { token: mine?.token, body: { name: 'mine' } })).status,
    ).toBe(201)
  })

  test('can be used for an account that the operator creates', async () => {
    const email = 'by-operator@example.test'
    const thief = await squatter(email)
    const { password } = await command(['accounts', 'create', email])
    await thief.hasNothing()
    expect((await signIn(gateway, { email, password }))?.email).toBe(email)
  })

  test('becomes confirmed by the operator’s reset of its password', async () => {
    const email = 'vouched-for@example.test'
    const { body } = await register(email, 'a long password')
    const { password } = await command(['accounts', 'reset-password', email])
    expect((await see(body.token)).status).toBe(401)
    const person = await signIn(gateway, { email, password })
    expect(
      (await sendRequest(gateway, 'POST', '/api/v1/keys', { token: person?.token, body: { name: 'k' } })).status,
    ).toBe(201)
  })

  test('joins the team that invites it', async () => {
    const email = 'invited-owner@example.test'
    const thief = await squatter(email)
    const boss = await confirmedOwner(gateway, smtp)
    await sendRequest(gateway, 'POST', '/api/v1/team/invitations', { token: boss.token, body: { email } })
    await eventually(
      () => smtp.letters.some(({ to, text }) => to.includes(email) && text.includes('/invitation/')),
      5000,
    )
    const letter = smtp.letters.findLast(({ to }) => to.includes(email))?.text ?? ''
    const token = /invitation\/(gw_invite_[\w-]{43})\s/.exec(letter)?.[1]
    const path = `/api/v1/team/invitations/${token}/accept`
    const joined = await sendRequest<Session>(gateway, 'POST', path, { body: { password: 'password of the owner' } })
    expect([joined.status, joined.body.account.id]).toEqual([201, boss.accountId])
    expect(joined.body.user.verification_pending).toBe(false)
    await thief.hasNothing()
  })
})

describe('password reset', () => {
  const use = (token: string) => sendRequest(gateway, 'GET', '/api/v1/insights/learning', { token })

  test('revokes the keys of its user on request, and no others', async () => {
    const person = await confirmedOwner(gateway, smtp)
    const member = await getMember(person)
    const [own, others] = [(await createKeyFor(gateway, person)).key, (await createKeyFor(gateway, member)).key]
    await choose(await resetToken(person.email), { password: 'the next password' })
    expect((await use(own)).status).toBe(200)
    const again = { email: person.email }
    expect((await sendRequest(gateway, 'POST', '/api/v1/auth/reset', { body: again })).status).toBe(202)
    const token = await tokenFor(person.email, 'reset', 2)
    expect((await choose(token, { password: 'yet another one', revoke_keys: 'yes' })).body.error.param).toBe(
      'revoke_keys',
    )
    expect((await choose(token, { password: 'yet another one', revoke_keys: true })).status).toBe(204)
    await eventually(async () => (await use(own)).status === 401, 1000)
    expect((await use(others)).status).toBe(200)
  })

  test('leaves no key that a session creates or rotates during the reset', async () => {
    for (let round = 0; round < 5; round++) {
      const person = await confirmedOwner(gateway, smtp)
      const { id } = await createKeyFor(gateway, person)
      const token = await resetToken(person.email)
      const { token: session } = person
      const making = Array.from({ length: 6 }, () =>
        sendRequest(gateway, 'POST', '/api/v1/keys', { token: session, body: { name: 'late' } }),
      )
      const rotating = sendRequest(gateway, 'POST', `/api/v1/keys/${id}/rotate`, { token: session, body: {} })
      const reset = choose(token, { password: 'the next password', revoke_keys: true })
      await Promise.all([...making, rotating, reset])
      expect((await reset).status).toBe(204)
      const { database } = gateway.deps
      const keys = await recentKeys(database, person.accountId, { userId: null })
      expect(keys.filter(({ revokedAt }) => revokedAt === null)).toEqual([])
    }
  })

  test('makes its network address known: the owner signs in there during a lockout by other clients', async () => {
    const person = await confirmedOwner(gateway, smtp)
    const away = fromAnotherIp()
    const lock = async () => {
      for (let count = 0; count < 10; count++) await signIn(gateway, { ...person, password: 'wrong password' })
    }
    await lock()
    expect(await signIn(gateway, person, away)).toBeNull()
    const token = await resetToken(person.email)
    const path = `/api/v1/auth/reset/${token}`
    const next = { ...person, password: 'the next password' }
    expect(
      (await sendRequest(gateway, 'POST', path, { body: { password: next.password }, headers: away })).status,
    ).toBe(204)
    await lock()
    expect(await signIn(gateway, next, away)).not.toBeNull()
  })
})

/** A member whom the owner invited by email. */
async function getMember(boss: Person): Promise<Person> {
  const email = `member-of-${boss.email}`
  await sendRequest(gateway, 'POST', '/api/v1/team/invitations', { token: boss.token, body: { email } })
  const invited = () => smtp.letters.find(({ to }) => to.includes(email))?.text ?? ''
  await eventually(() => invited() !== '', 5000)
  const token = /invitation\/(gw_invite_[\w-]{43})\s/.exec(invited())?.[1]
  const path = `/api/v1/team/invitations/${token}/accept`
  const password = 'password of a member'
  expect((await sendRequest(gateway, 'POST', path, { body: { password } })).status).toBe(201)
  const person = await signIn(gateway, { email, password })
  if (person === null) throw new Error('a member signs in')
  return person
}

describe('registration', () => {
  const rules = async (at: Gateway) => (await sendRequest(at, 'GET', '/api/v1/auth/registration')).body
  async function withGateway(environment: Record<string, string>, work: (at: Gateway) => Promise<void>) {
    const at = await startGateway({ TRUSTED_PROXIES: '127.0.0.1', ...environment })
    try {
      await work(at)
    } finally {
      await at.stop()
    }
  }

  test('allows everyone by default, and reports whether addresses are confirmed', async () => {
    expect(await rules(gateway)).toEqual({
      mode: 'open',
      domains: null,
      verifies_email: true,
      password_sign_in: true,
      single_sign_on: null,
      operator_command: shellCommand('').trim(),
    })
  })

  test('accepts addresses of the configured domains only', async () => {
    await withGateway({ REGISTRATION_DOMAINS: 'Example.com, partner.example', ...getMail(smtp) }, async at => {
      expect(await rules(at)).toMatchObject({ mode: 'open', domains: ['example.com', 'partner.example'] })
      for (const email of ['a@evil.test', 'a@sub.example.com', 'a@example.com.evil.test', 'a@notexample.com']) {
        const { status, body } = await register(email, 'a long password', at)
        expect([email, status, body.error.code, body.error.param]).toEqual([email, 403, 'forbidden', 'email'])
      }
      expect((await register('a@EXAMPLE.com', 'a long password', at)).status).toBe(201)
    })
  })

  test('rejects addresses of the domains of the identity provider', async () => {
    const single = {
      OIDC_ISSUER: 'https://login.example.com',
      OIDC_CLIENT_ID: 'gateway',
      OIDC_ACCOUNT: 'acc_1',
      OIDC_DOMAINS: 'Corp.test',
      PUBLIC_URL: 'http://127.0.0.1:1',
    }
    await withGateway(single, async at => {
      const { status, body } = await register('colleague@CORP.test', 'a long password', at)
      expect([status, body.error.code, body.error.param]).toEqual([403, 'forbidden', 'email'])
      expect((await register('guest@elsewhere.test', 'a long password', at)).status).toBe(201)
    })
  })

  test('rejects every registration and accepts invitations when it is closed', async () => {
    await withGateway({ REGISTRATION: 'closed' }, async at => {
      expect(await rules(at)).toEqual({
        mode: 'closed',
        domains: null,
        verifies_email: false,
        password_sign_in: true,
        single_sign_on: null,
        operator_command: shellCommand('').trim(),
      })
      expect((await register('a@example.test', 'a long password', at)).body.error.code).toBe('forbidden')
      const { firstAccount } = at.deps
      const boss = firstAccount === null ? null : await signIn(at, firstAccount)
      if (boss === null) throw new Error('the first owner signs in')
      expect((await addMember(at, boss, 'member')).accountId).toBe(boss.accountId)
    })
  })

  test('rejects registrations and accepts invitations on a server, where it is closed by default', async () => {
    const port = freePort()
    // The harness opens registration; an empty value is the default.
    await withGateway({ REGISTRATION: '', PUBLIC_URL: `http://127.0.0.1:${port}` }, async at => {
      expect(await rules(at)).toMatchObject({ mode: 'closed' })
      expect((await register('a@example.test', 'a long password', at)).body.error.code).toBe('forbidden')
      const { firstAccount } = at.deps
      const boss = firstAccount === null ? null : await signIn(at, firstAccount)
      if (boss === null) throw new Error('the first owner signs in')
      expect((await addMember(at, boss, 'member')).accountId).toBe(boss.accountId)
    })
  })
})

describe('address that its user has not proven', () => {
  const password = 'a long password'
  let at: Gateway
  let boss: Person
  beforeAll(async () => {
    at = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
    const { firstAccount } = at.deps
    const found = firstAccount === null ? null : await signIn(at, firstAccount)
    if (found === null) throw new Error('the first owner signs in')
    boss = found
  })
  afterAll(() => at.stop())

  const invite = async (by: Person, email: string) =>
    (await sendRequest<{ token: string }>(at, 'POST', '/api/v1/team/invitations', { token: by.token, body: { email } }))
      .body.token
  const accept = (token: string) =>
    sendRequest<Session & Failure>(at, 'POST', `/api/v1/team/invitations/${token}/accept`, { body: { password } })

  test('goes to the user whom a proven owner invited, and the earlier user loses all access', async () => {
    const email = 'colleague@corp.test'
    const squatter = await register(email, 'the password of another', at)
    const { key } = await createKeyFor(at, { ...boss, token: squatter.body.token })
    const models = () => fetch(`${at.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
    expect((await models()).status).toBe(200)
    const accepted = await accept(await invite(boss, email))
    expect([accepted.status, accepted.body.account.id]).toEqual([201, boss.accountId])
    expect((await sendRequest(at, 'GET', '/api/v1/account', { token: squatter.body.token })).status).toBe(401)
    expect(await signIn(at, { email, password: 'the password of another' })).toBeNull()
    expect(await signIn(at, { email, password })).not.toBeNull()
    const chat = () =>
      fetch(`${at.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Hi' }] }),
      })
    await eventually(async () => (await chat()).status === 401, 10_000)
    // Proven now: no invitation of another account takes it.
    const other = await owner(at)
    expect((await accept(await invite(other, email))).body.error.code).toBe('conflict')
  })

  test('stays with its user when the inviting owner has not proven an address either', async () => {
    const email = 'first@corp.test'
    expect((await register(email, password, at)).status).toBe(201)
    const stranger = await owner(at)
    expect((await accept(await invite(stranger, email))).body.error.code).toBe('conflict')
    expect(await signIn(at, { email, password })).not.toBeNull()
    // A user who joined by such an invitation has not proven the address.
    const invited = 'second@corp.test'
    expect((await accept(await invite(stranger, invited))).status).toBe(201)
    expect((await accept(await invite(boss, invited))).status).toBe(201)
  })

  test('cannot be registered again', async () => {
    const email = 'twice@corp.test'
    expect((await register(email, password, at)).status).toBe(201)
    expect((await register(email, 'another long password', at)).body.error.code).toBe('conflict')
  })
})
