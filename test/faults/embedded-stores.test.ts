/** The tests of the stores, which otherwise run on a real Postgres, on the embedded database. */
import { setDefaultTimeout } from 'bun:test'
import { databaseKind } from '../database/tested-databases.ts'

setDefaultTimeout(120_000)

process.env[databaseKind] = 'embedded'
for (const file of [
  'database/learning/learning',
  'database/ledger-truth',
  'database/repositories/billing',
  'database/repositories/billing-notices',
  'database/repositories/budget-tracker',
  'database/repositories/invoice-breakdown',
  'ledger/ledger',
  'ledger/reconcile',
  'ledger/usage-totals',
])
  await import(`../${file}.test.ts`)
