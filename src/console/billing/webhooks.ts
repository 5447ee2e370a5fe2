/** Signed events of the payment processor. Each event has one effect, in any order and however often it arrives. */
import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Log } from '../../core/ports/log.ts'
import { bodyLimits, readBytes, whileHeld } from '../../http/body.ts'
import type { BodyBudget } from '../../http/body-budget.ts'
import { policies } from '../../http/policies.ts'
import { withRouteDocs } from '../../http/route-docs.ts'
import { notFound, reply } from '../../http/session-routes.ts'
import { type CardDeps, followCard } from './cards.ts'
import type { Payments } from './payment-processor.ts'
import { receivedShape } from './schemas.ts'
import { hasEvent, takeEvent } from './stores/payment-events.ts'

type WebhookDeps = CardDeps & {
  readonly payments: Pick<Payments, 'webhooks'>
  readonly log: Pick<Log, 'info' | 'error'>
  readonly bodies: BodyBudget
}

/** `POST /api/v1/billing/webhooks/stripe`. The signature authenticates it; its body is never logged. */
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

async function receive(deps: WebhookDeps, request: Request) {
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
