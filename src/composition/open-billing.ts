import type { Config } from '../config.ts'
import { manualPayments } from '../console/billing/payment-processor.ts'
import { startBillingWorker, startNoticeWorker } from '../console/billing/worker.ts'
import type { RepeatTimer } from '../core/jobs/repeating.ts'
import type { Clock, Log, Network } from '../core/ports.ts'
import type { Database } from '../database/database.ts'
import { openBudget } from './open-budget.ts'
import { openMailer } from './open-mailer.ts'
import { openPayments } from './open-payments.ts'

type Parts = {
  readonly database: Database
  readonly clock: Clock
  readonly network: Network
  readonly log: Log
  readonly newId: (prefix: string) => string
  readonly timer: RepeatTimer
}

/**
 * Opens payments, email and the workers that close billing cycles and send notices. `undo` receives the functions that
 * close them.
 */
export async function openBilling(
  config: Config,
  { database, clock, network, log, newId, timer }: Parts,
  undo: (() => unknown)[],
) {
  const payments = await openPayments(config, network, clock)
  const post = await openMailer(config, { clock, log }, undo)
  const manual = manualPayments
  const billingWorker = startBillingWorker({ database, payments, manual, clock, newId, log, timer })
  undo.push(() => billingWorker.close())
  const notices = { database, clock, log, timer }
  const noticeWorker = post === null ? null : startNoticeWorker({ ...notices, post })
  undo.push(() => noticeWorker?.close())
  return { payments, post, billingWorker, noticeWorker, budget: openBudget(database, { clock, log, post }) }
}
