/**
 * Stored emails about money and alerts: written in the transaction that causes them, claimed by one sender, marked after sending.
 */
import { and, eq, sql } from 'drizzle-orm'
import type { AlertEmail } from '../../../core/alerts/alerts.ts'
import type { InvoiceStatus } from '../../../core/billing/billing.ts'
import type { BillingNotice, Dues } from '../../../core/billing/grace.ts'
import type { Database } from '../../../database/database.ts'
import type { Transaction } from '../../../database/statement.ts'
import { type Account, emailNotices, users } from '../../../database/tables.ts'

/** Converts an account row to the dues that `core/billing/grace.ts` reads. */
export function toDues(account: Pick<Account, 'plan' | 'graceEndsAt' | 'unpaidSince'>): Dues {
  return {
    plan: account.plan,
    graceEndsAt: account.graceEndsAt?.getTime() ?? null,
    unpaidSince: account.unpaidSince?.getTime() ?? null,
  }
}

/** Stores the notices for each owner of the account. Storing one again changes nothing. */
export async function noteNotices(
  step: Transaction,
  accountId: string,
  notices: readonly BillingNotice[],
  at: number,
): Promise<void> {
  if (notices.length === 0) return
  const owners = await step
    .select({ userId: users.id })
    .from(users)
    .where(and(eq(users.accountId, accountId), eq(users.role, 'owner'), sql`${users.removedAt} is null`))
  if (owners.length === 0) return
  const rows = notices.flatMap(({ kind, subject, dueAt }) =>
    owners.map(({ userId }) => ({
      accountId,
      kind,
      subject,
      userId,
      dueAt: new Date(dueAt),
      createdAt: new Date(at),
    })),
  )
  await step.insert(emailNotices).values(rows).onConflictDoNothing()
}

/** A notice that this process may send, with the current state that it describes. */
export type ClaimedNotice = Pick<BillingNotice, 'subject'> & {
  readonly kind: NoticeKind
  readonly accountId: string
  readonly userId: string
  /** Null = the user was removed, or is no longer an owner of the account whose money it is about. */
  readonly email: string | null
  /** Sending attempts, including this one. */
  readonly attempts: number
  readonly dues: Dues
  /** Null = the notice is not about an invoice. */
  readonly invoice: { readonly status: InvoiceStatus; readonly totalCents: number } | null
  /** Null = the notice is about money. */
  readonly alert: AlertEmail | null
}

type NoticeKind = BillingNotice['kind'] | 'alert'

type ClaimedRow = {
  readonly account_id: string
  readonly kind: NoticeKind
  readonly subject: string
  readonly user_id: string
  readonly email: string | null
  readonly attempts: number
  readonly plan: Account['plan']
  /** Epoch milliseconds. */
  readonly grace_ends_ms: number | null
  readonly unpaid_since_ms: number | null
  readonly invoice_status: InvoiceStatus | null
  readonly total_cents: number | null
  readonly body: AlertEmail | null
}

/** Longer than a mail server may take for one email. */
const leaseMs = 120_000

/**
 * Claims the notice that has been due for the longest time; null = none is due. Other senders cannot claim it for
 * `leaseMs`, after which the notice of a killed sender is due again.
 */
export async function claimNotice(database: Database, at: number): Promise<ClaimedNotice | null> {
  const [now, leaseEnd] = [at, at + leaseMs].map(time => new Date(time).toISOString())
  const [row] = await database.run(
    ({ sql: query }) => query<ClaimedRow[]>`
      with due as (
        select account_id, kind, subject, user_id from email_notices
        where status = 'pending' and due_at <= ${now ?? ''}::text::timestamptz
        order by due_at, kind desc limit 1
        for update skip locked),
      claimed as (
        update email_notices as notice
        set due_at = ${leaseEnd ?? ''}::text::timestamptz, attempts = least(notice.attempts + 1, 1000)
        from due
        where notice.account_id = due.account_id and notice.kind = due.kind and notice.subject = due.subject
          and notice.user_id = due.user_id
        returning notice.*)
      select claimed.account_id, claimed.kind, claimed.subject, claimed.user_id, claimed.attempts, claimed.body,
        case when (users.role = 'owner' or claimed.kind = 'alert') and users.removed_at is null then users.email end as email,
        accounts.plan, (extract(epoch from accounts.grace_ends_at) * 1000)::float8 as grace_ends_ms,
        (extract(epoch from accounts.unpaid_since) * 1000)::float8 as unpaid_since_ms,
        invoices.status as invoice_status, invoices.total_cents::float8 as total_cents
      from claimed
      join accounts on accounts.id = claimed.account_id
      join users on users.id = claimed.user_id
      left join invoices on invoices.id = claimed.subject and invoices.account_id = claimed.account_id`,
  )
  if (row === undefined) return null
  const { invoice_status: status, total_cents: totalCents } = row
  return {
    accountId: row.account_id,
    kind: row.kind,
    subject: row.subject,
    userId: row.user_id,
    email: row.email,
    attempts: row.attempts,
    dues: { plan: row.plan, graceEndsAt: row.grace_ends_ms, unpaidSince: row.unpaid_since_ms },
    invoice: status === null || totalCents === null ? null : { status, totalCents },
    alert: row.body,
  }
}

export type NoticeOutcome =
  | { readonly status: 'sent' | 'dropped' }
  /** Epoch milliseconds of the next attempt. */
  | { readonly status: 'pending'; readonly dueAt: number }

/** Writes the outcome of a claimed notice. An alert contains names, so that a settled one is deleted. */
export async function settleNotice(
  database: Database,
  { accountId, kind, subject, userId }: ClaimedNotice,
  outcome: NoticeOutcome,
): Promise<void> {
  const isNotice = and(
    eq(emailNotices.accountId, accountId),
    eq(emailNotices.kind, kind),
    eq(emailNotices.subject, subject),
    eq(emailNotices.userId, userId),
  )
  const change = outcome.status === 'pending' ? { dueAt: new Date(outcome.dueAt) } : { status: outcome.status }
  await database.run(({ orm }) =>
    kind === 'alert' && outcome.status !== 'pending'
      ? orm.delete(emailNotices).where(isNotice)
      : orm.update(emailNotices).set(change).where(isNotice),
  )
}
