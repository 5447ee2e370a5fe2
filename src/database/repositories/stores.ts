import * as accounts from './accounts.ts'
import * as billing from './billing.ts'
import * as billingNotices from './billing-notices.ts'
import * as budgets from './budget-tracker.ts'
import * as cards from './cards.ts'
import * as invitations from './invitations.ts'
import * as invoices from './invoices.ts'
import * as keyLines from './key-lineages.ts'
import * as keys from './keys.ts'
import * as knownAddresses from './known-addresses.ts'
import * as resets from './password-resets.ts'
import * as paymentEvents from './payment-events.ts'
import * as sessions from './sessions.ts'
import * as tagLimits from './tag-limits.ts'
import * as users from './users.ts'
import * as verifications from './verifications.ts'

/** What modules may do with the database: they import no store themselves. */
export const stores = {
  accounts,
  billing,
  billingNotices,
  budgets,
  cards,
  invitations,
  invoices,
  keyLines,
  keys,
  knownAddresses,
  paymentEvents,
  resets,
  sessions,
  tagLimits,
  users,
  verifications,
} as const
export type Stores = typeof stores
