/** The tests of the stores, which otherwise run on a real Postgres, on the embedded database. */
import { setDefaultTimeout } from 'bun:test'
import { loadLongVariants } from '../harness/variants.ts'

setDefaultTimeout(240_000)

await loadLongVariants(
  () => import('../learning/learning.test.ts'),
  () => import('../database/ledger-truth.test.ts'),
  () => import('../console/billing/stores/billing.test.ts'),
  () => import('../console/billing/stores/billing-notices.test.ts'),
  () => import('../database/repositories/budget-tracker.test.ts'),
  () => import('../console/billing/stores/invoice-breakdown.test.ts'),
  () => import('../ledger/ledger.test.ts'),
  () => import('../ledger/reconcile.test.ts'),
  () => import('../ledger/usage-totals.test.ts'),
)
