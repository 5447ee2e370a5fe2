/**
 * Plans, cycles and payment methods. Every change locks the account's row while it reads and writes, so that the second
 * of two concurrent changes sees the first. `core/billing/billing.ts` makes the decisions. IDs and times are
 * parameters.
 */
import type { TransactionSql } from 'postgres'
import type { Account, PaymentMethodRow } from '../../../../drizzle/tables.ts'
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
import { type Database, isUniqueViolation } from '../../../database/database.ts'
import { recordAudit } from '../../../database/repositories/audit.ts'
import { inTransaction, toColumns, typedRows, withAccountRls } from '../../../database/statement.ts'
import { addSoftCapAlerts } from '../../alerts/store.ts'
import { noteNotices, toDues } from './billing-notices.ts'

/** An account with its current payment method. */
export type BillingAccount = { readonly account: Account; readonly method: PaymentMethodRow | null }

export const workDeadlineMs = 10_000
/** Any number that nothing else uses on this database; 7,245,001,502 is used by the limits (in the migration). */
const billingLock = 7_245_001_503

/** Returns an account's billing; null if there is no such account. */
export function findBilling(database: Database, accountId: string): Promise<BillingAccount | null> {
  return withAccountRls(database, accountId, step => readBilling(step, accountId))
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
  return withAccountRls(
    database,
    accountId,
    step => changeBillingInTransaction(step, accountId, { actor: database.actor, ...change }),
    workDeadlineMs,
  ).catch(error => {
    if (isUniqueViolation(error)) return 'taken'
    throw error
  })
}

/** The same inside a transaction. */
export async function changeBillingInTransaction(
  step: TransactionSql,
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
    await step`update payment_methods set removed_at = ${new Date(at)} where id = ${found.method.id}`
  if (isNew) {
    await step`insert into payment_methods ${step(toColumns({ createdAt: new Date(at), ...method, accountId }))}`
    // Collection of unpaid invoices is retried at once.
    await step`update invoices set updated_at = ${epochStart} where account_id = ${accountId} and status = 'unpaid'`
  }
  await writeState(step, found, after, at, newId)
  if (after.change !== null) {
    const { version, from, to, effectiveAt } = after.change
    await step`
      insert into plan_changes (account_id, version, from_plan, to_plan, user_id, requested_at, effective_at)
      values (${accountId}, ${version}, ${from}, ${to}, ${userId}, ${new Date(at)}, ${new Date(effectiveAt)})`
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
export async function lockBilling(step: TransactionSql, accountId: string): Promise<BillingAccount | null> {
  await step`select 1 from accounts where id = ${accountId} for no key update`
  return readBilling(step, accountId)
}

/** The same without a lock. */
export async function readBilling(step: TransactionSql, accountId: string): Promise<BillingAccount | null> {
  const [account] = await typedRows<Account>(step`select * from accounts where id = ${accountId}`)
  const [method = null] = await typedRows<PaymentMethodRow>(
    step`select * from payment_methods where account_id = ${accountId} and removed_at is null`,
  )
  return account === undefined ? null : { account, method }
}

async function writeState(
  step: TransactionSql,
  { account }: BillingAccount,
  { state, opened }: Transition,
  at: number,
  newId: (prefix: string) => string,
): Promise<void> {
  const { plan, version, cycle, planAfterCycle, graceEndsAt } = state
  const { id: accountId } = account
  await step`
    update accounts set plan = ${plan}, version = ${version}, cycle_started_at = ${findDate(cycle?.startsAt)},
      cycle_ends_at = ${findDate(cycle?.endsAt)}, plan_after_cycle = ${planAfterCycle},
      grace_ends_at = ${findDate(graceEndsAt)}, updated_at = clock_timestamp()
    where id = ${accountId}`
  const before = toDues(account)
  await noteNotices(step, accountId, graceNotices(before, { ...before, plan, graceEndsAt }, at), at)
  for (const { startsAt, endsAt } of opened)
    await step`
      insert into billing_cycles (id, account_id, starts_at, ends_at)
      values (${newId('cyc')}, ${accountId}, ${new Date(startsAt)}, ${new Date(endsAt)})
      on conflict (account_id, starts_at) do nothing`
}

function findDate(at: number | null | undefined): Date | null {
  return at == null ? null : new Date(at)
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
  await withAccountRls(database, accountId, async step => {
    await step`
      update accounts set soft_cap_microcents = ${microcents}, updated_at = clock_timestamp() where id = ${accountId}`
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
  const [row] = await withAccountRls(
    database,
    accountId,
    step => step<{ id: string }[]>`
      update accounts set stripe_customer_id = coalesce(stripe_customer_id, ${customerId}) where id = ${accountId}
      returning stripe_customer_id as id`,
  )
  return row?.id ?? null
}

/**
 * Closes cycles that have ended: starts the next one or applies a downgrade. Processes at most 100 accounts and returns
 * their number; 0 if another instance holds the lock.
 */
export function rollCycles(database: Database, at: number, newId: (prefix: string) => string): Promise<number> {
  return withSingletonLock(database, 0, async step => {
    const due = await step<{ id: string }[]>`
      select id from accounts where cycle_ends_at <= ${new Date(at)} order by cycle_ends_at limit 100`
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
  work: (step: TransactionSql) => Promise<T>,
): Promise<T> {
  return inTransaction(
    database,
    async step => {
      const [lock] = await step<{ held: boolean }[]>`select pg_try_advisory_xact_lock(${billingLock}::bigint) as held`
      return lock?.held === true ? work(step) : otherwise
    },
    workDeadlineMs,
  )
}
