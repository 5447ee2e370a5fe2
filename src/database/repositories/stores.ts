import * as accounts from './accounts.ts'
import * as alerts from './alerts.ts'
import * as audit from './audit.ts'
import * as billing from './billing.ts'
import * as billingNotices from './billing-notices.ts'
import * as budgets from './budget-tracker.ts'
import * as cards from './cards.ts'
import * as erasure from './erasure.ts'
import * as invitations from './invitations.ts'
import * as invoiceBreakdowns from './invoice-breakdown.ts'
import * as invoices from './invoices.ts'
import * as keyLines from './key-lineages.ts'
import * as keys from './keys.ts'
import * as knownAddresses from './known-addresses.ts'
import * as resets from './password-resets.ts'
import * as paymentEvents from './payment-events.ts'
import * as projects from './projects.ts'
import * as sessions from './sessions.ts'
import * as singleSignOn from './single-sign-on.ts'
import * as tagLimits from './tag-limits.ts'
import * as totp from './totp.ts'
import * as users from './users.ts'
import * as verifications from './verifications.ts'
import * as webhookEvents from './webhook-events.ts'
import * as webhookLog from './webhook-log.ts'
import * as webhooks from './webhooks.ts'

/** What modules may do with the database: they import no store themselves. */
export const stores = {
  accounts,
  alerts,
  audit,
  billing,
  billingNotices,
  budgets,
  cards,
  erasure,
  invitations,
  invoiceBreakdowns,
  invoices,
  keyLines,
  keys,
  knownAddresses,
  paymentEvents,
  projects,
  resets,
  sessions,
  tagLimits,
  singleSignOn,
  totp,
  users,
  verifications,
  webhookEvents,
  webhookLog,
  webhooks,
} as const
export type Stores = typeof stores
