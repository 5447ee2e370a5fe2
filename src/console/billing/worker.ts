/**
 * Runs billing in the background: cycles end, invoices are created and collected. Every instance runs it; a database
 * lock lets one at a time create invoices, and each invoice is collected by the instance that claimed it.
 */

import { centsOfLines } from '../../core/billing/billing.ts'
import { findGrace, isNoticeTrue } from '../../core/billing/grace.ts'
import { type Repeating, startRepeating } from '../../core/jobs/repeating.ts'
import { failureReason } from '../../core/validation/errors.ts'
import type { Mailer } from '../../mail/mailer.ts'
import type { Delivery } from '../../mail/queue.ts'
import type { ConsoleDeps } from '../deps.ts'
import type { Payments } from './payment-processor.ts'
import { rollCycles } from './stores/billing.ts'
import { type ClaimedNotice, claimNotice, type NoticeOutcome, settleNotice } from './stores/billing-notices.ts'
import { claimInvoice, closeCycle, noteProcessorId } from './stores/invoices.ts'
import { applyInvoice, findSettledMethod, forgetMethod } from './stores/payment-events.ts'

type BillingWorkerOptions = Pick<ConsoleDeps, 'database' | 'payments' | 'clock' | 'newId' | 'timer' | 'log'> & {
  /** Collects from accounts with manual invoicing, and marks the invoices of accounts without a payment method. */
  readonly manual: Payments
}

/** Does everything that is due now; see `Repeating`. */
type BillingWorker = Repeating

const everyMs = 15_000
/** Maximum steps per run, so that an instance that was offline for long does not monopolize its database. */
const maximumSteps = 200

/** Starts the worker. Its timer does not keep the process alive. */
export function startBillingWorker(options: BillingWorkerOptions): BillingWorker {
  const { database, clock, newId, log, timer } = options
  return startRepeating(
    everyMs,
    async isClosed => {
      const repeat = async (step: () => Promise<boolean>) => {
        for (let count = 0; count < maximumSteps && !isClosed(); count++) if (!(await step())) return
      }
      await repeat(async () => (await rollCycles(database, clock.now(), newId)) > 0)
      await repeat(async () => {
        const invoice = await closeCycle(database, clock.now(), newId)
        if (invoice !== null) log.info('invoice_created', { invoice_id: invoice.id, total_cents: invoice.totalCents })
        return invoice !== null
      })
      await repeat(() => collectNext(options))
      let after = ''
      await repeat(async () => {
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

/**
 * Sends the stored emails about unpaid invoices, grace periods and alerts. Every instance runs it; a claim in the database
 * selects one sender per notice. A notice is marked after the mail server accepted it, so a killed process loses none;
 * between the two steps it may send one again, under the same message ID.
 */

type NoticeWorkerOptions = Pick<ConsoleDeps, 'database' | 'clock' | 'timer' | 'log'> & {
  readonly post: Pick<Mailer, 'billing' | 'alert'>
}

const maximumPerRun = 100
/** Milliseconds after each failed attempt. There is one attempt more than entries; then the notice is dropped. */
const waitsMs = [10_000, 60_000, 300_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000] as const

export function startNoticeWorker(options: NoticeWorkerOptions): Repeating {
  const { database, clock, log, timer } = options
  return startRepeating(
    everyMs,
    async isClosed => {
      for (let count = 0; count < maximumPerRun && !isClosed(); count++) {
        const at = clock.now()
        const notice = await claimNotice(database, at)
        if (notice === null) return
        const outcome = await send(options, notice, at)
        await settleNotice(database, notice, outcome)
        if (outcome.status !== 'pending') log.info(`billing_notice_${outcome.status}`, { kind: notice.kind })
      }
    },
    failures => {
      // Once per minute: other components report an unreachable database too.
      if (failures % 4 === 1) log.warn('billing_notices_failed', { failures })
    },
    timer,
  )
}

/** Sends a notice that was due at `at`, and judges it by that time too. */
async function send({ post, clock }: NoticeWorkerOptions, notice: ClaimedNotice, at: number): Promise<NoticeOutcome> {
  const { accountId, kind, subject, userId, email, attempts, dues, invoice, alert } = notice
  if (email === null) return { status: 'dropped' }
  const id = `${accountId}.${kind}.${subject}.${userId}`.replace(/[^\w.]/g, '-')
  let delivery: Delivery = 'refused'
  if (kind !== 'alert') {
    if (!isNoticeTrue({ kind, subject }, dues, invoice?.status ?? null, at)) return { status: 'dropped' }
    const due = invoice === null ? null : { id: subject, totalUsd: invoice.totalCents / 100 }
    delivery = await post.billing({ kind, to: email, id, grace: findGrace(dues), invoice: due })
  } else if (alert !== null) delivery = await post.alert(email, alert, id)
  if (delivery === 'sent') return { status: 'sent' }
  const waitMs = delivery === 'refused' ? undefined : waitsMs[attempts - 1]
  return waitMs === undefined ? { status: 'dropped' } : { status: 'pending', dueAt: clock.now() + waitMs }
}
