import { toUsd } from '../core/money.ts'
import type { Post } from '../mail/post.ts'
import type { Log } from '../observe/log.ts'
import { type BudgetBook, createBudgetBook, noteMilestone } from '../stores/budgets.ts'
import type { Database } from '../stores/database.ts'
import type { Clock } from './clock.ts'

/** What accounts may spend in a month. Where mail is sent, owners are told how far they have come. */
export function openBudget(
  database: Database,
  { clock, log, post }: { clock: Clock; log: Log; post: Post | null },
): BudgetBook {
  if (post === null) return createBudgetBook(database, clock)
  return createBudgetBook(database, clock, (accountId, month, percent, capMicrocents) => {
    noteMilestone(database, accountId, month, percent).then(
      owners => {
        for (const to of owners) post.softCap(to, percent, toUsd(capMicrocents), month)
      },
      () => log.warn('milestone_not_told'),
    )
  })
}
