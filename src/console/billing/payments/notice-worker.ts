/**
 * Sends the stored emails about unpaid invoices and grace periods. Every instance runs it; a claim in the database
 * selects one sender per notice. A notice is marked after the mail server accepted it, so a killed process loses none;
 * between the two steps it may send one again, under the same message ID.
 */
import { graceOf, isNoticeTrue } from '../../../core/billing/grace.ts'
import { type Repeating, type RepeatTimer, startRepeating } from '../../../core/jobs/repeating.ts'
import type { Database } from '../../../database/database.ts'
import type { Mailer } from '../../../mail/mailer.ts'
import { type ClaimedNotice, claimNotice, type NoticeOutcome, settleNotice } from '../stores/billing-notices.ts'

type Fields = Readonly<Record<string, string | number>>

type NoticeWorkerOptions = {
  readonly database: Database
  readonly post: Pick<Mailer, 'billing'>
  readonly clock: { now(): number }
  readonly timer: RepeatTimer
  readonly log: { info(event: string, fields?: Fields): void; warn(event: string, fields?: Fields): void }
}

const everyMs = 15_000
const maximumPerRun = 100
/** Longer than a mail server may take for one email. */
const leaseMs = 120_000
/** Milliseconds after each failed attempt. There is one attempt more than entries; then the notice is dropped. */
const waitsMs = [10_000, 60_000, 300_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000] as const

export function startNoticeWorker(options: NoticeWorkerOptions): Repeating {
  const { database, clock, log, timer } = options
  return startRepeating(
    everyMs,
    async isClosed => {
      for (let count = 0; count < maximumPerRun && !isClosed(); count++) {
        const at = clock.now()
        const notice = await claimNotice(database, at, leaseMs)
        if (notice === null) return
        const outcome = await send(options, notice, at)
        await settleNotice(database, notice, outcome)
        if (outcome.status !== 'pending') log.info(`billing_notice_${outcome.status}`, { kind: notice.kind })
      }
    },
    failures => {
      // Once per minute: other components report an unreachable database too.
      if (failures % 4 === 1) log.warn('billing_notices_failed', { failures })
    },
    timer,
  )
}

/** Sends a notice that was due at `at`, and judges it by that time too. */
async function send({ post, clock }: NoticeWorkerOptions, notice: ClaimedNotice, at: number): Promise<NoticeOutcome> {
  const { accountId, kind, subject, userId, email, attempts, dues, invoice } = notice
  if (email === null || !isNoticeTrue(notice, dues, invoice?.status ?? null, at)) return { status: 'dropped' }
  const delivery = await post.billing({
    kind,
    to: email,
    id: `${accountId}.${kind}.${subject}.${userId}`.replace(/[^\w.]/g, '-'),
    grace: graceOf(dues),
    invoice: invoice === null ? null : { id: subject, totalUsd: invoice.totalCents / 100 },
  })
  if (delivery === 'sent') return { status: 'sent' }
  const waitMs = delivery === 'refused' ? undefined : waitsMs[attempts - 1]
  return waitMs === undefined ? { status: 'dropped' } : { status: 'pending', dueAt: clock.now() + waitMs }
}
