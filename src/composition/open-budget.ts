import type { Clock, Log } from '../core/ports.ts'
import { toUsd } from '../core/usage/money.ts'
import type { Database } from '../database/database.ts'
import { type BudgetTracker, createBudgetBook, recordBudgetNotice } from '../database/repositories/budget-tracker.ts'
import type { Mailer } from '../mail/mailer.ts'

/** Soft caps of accounts. At each milestone webhooks get an event and, with a mail server, owners an email. */
export function openBudget(
  database: Database,
  { clock, log, post }: { clock: Clock; log: Log; post: Mailer | null },
): BudgetTracker {
  return createBudgetBook(database, clock, (accountId, period, percent, capMicrocents) => {
    recordBudgetNotice(database, accountId, period, { percent, capMicrocents }).then(
      owners => {
        for (const to of owners) post?.softCap(to, percent, toUsd(capMicrocents), period)
      },
      () => log.warn('budget_notice_failed'),
    )
  })
}
