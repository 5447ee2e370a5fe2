/** Breakdowns of invoices: each dimension adds up to the invoice, whatever was used and however late it arrives. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import fc from 'fast-check'
import { type BreakdownLine, breakdownDimensions, toBreakdown } from '../../../../src/console/billing/schemas.ts'
import { changeBilling, rollCycles } from '../../../../src/console/billing/stores/billing.ts'
import { breakDownInvoice } from '../../../../src/console/billing/stores/invoice-breakdown.ts'
import { closeCycle, findInvoice, listInvoices } from '../../../../src/console/billing/stores/invoices.ts'
import { cycleMs, settlementDelayMs } from '../../../../src/core/billing/billing.ts'
import { chatDialects } from '../../../../src/core/chat/chat.ts'
import type { UsageRecord } from '../../../../src/core/usage/usage-record.ts'
import type { Database } from '../../../../src/database/database.ts'
import { accounts } from '../../../../src/database/tables.ts'
import { createShipper } from '../../../../src/ledger/shipper.ts'
import { quiet } from '../../../database/database.contract.ts'
import { newTeam } from '../../../database/ledger-rows.ts'
import { getOnDatabase } from '../../../database/on-database.ts'
import { toTexts, usageRecord } from '../../../database/support.ts'
import { testedDatabases } from '../../../database/tested-databases.ts'

const databases = testedDatabases()
let last = 0
const newId = (prefix: string) => `${prefix}_${Date.now().toString(36)}d${++last}`
const start = Date.UTC(2026, 0, 5, 9, 30, 15, 250)

/** Creates an account on plan `usage` with two members and four keys; the second key replaced the first one. */
async function newBilledTeam(database: Database) {
  const team = await newTeam(database)
  const [first, second] = team.ownerKeys
  await database.run(({ sql }) => sql`update api_keys set line_id = ${first} where id = ${second}`)
  await database.run(({ orm }) =>
    orm.update(accounts).set({ plan: 'evaluation' }).where(eq(accounts.id, team.accountId)),
  )
  const method = { id: newId('pay'), kind: 'manual', stripePaymentMethodId: null, brand: null, lastFour: null } as const
  const change = { event: 'upgrade', at: start, userId: team.ownerId, newId, method } as const
  expect(await changeBilling(database, team.accountId, change)).toBe('done')
  return { ...team, keys: [...team.ownerKeys, ...team.memberKeys] }
}
type Team = Awaited<ReturnType<typeof newBilledTeam>>

async function ship(database: Database, records: readonly UsageRecord[]) {
  let waiting = records
  const release = () => {
    waiting = []
  }
  const journal = {
    backlog: () => waiting.length,
    aside: () => 0,
    onRecord() {},
    setAside: ({ request_id }: UsageRecord) => {
      throw new Error(`rejected: ${request_id}`)
    },
    take: () => (waiting.length === 0 ? null : { texts: toTexts(waiting), release }),
  }
  const shipper = createShipper({ journal, database, clock: { now: () => start }, log: quiet })
  expect(await shipper.drain(5000)).toBe(true)
  await shipper.close()
}

async function settle(database: Database, at: number) {
  while ((await rollCycles(database, at, newId)) > 0);
  while ((await closeCycle(database, at, newId)) !== null);
}

const used = fc.record({
  offset: fc.oneof(
    fc.integer({ min: -5, max: 5 }),
    fc.integer({ min: cycleMs - 5, max: cycleMs + 5 }),
    fc.integer({ min: -86_400_000, max: cycleMs + 86_400_000 }),
  ),
  key: fc.nat(3),
  /** Empty: no model served. */
  model: fc.constantFrom('gpt-a', 'gpt-b', ''),
  dialect: fc.constantFrom(...chatDialects),
  team: fc.option(fc.constantFrom('search', 'ads'), { nil: undefined }),
  env: fc.option(fc.constantFrom('prod', 'a=b'), { nil: undefined }),
  billed: fc.oneof(fc.constant(0), fc.nat(3_000_000_000)),
  tokens: fc.nat(100_000),
})
type Used = typeof used extends fc.Arbitrary<infer T> ? T : never

function getTags({ team, env }: Used) {
  const tags = { ...(team === undefined ? {} : { team }), ...(env === undefined ? {} : { env }) }
  return Object.keys(tags).length === 0 ? {} : { tags }
}

function getRecord({ accountId, keys }: Team, item: Used): UsageRecord {
  return usageRecord({
    request_id: newId('req'),
    account_id: accountId,
    key_id: keys[item.key] ?? '',
    at_ms: start + item.offset,
    provider: item.model === '' ? '' : 'openai',
    model: item.model,
    status: item.model === '' ? 'failed' : 'completed',
    dialect: item.dialect,
    ...getTags(item),
    input_tokens: item.tokens,
    output_tokens: item.tokens % 997,
    billed_microcents: item.billed,
    reserved_microcents: item.billed,
  })
}

const inCycle = ({ offset }: Used) => offset >= 0 && offset < cycleMs
const questions = [
  ...breakdownDimensions.filter(by => by !== 'tag').map(by => ({ by, tagName: null })),
  ...['team', 'env', 'unused'].map(tagName => ({ by: 'tag', tagName }) as const),
]
const fields = ['requests', 'inputTokens', 'cachedInputTokens', 'outputTokens', 'amountMicrocents'] as const
const getSums = (lines: readonly Pick<BreakdownLine, (typeof fields)[number]>[]) =>
  fields.map(field => lines.reduce((sum, line) => sum + line[field], 0))

/** Returns the amount of each value, computed from the records. */
function expected(
  { keys, ownerId, memberId }: Team,
  all: readonly Used[],
  { by, tagName }: (typeof questions)[number],
) {
  const findUnit = (item: Used) => {
    if (by === 'key') return keys[item.key === 1 ? 0 : item.key]
    if (by === 'member') return item.key < 2 ? ownerId : memberId
    if (by === 'dialect') return item.dialect
    if (by === 'model') return item.model === '' ? undefined : `openai/${item.model}`
    const value = tagName === 'team' ? item.team : tagName === 'env' ? item.env : undefined
    return value === undefined ? undefined : `${tagName}=${value}`
  }
  const amounts = new Map<string | null, number>()
  for (const item of all.filter(inCycle)) {
    const unit = findUnit(item) ?? null
    amounts.set(unit, (amounts.get(unit) ?? 0) + item.billed)
  }
  return new Map([...amounts].filter(([, amount]) => amount > 0))
}

async function breakDown(database: Database, { accountId }: Team, question: (typeof questions)[number]) {
  const [newest] = await listInvoices(database, accountId)
  const invoiceId = newest?.invoice.id ?? ''
  const invoice = await findInvoice(database, accountId, invoiceId)
  const lines = (await breakDownInvoice(database, { accountId, invoiceId, ...question })) ?? []
  expect([question, ...getSums(lines)]).toEqual([question, ...getSums(invoice?.lines ?? [])])
  expect(getSums(lines).at(-1)).toBe(invoice?.invoice.totalMicrocents)
  return lines
}

for (const [name, open] of databases) {
  const on = getOnDatabase(name, open, 60_000)

  describe(`${name} Postgres`, () => {
    on('Invoice breakdown: adds up to the invoice by every dimension', async database => {
      await fc.assert(
        fc.asyncProperty(fc.array(used, { maxLength: 30 }), async all => {
          const team = await newBilledTeam(database)
          await ship(
            database,
            all.map(item => getRecord(team, item)),
          )
          await settle(database, start + cycleMs + settlementDelayMs)
          for (const question of questions) {
            const lines = await breakDown(database, team, question)
            const paid = lines.filter(line => line.amountMicrocents !== 0)
            expect(new Map(paid.map(line => [line.id, line.amountMicrocents]))).toEqual(expected(team, all, question))
            expect(lines.filter(({ kind }) => kind === 'correction')).toEqual([])
          }
        }),
        { numRuns: 6 },
      )
    })

    on('Invoice breakdown: has late usage as a correction, on this invoice and the next', async database => {
      const team = await newBilledTeam(database)
      const item = { key: 2, model: 'gpt-a', dialect: 'native', team: 'ads', env: undefined, tokens: 5 } as const
      await ship(database, [getRecord(team, { ...item, offset: 10, billed: 700 })])
      await settle(database, start + cycleMs + settlementDelayMs)
      await ship(database, [
        getRecord(team, { ...item, offset: 20, billed: 30 }),
        getRecord(team, { ...item, offset: cycleMs + 5, billed: 2 }),
      ])
      const shown = async () =>
        (await breakDown(database, team, { by: 'tag', tagName: 'team' })).map(line => [
          line.kind,
          line.id,
          line.amountMicrocents,
        ])
      expect(await shown()).toEqual([
        ['usage', 'team=ads', 730],
        ['correction', null, -30],
      ])
      await settle(database, start + 2 * cycleMs + settlementDelayMs)
      expect(await shown()).toEqual([
        ['usage', 'team=ads', 2],
        ['correction', null, 30],
      ])
      for (const question of questions) await breakDown(database, team, question)
    })

    on(
      'Invoice breakdown: sums the values beyond the most expensive 1,000; null for another account',
      async database => {
        const team = await newBilledTeam(database)
        const records = Array.from({ length: 1_003 }, (_, index) => ({
          ...getRecord(team, { ...plain, offset: 90_000_000, billed: index + 1 }),
          tags: { session: `s${index}` },
        }))
        await ship(database, [...records, getRecord(team, { ...plain, offset: 10, billed: 9 })])
        await settle(database, start + cycleMs + settlementDelayMs)
        const [newest] = await listInvoices(database, team.accountId)
        const question = { by: 'tag', tagName: 'session', invoiceId: newest?.invoice.id ?? '' } as const
        const lines = (await breakDownInvoice(database, { accountId: team.accountId, ...question })) ?? []
        expect(lines).toHaveLength(1_002)
        expect(lines.slice(-2)).toMatchObject([
          { kind: 'others', requests: 3, amountMicrocents: 6 },
          { kind: 'untagged', requests: 1, amountMicrocents: 9 },
        ])
        expect(getSums(lines).at(-1)).toBe(newest?.invoice.totalMicrocents)
        const other = await newTeam(database)
        expect(await breakDownInvoice(database, { accountId: other.accountId, ...question })).toBeNull()
      },
    )
  })
}

const plain = { key: 0, model: 'gpt-a', dialect: 'native', team: undefined, env: undefined, tokens: 1 } as const

test('Invoice breakdown: needs no correction when usage and invoice agree in every sum', () => {
  const sums = { requests: 1, inputTokens: 2, cachedInputTokens: 0, outputTokens: 3, reasoningTokens: 0 }
  const line = { kind: 'usage', id: 'key_1', name: null, ...sums, amountMicrocents: 7 } as const
  expect(toBreakdown([line], [{ ...sums, amountMicrocents: 7 }])).toEqual([line])
  expect(toBreakdown([line], [{ ...sums, requests: 2, amountMicrocents: 7 }]).at(-1)).toMatchObject({
    kind: 'correction',
    requests: 1,
    amountMicrocents: 0,
  })
})
