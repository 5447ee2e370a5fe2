/**
 * Cards that owners entered on the payment processor's page. The time at which the processor stored them decides which
 * one is charged, not the order in which events arrive.
 */
import { and, eq, max } from 'drizzle-orm'
import { type Transaction, withAccountRls } from '../../../database/account-transaction.ts'
import type { Database } from '../../../database/database.ts'
import { paymentMethods } from '../../../database/tables.ts'
import type { EnteredCard } from '../payment-processor.ts'
import { changeBillingInTransaction, lockBilling, workDeadlineMs } from './billing.ts'

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
export async function takeCardWithin(
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
