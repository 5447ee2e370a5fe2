/** The ledger keeps the truest record, in whatever order the records of a request arrive. */
import { describe, expect } from 'bun:test'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import type { Database } from '../../src/database/database.ts'
import { audit } from '../../src/ledger/reconcile.ts'
import { createShipper } from '../../src/ledger/shipper.ts'
import { quiet } from './database.contract.ts'
import { getOnDatabase } from './on-database.ts'
import { usageRecord } from './support.ts'
import { testedDatabases } from './tested-databases.ts'

const databases = testedDatabases()
const noon = Date.UTC(2026, 4, 5, 12)
const beforeMidnight = Date.UTC(2026, 4, 5, 23, 59, 59, 999)

/** Ships batches one after another. */
async function ship(database: Database, batches: readonly (readonly UsageRecord[])[]): Promise<void> {
  const left = [...batches]
  const journal = {
    backlog: () => left.length,
    aside: () => 0,
    onRecord() {},
    setAside(record: UsageRecord) {
      throw new Error(`the ledger refuses ${record.request_id}`)
    },
    take: () => (left[0] === undefined ? null : { records: left[0], release: () => void left.shift() }),
  }
  const shipper = createShipper({ journal, database, clock: { now: () => noon }, log: quiet })
  expect(await shipper.drain(20_000)).toBe(true)
  await shipper.close()
}

const failed = { truth: 'checkpoint', status: 'failed', error_code: 'service_unavailable', estimated: true } as const
const records = (request_id: string, account_id: string, at_ms: number) => {
  const same = { request_id, account_id, at_ms, reserved_microcents: 900 }
  return {
    // It had no model yet, which is another row of the daily totals.
    early: usageRecord({ ...same, ...failed, provider: '', model: '', output_tokens: 0, billed_microcents: 0 }),
    late: usageRecord({ ...same, ...failed, output_tokens: 600, billed_microcents: 700 }),
    final: usageRecord({ ...same, output_tokens: 400, billed_microcents: 500, cached_input_tokens: 3 }),
  }
}

type Name = 'early' | 'late' | 'final'
const arrivals: readonly Name[] = ['early', 'late', 'final', 'final', 'late']

/** Returns all permutations. */
function permutations(of: readonly Name[]): Name[][] {
  if (of.length === 0) return [[]]
  const seen = new Set<Name>()
  return of.flatMap((name, index) => {
    if (seen.has(name)) return []
    seen.add(name)
    return permutations(of.filter((_, other) => other !== index)).map(rest => [name, ...rest])
  })
}

async function getRows(database: Database, accountId: string) {
  const ledger = await database.run(
    ({ sql }) => sql<{ status: string; truth: string; tokens: number; microcents: number; rows: number }[]>`
      select status, truth, (input_tokens + output_tokens)::int as tokens, billed_microcents::int as microcents,
        count(*)::int as rows
      from usage_records where account_id = ${accountId} group by 1, 2, 3, 4`,
  )
  const daily = await database.run(
    ({ sql }) => sql<{ model: string; requests: number; completed: number; failed: number; tokens: number }[]>`
      select model, requests::int, completed::int, failed::int, (input_tokens + output_tokens)::int as tokens,
        cached_input_tokens::int as cached, billed_microcents::int as microcents,
        (select sum(count) from unnest(latency) as count)::int as durations
      from usage_daily where account_id = ${accountId} order by model`,
  )
  return { ledger: ledger.map(row => ({ ...row })), daily: daily.map(row => ({ ...row })) }
}

const wholeScope = (accountId: string) => ({ from: '2026-05-01', to: '2026-05-31', accountId })

for (const [name, open] of databases) {
  const on = getOnDatabase(name, open, 60_000)
  describe(`ledger on the ${name} database`, () => {
    for (const [when, at] of Object.entries({ noon, 'the end of a day': beforeMidnight }))
      on(`ledger: holds one final row and one sum when records of ${when} arrive in any order`, async database => {
        const orders = permutations(arrivals)
        expect(orders).toHaveLength(30)
        for (const [way, accountId] of [
          ['one by one', `acc_${name}_single_${at}`],
          ['in one batch', `acc_${name}_batch_${at}`],
        ] as const) {
          const all = orders.map((order, index) => {
            const own = records(`${accountId}_${index}`, accountId, at)
            return order.map(item => own[item])
          })
          const batches =
            way === 'one by one' ? arrivals.map((_, turn) => all.flatMap(own => own.slice(turn, turn + 1))) : all
          await ship(database, batches)
          const expected = {
            ledger: [{ status: 'completed', truth: 'final', tokens: 410, microcents: 500, rows: 30 }],
            daily: [
              {
                model: 'openai/gpt-test',
                requests: 30,
                completed: 30,
                failed: 0,
                tokens: 30 * 410,
                cached: 90,
                microcents: 30 * 500,
                durations: 30,
              },
            ],
          }
          expect([way, await getRows(database, accountId)]).toEqual([way, expected])
          // Repeating everything changes nothing.
          await ship(database, batches)
          expect([way, await getRows(database, accountId)]).toEqual([way, expected])
          expect(await audit(database, [], wholeScope(accountId))).toMatchObject({ isWhole: true, requests: 30 })
        }
      })

    on('ledger: holds the later checkpoint when the end never arrives', async database => {
      const accountId = `acc_${name}_cut`
      const [item, other] = [records(`${accountId}_1`, accountId, noon), records(`${accountId}_2`, accountId, noon)]
      await ship(database, [[item.early], [item.late], [other.late], [other.early]])
      const { ledger, daily } = await getRows(database, accountId)
      expect(ledger).toEqual([{ status: 'failed', truth: 'checkpoint', tokens: 610, microcents: 700, rows: 2 }])
      expect(daily).toMatchObject([
        { model: 'openai/gpt-test', requests: 2, completed: 0, failed: 2, microcents: 1400 },
      ])
    })

    on('ledger: shows which checkpoints were replaced', async database => {
      const accountId = `acc_${name}_told`
      const own = records(`${accountId}_1`, accountId, noon)
      const other = records(`${accountId}_2`, accountId, noon)
      await ship(database, [[own.late], [other.final], [own.final], [own.final], [other.late]])
      expect(await audit(database, [], wholeScope(accountId))).toMatchObject({
        isWhole: true,
        replaced: { requests: 1, tokens: -200, billed_microcents: -200 },
        replacements: [
          {
            request_id: `${accountId}_1`,
            account_id: accountId,
            day: '2026-05-05',
            before: { status: 'failed', tokens: 610, microcents: 700 },
            after: { status: 'completed', tokens: 410, microcents: 500 },
          },
        ],
      })
    })

    on(
      'ledger: adds up when gateways ship the ends and the checkpoints of the same requests at once',
      async database => {
        const accountId = `acc_${name}_race`
        const all = Array.from({ length: 400 }, (_, index) => records(`${accountId}_${index}`, accountId, noon))
        const inParts = (of: Name, by: number) =>
          Array.from({ length: 400 / by }, (_, part) => all.slice(part * by, (part + 1) * by).map(own => own[of]))
        await Promise.all([
          ship(database, inParts('early', 50)),
          ship(database, inParts('late', 25)),
          ship(database, inParts('final', 40)),
          ship(database, inParts('final', 100).reverse()),
        ])
        const { ledger, daily } = await getRows(database, accountId)
        expect(ledger).toEqual([{ status: 'completed', truth: 'final', tokens: 410, microcents: 500, rows: 400 }])
        expect(daily).toMatchObject([{ requests: 400, completed: 400, failed: 0, tokens: 400 * 410, durations: 400 }])
        expect(await audit(database, [], wholeScope(accountId))).toMatchObject({ isWhole: true, requests: 400 })
      },
    )

    on(
      'M3: lets a checkpoint grow in truth and changes nothing else, for the owner of the tables too',
      async database => {
        const accountId = `acc_${name}_stands`
        const [cut, ended] = [records(`${accountId}_1`, accountId, noon), records(`${accountId}_2`, accountId, noon)]
        await ship(database, [[cut.late, ended.late], [ended.final]])
        const [open, final] = [`${accountId}_1`, `${accountId}_2`]
        const { run } = database
        for (const tampering of [
          () => run(({ sql }) => sql`update usage_records set billed_microcents = 900 where request_id = ${final}`),
          () =>
            run(
              ({ sql }) =>
                sql`update usage_records set truth = 'checkpoint', status = 'failed' where request_id = ${final}`,
            ),
          () => run(({ sql }) => sql`update usage_records set billed_microcents = 1 where request_id = ${open}`),
          () =>
            run(
              ({ sql }) => sql`update usage_records set truth = 'final', key_id = 'key_2' where request_id = ${open}`,
            ),
          () => run(({ sql }) => sql`delete from usage_records where request_id = ${open}`),
          () => run(({ sql }) => sql`update usage_replaced set account_id = 'acc_other' where request_id = ${final}`),
          () => run(({ sql }) => sql`delete from usage_replaced where request_id = ${final}`),
          () => run(({ sql }) => sql`truncate usage_replaced`),
        ])
          await expect(tampering()).rejects.toThrow('append-only')
      },
    )
  })
}
