/** Invoices of settled billing cycles: creation, collection and reading. IDs and times are parameters. */
import type { TransactionSql } from 'postgres'
import type { BillingCycle, Invoice, InvoiceLine, PaymentMethodRow } from '../../../../drizzle/tables.ts'
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
import { inTransaction, toColumns, typedRows, withAccountRls } from '../../../database/statement.ts'
import { epochStart, readBilling, withSingletonLock, workDeadlineMs } from './billing.ts'

/** Returns the amounts of a running cycle so far. */
export async function spentInCycle(
  database: Database,
  accountId: string,
  cycle: { readonly startsAt: number; readonly endsAt: number },
): Promise<number> {
  const lines = await withAccountRls(database, accountId, step => usageByModel(step, accountId, cycle), workDeadlineMs)
  return invoiceTotals(lines).totalMicrocents
}

/**
 * Returns an account's usage from `startsAt` up to `endsAt` by model. Whole UTC days come from the daily totals; for
 * the two partial days, records are summed. One statement, one snapshot.
 */
async function usageByModel(
  step: TransactionSql,
  accountId: string,
  period: { readonly startsAt: number; readonly endsAt: number },
): Promise<LineSums[]> {
  const { wholeDays, partialDays } = cycleParts(step, period)
  return typedRows(step`
    select model, sum(requests)::float8 as requests, sum(input_tokens)::float8 as input_tokens,
      sum(cached_input_tokens)::float8 as cached_input_tokens, sum(output_tokens)::float8 as output_tokens,
      sum(reasoning_tokens)::float8 as reasoning_tokens, sum(billed_microcents)::int8 as amount_microcents
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
}

/**
 * SQL conditions for a period from `startsAt` up to `endsAt`: its whole UTC days in the daily totals, the records of its
 * partial days, and all its records.
 */
export function cycleParts(
  step: TransactionSql,
  { startsAt, endsAt }: { readonly startsAt: number; readonly endsAt: number },
) {
  const wholeDay = (day: number) => step`(date '1970-01-01' + ${day}::int)`
  const [firstWhole, lastWhole] = [wholeDay(Math.ceil(startsAt / dayMs)), wholeDay(formatDay(endsAt))]
  const wholePeriod = step`at >= ${new Date(startsAt)} and at < ${new Date(endsAt)}`
  return {
    wholePeriod,
    wholeDays: step`day >= ${firstWhole} and day < ${lastWhole}`,
    partialDays: step`${wholePeriod}
      and (at < ${firstWhole}::timestamp at time zone 'UTC' or at >= ${lastWhole}::timestamp at time zone 'UTC')`,
  }
}

/**
 * Creates the invoice of the oldest settled cycle. Null if there is none, or another instance is creating it. The cycle of a
 * deleted account ends with the account.
 */
export function closeCycle(database: Database, at: number, newId: (prefix: string) => string): Promise<Invoice | null> {
  return withSingletonLock<Invoice | null>(database, null, async step => {
    const settled = new Date(at - settlementDelayMs)
    const [cycle] = await typedRows<BillingCycle>(step`
      select * from billing_cycles
      where closed_at is null and (ends_at <= ${settled} or exists (
        select from accounts where accounts.id = account_id and deleted_at <= ${settled}))
      order by ends_at limit 1 for update`)
    return cycle === undefined ? null : invoiceFor(step, cycle, at, newId)
  })
}

async function invoiceFor(
  step: TransactionSql,
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
  const made = {
    ...{ id: newId('inv'), accountId, cycleId: cycle.id, status: isPaid ? 'paid' : 'open', ...totals },
    ...{ issuedAt, paidAt: isPaid ? issuedAt : null, updatedAt: epochStart },
  }
  const [invoice] = await typedRows<Invoice>(
    step`insert into invoices ${step(toColumns(made))} on conflict (cycle_id) do nothing returning *`,
  )
  if (invoice !== undefined)
    for (const line of lines)
      await step`insert into invoice_lines ${step(toColumns({ ...line, invoiceId: invoice.id }))}`
  if (invoice !== undefined)
    await enqueueEvent(step, accountId, {
      type: 'invoice.issued',
      data: { invoice_id: invoice.id, total_usd: invoice.totalCents / 100, status: invoice.status },
    })
  await step`update billing_cycles set closed_at = ${issuedAt} where id = ${cycle.id}`
  return invoice ?? null
}

/** Returns the usage of the previous cycle in the ledger and as invoiced. */
async function earlierUsage(step: TransactionSql, { accountId, startsAt }: BillingCycle) {
  const [found] = await typedRows<BillingCycle & { readonly invoiceId: string }>(step`
    select cycle.*, invoices.id as invoice_id from billing_cycles as cycle join invoices on cycle_id = cycle.id
    where cycle.account_id = ${accountId} and starts_at < ${startsAt} order by starts_at desc limit 1`)
  if (found === undefined) return null
  return {
    used: await usageByModel(step, accountId, await getBilledPart(step, found)),
    invoiced: await getLines(step, found.invoiceId),
  }
}

/**
 * Returns the billed part of a cycle. If an operator changed the plan to `evaluation` during it, later usage is free.
 */
export async function getBilledPart(
  step: TransactionSql,
  { accountId, startsAt, endsAt }: Pick<BillingCycle, 'accountId' | 'startsAt' | 'endsAt'>,
) {
  const [left] = await step<{ at: Date | null }[]>`
    select min(effective_at) as at from plan_changes
    where account_id = ${accountId} and to_plan = 'evaluation' and effective_at > ${startsAt} and effective_at < ${endsAt}`
  return { startsAt: startsAt.getTime(), endsAt: (left?.at ?? endsAt).getTime() }
}

function getLines(step: TransactionSql, invoiceId: string): Promise<InvoiceLine[]> {
  return typedRows(step`
    select * from invoice_lines where invoice_id = ${invoiceId} order by amount_microcents desc, model`)
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
  const before = (waitMs: number) => new Date(at - waitMs)
  const claim = async (step: TransactionSql): Promise<Due | null> => {
    const [invoice] = await typedRows<Invoice>(step`
      select * from invoices
      where (status = 'open' and updated_at < ${before(collectionWaitMs.open)})
        or (status = 'unpaid' and updated_at < case
          when (select unpaid_since from accounts where accounts.id = account_id) > ${before(graceMs)}
          then ${before(collectionWaitMs.inGrace)} else ${before(collectionWaitMs.afterGrace)} end)
      order by updated_at limit 1 for update skip locked`)
    if (invoice === undefined) return null
    await step`update invoices set updated_at = ${new Date(at)} where id = ${invoice.id}`
    const found = await readBilling(step, invoice.accountId)
    return {
      ...{ invoice, lines: await getLines(step, invoice.id), customerId: found?.account.stripeCustomerId ?? null },
      methodKind: found?.method?.kind ?? null,
      stripePaymentMethodId: found?.method?.stripePaymentMethodId ?? null,
    }
  }
  return inTransaction(database, claim, workDeadlineMs)
}

/** Stores the payment processor's ID of an invoice before anything is charged. */
export async function noteProcessorId(database: Database, invoiceId: string, stripeInvoiceId: string): Promise<void> {
  await database.run(
    ({ sql }) => sql`
      update invoices set stripe_invoice_id = ${stripeInvoiceId} where id = ${invoiceId} and stripe_invoice_id is null`,
  )
}

/** An invoice with its period. */
export type InvoiceWithCycle = Invoice & Pick<BillingCycle, 'startsAt' | 'endsAt'>

/** Returns an account's invoices, newest first; at most 1,000, which is 80 years. */
export function listInvoices(database: Database, accountId: string): Promise<InvoiceWithCycle[]> {
  return withAccountRls(database, accountId, step => readInvoices(step, accountId, null))
}

const readInvoices = (step: TransactionSql, accountId: string, id: string | null) =>
  typedRows<InvoiceWithCycle>(step`
    select invoices.*, starts_at, ends_at from invoices join billing_cycles as cycle on cycle.id = cycle_id
    where invoices.account_id = ${accountId} and (${id}::text is null or invoices.id = ${id})
    order by starts_at desc limit 1000`)

/** Returns an invoice of the account with its lines; null if there is none of this ID. */
export async function findInvoice(
  database: Database,
  accountId: string,
  invoiceId: string,
): Promise<(InvoiceWithCycle & { readonly lines: readonly InvoiceLine[] }) | null> {
  return withAccountRls(database, accountId, async step => {
    const [found] = await readInvoices(step, accountId, invoiceId)
    return found === undefined ? null : { ...found, lines: await getLines(step, invoiceId) }
  })
}
