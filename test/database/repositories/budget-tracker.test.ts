/** Soft caps at the ends of their periods on every Postgres: which usage counts, and from when. */
import { describe, expect } from 'bun:test'
import { cycleMs, settlementDelayMs } from '../../../src/core/billing/billing.ts'
import { type Caller, plans } from '../../../src/core/limits/plans.ts'
import type { Database } from '../../../src/database/database.ts'
import { createBudgetTracker } from '../../../src/database/repositories/budget-tracker.ts'
import { usageDaily, usageRecords } from '../../../src/database/tables.ts'
import { eventually } from '../../harness/eventually.ts'
import { newAccount } from '../database.contract.ts'
import { getOnDatabase } from '../on-database.ts'
import { testedDatabases } from '../tested-databases.ts'

const databases = testedDatabases()

const cap = 1_000_000
let used = 0

/** Writes one request to the ledger and its daily totals. */
async function use(
  database: Database,
  accountId: string,
  at: number,
  billedMicrocents: number,
  requestId = `req_budget_${++used}`,
) {
  const counts = { inputTokens: 1, cachedInputTokens: 0, outputTokens: 1, reasoningTokens: 0, billedMicrocents }
  const common = { accountId, keyId: requestId, model: 'gpt-a', ...counts }
  await database.run(({ orm }) =>
    orm.insert(usageRecords).values({
      ...common,
      requestId,
      at: new Date(at),
      provider: 'openai',
      routingMode: 'auto',
      streamed: false,
      status: 'completed',
      cacheWriteTokens: 0,
      estimated: false,
      reservedMicrocents: billedMicrocents,
      attempts: 1,
      latencyMs: 1,
    }),
  )
  const day = new Date(at).toISOString().slice(0, 10)
  await database.run(({ orm }) => orm.insert(usageDaily).values({ ...common, day, requests: 1, completed: 1 }))
}

/** Creates a tracker with its own clock and expects an account's share at a moment. */
async function shareAt(database: Database, caller: Caller, at: number, expected: number) {
  const book = createBudgetTracker(database, { now: () => at })
  await eventually(() => book.getShare(caller) === expected, 5_000)
  return book.findWarning(caller)
}

for (const [name, open] of databases) {
  const on = getOnDatabase(name, open, 60_000)

  describe(`soft cap on the ${name} database`, () => {
    on('counts a billing cycle from its first moment to its last, across the first of a month', async database => {
      const { accountId } = await newAccount(database)
      const upgrade = Date.UTC(2026, 0, 20, 9, 30, 15, 250)
      const end = upgrade + cycleMs
      const account = { accountId, keyId: 'key_1', plan: 'usage', limits: plans.usage } as const
      const caller: Caller = { ...account, softCapMicrocents: cap, cycleStartedAt: upgrade }
      await use(database, accountId, upgrade - 1, 900_000)
      await use(database, accountId, upgrade, 300_000)
      expect(await shareAt(database, caller, upgrade + 1_000, 0.3)).toBeNull()
      await use(database, accountId, end - 1, 550_000)
      expect(await shareAt(database, caller, Date.UTC(2026, 1, 1), 0.85)).toContain('for this billing cycle')
      expect(await shareAt(database, caller, end - 1, 0.85)).toContain('85% of the soft cap of 0.01 USD')
      await use(database, accountId, end, 100_000)
      expect(await shareAt(database, caller, end, 0.1)).toBeNull()
      expect(await shareAt(database, caller, end + cycleMs - 1, 0.1)).toBeNull()
    })

    on('counts the UTC calendar month of an account that is not billed', async database => {
      const { accountId } = await newAccount(database)
      const february = Date.UTC(2026, 1, 1)
      const account = { accountId, keyId: 'key_1', plan: 'evaluation', limits: plans.usage } as const
      const caller: Caller = { ...account, softCapMicrocents: cap }
      await use(database, accountId, Date.UTC(2026, 0, 1) - 1, 400_000)
      await use(database, accountId, Date.UTC(2026, 0, 1), 200_000)
      await use(database, accountId, february - 1, 700_000)
      expect(await shareAt(database, caller, february - 1, 0.9)).toContain('for this calendar month (UTC)')
      await use(database, accountId, february, 100_000)
      expect(await shareAt(database, caller, february, 0.1)).toBeNull()
    })

    on('counts own settlements at once, and once when the ledger contains them', async database => {
      const { accountId } = await newAccount(database)
      const start = Date.UTC(2026, 4, 1)
      const clock = { at: start + 10 * 86_400_000 }
      const book = createBudgetTracker(database, { now: () => clock.at })
      const account = { accountId, keyId: 'key_1', plan: 'evaluation', limits: plans.usage } as const
      const caller: Caller = { ...account, softCapMicrocents: cap }
      const settle = (requestId: string, billed: number, at = clock.at) =>
        book.settled({ account_id: accountId, request_id: requestId, at_ms: at, billed_microcents: billed })
      const follows = (expected: number) =>
        eventually(() => {
          clock.at += 5_000
          return book.getShare(caller) === expected
        }, 240_000)
      await use(database, accountId, clock.at, 300_000)
      await follows(0.3)
      settle(`req_own_${accountId}`, 500_000)
      settle(`req_twin_${accountId}`, 100_000)
      settle(`req_before_${accountId}`, 70_000, start - 1)
      expect(book.getShare(caller)).toBe(0.9)
      expect(book.findWarning(caller)).toContain('90%')
      // Another process adds 50,000; this process's requests are not in the ledger yet.
      await use(database, accountId, clock.at, 50_000)
      await follows(0.95)
      await use(database, accountId, clock.at, 500_000, `req_own_${accountId}`)
      await use(database, accountId, clock.at, 40_000)
      await follows(0.99)
      await use(database, accountId, clock.at, 100_000, `req_twin_${accountId}`)
      await use(database, accountId, clock.at, 5_000)
      await follows(0.995)
    })

    on('follows a running book over the end of a cycle', async database => {
      const { accountId } = await newAccount(database)
      const upgrade = Date.UTC(2026, 2, 10, 12)
      const clock = { at: upgrade + settlementDelayMs }
      const book = createBudgetTracker(database, { now: () => clock.at })
      const account = { accountId, keyId: 'key_1', plan: 'usage', limits: plans.usage } as const
      const caller: Caller = { ...account, softCapMicrocents: cap, cycleStartedAt: upgrade }
      const follows = (expected: number) =>
        eventually(() => {
          clock.at += 5_000
          return book.getShare(caller) === expected
        }, 240_000)
      await use(database, accountId, upgrade - 5, 50_000)
      await use(database, accountId, upgrade + 5, 820_000)
      await follows(0.82)
      clock.at = upgrade + cycleMs + settlementDelayMs
      await use(database, accountId, upgrade + cycleMs + 5, 1_000_000)
      await follows(1)
    })
  })
}
