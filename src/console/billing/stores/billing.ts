/**
 * Plans, cycles and payment methods. Every change locks the account's row while it reads and writes, so that the second
 * of two concurrent changes sees the first. `core/billing/billing.ts` makes the decisions. IDs and times are
 * parameters.
 */
import { and, asc, eq, isNull, sql } from 'drizzle-orm'
import type { Actor } from '../../../core/audit/audit.ts'
import {
  type BillingEvent,
  type BillingRejection,
  type BillingState,
  type Transition,
  transition,
} from '../../../core/billing/billing.ts'
import { graceNotices } from '../../../core/billing/grace.ts'
import { toUsd } from '../../../core/usage/money.ts'
import type { Database } from '../../../database/database.ts'
import { recordAudit } from '../../../database/repositories/audit.ts'
import { type Transaction, withAccountRls } from '../../../database/statement.ts'
import {
  type Account,
  accounts,
  billingCycles,
  invoices,
  type PaymentMethodRow,
  paymentMethods,
  planChanges,
} from '../../../database/tables.ts'
import { addSoftCapAlerts } from '../../alerts/store.ts'
import { noteNotices, toDues } from './billing-notices.ts'

/** An account with its current payment method. */
export type BillingAccount = { readonly account: Account; readonly method: PaymentMethodRow | null }

export const workDeadlineMs = 10_000
/** Any number that nothing else uses on this database; 7,245,001,502 is used by the limits (in the migration). */
const billingLock = 7_245_001_503

/** Returns an account's billing; null if there is no such account. */
export async function findBilling(database: Database, accountId: string): Promise<BillingAccount | null> {
  const rows = await withAccountRls(database, accountId).orm(step =>
    step
      .select({ account: accounts, method: paymentMethods })
      .from(accounts)
      .leftJoin(paymentMethods, and(eq(paymentMethods.accountId, accounts.id), isNull(paymentMethods.removedAt)))
      .where(eq(accounts.id, accountId))
      .limit(1),
  )
  return rows[0] ?? null
}

/** Converts an account to the state that `core/billing/billing.ts` reads. */
export function getState({ account, method }: BillingAccount): BillingState {
  const { plan, version, cycleStartedAt, cycleEndsAt, planAfterCycle, graceEndsAt } = account
  return {
    plan,
    version,
    cycle:
      cycleStartedAt === null || cycleEndsAt === null
        ? null
        : { startsAt: cycleStartedAt.getTime(), endsAt: cycleEndsAt.getTime() },
    planAfterCycle,
    hasPaymentMethod: method !== null,
    graceEndsAt: graceEndsAt?.getTime() ?? null,
  }
}

export type NewMethod = Pick<PaymentMethodRow, 'id' | 'kind' | 'stripePaymentMethodId' | 'brand' | 'lastFour'> & {
  /** When the payment processor stored it, by its clock; absent = now. */
  readonly createdAt?: Date
}

/** Returns a new agreement to manual invoicing. It takes the place of a card where nothing collects payments. */
export function manualMethod(newId: (prefix: string) => string): NewMethod {
  return { id: newId('pay'), kind: 'manual', stripePaymentMethodId: null, brand: null, lastFour: null }
}

type BillingChange = {
  readonly event: Exclude<BillingEvent, 'time_passed'>
  /** Epoch milliseconds. */
  readonly at: number
  readonly userId: string | null
  readonly newId: (prefix: string) => string
  /** The plan version that the caller read: another current version is a `conflict`; null = any. */
  readonly version?: number | null
  /** Who makes the change, for the audit log; absent = the gateway itself. */
  readonly actor?: Actor | undefined
  /** Becomes the payment method before the event is applied, if there is none (or, for `method_added`, another one). */
  readonly method?: NewMethod
}

/** `taken`: the payment method belongs to another account, or was removed. */
export type BillingOutcome = 'done' | 'conflict' | 'not_found' | 'taken' | BillingRejection

/** Changes plan or payment method. The row lock and the version reject the second of two concurrent changes. */
export function changeBilling(database: Database, accountId: string, change: BillingChange): Promise<BillingOutcome> {
  return withAccountRls(database, accountId)
    .orm(step => changeBillingInTransaction(step, accountId, { actor: database.actor, ...change }), workDeadlineMs)
    .catch(error => {
      if (isTaken(error)) return 'taken'
      throw error
    })
}

/** The same inside a transaction. */
export async function changeBillingInTransaction(
  step: Transaction,
  accountId: string,
  change: BillingChange,
): Promise<BillingOutcome> {
  const found = await lockBilling(step, accountId)
  if (found === null || found.account.deletedAt !== null) return 'not_found'
  if (change.version != null && change.version !== found.account.version) return 'conflict'
  const { event, at, userId, method, newId } = change
  const before = getState(found)
  const isNew = method !== undefined && (event === 'method_added' ? !isSame(found.method, method) : !found.method)
  const after = transition(isNew ? { ...before, hasPaymentMethod: true } : before, event, at)
  // Changes that are only due to time are written by the worker: a rejection writes nothing.
  if (after.refusal !== null) return after.refusal
  if ((isNew || event === 'method_removed') && found.method !== null)
    await step
      .update(paymentMethods)
      .set({ removedAt: new Date(at) })
      .where(eq(paymentMethods.id, found.method.id))
  if (isNew) {
    await step.insert(paymentMethods).values({ createdAt: new Date(at), ...method, accountId })
    // Collection of unpaid invoices is retried at once.
    await step
      .update(invoices)
      .set({ updatedAt: epochStart })
      .where(and(eq(invoices.accountId, accountId), eq(invoices.status, 'unpaid')))
  }
  await writeState(step, found, after, at, newId)
  if (after.change !== null) {
    const { version, from, to, effectiveAt } = after.change
    await step.insert(planChanges).values({
      accountId,
      version,
      fromPlan: from,
      toPlan: to,
      userId,
      requestedAt: new Date(at),
      effectiveAt: new Date(effectiveAt),
    })
    const details = { from, to, effective_at: new Date(effectiveAt).toISOString() }
    await recordAudit(step, change, { accountId, action: 'plan.changed', details })
  }
  if (isNew) await recordAudit(step, change, { accountId, action: 'payment_method.changed', target: method.id })
  if (event === 'method_removed') await recordAudit(step, change, { accountId, action: 'payment_method.removed' })
  return 'done'
}

/** The invoice that waited longest is collected first. */
export const epochStart = new Date(0)

function isSame(known: PaymentMethodRow | null, method: NewMethod): boolean {
  return known !== null && known.kind === method.kind && known.stripePaymentMethodId === method.stripePaymentMethodId
}

/** Returns an account's billing and locks its row until the transaction ends; null = no such account. */
export async function lockBilling(step: Transaction, accountId: string): Promise<BillingAccount | null> {
  const [account] = await step.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update')
  if (account === undefined) return null
  const [method] = await step
    .select()
    .from(paymentMethods)
    .where(and(eq(paymentMethods.accountId, accountId), isNull(paymentMethods.removedAt)))
  return { account, method: method ?? null }
}

async function writeState(
  step: Transaction,
  { account }: BillingAccount,
  { state, opened }: Transition,
  at: number,
  newId: (prefix: string) => string,
): Promise<void> {
  const { plan, version, cycle, planAfterCycle, graceEndsAt } = state
  const { id: accountId } = account
  await step
    .update(accounts)
    .set({
      plan,
      version,
      cycleStartedAt: findDate(cycle?.startsAt),
      cycleEndsAt: findDate(cycle?.endsAt),
      planAfterCycle,
      graceEndsAt: findDate(graceEndsAt),
      updatedAt: sql`clock_timestamp()`,
    })
    .where(eq(accounts.id, accountId))
  const before = toDues(account)
  await noteNotices(step, accountId, graceNotices(before, { ...before, plan, graceEndsAt }, at), at)
  for (const { startsAt, endsAt } of opened)
    await step
      .insert(billingCycles)
      .values({ id: newId('cyc'), accountId, startsAt: new Date(startsAt), endsAt: new Date(endsAt) })
      .onConflictDoNothing({ target: [billingCycles.accountId, billingCycles.startsAt] })
}

function findDate(at: number | null | undefined): Date | null {
  return at == null ? null : new Date(at)
}

const uniqueViolation = '23505'

function isTaken(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++)
    if ('code' in at && at.code === uniqueViolation) return true
  return false
}

/**
 * Sets the monthly soft cap; null = none. Takes effect in all instances within 1 s. A cap gets alerts at 80% and 100%, unless
 * an alert covers it.
 */
export async function setSoftCap(
  database: Database,
  accountId: string,
  microcents: number | null,
  newId: (prefix: string) => string,
): Promise<void> {
  await withAccountRls(database, accountId).orm(async step => {
    await step
      .update(accounts)
      .set({ softCapMicrocents: microcents, updatedAt: sql`clock_timestamp()` })
      .where(eq(accounts.id, accountId))
    const details = { monthly_usd: microcents === null ? null : toUsd(microcents) }
    await recordAudit(step, database, { accountId, action: 'soft_cap.changed', details })
    if (microcents !== null) await addSoftCapAlerts(step, database, accountId, [newId('alr'), newId('alr')])
  })
}

/**
 * Stores the account's customer ID at the payment processor, unless it has one, and returns the stored one. Null = no
 * such account.
 */
export async function keepCustomer(database: Database, accountId: string, customerId: string): Promise<string | null> {
  const rows = await withAccountRls(database, accountId).orm(step =>
    step
      .update(accounts)
      .set({ stripeCustomerId: sql`coalesce(${accounts.stripeCustomerId}, ${customerId})` })
      .where(eq(accounts.id, accountId))
      .returning({ customerId: accounts.stripeCustomerId }),
  )
  return rows[0]?.customerId ?? null
}

/**
 * Closes cycles that have ended: starts the next one or applies a downgrade. Processes at most 100 accounts and returns
 * their number; 0 if another instance holds the lock.
 */
export function rollCycles(database: Database, at: number, newId: (prefix: string) => string): Promise<number> {
  return withSingletonLock(database, 0, async step => {
    const due = await step
      .select({ id: accounts.id })
      .from(accounts)
      .where(sql`${accounts.cycleEndsAt} <= ${new Date(at).toISOString()}::text::timestamptz`)
      .orderBy(asc(accounts.cycleEndsAt))
      .limit(100)
    for (const { id } of due) {
      const found = await lockBilling(step, id)
      if (found !== null) await writeState(step, found, transition(getState(found), 'time_passed', at), at, newId)
    }
    return due.length
  })
}

/**
 * Runs work that only one instance may do at a time; others get `otherwise`. The lock belongs to the transaction, so it
 * is released however the transaction ends, in the embedded database too.
 */
export function withSingletonLock<T>(
  database: Database,
  otherwise: T,
  work: (step: Transaction) => Promise<T>,
): Promise<T> {
  return database.run(
    ({ orm }) =>
      orm.transaction(async step => {
        const [lock] = await step.execute<{ held: boolean }>(
          sql`select pg_try_advisory_xact_lock(${billingLock}::bigint) as held`,
        )
        return lock?.held === true ? work(step) : otherwise
      }),
    workDeadlineMs,
  )
}
