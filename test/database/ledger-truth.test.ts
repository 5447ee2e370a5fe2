/** The ledger keeps the truest record, in whatever order the records of a request arrive. */
import { describe, expect } from 'bun:test'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import type { Database } from '../../src/database/database.ts'
import { getStatements } from '../../src/database/transact.ts'
import { audit } from '../../src/ledger/reconcile.ts'
import { createShipper, storeRecords } from '../../src/ledger/shipper.ts'
import { run } from '../../src/ledger/store-usage.ts'
import { quiet } from './database.contract.ts'
import { getOnDatabase } from './on-database.ts'
import { toTexts, usageRecord } from './support.ts'
import { testedDatabases } from './tested-databases.ts'

const databases = testedDatabases()
const noon = Date.UTC(2026, 4, 5, 12)
const beforeMidnight = Date.UTC(2026, 4, 5, 23, 59, 59, 999)

/** Ships batches one after another. Returns the records that were set aside. */
async function ship(database: Database, batches: readonly (readonly UsageRecord[])[]): Promise<UsageRecord[]> {
  const left = [...batches]
  const refused: UsageRecord[] = []
  const journal = {
    backlog: () => left.length,
    aside: () => 0,
    onRecord() {},
    setAside: (record: UsageRecord) => void refused.push(record),
    take: () => (left[0] === undefined ? null : { texts: toTexts(left[0]), release: () => void left.shift() }),
  }
  const shipper = createShipper({ journal, database, clock: { now: () => noon }, log: quiet })
  expect(await shipper.drain(20_000)).toBe(true)
  await shipper.close()
  return refused
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

const pieces = [
  '\\',
  '\\N',
  '\\.',
  '\n\\.\n',
  '\t',
  '\r\n',
  '"',
  ',',
  '{a,"b"}',
  '}',
  "'",
  '$1',
  'é',
  '🦊',
  '\ufffd',
  '\b',
  '\u2028',
  'x=y',
  ' ',
] as const
/** Returns records of an account, alike for each call, with texts that formats of Postgres must escape. */
function wildRecords(accountId: string, count: number): UsageRecord[] {
  let seed = 20260505
  const draw = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  const text = () => Array.from({ length: draw(5) }, () => pieces[draw(pieces.length)]).join('')
  const maybe = <T>(make: () => T) => (draw(3) === 0 ? null : make())
  const labels = (): Record<string, string> =>
    Object.fromEntries(Array.from({ length: draw(4) }, () => [`k${draw(3)}${text()}`, text()]))
  return Array.from({ length: count }, (_, index) => {
    const completed = draw(3) > 0
    const upstream = maybe(text)
    const tags = maybe(labels)
    const microcents = draw(90)
    return usageRecord({
      request_id: `${accountId}_${index}`,
      account_id: accountId,
      key_id: `key_${draw(3)}${text()}`,
      at_ms: noon + draw(5) * 3_600_000 - draw(3) * 86_400_000 + draw(1000),
      provider: `p${draw(2)}`,
      model: draw(4) === 0 ? '' : `m${draw(2)}${text()}`,
      requested_model: text(),
      strategy: maybe(text),
      query_type: maybe(() => `q${draw(2)}${text()}`),
      status: completed ? 'completed' : ((['failed', 'client_closed', 'blocked'] as const)[draw(3)] ?? 'failed'),
      error_code: maybe(text),
      finish_reason: maybe(text),
      billed_microcents: microcents,
      shortfall_microcents: draw(2) * draw(9),
      search_microcents: draw(microcents + 1),
      latency_ms: draw(2) * draw(900_000),
      first_token_ms: maybe(() => draw(20_000)),
      tried: Array.from({ length: draw(3) }, () => [text(), 'served', draw(9), draw(9)] as const).map(
        ([a, b, c, d]) => [a, b, c, d],
      ),
      metadata: maybe(labels),
      ...(upstream === null ? {} : { upstream_id: upstream, trace: { c: [], p: text() } }),
      ...(tags === null ? {} : { tags }),
      learning: maybe(() => ({
        quality: draw(10_001) / 10_000,
        epoch: maybe(() => draw(2)),
        influenced: draw(2) === 0,
        choice_probability: maybe(() => draw(11) / 10),
        enhanced: draw(2) === 0,
        repeat_of: maybe(() => `${accountId}_${draw(count)}`),
      })),
    })
  })
}

/** Returns all that the ledger has of an account, without its ID. */
async function getAll(database: Database, accountId: string) {
  const texts = await database.run(
    ({ sql }) => sql<{ line: string }[]>`
      select replace(line::text, ${accountId}, 'acc') as line from (
        select to_jsonb(usage_records) as line from usage_records where account_id = ${accountId}
        union all select to_jsonb(usage_daily) from usage_daily where account_id = ${accountId}
        union all select to_jsonb(usage_tags_daily) from usage_tags_daily where account_id = ${accountId}
        union all select to_jsonb(learning_state) from learning_state where account_id = ${accountId}
      ) as lines order by 1`,
  )
  return texts.map(({ line }) => line)
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

    on('ledger: has the same rows, sums and learning by COPY as by comparing rows', async database => {
      const [copied, compared] = [`acc_${name}_copied`, `acc_${name}_compared`]
      let transactions = 0
      const transact: Database['transact'] = (...words) => {
        transactions++
        return database.transact(...words)
      }
      const input = JSON.stringify({ records: wildRecords(compared, 500), isNew: false })
      await storeRecords({ ...database, transact }, toTexts(wildRecords(copied, 500)))
      await database.run(({ sql }) => sql.begin(step => run(getStatements(step), input)), 60_000)
      // A second transaction would have compared them.
      expect(transactions).toBe(1)
      const all = await getAll(database, copied)
      expect(all.length).toBeGreaterThan(600)
      expect(all).toEqual(await getAll(database, compared))
      for (const accountId of [copied, compared])
        expect(await audit(database, [], { ...wholeScope(accountId) })).toMatchObject({ isWhole: true, requests: 500 })
      // Its outcome was unknown, and two thirds come again with others.
      await storeRecords(database, toTexts(wildRecords(copied, 500).slice(0, 300)))
      expect(await getAll(database, copied)).toEqual(all)
    })

    on('ledger: sets only the row aside that Postgres refuses, of a batch of 500', async database => {
      const accountId = `acc_${name}_refused`
      const batch = Array.from({ length: 500 }, (_, index) => records(`${accountId}_${index}`, accountId, noon).final)
      for (const [wrong, index] of [
        [{ error_code: 'a\0b' }, 7],
        [{ billed_microcents: -1 }, 250],
        [{ metadata: { a: '\ud800' } }, 499],
      ] as const)
        Object.assign(batch[index] ?? {}, wrong)
      const aside = await ship(database, [batch])
      expect(aside.map(({ request_id }) => request_id)).toEqual([7, 250, 499].map(index => `${accountId}_${index}`))
      expect((await getRows(database, accountId)).daily).toMatchObject([{ requests: 497, microcents: 497 * 500 }])
      expect(await audit(database, [], wholeScope(accountId))).toMatchObject({ isWhole: true, requests: 497 })
    })

    on('ledger: has usage that learning refuses', async database => {
      const accountId = `acc_${name}_unlearned`
      const learning = {
        quality: 1,
        epoch: 0,
        influenced: false,
        choice_probability: 1,
        enhanced: false,
        repeat_of: null,
      }
      const batch = Array.from({ length: 4 }, (_, index) => ({
        ...records(`${accountId}_${index}`, accountId, noon).final,
        learning: index === 2 ? { ...learning, quality: 2 } : learning,
      }))
      expect(await ship(database, [batch])).toEqual([])
      expect((await getRows(database, accountId)).daily).toMatchObject([{ requests: 4, microcents: 4 * 500 }])
      const [cell] = await database.run(
        ({ sql }) => sql`select requests from learning_state where account_id = ${accountId}`,
      )
      expect(cell).toEqual({ requests: 3 })
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
