/** Users of a gateway for tests, signed in over its real socket, each from a separate network address. */
import { expect } from 'bun:test'
import { changeBilling } from '../../src/console/billing/stores/billing.ts'
import type { ManagementScope, Role } from '../../src/core/accounts/roles.ts'
import { eventually } from './eventually.ts'
import type { Gateway } from './gateway.ts'
import type { SmtpServer } from './smtp.ts'

type At = Pick<Gateway, 'url'>

export type Person = {
  readonly id: string
  readonly accountId: string
  readonly email: string
  readonly password: string
  readonly token: string
  readonly refreshToken: string
  readonly role: Role
}

type SignedIn = {
  readonly token: string
  readonly refresh_token: string
  readonly user: { readonly id: string; readonly email: string; readonly role: Role }
  readonly account: { readonly id: string }
}

let made = 0

/** Returns headers with a unique network address; the gateway must trust 127.0.0.1 as its proxy. */
export function fromAnotherIp(): Record<string, string> {
  made++
  return { 'x-forwarded-for': `10.${(made >> 16) & 255}.${(made >> 8) & 255}.${made & 255}` }
}

/** Sends one request and parses its response if it is JSON. */
export async function sendRequest<T = Record<string, unknown>>(
  gateway: At,
  method: string,
  path: string,
  options: { token?: string | undefined; body?: unknown; headers?: Record<string, string> } = {},
): Promise<{ readonly status: number; readonly headers: Headers; readonly body: T; readonly text: string }> {
  const { token, body, headers = fromAnotherIp() } = options
  const answer = await fetch(gateway.url + path, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await answer.text()
  const isLines = answer.headers.get('content-type') === 'application/jsonl'
  return { status: answer.status, headers: answer.headers, body: JSON.parse((!isLines && text) || '{}') as T, text }
}

/** Registers a user: the owner of a new account. */
export async function owner(gateway: At, headers = fromAnotherIp()): Promise<Person> {
  const email = `person${++made}@example.test`
  const password = `a password of ${made}`
  const { status, body } = await sendRequest<SignedIn>(gateway, 'POST', '/api/v1/auth/register', {
    body: { email, password },
    headers,
  })
  expect(status).toBe(201)
  return person(body, password)
}

/** Adds a member to an account by an accepted invitation. */
export async function addMember(gateway: At, inviter: Person, role: Exclude<Role, 'owner'>): Promise<Person> {
  const email = `person${++made}@example.test`
  const password = `a password of ${made}`
  const invited = await sendRequest<{ token: string }>(gateway, 'POST', '/api/v1/team/invitations', {
    token: inviter.token,
    body: { email, role },
  })
  expect(invited.status).toBe(201)
  const { status, body } = await sendRequest<SignedIn>(
    gateway,
    'POST',
    `/api/v1/team/invitations/${invited.body.token}/accept`,
    { body: { password } },
  )
  expect(status).toBe(201)
  return person(body, password)
}

/** Registers an owner at a gateway that sends mail, and confirms the email address with the mailed token. */
export async function confirmedOwner(gateway: Gateway, smtp: Pick<SmtpServer, 'letters'>): Promise<Person> {
  const person = await owner(gateway)
  const tokenIn = () =>
    smtp.letters
      .filter(({ to }) => to.includes(person.email))
      .map(({ text }) => /\/#\/verify\/(gw_verify_[\w-]{43})\s/.exec(text)?.[1])
      .find(token => token !== undefined)
  await eventually(() => tokenIn() !== undefined, 5000)
  const confirmed = await sendRequest(gateway, 'POST', `/api/v1/auth/verify/${tokenIn()}`, {
    body: { password: person.password },
  })
  expect(confirmed.status).toBe(200)
  gateway.deps.sessions.forget()
  return person
}

/** Moves an account to the plan `usage`, like the operator's command. */
export async function upgraded(
  { deps }: Pick<Gateway, 'deps'>,
  { accountId }: Pick<Person, 'accountId'>,
): Promise<void> {
  const { database, clock, newId } = deps
  const outcome = await changeBilling(database, accountId, {
    event: 'upgrade',
    at: clock.now(),
    userId: null,
    newId,
    method: { id: newId('pay'), kind: 'manual', stripePaymentMethodId: null, brand: null, lastFour: null },
  })
  expect(outcome).toBe('done')
}

/** Signs in; null if rejected. */
export async function signIn(
  gateway: At,
  { email, password }: { readonly email: string; readonly password: string },
  headers = fromAnotherIp(),
): Promise<Person | null> {
  const { status, body } = await sendRequest<SignedIn>(gateway, 'POST', '/api/v1/auth/login', {
    body: { email, password },
    headers,
  })
  return status === 200 ? person(body, password) : null
}

/** Creates a key for a user. */
export async function createKeyFor(gateway: At, { token }: Pick<Person, 'token'>, name = 'key') {
  const { status, body } = await sendRequest<{ id: string; key: string }>(gateway, 'POST', '/api/v1/keys', {
    token,
    body: { name },
  })
  expect(status).toBe(201)
  return body
}

/** Creates a management key of a user. */
export async function createManagementKey(
  gateway: At,
  { token }: Pick<Person, 'token'>,
  scopes: readonly ManagementScope[],
) {
  const { status, body } = await sendRequest<{ id: string; key: string }>(gateway, 'POST', '/api/v1/management-keys', {
    token,
    body: { name: 'automation', scopes },
  })
  expect(status).toBe(201)
  return body
}

function person({ token, refresh_token, user, account }: SignedIn, password: string): Person {
  const { id, email, role } = user
  return { id, accountId: account.id, email, password, token, refreshToken: refresh_token, role }
}
