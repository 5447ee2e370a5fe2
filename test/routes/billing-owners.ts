/** Owners at Stripe's page for cards. */
import { expect } from 'bun:test'
import type { Gateway } from '../harness/gateway.ts'
import { type Person, sendRequest } from '../harness/users.ts'
import type { StripeServer } from './billing-stripe.ts'

/** Opens the page for cards as the account's owner. Returns the ID of its session. */
export async function openSetup(gateway: Pick<Gateway, 'url'>, { token }: Pick<Person, 'token'>): Promise<string> {
  const path = '/api/v1/billing/payment-method/setup'
  const { status, body } = await sendRequest<{ url: string }>(gateway, 'POST', path, { token, body: {} })
  expect(status).toBe(200)
  return new URL(body.url).pathname.split('/').at(-1) ?? ''
}

/** Enters a card on Stripe's page and returns from it, as an owner does. Returns the card's ID. */
export async function addCard(
  gateway: Pick<Gateway, 'url'>,
  stripe: StripeServer,
  person: Pick<Person, 'token'>,
): Promise<string> {
  const session = await openSetup(gateway, person)
  const card = stripe.enterCard(session)
  const path = '/api/v1/billing/payment-method'
  const body = { setup_session: session }
  expect((await sendRequest(gateway, 'PUT', path, { token: person.token, body })).status).toBe(200)
  return card
}
