/** Two-factor sign-in over a real socket: set-up, sign-in, replay, guessing, recovery, requirement by an owner. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { removeTotp, totpCode } from '../../src/console/auth/totp.ts'
import { systemClock } from '../../src/database/clock.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { addMember, createKeyFor, owner, type Person, sendRequest, signIn } from '../harness/users.ts'

let gateway: Gateway
/** Stands still, so that no code expires during a test. */
const now = Date.now()
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' }, { clock: { ...systemClock, now: () => now } })
}, 240_000)
afterAll(() => gateway.stop())

type Failure = { readonly error: { readonly code: string; readonly param: string | null } }
type Setup = { readonly secret: string; readonly uri: string; readonly qr_code: string }
type Codes = { readonly recovery_codes: readonly string[] }

const path = '/api/v1/auth/two-factor'
const as = <T>(person: Person, method: string, to: string, body?: unknown) =>
  sendRequest<T>(gateway, method, to, { token: person.token, body })
const currentStep = () => Math.floor(now / 30_000)

/** Sets up two-factor sign-in with the code of the previous step, so that the current one is unused. */
async function enable(person: Person): Promise<{ readonly secret: string; readonly codes: readonly string[] }> {
  const setup = await as<Setup>(person, 'POST', path, { password: person.password })
  expect(setup.status).toBe(200)
  const { secret } = setup.body
  const confirmed = await as<Codes>(person, 'POST', `${path}/confirm`, { code: totpCode(secret, currentStep() - 1) })
  expect(confirmed.status).toBe(200)
  return { secret, codes: confirmed.body.recovery_codes }
}

async function attempt({ email, password }: Person, code?: string): Promise<string> {
  const body = { email, password, ...(code === undefined ? {} : { code }) }
  const answer = await sendRequest<Failure & { readonly token?: string }>(gateway, 'POST', '/api/v1/auth/login', {
    body,
  })
  return answer.status === 200 ? 'signed in' : `${answer.status} ${answer.body.error.code}`
}

describe('two-factor sign-in', () => {
  test('has no effect before its first code, then asks for a code after the right password only', async () => {
    const person = await owner(gateway)
    const setup = await as<Setup>(person, 'POST', path, { password: person.password })
    expect(setup.body.uri).toContain(`secret=${setup.body.secret}`)
    expect(setup.body.qr_code).toStartWith('data:image/svg+xml,')
    expect(await attempt(person)).toBe('signed in')
    expect((await as(person, 'POST', `${path}/confirm`, { code: '000000' })).status).toBe(401)
    const { secret } = await enable(person)
    expect(await attempt(person)).toBe('401 two_factor_required')
    expect(await attempt({ ...person, password: 'wrong password' })).toBe('401 invalid_credentials')
    expect(await attempt(person, totpCode(secret, currentStep() - 5))).toBe('401 invalid_credentials')
    expect(await attempt(person, totpCode(secret, currentStep()))).toBe('signed in')
  })

  test('accepts each code once, also for eight racing sign-ins', async () => {
    const person = await owner(gateway)
    const { secret } = await enable(person)
    const code = totpCode(secret, currentStep())
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => attempt(person, code)))
    expect(outcomes.filter(outcome => outcome === 'signed in')).toHaveLength(1)
    expect(await attempt(person, code)).toBe('401 invalid_credentials')
    // Older codes are rejected too.
    expect(await attempt(person, totpCode(secret, currentStep() - 1))).toBe('401 invalid_credentials')
  })

  test('locks after ten wrong codes, also at a known network address and for the right code', async () => {
    const person = await owner(gateway)
    const { secret, codes } = await enable(person)
    for (let tries = 0; tries < 10; tries++) expect(await attempt(person, '000000')).toBe('401 invalid_credentials')
    expect(await attempt(person, totpCode(secret, currentStep()))).toBe('401 invalid_credentials')
    expect(await attempt(person, codes[0])).toBe('401 invalid_credentials')
    // Open sessions continue.
    expect((await as(person, 'GET', '/api/v1/account')).status).toBe(200)
  })

  test('accepts each recovery code once', async () => {
    const person = await owner(gateway)
    const { codes } = await enable(person)
    const [first = '', second = ''] = codes
    expect(await attempt(person, first.toUpperCase().replaceAll('-', ' '))).toBe('signed in')
    expect(await attempt(person, first)).toBe('401 invalid_credentials')
    expect(await attempt(person, second)).toBe('signed in')
    const state = await as<object>(person, 'GET', path)
    expect(state.body).toEqual({ enabled: true, recovery_codes_left: 8, setup_required: false })
  })

  test('needs password and code to be disabled, and no second set-up replaces it', async () => {
    const person = await owner(gateway)
    const { secret } = await enable(person)
    expect((await as(person, 'POST', path, { password: person.password })).status).toBe(409)
    const disable = (password: string, code: string) => as(person, 'POST', `${path}/disable`, { password, code })
    expect((await disable('wrong password', totpCode(secret, currentStep()))).status).toBe(401)
    expect((await disable(person.password, '000000')).status).toBe(401)
    expect(await attempt(person)).toBe('401 two_factor_required')
    expect((await disable(person.password, totpCode(secret, currentStep()))).status).toBe(204)
    expect(await attempt(person)).toBe('signed in')
  })

  test('stores no secret and no recovery code in clear', async () => {
    const person = await owner(gateway)
    const { secret, codes } = await enable(person)
    const rows = await gateway.deps.database.run(
      ({ sql }) => sql<{ text: string }[]>`
        select (select json_agg(t)::text from totp_secrets t) || (select json_agg(t)::text from totp_recovery_codes t) as text`,
    )
    const text = rows.map(row => row.text).join()
    expect(text).toContain(person.id)
    for (const canary of [secret, ...codes, ...codes.map(code => code.replaceAll('-', ''))])
      expect(text).not.toContain(canary)
    expect(gateway.logLines.join()).not.toContain(secret)
  })

  test('opens only sign-in settings to members without it, if an owner requires it', async () => {
    const boss = await owner(gateway)
    const [admin, member] = [await addMember(gateway, boss, 'admin'), await addMember(gateway, boss, 'member')]
    const { key } = await createKeyFor(gateway, member)
    const enforce = (person: Person) => as(person, 'PATCH', '/api/v1/account', { requires_two_factor: true })
    expect((await enforce(admin)).status).toBe(403)
    expect((await enforce(boss)).status).toBe(200)
    const refused = await as<Failure>(member, 'GET', '/api/v1/account')
    expect([refused.status, refused.body.error.code]).toEqual([403, 'two_factor_setup_required'])
    for (const to of ['/api/v1/keys', '/api/v1/usage', '/api/v1/requests', '/api/v1/insights/learning'])
      expect([to, (await as(member, 'GET', to)).status]).toEqual([to, 403])
    expect((await as(boss, 'GET', '/api/v1/account')).status).toBe(403)
    expect((await as(boss, 'GET', '/api/v1/providers')).status).toBe(403)
    const state = await as<{ setup_required: boolean }>(member, 'GET', path)
    expect(state.body.setup_required).toBe(true)
    // Keys are for servers and have no second factor.
    const headers = { 'x-api-key': key }
    expect((await fetch(`${gateway.url}/api/v1/insights/learning`, { headers })).status).toBe(200)
    const { secret } = await enable(member)
    expect((await as(member, 'GET', '/api/v1/account')).status).toBe(200)
    expect(await signIn(gateway, member)).toBeNull()
    expect(await attempt(member, totpCode(secret, currentStep()))).toBe('signed in')
  })

  test('ends by the operator’s command', async () => {
    const person = await owner(gateway)
    await enable(person)
    const { database } = gateway.deps
    const { accountId, id: userId } = person
    expect(await removeTotp(database, { accountId, userId })).toBe(true)
    expect(await attempt(person)).toBe('signed in')
  })
})
