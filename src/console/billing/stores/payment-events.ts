/** Processes events of the payment processor once, however often and in whatever order they arrive. */
import { and, eq, sql } from 'drizzle-orm'
import { findInvoiceMismatch, newerInvoiceStatus, type ProcessorInvoice } from '../../../core/billing/billing.ts'
import { graceNotices } from '../../../core/billing/grace.ts'
import type { Transaction } from '../../../database/account-transaction.ts'
import type { Database } from '../../../database/database.ts'
import { accounts, invoices, paymentMethods, webhookEvents } from '../../../database/tables.ts'
import type { EventObject, PaymentWebhookEvent } from '../payment-processor.ts'
import { changeBillingInTransaction, lockBilling, workDeadlineMs } from './billing.ts'
import { duesOf, noteNotices } from './billing-notices.ts'
import { type TakenCard, takeCardWithin } from './cards.ts'

type EventOutcome = 'applied' | 'repeated' | 'ignored' | 'mismatch'

/** Applies the payment processor's state of an invoice. Ignores it if it does not match our invoice. */
export function applyInvoice(database: Database, seen: ProcessorInvoice, at: number): Promise<EventOutcome> {
  return database.run(
    ({ orm }) => orm.transaction(async step => (await appliedInvoice(step, seen, at)).outcome),
    workDeadlineMs,
  )
}

/** Returns true if an event has already been processed. */
export async function hasEvent(database: Database, eventId: string): Promise<boolean> {
  const rows = await database.run(({ orm }) =>
    orm.select({ id: webhookEvents.id }).from(webhookEvents).where(eq(webhookEvents.id, eventId)).limit(1),
  )
  return rows.length > 0
}

/** Result of an event: its outcome, and the card whose state at the payment processor must follow. */
type TakenEvent = { readonly outcome: EventOutcome; readonly card: TakenCard | null }

/** Stores an event and applies its effect in one transaction, so that one of several copies has an effect. */
export function takeEvent(
  database: Database,
  event: PaymentWebhookEvent,
  effect: EventObject,
  at: number,
  newId: (prefix: string) => string,
): Promise<TakenEvent> {
  return database.run(
    ({ orm }) =>
      orm.transaction(async step => {
        const { id, type, objectId, occurredAt } = event
        const fresh = await step
          .insert(webhookEvents)
          .values({ id, type, objectId, occurredAt: new Date(occurredAt), receivedAt: new Date(at) })
          .onConflictDoNothing({ target: webhookEvents.id })
          .returning({ id: webhookEvents.id })
        if (fresh.length === 0) return { outcome: 'repeated', card: null }
        const { outcome, accountId, card = null } = await applied(step, effect, at, newId)
        if (accountId !== null) await step.update(webhookEvents).set({ accountId }).where(eq(webhookEvents.id, id))
        return { outcome, card }
      }),
    workDeadlineMs,
  )
}

type Applied = { readonly outcome: EventOutcome; readonly accountId: string | null; readonly card?: TakenCard }

async function applied(
  step: Transaction,
  effect: EventObject,
  at: number,
  newId: (prefix: string) => string,
): Promise<Applied> {
  switch (effect.kind) {
    case 'none':
      return { outcome: 'ignored', accountId: null }
    case 'invoice':
      return appliedInvoice(step, effect.seen, at)
    case 'card': {
      const card = await takeCardWithin(step, effect.card, at, newId)
      // An event about another customer's account is not stored under this account.
      return { outcome: card.outcome, accountId: card.outcome === 'applied' ? effect.card.accountId : null, card }
    }
    case 'method_gone': {
      const [row] = await step
        .select({ accountId: paymentMethods.accountId })
        .from(paymentMethods)
        .where(eq(paymentMethods.stripePaymentMethodId, effect.stripePaymentMethodId))
      const found = row === undefined ? null : await lockBilling(step, row.accountId)
      if (found?.method?.stripePaymentMethodId !== effect.stripePaymentMethodId)
        return { outcome: 'ignored', accountId: row?.accountId ?? null }
      const change = { event: 'method_removed', at, userId: null, newId } as const
      const outcome = await changeBillingInTransaction(step, found.account.id, change)
      return { outcome: outcome === 'done' ? 'applied' : 'ignored', accountId: found.account.id }
    }
    default:
      return effect satisfies never
  }
}

async function appliedInvoice(step: Transaction, seen: ProcessorInvoice, at: number): Promise<Applied> {
  const nothing = { outcome: 'ignored', accountId: null } as const
  if (seen.invoiceId === null) return nothing
  const [owner] = await step
    .select({ accountId: invoices.accountId })
    .from(invoices)
    .where(eq(invoices.id, seen.invoiceId))
  if (owner === undefined) return nothing
  // Locks the account before its invoices, as everywhere, so that two transactions cannot deadlock.
  const { accountId } = owner
  const [account] = await step.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update')
  const [invoice] = await step.select().from(invoices).where(eq(invoices.id, seen.invoiceId)).for('update')
  if (account === undefined || invoice === undefined) return nothing
  const ours = { ...invoice, customerId: account.stripeCustomerId, processorId: invoice.stripeInvoiceId }
  if (findInvoiceMismatch(ours, seen) !== null) return { outcome: 'mismatch', accountId }
  const status = newerInvoiceStatus(invoice.status, seen.status)
  await step
    .update(invoices)
    .set({
      status,
      stripeInvoiceId: seen.processorId,
      ...(status === 'paid' && invoice.paidAt === null ? { paidAt: new Date(at) } : {}),
    })
    .where(eq(invoices.id, invoice.id))
  if (status === invoice.status) return { outcome: 'applied', accountId }
  const [unpaid] = await step
    .select({ id: invoices.id })
    .from(invoices)
    .where(and(eq(invoices.accountId, accountId), eq(invoices.status, 'unpaid')))
    .limit(1)
  const unpaidSince = unpaid === undefined ? null : (account.unpaidSince ?? new Date(at))
  await step.update(accounts).set({ unpaidSince, updatedAt: sql`clock_timestamp()` }).where(eq(accounts.id, accountId))
  const notices = graceNotices(duesOf(account), duesOf({ ...account, unpaidSince }), at)
  const declined = { kind: 'invoice_unpaid', subject: invoice.id, dueAt: at } as const
  await noteNotices(step, accountId, status === 'unpaid' ? [declined, ...notices] : notices, at)
  return { outcome: 'applied', accountId }
}
