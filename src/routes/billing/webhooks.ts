/** What the payment processor tells us: signed, and of each event one effect, however often and in whatever order it comes. */
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Payments } from '../../core/billing/payment-processor.ts'
import type { Log } from '../../core/ports/log.ts'
import type { Stores } from '../../database/repositories/stores.ts'
import { bodyLimits, readBytes, whileHeld } from '../../http/body.ts'
import type { BodyBudget } from '../../http/body-budget.ts'
import { policies } from '../../http/policies.ts'
import { withRouteDocs } from '../../http/route-docs.ts'
import { notFound, reply } from '../../http/session-routes.ts'
import { type CardDeps, followCard } from './cards.ts'
import { receivedShape } from './schemas.ts'

type WebhookDeps = CardDeps & {
  readonly stores: Pick<Stores, 'paymentEvents'>
  readonly payments: Pick<Payments, 'webhooks'>
  readonly log: Pick<Log, 'info' | 'error'>
  readonly bodies: BodyBudget
}

/** `POST /api/v1/billing/webhooks/stripe`. Its signature is its credential; nothing of its body is ever logged. */
export function webhooks(deps: WebhookDeps) {
  return new Elysia({ name: 'webhooks' }).post(
    '/api/v1/billing/webhooks/stripe',
    ({ request }) => {
      const ofAll = { budget: deps.bodies, owner: 'webhooks' }
      return whileHeld(ofAll, request, bodyLimits.other, () => receive(deps, request))
    },
    {
      parse: 'none',
      ...withRouteDocs(policies.signed, {
        summary: 'Events of the payment processor',
        description:
          'Signed by Stripe in `stripe-signature`; of each event id one effect. 404 where no processor is set up.',
        body: Type.Object({}, { additionalProperties: true, description: 'an event as Stripe signs it' }),
        answer: receivedShape,
        errors: ['not_found'],
      }),
    },
  )
}

async function receive(deps: WebhookDeps, request: Request) {
  const { database, stores, clock, newId, payments, log } = deps
  if (payments.webhooks === null) throw notFound()
  const body = await readBytes(request, bodyLimits.other)
  const event = payments.webhooks.read(body, request.headers.get('stripe-signature'))
  // Only spares a look: what makes it one effect is the row that is written with it.
  if (await stores.paymentEvents.hasEvent(database, event.id)) return reply({ received: true })
  const look = await payments.webhooks.look(event)
  const { outcome, card } = await stores.paymentEvents.takeEvent(database, event, look, clock.now(), newId)
  if (outcome === 'applied') deps.announce()
  if (look.kind === 'card' && card !== null) await followCard(deps, look.card, card)
  const fields = { event_id: event.id, outcome }
  if (outcome === 'mismatch') log.error('payment_event', fields)
  else log.info('payment_event', fields)
  return reply({ received: true })
}
