/** The tests of the stores, which otherwise run on a real Postgres, on the embedded database. */
import { setDefaultTimeout } from 'bun:test'
import { loadLongVariants } from '../harness/variants.ts'

setDefaultTimeout(240_000)

await loadLongVariants(
  'database/learning/learning',
  'database/ledger-truth',
  'database/repositories/billing',
  'database/repositories/billing-notices',
  'database/repositories/budget-tracker',
  'database/repositories/invoice-breakdown',
  'ledger/ledger',
  'ledger/reconcile',
  'ledger/usage-totals',
)
