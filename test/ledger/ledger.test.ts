import { describe, expect } from 'bun:test'
import { projectTagName } from '../../src/core/request/tags.ts'
import { type Database, openDatabase } from '../../src/database/database.ts'
import { exportRequests, readReasoning, readRequests } from '../../src/ledger/ledger.ts'
import type { LoggedRequest, LogPage, LogPosition, RequestFilters } from '../../src/ledger/request-filters.ts'
import { readUsage } from '../../src/ledger/usage-totals.ts'
import { generateUsage, newTeam, tampered } from '../database/ledger-rows.ts'
import { getOnDatabase } from '../database/on-database.ts'
import { testedDatabases } from '../database/tested-databases.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'

const databases = testedDatabases()

const none: RequestFilters = {
  from: null,
  to: null,
  keyId: null,
  memberId: null,
  provider: null,
  model: null,
  status: null,
  errorCode: null,
  dialect: null,
  minimumLatencyMs: null,
  maximumLatencyMs: null,
  routingMode: null,
  streamed: null,
  unpriced: null,
  queryType: null,
  metadata: null,
  tag: null,
  projectId: null,
}
const start = Date.UTC(2026, 4, 5, 12)
const hour = 3_600_000

/** Reads all pages and returns the billed amounts, by which `generateUsage` numbers the requests. */
async function walk(database: Database, scope: Parameters<typeof readRequests>[1], filters: object, limit: number) {
  const billed: number[] = []
  let before: LogPosition | null = null
  for (let pages = 0; pages < 10_000; pages++) {
    const page = await readRequests(database, scope, { ...none, ...filters }, { before, limit })
    expect(page.requests.length).toBeLessThanOrEqual(limit)
    billed.push(...page.requests.map(row => row.billed_microcents))
    if (page.next === null) return billed
    before = page.next
  }
  throw new Error('no end')
}

const numbers = (count: number, keep: (n: number) => boolean) =>
  Array.from({ length: count }, (_, index) => count - index).filter(keep)

for (const [name, open] of databases) {
  const onDatabase = getOnDatabase(name, open, 120_000)

  describe(`${name} Postgres`, () => {
    onDatabase('pages go newest first to the end, each request once, whatever the page size', async database => {
      const team = await newTeam(database)
      // All within one millisecond: a cursor must distinguish them.
      await generateUsage(database, { ...team, keyIds: team.ownerKeys, count: 40, start, stepMs: 0 })
      const scope = { accountId: team.accountId, userId: null }
      for (const limit of [1, 7, 39, 40, 41]) {
        const billed = await walk(database, scope, {}, limit)
        expect(billed.toSorted((value, other) => value - other)).toEqual(numbers(40, () => true).toReversed())
      }
    })

    onDatabase('a request is told as it was recorded, without account and reservation', async database => {
      const team = await newTeam(database)
      await generateUsage(database, { ...team, keyIds: [team.ownerKeys[1]], count: 10, start, stepMs: 1 })
      const { requests } = await readRequests(database, { accountId: team.accountId, userId: null }, none, {
        before: null,
        limit: 1,
      })
      expect(requests[0]).toMatchObject({
        at_micros: (start + 9) * 1000,
        key_name: '=cmd()',
        provider: 'openai',
        model: 'model-10',
        routing_mode: 'auto',
        streamed: false,
        status: 'completed',
        input_tokens: 100,
        billed_microcents: 10,
        first_token_ms: 300,
        metadata: { team: 'search' },
        tried: [['openai/model-10', 'served', 2, 298]],
      })
      expect(Object.keys(requests[0] ?? {})).not.toContain('account_id')
      expect(Object.keys(requests[0] ?? {})).not.toContain('reserved_microcents')
    })

    onDatabase('every filter, alone and together, finds exactly what it says, across pages', async database => {
      const team = await newTeam(database)
      const keyIds = [...team.ownerKeys, ...team.memberKeys]
      await generateUsage(database, { ...team, keyIds, count: 1200, start, stepMs: hour })
      const scope = { accountId: team.accountId, userId: null }
      const cases: readonly [Partial<RequestFilters>, (n: number) => boolean][] = [
        [{ model: 'model-7' }, n => n % 20 === 7],
        [{ provider: 'openai' }, n => n % 2 === 0],
        [{ keyId: team.memberKeys[0] }, n => n % 4 === 2],
        [{ status: 'failed' }, n => n % 500 === 0],
        [{ status: 'completed' }, n => n % 500 !== 0],
        [{ status: 'blocked' }, () => false],
        [{ routingMode: 'manual' }, n => n % 2 === 1],
        [{ streamed: true, routingMode: 'auto' }, n => n % 6 === 0],
        [{ metadata: { team: 'search' } }, n => n % 10 === 0],
        [{ metadata: { team: 'search', other: 'x' } }, () => false],
        [{ from: start + 10 * hour, to: start + 20 * hour }, n => n > 10 && n <= 20],
        [
          { from: start + 10 * hour, to: start + 200 * hour, provider: 'openai' },
          n => n > 10 && n <= 200 && n % 2 === 0,
        ],
        [{ keyId: team.ownerKeys[0], status: 'failed', from: start }, n => n % 500 === 0 && n % 4 === 0],
        [{ keyId: 'key_of_nobody' }, () => false],
      ]
      for (const [filters, keep] of cases) expect(await walk(database, scope, filters, 33)).toEqual(numbers(1200, keep))
    })

    onDatabase(
      'A2 a member’s scope holds their own keys’ requests alone, another account’s holds none',
      async database => {
        const team = await newTeam(database)
        const stranger = await newTeam(database)
        const keyIds = [...team.ownerKeys, ...team.memberKeys]
        await generateUsage(database, { ...team, keyIds, count: 400, start, stepMs: hour })
        const member = { accountId: team.accountId, userId: team.memberId }
        const own = (n: number) => n % 4 >= 2
        expect(await walk(database, member, {}, 33)).toEqual(numbers(400, own))
        expect(await walk(database, member, { model: 'model-7' }, 3)).toEqual(numbers(400, n => own(n) && n % 20 === 7))
        expect(await walk(database, member, { keyId: team.ownerKeys[0] }, 33)).toEqual([])
        const whole = { accountId: team.accountId, userId: null }
        const ofMember = { memberId: team.memberId }
        expect(await walk(database, whole, ofMember, 33)).toEqual(numbers(400, own))
        expect(await walk(database, whole, { ...ofMember, model: 'model-7' }, 3)).toEqual(
          numbers(400, n => own(n) && n % 20 === 7),
        )
        expect(await walk(database, member, { memberId: team.ownerId }, 33)).toEqual([])
        const foreign = { accountId: stranger.accountId, userId: null }
        expect(await walk(database, foreign, { keyId: team.ownerKeys[0] }, 33)).toEqual([])
        expect(await walk(database, { accountId: stranger.accountId, userId: team.memberId }, {}, 33)).toEqual([])
        const period = { from: '2026-05-01', to: '2026-12-31', groupBy: 'key', splitBy: null } as const
        const sums = await readUsage(database, member, period)
        expect(sums.groups.map(group => group.unit).toSorted()).toEqual(team.memberKeys.toSorted())
        expect((await readUsage(database, foreign, period)).total.requests).toBe(0)
      },
    )

    onDatabase(
      'reasoning lengths come from completed outputs by model and effort, of a bounded number',
      async database => {
        const team = await newTeam(database)
        const generated = { ...team, keyIds: team.ownerKeys, count: 1_000, start: Date.now() - hour, stepMs: 1000 }
        await generateUsage(database, generated)
        await tampered(
          database,
          sql => sql`
        update usage_records set provider = 'x', model = 'm' || billed_microcents % 2, trace = '{"e":"low"}',
          reasoning_tokens = billed_microcents
        where account_id = ${team.accountId} and billed_microcents > 400`,
        )
        // Number 1,000 failed, and 500 are older than those that are read.
        const rows = (await readReasoning(database)).filter(({ model }) => model.startsWith('x/'))
        expect(rows.toSorted((row, other) => row.tokens - other.tokens).map(row => ({ ...row }))).toEqual([
          { model: 'x/m0', effort: 'low', tokens: (249 * (502 + 998)) / 2, requests: 249 },
          { model: 'x/m1', effort: 'low', tokens: (250 * (501 + 999)) / 2, requests: 250 },
        ])
      },
    )

    onDatabase('a filter that lets few pass gives short pages, and loses none, several keys or one', async database => {
      const team = await newTeam(database)
      const keyIds = [team.memberKeys[0], team.memberKeys[0], team.memberKeys[0], team.memberKeys[1]]
      await generateUsage(database, { ...team, keyIds, count: 40_000, start, stepMs: 1000 })
      await tampered(
        database,
        sql => sql`
        update usage_records set metadata = '{"rare":"yes"}' where account_id = ${team.accountId} and billed_microcents % 9000 in (3, 4)`,
      )
      const keep = (n: number) => n % 9000 === 3 || n % 9000 === 4
      for (const userId of [null, team.memberId]) {
        const scope = { accountId: team.accountId, userId }
        expect(await walk(database, scope, { metadata: { rare: 'yes' } }, 4)).toEqual(numbers(40_000, keep))
      }
    })

    onDatabase('ledger reader: names no request of others in positions of a user with projects', async database => {
      const team = await newTeam(database)
      // Four requests per second: the bound of a page falls between requests of one time.
      await generateUsage(database, { ...team, keyIds: team.ownerKeys, count: 3_500, start, stepMs: 250 })
      await tampered(
        database,
        sql => sql`
          update usage_records set
            at = date_trunc('second', at),
            tags = case when billed_microcents % 1500 in (3, 4, 5) then jsonb_build_object(${projectTagName}::text, 'prj_a') end
          where account_id = ${team.accountId}`,
      )
      const ofProject = (n: number) => [3, 4, 5].includes(n % 1500)
      const scope = { accountId: team.accountId, userId: team.memberId, projectIds: ['prj_a'] }
      for (const filters of [{}, { keyId: team.ownerKeys[1] }, { memberId: team.ownerId }]) {
        const seen: LoggedRequest[] = []
        const positions: string[] = []
        for (let before: LogPosition | null = null, isFirst = true; isFirst || before !== null; isFirst = false) {
          const page: LogPage = await readRequests(database, scope, { ...none, ...filters }, { before, limit: 2 })
          seen.push(...page.requests)
          before = page.next
          if (before !== null) positions.push(before.requestId)
        }
        const expected = numbers(3_500, n => ofProject(n) && (!('keyId' in filters) || n % 2 === 1))
        expect(seen.map(row => row.billed_microcents).toSorted((value, other) => other - value)).toEqual(expected)
        const visible = new Set(['-', ...seen.map(row => row.request_id)])
        expect(positions.filter(id => !visible.has(id))).toEqual([])
        expect(positions).toContain('-')
      }
    })

    onDatabase('totals by day, month, model and key all add up to the ledger’s own sum', async database => {
      const team = await newTeam(database)
      const keyIds = [...team.ownerKeys, ...team.memberKeys]
      await generateUsage(database, { ...team, keyIds, count: 1000, start, stepMs: hour })
      // One key lineage has one line of usage.
      await database.run(
        ({ sql }) => sql`
        update api_keys set line_id = ${team.memberKeys[0]} where id = ${team.memberKeys[1]}`,
      )
      const scope = { accountId: team.accountId, userId: null }
      const whole = { requests: 1000, completed: 998, input_tokens: 100_000, billed_microcents: 500_500 }
      const counts = { day: 43, month: 2, model: 20, key: 3 }
      for (const groupBy of ['day', 'month', 'model', 'key'] as const) {
        const { total, groups } = await readUsage(database, scope, {
          from: '2026-05-01',
          to: '2026-12-31',
          groupBy,
          splitBy: null,
        })
        expect(total).toMatchObject(whole)
        expect(groups).toHaveLength(counts[groupBy])
        expect(groups.reduce((sum, group) => sum + group.billed_microcents, 0)).toBe(500_500)
        expect(groups.reduce((sum, group) => sum + group.requests, 0)).toBe(1000)
      }
      for (const [splitBy, parts] of [
        ['model', 9],
        ['key', 3],
        ['member', 2],
        ['dialect', 1],
      ] as const) {
        const period = { from: '2026-05-01', to: '2026-12-31', groupBy: 'day', splitBy } as const
        const split = await readUsage(database, scope, period)
        const sums = split.parts?.flatMap(({ byUnit }) => [...byUnit.values()]) ?? []
        expect(split.parts).toHaveLength(parts)
        // The eight most expensive are returned separately, all others as one.
        expect(split.parts?.filter(({ part }) => part === null)).toHaveLength(splitBy === 'model' ? 1 : 0)
        expect(sums.reduce((sum, item) => sum + item.billed_microcents, 0)).toBe(500_500)
        expect(sums.reduce((sum, item) => sum + item.failed, 0)).toBe(2)
        expect(sums.flatMap(({ latency }) => latency).reduce((sum, value) => sum + value, 0)).toBe(998)
      }
      const { groups } = await readUsage(database, scope, {
        from: '2026-05-05',
        to: '2026-05-06',
        groupBy: 'day',
        splitBy: null,
      })
      expect(groups.map(({ unit, requests }) => [unit, requests])).toEqual([
        ['2026-05-05', 12],
        ['2026-05-06', 24],
      ])
    })

    onDatabase('an export tells every request once, though one comes up again above', async database => {
      const team = await newTeam(database)
      await generateUsage(database, { ...team, keyIds: team.ownerKeys, count: 5_300, start, stepMs: 1000 })
      const seen: number[] = []
      const scope = { accountId: team.accountId, userId: null }
      for await (const batch of exportRequests(database, scope, { ...none, to: start + 24 * hour })) {
        if (seen.length === 0)
          await tampered(
            database,
            sql => sql`
            update usage_records set at = at + interval '2 days' where account_id = ${team.accountId} and billed_microcents = 5300`,
          )
        expect(batch.length).toBeLessThanOrEqual(1000)
        seen.push(...batch.map(row => row.billed_microcents))
      }
      expect(seen).toEqual(numbers(5300, () => true))
    })

    onDatabase('an export yields after each range that it tests, also when no request matches', async database => {
      const team = await newTeam(database)
      await generateUsage(database, { ...team, keyIds: team.ownerKeys, count: 2_500, start, stepMs: 1000 })
      const filters = { ...none, metadata: { team: 'absent' } }
      const batches = await Array.fromAsync(
        exportRequests(database, { accountId: team.accountId, userId: null }, filters),
      )
      expect(batches).toEqual([[], [], []])
    })
  })
}

testNeeding(
  'postgres',
  'ledger reader: reads few rows for a page of 50,000 requests without planner statistics',
  async () => {
    const database = needed(databases[0][1]())
    const team = await newTeam(database)
    const keyIds = [...team.ownerKeys, ...team.memberKeys]
    await generateUsage(database, { ...team, keyIds, count: 50_000, start, stepMs: 120_000 })
    const everything = { accountId: team.accountId, userId: null }
    const own = { accountId: team.accountId, userId: team.memberId }
    const deep = { atMicros: (start + 100_000_000) * 1000, requestId: 'req_f' }
    const cases: readonly [typeof everything | typeof own, Partial<RequestFilters>, LogPosition | null][] = [
      [everything, {}, null],
      [everything, {}, deep],
      [everything, { keyId: team.memberKeys[0] }, null],
      [everything, { status: 'failed' }, null],
      [everything, { model: 'model-7', streamed: true }, null],
      [everything, { metadata: { team: 'absent' } }, null],
      [own, {}, null],
      [own, { status: 'failed' }, deep],
    ]
    const counted = openDatabase(database.address, { connections: 1, ...patientStore })
    const rowsRead = async () => {
      await counted.run(({ sql }) => sql`select pg_stat_force_next_flush()`)
      const [row] = await counted.run(
        ({ sql }) => sql<{ rows: number }[]>`
          select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 as rows from pg_stat_user_tables
          where relname like 'usage_records%'`,
      )
      return row?.rows ?? 0
    }
    let all = 0
    try {
      for (const [scope, filters, before] of cases) {
        const earlier = await rowsRead()
        await readRequests(counted, scope, { ...none, ...filters }, { before, limit: 50 })
        const rows = (await rowsRead()) - earlier
        all += rows
        expect({ filters, isLittle: rows < 15_000 }).toEqual({ filters, isLittle: true })
      }
      // Reading only an index may show that none matches.
      expect(all).toBeGreaterThan(0)
    } finally {
      await counted.close()
    }
  },
  240_000,
)
