import * as accounts from '../stores/accounts.ts'
import * as billing from '../stores/billing.ts'
import * as billingNotices from '../stores/billing-notices.ts'
import * as budgets from '../stores/budgets.ts'
import * as cards from '../stores/cards.ts'
import * as invitations from '../stores/invitations.ts'
import * as invoices from '../stores/invoices.ts'
import * as keyLines from '../stores/key-lines.ts'
import * as keys from '../stores/keys.ts'
import * as knownAddresses from '../stores/known-addresses.ts'
import * as paymentEvents from '../stores/payment-events.ts'
import * as resets from '../stores/resets.ts'
import * as sessions from '../stores/sessions.ts'
import * as users from '../stores/users.ts'
import * as verifications from '../stores/verifications.ts'

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
