/**
 * Cards of an account, entered on the payment processor's page. The gateway reads a finished page from the processor
 * when the owner returns from it, and again when its event arrives: the first of the two sets the card, the second
 * changes nothing.
 */

import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField } from '../../core/validation/validate.ts'
import type { Invoice } from '../../database/tables.ts'
import { bodyLimits, readBytes, whileHeld } from '../../http/body.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import type { ConsoleDeps } from '../deps.ts'
import { notFound, reply, type SessionRequest } from '../routes.ts'
import type { Cards, EnteredCard } from './payment-processor.ts'
import { receivedShape } from './schemas.ts'
import { findBilling, keepCustomer } from './stores/billing.ts'
import { hasEvent, type TakenCard, takeCard, takeEvent } from './stores/payment-events.ts'

/** Returns the address of the page on which an owner enters a card. Throws `not_found` if no processor takes cards. */
export async function openSetup(
  { database, payments }: ConsoleDeps,
  { accountId, email }: SessionRequest['principal'],
): Promise<string> {
  const cards = orNoProcessor(payments.cards)
  const found = await findBilling(database, accountId)
  if (found === null) throw notFound()
  const made = await cards.customer(accountId, email, found.account.stripeCustomerId)
  // Stored before the page opens: a card of any other customer is not accepted for this account.
  const customerId = await keepCustomer(database, accountId, made)
  if (customerId === null) throw notFound()
  return cards.openSetup(accountId, customerId)
}

/** Sets the card that an owner entered in a setup session. Rejects a pasted card ID. */
export async function enterCard(
  deps: ConsoleDeps,
  { accountId }: SessionRequest['principal'],
  input: { readonly payment_method?: string | null; readonly setup_session?: string | null },
): Promise<void> {
  const action = 'POST /api/v1/billing/payment-method/setup returns the address of the page for cards'
  if (input.payment_method != null)
    throw invalidField('payment_method', `must not be set: cards are not set by ID. ${action}`)
  const cards = orNoProcessor(deps.payments.cards)
  if (input.setup_session == null)
    throw invalidField('setup_session', `is required: enter the card at Stripe. ${action}`)
  const session = await cards.readSetup(input.setup_session)
  // Another account's session gets the same response as a missing one.
  if (session?.accountId !== accountId) throw notFound()
  if (session.card === null)
    throw new GatewayError('conflict', 'Stripe has stored no card yet. Finish its page for cards, then retry.')
  const { database, clock, newId } = deps
  const taken = await takeCard(database, accountId, session.card, clock.now(), newId)
  await followCard(deps, session.card, taken)
  if (taken.outcome === 'mismatch') throw notFound()
  if (taken.outcome === 'ignored')
    throw new GatewayError('conflict', 'This card was replaced or removed since it was entered. Enter a card again.', {
      shouldRetry: false,
    })
}

/**
 * Makes the account's card the default at the processor and detaches the replaced one. Either may fail without harm, since
 * each collection names its card.
 */
async function followCard(
  deps: ConsoleDeps,
  { customerId, method }: EnteredCard,
  { outcome, replaced }: TakenCard,
): Promise<void> {
  if (outcome !== 'applied') return
  deps.announce()
  await orWarn(deps, 'payment_method_default_failed', cards =>
    cards.setDefault(customerId, method.stripePaymentMethodId),
  )
  if (replaced !== null) await detachCard(deps, replaced)
}

/** Detaches a card that the account no longer uses. */
export function detachCard(deps: Pick<ConsoleDeps, 'payments' | 'log'>, methodId: string): Promise<void> {
  return orWarn(deps, 'payment_method_detach_failed', cards => cards.remove(methodId))
}

/** Returns the address of the page on which an invoice can be paid. */
export async function openInvoicePage(
  { payments }: Pick<ConsoleDeps, 'payments'>,
  { status, stripeInvoiceId }: Invoice,
): Promise<string> {
  const cards = orNoProcessor(payments.cards)
  const isOwed = status === 'open' || status === 'unpaid'
  const url = isOwed && stripeInvoiceId !== null ? await cards.invoicePage(stripeInvoiceId) : null
  if (url === null)
    throw new GatewayError('conflict', 'This invoice has no payment page. Read its status, or add a payment method.', {
      shouldRetry: false,
    })
  return url
}

async function orWarn(
  { payments, log }: Pick<ConsoleDeps, 'payments' | 'log'>,
  event: string,
  work: (cards: Cards) => Promise<void>,
): Promise<void> {
  try {
    if (payments.cards !== null) await work(payments.cards)
  } catch {
    log.warn(event)
  }
}

function orNoProcessor(cards: Cards | null): Cards {
  if (cards === null)
    throw new GatewayError('not_found', 'No payment processor is configured, so no payment method is needed.', {
      shouldRetry: false,
    })
  return cards
}

/** Signed events of the payment processor. Each event has one effect, in any order and however often it arrives. */

/** `POST /api/v1/billing/webhooks/stripe`. The signature authenticates it; its body is never logged. */
export function webhooks(deps: ConsoleDeps) {
  return new Elysia({ name: 'webhooks' }).post(
    '/api/v1/billing/webhooks/stripe',
    ({ request }) => {
      const ofAll = { budget: deps.bodies, owner: 'webhooks' }
      return whileHeld(ofAll, request, bodyLimits.other, () => receive(deps, request))
    },
    {
      parse: 'none',
      ...withRouteDocs(policies.signed, {
        summary: 'Receive payment processor events',
        description:
          'Signed by Stripe in `stripe-signature`. Each event ID has one effect. 404 if no payment processor is configured.',
        body: Type.Object({}, { additionalProperties: true, description: 'event signed by Stripe' }),
        answer: receivedShape,
        errors: ['not_found'],
      }),
    },
  )
}

async function receive(deps: ConsoleDeps, request: Request) {
  const { database, clock, newId, payments, log } = deps
  if (payments.webhooks === null) throw notFound()
  const body = await readBytes(request, bodyLimits.other)
  const event = payments.webhooks.read(body, request.headers.get('stripe-signature'))
  // Only saves a query. The row that is written with the effect guarantees one effect per event.
  if (await hasEvent(database, event.id)) return reply({ received: true })
  const look = await payments.webhooks.look(event)
  const { outcome, card } = await takeEvent(database, event, look, clock.now(), newId)
  if (outcome === 'applied') deps.announce()
  if (look.kind === 'card' && card !== null) await followCard(deps, look.card, card)
  const fields = { event_id: event.id, outcome }
  if (outcome === 'mismatch') log.error('payment_event_mismatch', fields)
  else log.info('payment_event_processed', fields)
  return reply({ received: true })
}
