/** Invoices of settled billing cycles: creation, collection and reading. IDs and times are parameters. */
import { and, asc, desc, eq, gt, isNull, lt, min, or, sql } from 'drizzle-orm'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import {
  graceMs,
  invoiceTotals,
  type LineSums,
  settlementDelayMs,
  toInvoiceLines,
} from '../../../core/billing/billing.ts'
import { collectionWaitMs } from '../../../core/billing/grace.ts'
import { dayMs, formatDay } from '../../../core/text/utc-days.ts'
import type { Database } from '../../../database/database.ts'
import { enqueueEvent } from '../../../database/repositories/audit.ts'
import { type Transaction, withAccountRls } from '../../../database/statement.ts'
import {
  accounts,
  type BillingCycle,
  billingCycles,
  type Invoice,
  type InvoiceLine,
  invoiceLines as invoiceLineRows,
  invoices,
  type PaymentMethodRow,
  paymentMethods,
  planChanges,
} from '../../../database/tables.ts'
import { epochStart, withSingletonLock, workDeadlineMs } from './billing.ts'

/** Returns the amounts of a running cycle so far. */
export async function spentInCycle(
  database: Database,
  accountId: string,
  cycle: { readonly startsAt: number; readonly endsAt: number },
): Promise<number> {
  const lines = await withAccountRls(database, accountId).orm(
    step => usageByModel(step, accountId, cycle),
    workDeadlineMs,
  )
  return invoiceTotals(lines).totalMicrocents
}

/**
 * Returns an account's usage from `startsAt` up to `endsAt` by model. Whole UTC days come from the daily totals; for
 * the two partial days, records are summed. One statement, one snapshot.
 */
async function usageByModel(
  step: Pick<PostgresJsDatabase, 'execute'>,
  accountId: string,
  period: { readonly startsAt: number; readonly endsAt: number },
): Promise<LineSums[]> {
  const { wholeDays, partialDays } = cycleParts(period)
  const rows = await step.execute<SumsRow>(sql`
    select model, sum(requests)::float8 as requests, sum(input_tokens)::float8 as input_tokens,
      sum(cached_input_tokens)::float8 as cached_input_tokens, sum(output_tokens)::float8 as output_tokens,
      sum(reasoning_tokens)::float8 as reasoning_tokens, sum(billed_microcents)::text as billed
    from (
      select model, requests, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, billed_microcents
      from usage_daily
      where account_id = ${accountId} and ${wholeDays}
      union all
      select case when model = '' then '' else provider || '/' || model end, 1, input_tokens, cached_input_tokens,
        output_tokens, reasoning_tokens, billed_microcents
      from usage_records
      where account_id = ${accountId} and ${partialDays}
    ) as used
    group by model
    having model <> '' or sum(billed_microcents) > 0`)
  return rows.map(row => ({
    model: row.model,
    requests: row.requests,
    inputTokens: row.input_tokens,
    cachedInputTokens: row.cached_input_tokens,
    outputTokens: row.output_tokens,
    reasoningTokens: row.reasoning_tokens,
    amountMicrocents: Number(row.billed),
  }))
}

/**
 * SQL conditions for a period from `startsAt` up to `endsAt`: its whole UTC days in the daily totals, the records of its
 * partial days, and all its records.
 */
export function cycleParts({ startsAt, endsAt }: { readonly startsAt: number; readonly endsAt: number }) {
  const [firstWhole, lastWhole] = [wholeDay(Math.ceil(startsAt / dayMs)), wholeDay(formatDay(endsAt))]
  const wholePeriod = sql`at >= ${instant(startsAt)} and at < ${instant(endsAt)}`
  return {
    wholePeriod,
    wholeDays: sql`day >= ${firstWhole} and day < ${lastWhole}`,
    partialDays: sql`${wholePeriod}
      and (at < ${firstWhole}::timestamp at time zone 'UTC' or at >= ${lastWhole}::timestamp at time zone 'UTC')`,
  }
}

type SumsRow = {
  readonly model: string
  readonly requests: number
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly reasoning_tokens: number
  readonly billed: string
}

const instant = (at: number) => sql`${new Date(at).toISOString()}::text::timestamptz`
const wholeDay = (day: number) => sql`(date '1970-01-01' + ${day}::int)`

/**
 * Creates the invoice of the oldest settled cycle. Null if there is none, or another instance is creating it. The cycle of a
 * deleted account ends with the account.
 */
export function closeCycle(database: Database, at: number, newId: (prefix: string) => string): Promise<Invoice | null> {
  return withSingletonLock<Invoice | null>(database, null, async step => {
    const [cycle] = await step
      .select()
      .from(billingCycles)
      .where(
        and(
          isNull(billingCycles.closedAt),
          sql`(${billingCycles.endsAt} <= ${instant(at - settlementDelayMs)} or exists (
            select from accounts where accounts.id = ${billingCycles.accountId} and deleted_at <= ${instant(at - settlementDelayMs)}))`,
        ),
      )
      .orderBy(asc(billingCycles.endsAt))
      .limit(1)
      .for('update')
    return cycle === undefined ? null : invoiceFor(step, cycle, at, newId)
  })
}

async function invoiceFor(
  step: Transaction,
  cycle: BillingCycle,
  at: number,
  newId: (prefix: string) => string,
): Promise<Invoice | null> {
  const { accountId } = cycle
  const used = await usageByModel(step, accountId, await getBilledPart(step, cycle))
  const lines = toInvoiceLines(used, await earlierUsage(step, cycle))
  const totals = invoiceTotals(lines)
  const issuedAt = new Date(at)
  // An invoice of 0 cents is paid.
  const isPaid = totals.totalCents === 0
  const [invoice] = await step
    .insert(invoices)
    .values({
      id: newId('inv'),
      accountId,
      cycleId: cycle.id,
      status: isPaid ? 'paid' : 'open',
      ...totals,
      issuedAt,
      paidAt: isPaid ? issuedAt : null,
      updatedAt: epochStart,
    })
    .onConflictDoNothing({ target: invoices.cycleId })
    .returning()
  if (invoice !== undefined && lines.length > 0)
    await step.insert(invoiceLineRows).values(lines.map(line => ({ ...line, invoiceId: invoice.id })))
  if (invoice !== undefined)
    await enqueueEvent(step, accountId, {
      type: 'invoice.issued',
      data: { invoice_id: invoice.id, total_usd: invoice.totalCents / 100, status: invoice.status },
    })
  await step.update(billingCycles).set({ closedAt: issuedAt }).where(eq(billingCycles.id, cycle.id))
  return invoice ?? null
}

/** Returns the usage of the previous cycle in the ledger and as invoiced. */
async function earlierUsage(step: Transaction, { accountId, startsAt }: BillingCycle) {
  const [found] = await step
    .select({ cycle: billingCycles, invoiceId: invoices.id })
    .from(billingCycles)
    .innerJoin(invoices, eq(invoices.cycleId, billingCycles.id))
    .where(and(eq(billingCycles.accountId, accountId), lt(billingCycles.startsAt, startsAt)))
    .orderBy(desc(billingCycles.startsAt))
    .limit(1)
  if (found === undefined) return null
  return {
    used: await usageByModel(step, accountId, await getBilledPart(step, found.cycle)),
    invoiced: await getLines(step, found.invoiceId),
  }
}

/**
 * Returns the billed part of a cycle. If an operator changed the plan to `evaluation` during it, later usage is free.
 */
export async function getBilledPart(step: Transaction, { accountId, startsAt, endsAt }: BillingCycle) {
  const { effectiveAt } = planChanges
  const [left] = await step
    .select({ at: min(effectiveAt) })
    .from(planChanges)
    .where(
      and(
        eq(planChanges.accountId, accountId),
        eq(planChanges.toPlan, 'evaluation'),
        gt(effectiveAt, startsAt),
        lt(effectiveAt, endsAt),
      ),
    )
  return { startsAt: startsAt.getTime(), endsAt: (left?.at ?? endsAt).getTime() }
}

function getLines(step: Pick<PostgresJsDatabase, 'select'>, invoiceId: string): Promise<InvoiceLine[]> {
  return step
    .select()
    .from(invoiceLineRows)
    .where(eq(invoiceLineRows.invoiceId, invoiceId))
    .orderBy(desc(invoiceLineRows.amountMicrocents), asc(invoiceLineRows.model))
}

/** An invoice to collect, with everything that the payment processor needs. */
type Due = {
  readonly invoice: Invoice
  readonly lines: readonly InvoiceLine[]
  readonly customerId: string | null
  readonly methodKind: PaymentMethodRow['kind'] | null
  readonly stripePaymentMethodId: string | null
}

/**
 * Claims the invoice that waited longest for collection at `at` (epoch milliseconds); null = none is due. It can be
 * claimed again after `collectionWaitMs`: an unpaid invoice is collected twice more within a grace period, then once
 * per day.
 */
export async function claimInvoice(database: Database, at: number): Promise<Due | null> {
  return database.run(
    ({ orm }) =>
      orm.transaction(async step => {
        const [invoice] = await step
          .select()
          .from(invoices)
          .where(
            or(
              and(eq(invoices.status, 'open'), lt(invoices.updatedAt, new Date(at - collectionWaitMs.open))),
              and(eq(invoices.status, 'unpaid'), lt(invoices.updatedAt, unpaidLimit(at))),
            ),
          )
          .orderBy(asc(invoices.updatedAt))
          .limit(1)
          .for('update', { skipLocked: true })
        if (invoice === undefined) return null
        await step
          .update(invoices)
          .set({ updatedAt: new Date(at) })
          .where(eq(invoices.id, invoice.id))
        const [owner] = await step
          .select({
            customerId: accounts.stripeCustomerId,
            methodKind: paymentMethods.kind,
            stripePaymentMethodId: paymentMethods.stripePaymentMethodId,
          })
          .from(accounts)
          .leftJoin(paymentMethods, and(eq(paymentMethods.accountId, accounts.id), isNull(paymentMethods.removedAt)))
          .where(eq(accounts.id, invoice.accountId))
        const { customerId = null, methodKind = null, stripePaymentMethodId = null } = owner ?? {}
        return { invoice, lines: await getLines(step, invoice.id), customerId, methodKind, stripePaymentMethodId }
      }),
    workDeadlineMs,
  )
}

/** Returns the latest time of the previous claim for an unpaid invoice to be due at `at`. */
function unpaidLimit(at: number) {
  const limit = (waitMs: number) => instant(at - waitMs)
  return sql`case
    when (select unpaid_since from accounts where accounts.id = ${invoices.accountId}) > ${limit(graceMs)}
    then ${limit(collectionWaitMs.inGrace)} else ${limit(collectionWaitMs.afterGrace)} end`
}

/** Stores the payment processor's ID of an invoice before anything is charged. */
export async function noteProcessorId(database: Database, invoiceId: string, stripeInvoiceId: string): Promise<void> {
  await database.run(({ orm }) =>
    orm
      .update(invoices)
      .set({ stripeInvoiceId })
      .where(and(eq(invoices.id, invoiceId), isNull(invoices.stripeInvoiceId))),
  )
}

export type InvoiceWithCycle = { readonly invoice: Invoice; readonly cycle: BillingCycle }

/** Returns an account's invoices, newest first; at most 1,000, which is 80 years. */
export function listInvoices(database: Database, accountId: string): Promise<InvoiceWithCycle[]> {
  return withAccountRls(database, accountId).orm(step =>
    step
      .select({ invoice: invoices, cycle: billingCycles })
      .from(invoices)
      .innerJoin(billingCycles, eq(billingCycles.id, invoices.cycleId))
      .where(eq(invoices.accountId, accountId))
      .orderBy(desc(billingCycles.startsAt))
      .limit(1000),
  )
}

/** Returns an invoice of the account with its lines; null if there is none of this ID. */
export async function findInvoice(
  database: Database,
  accountId: string,
  invoiceId: string,
): Promise<(InvoiceWithCycle & { readonly lines: readonly InvoiceLine[] }) | null> {
  return withAccountRls(database, accountId).orm(async orm => {
    const [found] = await orm
      .select({ invoice: invoices, cycle: billingCycles })
      .from(invoices)
      .innerJoin(billingCycles, eq(billingCycles.id, invoices.cycleId))
      .where(and(eq(invoices.accountId, accountId), eq(invoices.id, invoiceId)))
      .limit(1)
    return found === undefined ? null : { ...found, lines: await getLines(orm, invoiceId) }
  })
}
