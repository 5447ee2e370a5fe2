/**
 * Runs billing in the background: cycles end, invoices are created and collected. Every instance runs it; a database
 * lock lets one at a time create invoices, and each invoice is collected by the instance that claimed it.
 */
import { centsOfLines } from '../../../core/billing/billing.ts'
import { type Repeating, type RepeatTimer, startRepeating } from '../../../core/jobs/repeating.ts'
import { failureReason } from '../../../core/validation/errors.ts'
import type { Database } from '../../../database/database.ts'
import type { Payments } from '../payment-processor.ts'
import { rollCycles } from '../stores/billing.ts'
import { findSettledMethod, forgetMethod } from '../stores/cards.ts'
import { claimInvoice, closeCycle, noteProcessorId } from '../stores/invoices.ts'
import { applyInvoice } from '../stores/payment-events.ts'

type Fields = Readonly<Record<string, string | number | boolean | null>>

type BillingWorkerOptions = {
  readonly database: Database
  readonly payments: Payments
  /** Collects from accounts with manual invoicing, and marks the invoices of accounts without a payment method. */
  readonly manual: Payments
  readonly clock: { now(): number }
  readonly newId: (prefix: string) => string
  readonly timer: RepeatTimer
  readonly log: {
    info(event: string, fields?: Fields): void
    warn(event: string, fields?: Fields): void
    error(event: string, fields?: Fields): void
  }
}

/** Does everything that is due now; see `Repeating`. */
export type BillingWorker = Repeating

const everyMs = 15_000
/** Maximum steps per run, so that an instance that was offline for long does not monopolize its database. */
const maximumSteps = 200

/** Starts the worker. Its timer does not keep the process alive. */
export function startBillingWorker(options: BillingWorkerOptions): BillingWorker {
  const { database, clock, newId, log, timer } = options
  return startRepeating(
    everyMs,
    async isClosed => {
      const upTo = async (most: number, step: () => Promise<boolean>) => {
        for (let count = 0; count < most && !isClosed(); count++) if (!(await step())) return
      }
      await upTo(maximumSteps, async () => (await rollCycles(database, clock.now(), newId)) > 0)
      await upTo(maximumSteps, async () => {
        const invoice = await closeCycle(database, clock.now(), newId)
        if (invoice !== null) log.info('invoice_created', { invoice_id: invoice.id, total_cents: invoice.totalCents })
        return invoice !== null
      })
      await upTo(maximumSteps, () => collectNext(options))
      let after = ''
      await upTo(maximumSteps, async () => {
        const id = await forgetNext(options, after)
        after = id ?? after
        return id !== null
      })
    },
    (failures, error) => {
      // Once per minute: other components report an unreachable database too.
      if (failures % 4 === 1) log.warn('billing_run_failed', { failures, detail: failureReason(error) })
    },
    timer,
  )
}

/**
 * Collects one invoice; returns false if none is due. A failing one waits for its next turn and does not delay others.
 */
async function collectNext({ database, payments, manual, clock, log }: BillingWorkerOptions) {
  const due = await claimInvoice(database, clock.now())
  if (due === null) return false
  const { invoice, lines, customerId, methodKind, stripePaymentMethodId } = due
  const collector = methodKind === 'manual' || customerId === null ? manual : payments
  const cents = centsOfLines(lines)
  try {
    const seen = await collector.collect(
      {
        invoiceId: invoice.id,
        accountId: invoice.accountId,
        customerId,
        hasMethod: methodKind !== null,
        stripePaymentMethodId,
        totalCents: invoice.totalCents,
        processorId: invoice.stripeInvoiceId,
        lines: lines.map(({ model }, index) => ({ name: model, cents: cents[index] ?? 0 })),
      },
      processorId => noteProcessorId(database, invoice.id, processorId),
    )
    const outcome = await applyInvoice(database, seen, clock.now())
    if (outcome === 'mismatch') log.error('invoice_mismatch', { invoice_id: invoice.id })
    else log.info('invoice_collected', { invoice_id: invoice.id, status: seen.status })
  } catch (error) {
    log.warn('invoice_collection_failed', { invoice_id: invoice.id, detail: failureReason(error) })
  }
  return true
}

/**
 * Removes the payment method of a deleted account after its last invoice, the first whose ID is after `after`. Returns the ID;
 * null = there is none. One that cannot be removed now waits for the next run and does not delay others.
 */
async function forgetNext({ database, payments, log }: BillingWorkerOptions, after: string): Promise<string | null> {
  const method = await findSettledMethod(database, after)
  if (method === null) return null
  try {
    if (method.cardId !== null) await payments.cards?.remove(method.cardId)
  } catch (error) {
    log.warn('payment_method_detach_failed', { detail: failureReason(error) })
    return method.id
  }
  await forgetMethod(database, method.id)
  return method.id
}
