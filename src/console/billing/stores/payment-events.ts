/** Processes events of the payment processor once, however often and in whatever order they arrive. */
import { and, eq, max, sql } from 'drizzle-orm'
import { findInvoiceMismatch, newerInvoiceStatus, type ProcessorInvoice } from '../../../core/billing/billing.ts'
import { graceNotices } from '../../../core/billing/grace.ts'
import type { Database } from '../../../database/database.ts'
import { type Transaction, withAccountRls } from '../../../database/statement.ts'
import { accounts, invoices, paymentMethods, webhookEvents } from '../../../database/tables.ts'
import type { EnteredCard, EventObject, PaymentWebhookEvent } from '../payment-processor.ts'
import { changeBillingInTransaction, lockBilling, workDeadlineMs } from './billing.ts'
import { noteNotices, toDues } from './billing-notices.ts'

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
  const notices = graceNotices(toDues(account), toDues({ ...account, unpaidSince }), at)
  const declined = { kind: 'invoice_unpaid', subject: invoice.id, dueAt: at } as const
  await noteNotices(step, accountId, status === 'unpaid' ? [declined, ...notices] : notices, at)
  return { outcome: 'applied', accountId }
}

/**
 * Cards that owners entered on the payment processor's page. The time at which the processor stored them decides which
 * one is charged, not the order in which events arrive.
 */

/**
 * `applied`: the card is now the account's payment method. `ignored`: a newer card was entered, or this one was
 * removed. `mismatch`: the card does not belong to this account's customer.
 */
export type TakenCard = {
  readonly outcome: 'applied' | 'ignored' | 'mismatch'
  /** The replaced Stripe payment method; null = none. */
  readonly replaced: string | null
}

/** Makes an entered card the payment method of the account in its setup session. Repeating it changes nothing. */
export function takeCard(
  database: Database,
  accountId: string,
  card: EnteredCard,
  at: number,
  newId: (prefix: string) => string,
): Promise<TakenCard> {
  return withAccountRls(database, accountId).orm(
    step => takeCardWithin(step, { ...card, actor: database.actor }, at, newId),
    workDeadlineMs,
  )
}

/** The same inside a transaction. */
async function takeCardWithin(
  step: Transaction,
  { accountId, customerId, method, enteredAt, actor }: EnteredCard & Pick<Database, 'actor'>,
  at: number,
  newId: (prefix: string) => string,
): Promise<TakenCard> {
  const found = await lockBilling(step, accountId)
  if (found === null || found.account.stripeCustomerId !== customerId) return { outcome: 'mismatch', replaced: null }
  if (found.method?.stripePaymentMethodId === method.stripePaymentMethodId)
    return { outcome: 'applied', replaced: null }
  const [known] = await step
    .select({ newest: max(paymentMethods.createdAt) })
    .from(paymentMethods)
    .where(and(eq(paymentMethods.accountId, accountId), eq(paymentMethods.kind, 'stripe')))
  const [removed] = await step
    .select({ id: paymentMethods.id })
    .from(paymentMethods)
    .where(eq(paymentMethods.stripePaymentMethodId, method.stripePaymentMethodId))
  if (removed !== undefined || (known?.newest != null && known.newest.getTime() > enteredAt))
    return { outcome: 'ignored', replaced: null }
  const outcome = await changeBillingInTransaction(step, accountId, {
    event: 'method_added',
    actor,
    at,
    userId: null,
    newId,
    method: { ...method, id: newId('pay'), createdAt: new Date(enteredAt) },
  })
  if (outcome !== 'done') return { outcome: 'ignored', replaced: null }
  return { outcome: 'applied', replaced: found.method?.stripePaymentMethodId ?? null }
}

/** A payment method of a deleted account; `cardId` null = nothing to detach at the payment processor. */
type SettledMethod = { readonly id: string; readonly cardId: string | null }

/** Returns the first payment method after the ID `after` of a deleted account that owes nothing more; null = none. */
export async function findSettledMethod(database: Database, after: string): Promise<SettledMethod | null> {
  const rows = await database.run(
    ({ sql }) => sql<SettledMethod[]>`
      select payment_methods.id, stripe_payment_method_id as "cardId"
      from payment_methods join accounts on accounts.id = account_id
      where deleted_at is not null and payment_methods.id > ${after}
        and not exists (select from billing_cycles where account_id = accounts.id and closed_at is null)
        and not exists (select from invoices where account_id = accounts.id and status in ('open', 'unpaid'))
      order by payment_methods.id limit 1`,
  )
  return rows[0] ?? null
}

/** Deletes a payment method. */
export async function forgetMethod(database: Database, id: string): Promise<void> {
  await database.run(({ sql }) => sql`delete from payment_methods where id = ${id}`)
}
