import * as accounts from './repositories/accounts.ts'
import * as billing from './repositories/billing.ts'
import * as billingNotices from './repositories/billing-notices.ts'
import * as budgets from './repositories/budget-tracker.ts'
import * as cards from './repositories/cards.ts'
import * as invitations from './repositories/invitations.ts'
import * as invoices from './repositories/invoices.ts'
import * as keyLines from './repositories/key-lineages.ts'
import * as keys from './repositories/keys.ts'
import * as knownAddresses from './repositories/known-addresses.ts'
import * as resets from './repositories/password-resets.ts'
import * as paymentEvents from './repositories/payment-events.ts'
import * as sessions from './repositories/sessions.ts'
import * as users from './repositories/users.ts'
import * as verifications from './repositories/verifications.ts'

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
  users,
  verifications,
} as const
export type Stores = typeof stores
