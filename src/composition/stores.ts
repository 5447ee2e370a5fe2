import * as accounts from '../database/repositories/accounts.ts'
import * as billing from '../database/repositories/billing.ts'
import * as billingNotices from '../database/repositories/billing-notices.ts'
import * as budgets from '../database/repositories/budget-tracker.ts'
import * as cards from '../database/repositories/cards.ts'
import * as invitations from '../database/repositories/invitations.ts'
import * as invoices from '../database/repositories/invoices.ts'
import * as keyLines from '../database/repositories/key-lineages.ts'
import * as keys from '../database/repositories/keys.ts'
import * as knownAddresses from '../database/repositories/known-addresses.ts'
import * as resets from '../database/repositories/password-resets.ts'
import * as paymentEvents from '../database/repositories/payment-events.ts'
import * as sessions from '../database/repositories/sessions.ts'
import * as users from '../database/repositories/users.ts'
import * as verifications from '../database/repositories/verifications.ts'

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
