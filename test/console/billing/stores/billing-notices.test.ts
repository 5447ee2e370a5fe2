/** Emails about money on every Postgres: stored with their cause, still true when sent, and sent once. */
import { describe, expect } from 'bun:test'
import { eq } from 'drizzle-orm'
import { changeBilling, rollCycles } from '../../../../src/console/billing/stores/billing.ts'
import { closeCycle, listInvoices } from '../../../../src/console/billing/stores/invoices.ts'
import { applyInvoice } from '../../../../src/console/billing/stores/payment-events.ts'
import { startNoticeWorker } from '../../../../src/console/billing/worker.ts'
import { cycleMs, graceMs, type ProcessorInvoice, settlementDelayMs } from '../../../../src/core/billing/billing.ts'
import type { Database } from '../../../../src/database/database.ts'
import { accounts, emailNotices as noticeRows, usageDaily, users } from '../../../../src/database/tables.ts'
import type { BillingEmail } from '../../../../src/mail/mailer.ts'
import type { Delivery } from '../../../../src/mail/queue.ts'
import { newAccount, quiet } from '../../../database/database.contract.ts'
import { getOnDatabase } from '../../../database/on-database.ts'
import { testedDatabases } from '../../../database/tested-databases.ts'

let last = 0
const newId = (prefix: string) => `${prefix}_${Date.now().toString(36)}n${String(++last).padStart(6, '0')}`
const manual = () =>
  ({ id: newId('pay'), kind: 'manual', stripePaymentMethodId: null, brand: null, lastFour: null }) as const
const start = Date.UTC(2026, 0, 5)

const databases = testedDatabases()

/** Creates a sender at the time `clock.at` whose mail server the test controls. */
function sender(database: Database, clock: { at: number }, deliver: (email: BillingEmail) => Promise<Delivery>) {
  return startNoticeWorker({
    database,
    post: { billing: deliver, alert: async () => 'sent' },
    clock: { now: () => clock.at },
    timer: () => () => {},
    log: { ...quiet, info: () => {} },
  })
}

/** Sends everything that is due at `at` and returns the kinds in order. */
async function sentAt(database: Database, accountId: string, at: number): Promise<readonly string[]> {
  const emails: BillingEmail[] = []
  const worker = sender(database, { at }, async email => {
    emails.push(email)
    return 'sent'
  })
  await worker.run()
  await worker.close()
  return emails.filter(({ id }) => id.startsWith(accountId)).map(({ kind }) => kind)
}

/** Creates an account on plan `usage` with an invoice that is open since `issuedAt`. */
async function invoiced(database: Database) {
  const owner = await newAccount(database)
  const { accountId, userId } = owner
  await database.run(({ orm }) => orm.update(accounts).set({ plan: 'evaluation' }).where(eq(accounts.id, accountId)))
  const upgrade = { event: 'upgrade', at: start, userId, newId, method: manual() } as const
  expect(await changeBilling(database, accountId, upgrade)).toBe('done')
  const used = { requests: 1, completed: 1, inputTokens: 1, cachedInputTokens: 0, outputTokens: 1, reasoningTokens: 0 }
  await database.run(({ orm }) =>
    orm.insert(usageDaily).values({
      ...used,
      accountId,
      day: '2026-01-07',
      keyId: 'k',
      model: 'openai/gpt-a',
      billedMicrocents: 500_000_000,
    }),
  )
  const issuedAt = start + cycleMs + settlementDelayMs
  while ((await rollCycles(database, issuedAt, newId)) > 0);
  while ((await closeCycle(database, issuedAt, newId)) !== null);
  const [found] = await listInvoices(database, accountId)
  if (found === undefined) throw new Error('there is an invoice')
  const { id: invoiceId, totalCents } = found.invoice
  const seen = (status: ProcessorInvoice['status']): ProcessorInvoice => ({
    processorId: null,
    invoiceId,
    accountId,
    customerId: null,
    currency: 'usd',
    totalCents,
    remainingCents: status === 'paid' ? 0 : totalCents,
    status,
  })
  return { ...owner, issuedAt, invoiceId, seen }
}

for (const [name, open] of databases) {
  const on = getOnDatabase(name, open, 60_000)

  describe(`billing notices on the ${name} database`, () => {
    on('send one email of each kind for a declined invoice, the last one when the hour is over', async database => {
      const { accountId, issuedAt, seen } = await invoiced(database)
      for (const again of [0, 1, 2]) await applyInvoice(database, seen('unpaid'), issuedAt + again)
      expect(await sentAt(database, accountId, issuedAt)).toEqual(['invoice_unpaid', 'grace_began'])
      expect(await sentAt(database, accountId, issuedAt + graceMs - 1)).toEqual([])
      expect(await sentAt(database, accountId, issuedAt + graceMs)).toEqual(['grace_ended'])
      expect(await sentAt(database, accountId, issuedAt + 10 * graceMs)).toEqual([])
    })

    on('send nothing that a payment made untrue', async database => {
      const { accountId, issuedAt, seen } = await invoiced(database)
      await applyInvoice(database, seen('unpaid'), issuedAt)
      await applyInvoice(database, seen('paid'), issuedAt + 1)
      expect(await sentAt(database, accountId, issuedAt + 2 * graceMs)).toEqual([])
    })

    on('announce one grace period when a payment method is removed and an invoice is declined', async database => {
      const { accountId, userId, issuedAt, seen } = await invoiced(database)
      const change = { at: issuedAt, userId, newId } as const
      await changeBilling(database, accountId, { ...change, event: 'method_removed' })
      await applyInvoice(database, seen('unpaid'), issuedAt + 60_000)
      const kinds = [...(await sentAt(database, accountId, issuedAt + 60_000))]
      expect(kinds.toSorted()).toEqual(['grace_began', 'invoice_unpaid'])
      expect(await sentAt(database, accountId, issuedAt + graceMs)).toEqual(['grace_ended'])
      expect(await sentAt(database, accountId, issuedAt + 3 * graceMs)).toEqual([])
    })

    on('go to each owner, and to no one who left or is no owner', async database => {
      const { accountId, issuedAt, seen } = await invoiced(database)
      const person = (role: 'owner' | 'member', removedAt: Date | null) => {
        const id = newId('usr')
        return {
          id,
          accountId,
          email: `${id.toLowerCase()}@example.test`,
          passwordHash: 'x',
          role,
          removedAt,
          createdAt: new Date(start),
        }
      }
      const [second, member, gone, leaving] = [
        person('owner', null),
        person('member', null),
        person('owner', new Date(start)),
        person('owner', null),
      ]
      await database.run(({ orm }) => orm.insert(users).values([second, member, gone, leaving]))
      await applyInvoice(database, seen('unpaid'), issuedAt)
      await database.run(({ orm }) =>
        orm
          .update(users)
          .set({ removedAt: new Date(issuedAt) })
          .where(eq(users.id, leaving.id)),
      )
      const received: string[] = []
      const worker = sender(database, { at: issuedAt }, async ({ to, kind, id }) => {
        if (id.startsWith(accountId) && kind === 'invoice_unpaid') received.push(to)
        return 'sent'
      })
      await worker.run()
      await worker.close()
      expect(received).toHaveLength(2)
      expect(received).toContain(second.email)
    })

    on('are sent once by ten senders at the same time', async database => {
      const declined: Awaited<ReturnType<typeof invoiced>>[] = []
      for (let count = 0; count < 6; count++) declined.push(await invoiced(database))
      for (const { seen, issuedAt } of declined) await applyInvoice(database, seen('unpaid'), issuedAt)
      const at = start + cycleMs + settlementDelayMs + graceMs
      const sent: string[] = []
      const workers = Array.from({ length: 10 }, () =>
        sender(database, { at }, async ({ id }) => {
          await Promise.resolve()
          sent.push(id)
          return 'sent'
        }),
      )
      await Promise.all(workers.map(worker => worker.run()))
      await Promise.all(workers.map(worker => worker.close()))
      const own = sent.filter(id => declined.some(({ accountId }) => id.startsWith(accountId)))
      // The start of the grace period is not sent after its end.
      expect(own.length).toBe(2 * declined.length)
      expect(new Set(own).size).toBe(own.length)
    })

    on('survive a sender that is killed while it sends, under the same ID', async database => {
      const { accountId, issuedAt, seen } = await invoiced(database)
      await applyInvoice(database, seen('unpaid'), issuedAt)
      const tried: string[] = []
      const started = Promise.withResolvers<void>()
      const killed = sender(database, { at: issuedAt }, ({ id }) => {
        tried.push(id)
        started.resolve()
        return new Promise<Delivery>(() => {})
      })
      void killed.run()
      await started.promise
      // The other notice is free; the first sender keeps its own until its lease ends.
      expect(await sentAt(database, accountId, issuedAt + 60_000)).toEqual(['grace_began'])
      expect(await sentAt(database, accountId, issuedAt + 180_000)).toEqual(['invoice_unpaid'])
      expect(tried).toHaveLength(1)
    })

    on('are tried again while the mail server fails, and dropped when it refuses', async database => {
      const { accountId, issuedAt, seen } = await invoiced(database)
      await applyInvoice(database, seen('unpaid'), issuedAt)
      const clock = { at: issuedAt }
      const tried: string[] = []
      const answers: Record<string, Delivery> = { invoice_unpaid: 'failed', grace_began: 'refused' }
      const worker = sender(database, clock, async ({ id, kind }) => {
        if (id.startsWith(accountId)) tried.push(kind)
        return answers[kind] ?? 'sent'
      })
      await worker.run()
      await worker.run()
      clock.at += 10_000
      await worker.run()
      expect(tried).toEqual(['invoice_unpaid', 'grace_began', 'invoice_unpaid'])
      answers.invoice_unpaid = 'sent'
      clock.at += 60_000
      await worker.run()
      await worker.run()
      await worker.close()
      expect(tried).toHaveLength(4)
      const rows = await database.run(({ orm }) =>
        orm.select().from(noticeRows).where(eq(noticeRows.accountId, accountId)),
      )
      expect(Object.fromEntries(rows.map(({ kind, status }) => [kind, status]))).toEqual({
        invoice_unpaid: 'sent',
        grace_began: 'dropped',
        grace_ended: 'pending',
      })
    })
  })
}
