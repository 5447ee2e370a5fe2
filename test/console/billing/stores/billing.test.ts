/** Guarantees of billing on every Postgres, the embedded one and a real one: exact sums, single effects, one winner. */
import { describe, expect } from 'bun:test'
import { eq } from 'drizzle-orm'
import fc from 'fast-check'
import { changeBilling, findBilling, rollCycles, setSoftCap } from '../../../../src/console/billing/stores/billing.ts'
import {
  claimInvoice,
  closeCycle,
  findInvoice,
  listInvoices,
  spentInCycle,
} from '../../../../src/console/billing/stores/invoices.ts'
import { applyInvoice, takeEvent } from '../../../../src/console/billing/stores/payment-events.ts'
import { createKeyDirectory } from '../../../../src/console/keys/stores/keys.ts'
import {
  cycleMs,
  earlierCycleSuffix,
  type ProcessorInvoice,
  settlementDelayMs,
} from '../../../../src/core/billing/billing.ts'
import { plans } from '../../../../src/core/limits/plans.ts'
import type { UsageRecord } from '../../../../src/core/usage/usage-record.ts'
import type { Database } from '../../../../src/database/database.ts'
import { spentBefore, spentInPeriod, spentOnDays } from '../../../../src/database/repositories/budget-tracker.ts'
import { withAccountRls } from '../../../../src/database/statement.ts'
import { accounts, billingCycles, invoices, planChanges } from '../../../../src/database/tables.ts'
import { createShipper } from '../../../../src/ledger/shipper.ts'
import { newAccount, newKey, quiet } from '../../../database/database.contract.ts'
import { getOnDatabase } from '../../../database/on-database.ts'
import { toTexts, usageRecord } from '../../../database/support.ts'
import { testedDatabases } from '../../../database/tested-databases.ts'
import { eventually } from '../../../harness/eventually.ts'

let last = 0
const newId = (prefix: string) => `${prefix}_${Date.now().toString(36)}b${String(++last).padStart(6, '0')}`
const manual = () =>
  ({ id: newId('pay'), kind: 'manual', stripePaymentMethodId: null, brand: null, lastFour: null }) as const
const start = Date.UTC(2026, 0, 5, 9, 30, 15, 250)

const databases = testedDatabases()

/** Creates an account on plan `evaluation`. */
async function freeAccount(database: Database) {
  const owner = await newAccount(database)
  await database.run(({ orm }) =>
    orm.update(accounts).set({ plan: 'evaluation' }).where(eq(accounts.id, owner.accountId)),
  )
  return owner
}

async function upgraded(database: Database, at = start) {
  const owner = await freeAccount(database)
  const change = { event: 'upgrade', at, userId: owner.userId, newId, method: manual() } as const
  expect(await changeBilling(database, owner.accountId, change)).toBe('done')
  return owner
}

/** Ships usage like a gateway: rows and daily totals in one statement. */
async function ship(database: Database, records: readonly UsageRecord[]) {
  let waiting: readonly UsageRecord[] = records
  const journal = {
    backlog: () => waiting.length,
    aside: () => 0,
    onRecord() {},
    setAside: (record: UsageRecord) => {
      throw new Error(`refused: ${record.request_id}`)
    },
    take: () =>
      waiting.length === 0
        ? null
        : {
            texts: toTexts(waiting),
            release: () => {
              waiting = []
            },
          },
  }
  const shipper = createShipper({ journal, database, clock: { now: () => start }, log: quiet })
  expect(await shipper.drain(5000)).toBe(true)
  await shipper.close()
}

/** Processes everything that is due for all accounts of these tests. */
async function settle(database: Database, at: number) {
  while ((await rollCycles(database, at, newId)) > 0);
  while ((await closeCycle(database, at, newId)) !== null);
}

const models = ['openai/gpt-a', 'anthropic/claude-b', 'google/gemini-c'] as const
const used = fc.record({
  /** Around both ends of the cycle, and in between. */
  offset: fc.oneof(
    fc.integer({ min: -5, max: 5 }),
    fc.integer({ min: cycleMs - 5, max: cycleMs + 5 }),
    fc.integer({ min: -86_400_000, max: cycleMs + 86_400_000 }),
  ),
  model: fc.constantFrom(...models),
  billed: fc.nat(3_000_000_000),
  tokens: fc.nat(100_000),
})
type Used = typeof used extends fc.Arbitrary<infer T> ? T : never

function getRecord(accountId: string, { offset, model, billed, tokens }: Used): UsageRecord {
  const [provider = '', name = ''] = model.split('/')
  return usageRecord({
    request_id: newId('req'),
    account_id: accountId,
    at_ms: start + offset,
    provider,
    model: name,
    input_tokens: tokens,
    output_tokens: tokens % 997,
    billed_microcents: billed,
    reserved_microcents: billed,
  })
}

const inCycle = ({ offset }: Used) => offset >= 0 && offset < cycleMs
const getSum = (all: readonly { readonly billed: number }[]) => all.reduce((sum, item) => sum + item.billed, 0)

for (const [name, open] of databases) {
  const on = getOnDatabase(name, open, 60_000)

  describe(`${name} Postgres`, () => {
    on(
      'an invoice has a line per model and the exact sum of the ledger between its cycle’s two moments',
      async database => {
        await fc.assert(
          fc.asyncProperty(fc.array(used, { minLength: 1, maxLength: 40 }), async all => {
            const { accountId } = await upgraded(database)
            await ship(
              database,
              all.map(item => getRecord(accountId, item)),
            )
            const cycle = { startsAt: start, endsAt: start + cycleMs }
            expect(await spentInCycle(database, accountId, cycle)).toBe(getSum(all.filter(inCycle)))
            await settle(database, start + cycleMs + settlementDelayMs)
            const [invoice, ...others] = await listInvoices(database, accountId)
            expect(others).toEqual([])
            const found = await findInvoice(database, accountId, invoice?.invoice.id ?? '')
            for (const model of models) {
              const own = all.filter(item => inCycle(item) && item.model === model)
              const line = found?.lines.find(item => item.model === model)
              expect(line?.amountMicrocents ?? 0).toBe(getSum(own))
              expect(line?.requests ?? 0).toBe(own.length)
              expect(line?.inputTokens ?? 0).toBe(own.reduce((sum, item) => sum + item.tokens, 0))
            }
            expect(found?.invoice.totalMicrocents).toBe(getSum(all.filter(inCycle)))
            expect(found?.invoice.totalCents).toBe(Math.floor(getSum(all.filter(inCycle)) / 1_000_000))
          }),
          { numRuns: 8 },
        )
      },
    )

    on(
      'a cycle is closed once, by however many gateways; what arrives later is on the next invoice, once',
      async database => {
        const { accountId } = await upgraded(database)
        const record = (billed: number, offset = 1000) =>
          getRecord(accountId, { offset, model: 'openai/gpt-a', billed, tokens: 5 })
        await ship(database, [record(7_000_001)])
        const at = start + cycleMs + settlementDelayMs
        while ((await rollCycles(database, at, newId)) > 0);
        await eventually(async () => {
          await Promise.all(Array.from({ length: 6 }, () => closeCycle(database, at, newId)))
          return (await listInvoices(database, accountId)).length > 0
        }, 5000)
        await ship(database, [record(3_000_000), record(11, cycleMs + 5)])
        await settle(database, at + cycleMs)
        await settle(database, at + 2 * cycleMs)
        const found = await listInvoices(database, accountId)
        expect(found.map(({ invoice }) => invoice.totalMicrocents)).toEqual([0, 3_000_011, 7_000_001])
        const second = await findInvoice(database, accountId, found[1]?.invoice.id ?? '')
        expect(second?.lines.map(({ model, amountMicrocents }) => [model, amountMicrocents])).toEqual([
          [`openai/gpt-a${earlierCycleSuffix}`, 3_000_000],
          ['openai/gpt-a', 11],
        ])
      },
    )

    on('moved to `evaluation` by the operator, an account is billed once, for what it used before', async database => {
      const { accountId } = await upgraded(database)
      const record = (billed: number, offset: number) =>
        getRecord(accountId, { offset, model: 'openai/gpt-a', billed, tokens: 5 })
      const change = { userId: null, newId } as const
      const [left, back] = [3 * 86_400_000 + 7, 9 * 86_400_000]
      const leave = { ...change, event: 'downgrade_now', at: start + left } as const
      expect(await changeBilling(database, accountId, leave)).toBe('done')
      expect(await changeBilling(database, accountId, leave)).toBe('already_so')
      expect((await findBilling(database, accountId))?.account).toMatchObject({
        plan: 'evaluation',
        version: 2,
        cycleEndsAt: null,
        planAfterCycle: null,
      })
      await ship(database, [record(1_000_000, 5), record(20_000_000, left - 1), record(300_000_000, left)])
      await settle(database, start + cycleMs + settlementDelayMs)
      await settle(database, start + 4 * cycleMs)
      const totals = async () => (await listInvoices(database, accountId)).map(({ invoice }) => invoice.totalMicrocents)
      expect(await totals()).toEqual([21_000_000])

      const other = await upgraded(database)
      await changeBilling(database, other.accountId, leave)
      await changeBilling(database, other.accountId, {
        ...change,
        event: 'upgrade',
        at: start + back,
      })
      const own = (billed: number, offset: number) => ({ ...record(billed, offset), account_id: other.accountId })
      await ship(database, [own(1, left - 1), own(20, left), own(300, back), own(4000, cycleMs + 5)])
      await settle(database, start + back + cycleMs + settlementDelayMs)
      const found = await listInvoices(database, other.accountId)
      expect(found.map(({ invoice }) => invoice.totalMicrocents)).toEqual([4300, 1])
    })

    on('no invoice before its cycle has settled, and of another account’s none', async database => {
      const { accountId } = await upgraded(database)
      await settle(database, start + cycleMs + settlementDelayMs - 1)
      expect(await listInvoices(database, accountId)).toEqual([])
      await settle(database, start + cycleMs + settlementDelayMs)
      const [own] = await listInvoices(database, accountId)
      const stranger = await newAccount(database)
      expect(await findInvoice(database, stranger.accountId, own?.invoice.id ?? '')).toBeNull()
      expect(own?.invoice.status).toBe('paid')
    })

    on(
      'upgrade and downgrade at once: one wins, the other is a conflict, and charges begin once or not at all',
      async database => {
        const pairs = name === 'real' ? 60 : 20
        for (let done = 0; done < pairs; done += 20)
          await Promise.all(
            Array.from({ length: 20 }, async () => {
              // On the plan by an operator command, so that both are possible.
              const { accountId, userId } = await newAccount(database)
              const change = { at: start, userId, newId, version: 0 }
              await changeBilling(database, accountId, { ...change, event: 'method_added', method: manual() })
              const outcomes = await Promise.all(
                (['upgrade', 'downgrade'] as const).map(event =>
                  changeBilling(database, accountId, { ...change, event }),
                ),
              )
              expect(outcomes.toSorted()).toEqual(['conflict', 'done'])
              const [changes, cycles] = await database.run(({ orm }) =>
                Promise.all([
                  orm.select().from(planChanges).where(eq(planChanges.accountId, accountId)),
                  orm.select().from(billingCycles).where(eq(billingCycles.accountId, accountId)),
                ]),
              )
              expect(changes.map(({ version, toPlan }) => [version, toPlan])).toEqual([
                [1, outcomes[0] === 'done' ? 'usage' : 'evaluation'],
              ])
              expect(cycles.length).toBe(outcomes[0] === 'done' ? 1 : 0)
            }),
          )
      },
    )

    on('a version that is no longer the account’s is a conflict, whatever is asked', async database => {
      const { accountId, userId } = await upgraded(database)
      const stale = { at: start, userId, newId, version: 0 }
      expect(await changeBilling(database, accountId, { ...stale, event: 'downgrade' })).toBe('conflict')
      expect(await changeBilling(database, newId('acc'), { ...stale, event: 'downgrade' })).toBe('not_found')
    })

    on('a key’s account is known to owe, and its soft cap, within a second and without asking', async database => {
      const { accountId, userId } = await upgraded(database)
      const { key } = await newKey(database, { accountId, userId })
      const keys = createKeyDirectory({ database, clock: { now: () => start }, plans, random: () => 0.5 })
      const caller = () => keys.find(key) as { refusedFrom?: number; softCapMicrocents?: number }
      await keys.find(key)
      expect(caller()).not.toHaveProperty('refusedFrom')
      await setSoftCap(database, accountId, 5, newId)
      expect(await changeBilling(database, accountId, { event: 'method_removed', at: start, userId, newId })).toBe(
        'done',
      )
      await eventually(() => caller().refusedFrom === start + 3_600_000 && caller().softCapMicrocents === 5, 2500)
      await changeBilling(database, accountId, { event: 'method_added', at: start, userId, newId, method: manual() })
      await eventually(() => caller().refusedFrom === undefined, 1500)
      await keys.close()
    })

    on('spentOnDays and spentBefore: add up to what was billed since the start of a period', async database => {
      const { accountId } = await upgraded(database)
      const day = (at: number, billed: number) => ({
        ...getRecord(accountId, { offset: 0, model: 'openai/gpt-a', billed, tokens: 1 }),
        at_ms: at,
      })
      await ship(database, [
        day(Date.UTC(2025, 11, 31, 23, 59, 59, 999), 1),
        day(Date.UTC(2026, 0, 1), 10),
        day(start - 1, 100),
        day(start, 1_000),
        day(Date.UTC(2026, 0, 31, 23, 59, 59, 999), 10_000),
        day(Date.UTC(2026, 1, 1), 100_000),
      ])
      const january = { startsAt: Date.UTC(2026, 0), endsAt: Date.UTC(2026, 1) }
      const cycle = { startsAt: start, endsAt: start + cycleMs }
      await withAccountRls(database, accountId).sql(async step => {
        expect((await spentOnDays(step, accountId, january)).microcents).toBe(11_110)
        expect(await spentBefore(step, accountId, january.startsAt)).toBe(0)
        expect((await spentOnDays(step, accountId, cycle)).microcents).toBe(111_100)
        expect(await spentBefore(step, accountId, start)).toBe(100)
        expect(await spentInPeriod(step, accountId, cycle)).toBe(111_000)
      })
    })

    on(
      'W4 hundreds of events, tripled, shuffled and at once: one effect each, the same end in any order',
      async database => {
        const [accountCount, perAccount] = name === 'real' ? [20, 10] : [4, 10]
        const dues = await Promise.all(
          Array.from({ length: accountCount }, async () => {
            const { accountId } = await upgraded(database)
            await ship(database, [
              getRecord(accountId, { offset: 9, model: 'openai/gpt-a', billed: 5_000_000, tokens: 5 }),
            ])
            return accountId
          }),
        )
        await settle(database, start + cycleMs + settlementDelayMs)
        const seed = 20_260_405
        const random = generator(seed)
        const events = (
          await Promise.all(
            dues.map(async (accountId, index) => {
              const [found] = await listInvoices(database, accountId)
              const isPaid = index % 2 === 0
              return Array.from({ length: perAccount }, (_, nth) => ({
                accountId,
                event: { id: newId('evt'), type: 'invoice', objectId: 'in', occurredAt: start + nth },
                look: {
                  kind: 'invoice' as const,
                  seen: toProcessorInvoice(found?.invoice, isPaid && nth === 3 ? 'paid' : 'unpaid'),
                },
              }))
            }),
          )
        ).flat()
        const deliveries = shuffled([...events, ...events, ...events], random)
        const outcomes: string[] = []
        const lanes = Array.from({ length: 10 }, async (_, lane) => {
          for (let at = lane; at < deliveries.length; at += 10) {
            const delivery = deliveries[at]
            if (delivery !== undefined)
              outcomes.push((await takeEvent(database, delivery.event, delivery.look, start + cycleMs, newId)).outcome)
          }
        })
        await Promise.all(lanes)
        const count = (outcome: string) => outcomes.filter(text => text === outcome).length
        expect({ applied: count('applied'), repeated: count('repeated'), seed }).toEqual({
          applied: events.length,
          repeated: 2 * events.length,
          seed,
        })
        for (const [index, accountId] of dues.entries()) {
          const [found] = await listInvoices(database, accountId)
          const owner = await findBilling(database, accountId)
          expect(found?.invoice.status).toBe(index % 2 === 0 ? 'paid' : 'unpaid')
          expect(owner?.account.unpaidSince === null).toBe(index % 2 === 0)
        }
      },
    )

    on('W5 what another order, account or sum says has no effect, and is remembered as such', async database => {
      const { accountId } = await upgraded(database)
      await ship(database, [getRecord(accountId, { offset: 9, model: 'openai/gpt-a', billed: 5_000_000, tokens: 5 })])
      await settle(database, start + cycleMs + settlementDelayMs)
      const [found] = await listInvoices(database, accountId)
      const seen = toProcessorInvoice(found?.invoice, 'paid')
      for (const wrong of [
        { totalCents: 4 },
        { currency: 'eur' },
        { accountId: 'acc_other' },
        { customerId: 'cus_other' },
        { remainingCents: 1 },
      ])
        expect(await applyInvoice(database, { ...seen, ...wrong }, start)).toBe('mismatch')
      expect(await applyInvoice(database, { ...seen, invoiceId: 'inv_other' }, start)).toBe('ignored')
      expect((await listInvoices(database, accountId))[0]?.invoice.status).toBe('open')
      expect(await applyInvoice(database, seen, start)).toBe('applied')
      expect((await listInvoices(database, accountId))[0]?.invoice.status).toBe('paid')
    })

    on('an invoice is collected by one of many at once, and again when a method is added', async database => {
      await database.run(({ orm }) => orm.update(invoices).set({ status: 'void', paidAt: null }))
      const { accountId, userId } = await upgraded(database)
      await ship(database, [getRecord(accountId, { offset: 9, model: 'openai/gpt-a', billed: 5_000_000, tokens: 5 })])
      await settle(database, start + cycleMs + settlementDelayMs)
      const collected = start + cycleMs + settlementDelayMs
      const claims = await Promise.all(Array.from({ length: 8 }, () => claimInvoice(database, collected)))
      const [claim, ...others] = claims.filter(item => item !== null)
      expect(others).toEqual([])
      expect(claim).toMatchObject({ methodKind: 'manual', invoice: { accountId, totalCents: 5 }, lines: [{}] })
      await applyInvoice(database, toProcessorInvoice(claim?.invoice, 'unpaid'), start)
      expect(await claimInvoice(database, collected)).toBeNull()
      await changeBilling(database, accountId, { event: 'method_removed', at: start, userId, newId })
      await changeBilling(database, accountId, { event: 'method_added', at: start, userId, newId, method: manual() })
      expect((await claimInvoice(database, collected))?.invoice.accountId).toBe(accountId)
    })
  })
}

function toProcessorInvoice(
  invoice: { readonly id: string; readonly accountId: string; readonly totalCents: number } | undefined,
  status: ProcessorInvoice['status'],
): ProcessorInvoice {
  if (invoice === undefined) throw new Error('there is an invoice')
  const { id: invoiceId, accountId, totalCents } = invoice
  const remainingCents = status === 'paid' ? 0 : totalCents
  const whose = { processorId: null, invoiceId, accountId, customerId: null }
  return { ...whose, currency: 'usd', totalCents, remainingCents, status }
}

/** Mulberry32: the same order for the same seed. */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map(item => ({ item, by: random() }))
    .sort((item, other) => item.by - other.by)
    .map(({ item }) => item)
}
