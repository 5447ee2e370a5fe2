/** Guarantees of learning on every Postgres: the embedded one and a real one. */

import { heapStats } from 'bun:jsc'
import { describe, expect, test } from 'bun:test'
import type { Clock } from '../../src/core/ports.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { systemClock } from '../../src/database/clock.ts'
import type { Database } from '../../src/database/database.ts'
import { getStatements } from '../../src/database/transact.ts'
import { estimateBiases } from '../../src/learning/learned-bias.ts'
import { createLearningCache, type LearningCache } from '../../src/learning/learning-cache.ts'
import { emptyCell } from '../../src/learning/learning-cell.ts'
import { readCells, writeCells } from '../../src/learning/learning-cells.ts'
import { storeRecords } from '../../src/ledger/shipper.ts'
import { getOnDatabase } from '../database/on-database.ts'
import { toTexts, usageRecord } from '../database/support.ts'
import { testedDatabases } from '../database/tested-databases.ts'
import { eventually } from '../harness/eventually.ts'
import { needed } from '../harness/needs.ts'

const databases = testedDatabases()

type Lesson = NonNullable<UsageRecord['learning']>
let made = 0
const account = () => `acc_${++made}_${Bun.randomUUIDv7()}`
const newRequestId = () => `req_${Bun.randomUUIDv7().replaceAll('-', '')}`

function lesson(accountId: string, changes: Partial<UsageRecord> = {}, learning: Partial<Lesson> = {}): UsageRecord {
  return usageRecord({
    request_id: newRequestId(),
    account_id: accountId,
    at_ms: Date.now(),
    model: 'good',
    query_type: 'code',
    ...changes,
    learning: {
      quality: 0.75,
      epoch: 0,
      influenced: false,
      choice_probability: 1,
      enhanced: false,
      repeat_of: null,
      ...learning,
    },
  })
}

const many = (count: number, accountId: string, changes?: Partial<UsageRecord>, learning?: Partial<Lesson>) =>
  Array.from({ length: count }, () => lesson(accountId, changes, learning))

const figures: Record<string, number> = { 'openai/good': 0.7, 'openai/bad': 0.72 }
const booksOn = async (
  database: Database,
  body: (...books: [LearningCache, LearningCache]) => Promise<void>,
  clock: Clock = systemClock,
) => {
  const log = { warn: () => {} }
  const options = { database, clock, findFigure: (model: string) => figures[model] ?? null, log }
  const [learningCache, other] = [createLearningCache(options), createLearningCache(options)]
  try {
    await body(learningCache, other)
  } finally {
    await learningCache.close()
    await other.close()
  }
}

const biasIn = (book: LearningCache, accountId: string, model = 'openai/bad') =>
  book.of(accountId)?.findLeaning('code')?.(model)?.bias ?? null

async function store(database: Database, learningCache: LearningCache, records: readonly UsageRecord[]): Promise<void> {
  learningCache.refresh(await storeRecords(database, toTexts(records)))
}

async function getEntries(database: Database, accountId: string): Promise<number> {
  const rows = await database.run(
    ({ sql }) => sql<{ count: number }[]>`
      select count(*)::int as count from usage_records where learning_epoch is not null and account_id = ${accountId}`,
  )
  return rows[0]?.count ?? -1
}

for (const [name, open] of databases) {
  const onDatabase = getOnDatabase(name, open, 60_000)

  describe(`${name} Postgres`, () => {
    onDatabase(
      'evidence that has faded below what the column holds is kept as none, and refuses nothing else',
      database =>
        booksOn(database, async learningCache => {
          const accountId = account()
          await store(database, learningCache, [lesson(accountId)])
          const [cell] = await readCells(database, [accountId])
          if (cell === undefined) throw new Error('no cell was written')
          const faded = { ...cell, weight: 8.3e-47, slump: -8.3e-47, spread: 1e-39, quality: 0.5 }
          await database.run(({ sql }) => sql.begin(transaction => writeCells(getStatements(transaction), [faded])))
          expect(await readCells(database, [accountId])).toEqual([
            { ...cell, weight: 0, slump: 0, spread: 0, quality: 0.5 },
          ])
        }),
    )

    onDatabase('a lesson is learnt once, however often and in whatever company it comes', database =>
      booksOn(database, async (learningCache, other) => {
        const accountId = account()
        const records = many(20, accountId)
        await Promise.all([
          store(database, learningCache, records),
          store(database, other, records.toReversed()),
          store(database, learningCache, records.slice(5)),
        ])
        await store(database, other, [...records, lesson(accountId)])
        const [cell, ...more] = await learningCache.cells(accountId)
        expect(more).toEqual([])
        expect(cell).toMatchObject({ model: 'openai/good', queryType: 'code', requests: 21, entries: 21 })
        expect(await getEntries(database, accountId)).toBe(21)
      }),
    )

    onDatabase('gateways that learn of one account at a time lose nothing', database =>
      booksOn(database, async (learningCache, other) => {
        const accounts = [account(), account(), account()]
        const batch = () => accounts.flatMap(id => ['good', 'bad'].flatMap(model => many(4, id, { model })))
        await Promise.all([
          store(database, learningCache, batch()),
          store(database, other, batch()),
          store(database, learningCache, batch()),
          store(database, other, batch()),
        ])
        for (const accountId of accounts)
          expect((await learningCache.cells(accountId)).map(({ model, requests }) => [model, requests])).toEqual([
            ['openai/bad', 16],
            ['openai/good', 16],
          ])
      }),
    )

    onDatabase('what is written is what the cell was, to single precision; no two accounts ever mix', database =>
      booksOn(database, async book => {
        const [mine, theirs] = [account(), account()]
        await store(database, book, [
          ...many(12, mine, {}, { quality: 0.9 }),
          ...many(30, theirs, {}, { quality: 0.1 }),
        ])
        const before = await book.cells(mine)
        await store(database, book, many(40, theirs, { model: 'bad' }, { quality: 1 }))
        expect(await book.cells(mine)).toEqual(before)
        expect(before[0]?.quality).toBeCloseTo(0.9, 6)
        expect(before[0]?.latencyMs).toBe(5)
      }),
    )

    onDatabase('an account not seen yet is read in behind the request’s back, and leans as its cells say', database =>
      booksOn(database, async (learningCache, other) => {
        const accountId = account()
        await store(database, learningCache, [
          ...many(60, accountId, {}, { quality: 1 }),
          ...many(60, accountId, { model: 'bad' }, { quality: 0 }),
        ])
        expect(other.of(accountId)).toBeNull()
        await eventually(() => other.of(accountId) !== null)
        expect(other.of(accountId)?.epoch).toBe(0)
        expect(biasIn(other, accountId)).toBeLessThan(-0.1)
        expect(biasIn(other, accountId, 'openai/good')).toBeGreaterThan(0.1)
        expect(other.of(accountId)?.findLeaning('math')).toBeNull()
        expect(other.of(accountId)?.findUsualRatio('code')?.mean).toBeCloseTo(Math.log(21 / 11), 5)
      }),
    )

    onDatabase('what one gateway’s callers taught it, another knows within seconds', database =>
      booksOn(database, async (learningCache, other) => {
        const accountId = account()
        await store(database, learningCache, many(30, accountId, { model: 'bad' }, { quality: 0.75 }))
        await eventually(() => biasIn(other, accountId) !== null)
        await store(database, learningCache, many(60, accountId, { model: 'bad' }, { quality: 0 }))
        await eventually(() => (biasIn(other, accountId) ?? 0) < -0.1, 8_000)
      }),
    )

    onDatabase(
      'a rating acts in the process that took it before it is answered, and elsewhere within a second',
      database =>
        booksOn(database, async (learningCache, other) => {
          const accountId = account()
          const records = many(20, accountId, { model: 'bad' })
          await store(database, learningCache, records)
          for (const book of [learningCache, other]) await eventually(() => book.of(accountId) !== null)
          const before = biasIn(learningCache, accountId) ?? 0
          for (const { request_id } of records.slice(0, 15))
            expect(
              await learningCache.rate({ accountId, userId: null }, request_id, { stars: 1, isHelpful: null }),
            ).toEqual({
              accountId,
              queryType: 'code',
              model: 'openai/bad',
            })
          const after = biasIn(learningCache, accountId) ?? 0
          expect(after).toBeLessThan(before - 0.04)
          await eventually(() => biasIn(other, accountId) === after, 1_000)
          // 15 rated entries count as three each.
          expect((await learningCache.cells(accountId))[0]).toMatchObject({
            requests: 20,
            entries: 50,
            ratings: 15,
            rating: 0,
          })
        }),
    )

    onDatabase(
      'a second rating replaces the first; one of somebody else’s request, or of none, changes nothing',
      database =>
        booksOn(database, async book => {
          const [accountId, stranger] = [account(), account()]
          const record = lesson(accountId, { request_id: 'req_old' })
          await store(database, book, [record, lesson(stranger)])
          await book.rate({ accountId, userId: null }, 'req_old', { stars: 1, isHelpful: false })
          await book.rate({ accountId, userId: null }, 'req_old', { stars: 5, isHelpful: true })
          expect((await book.cells(accountId))[0]).toMatchObject({ entries: 3, ratings: 1, rating: 1, quality: 1 })
          const before = await readCells(database, [accountId, stranger])
          expect(
            await book.rate({ accountId: stranger, userId: null }, 'req_old', { stars: 1, isHelpful: null }),
          ).toBeNull()
          expect(await book.rate({ accountId, userId: null }, 'req_none', { stars: 1, isHelpful: null })).toBeNull()
          expect(await readCells(database, [accountId, stranger])).toEqual(before)
        }),
    )

    onDatabase('a rating that is quicker than the ledger waits for it', database => {
      const waits = Promise.withResolvers<void>()
      const sleep = (milliseconds: number) => {
        waits.resolve()
        return systemClock.sleep(milliseconds)
      }
      return booksOn(
        database,
        async (learningCache, other) => {
          const accountId = account()
          const record = lesson(accountId)
          const rating = learningCache.rate({ accountId, userId: null }, record.request_id, {
            stars: 5,
            isHelpful: null,
          })
          await waits.promise
          await store(database, other, [record])
          expect(await rating).toMatchObject({ model: 'openai/good' })
        },
        { ...systemClock, sleep },
      )
    })

    onDatabase(
      'a question soon asked again lowers what was thought of its first answer, unless that was rated',
      database =>
        booksOn(database, async book => {
          const accountId = account()
          await store(database, book, [
            lesson(accountId, { request_id: 'req_1' }),
            lesson(accountId, { request_id: 'req_2' }),
          ])
          await book.rate({ accountId, userId: null }, 'req_2', { stars: 5, isHelpful: null })
          await store(database, book, [
            lesson(accountId, { model: 'bad' }, { repeat_of: 'req_1' }),
            lesson(accountId, { model: 'bad' }, { repeat_of: 'req_2' }),
            lesson(accountId, { model: 'bad' }, { repeat_of: 'req_unknown' }),
          ])
          const cells = await book.cells(accountId)
          expect(cells.map(({ model, requests }) => [model, requests])).toEqual([
            ['openai/bad', 3],
            ['openai/good', 2],
          ])
          expect(cells[1]?.quality).toBeCloseTo((0.45 + 3) / 4, 2)
        }),
    )

    onDatabase('erased means erased: lines, cells and memory, here at once and elsewhere within a second', database =>
      booksOn(database, async (learningCache, other) => {
        const [accountId, neighbour] = [account(), account()]
        await store(
          database,
          learningCache,
          [accountId, neighbour].flatMap(id => many(60, id, { model: 'bad' }, { quality: 0 })),
        )
        for (const book of [learningCache, other]) await eventually(() => (biasIn(book, accountId) ?? 0) < -0.1)
        await learningCache.erase(accountId)
        expect(learningCache.of(accountId)?.findLeaning('code')).toBeNull()
        expect(learningCache.of(accountId)?.epoch).toBe(1)
        expect([await getEntries(database, accountId), await learningCache.cells(accountId)]).toEqual([0, []])
        await eventually(() => other.of(accountId)?.findLeaning('code') === null)
        expect(await getEntries(database, neighbour)).toBe(60)
        expect(biasIn(learningCache, neighbour) ?? biasIn(other, neighbour) ?? -1).toBeLessThan(0)
      }),
    )

    onDatabase('what was on its way when it was erased never comes back; what comes after does', database =>
      booksOn(database, async (learningCache, other) => {
        const accountId = account()
        const before = { at_ms: Date.now() - 5 }
        const early = [lesson(accountId, { ...before, request_id: 'req_early' }), ...many(9, accountId, before)]
        const unseen = many(10, accountId, before, { epoch: null })
        await store(database, learningCache, [...early.slice(0, 5), ...unseen.slice(0, 5)])
        await learningCache.erase(accountId)
        await store(database, other, [...early, ...unseen])
        expect([await getEntries(database, accountId), await learningCache.cells(accountId)]).toEqual([0, []])
        expect(
          await learningCache.rate({ accountId, userId: null }, 'req_early', { stars: 5, isHelpful: null }),
        ).toBeNull()
        const after = { at_ms: Date.now() + 5 }
        await store(database, other, [
          lesson(accountId, after, { epoch: 1 }),
          lesson(accountId, after, { epoch: null }),
        ])
        expect(await getEntries(database, accountId)).toBe(2)
        expect((await learningCache.cells(accountId))[0]).toMatchObject({ requests: 2 })
      }),
    )

    onDatabase('an erasure among racing writers leaves what was learnt after it, and nothing of before', database =>
      booksOn(database, async (learningCache, other) => {
        const accountId = account()
        await store(database, learningCache, many(5, accountId))
        await Promise.all([
          // The embedded database takes at most eight transactions at a time.
          ...Array.from({ length: 3 }, () => store(database, learningCache, many(40, accountId))),
          other.erase(accountId),
          ...Array.from({ length: 3 }, () => store(database, other, many(40, accountId))),
        ])
        expect([await getEntries(database, accountId), await learningCache.cells(accountId)]).toEqual([0, []])
      }),
    )

    onDatabase('records that teach nothing, and those of before learning, pass unnoticed', database =>
      booksOn(database, async book => {
        const accountId = account()
        const { learning: _, ...old } = lesson(accountId)
        await store(database, book, [
          old,
          { ...lesson(accountId), learning: null },
          lesson(accountId, { query_type: null }),
          lesson(accountId, { model: '' }),
        ])
        expect([await getEntries(database, accountId), await book.cells(accountId)]).toEqual([0, []])
      }),
    )
  })
}

test('learning: uses at most 2 KB per account and query type on disk', async () => {
  const database = needed(databases[0][1]())
  const models = Array.from({ length: 9 }, (_, index) => `provider/some-model-of-a-usual-length-${index}`)
  const cells = models.map(model => ({ figure: 0.5, cell: { ...emptyCell, weight: 1, requests: 1 }, model }))
  const accounts = 80
  const types = ['code', 'math', 'writing', 'analysis', 'other']
  const log = { warn: () => {} }
  const book = createLearningCache({ database, clock: systemClock, findFigure: () => 0.5, log })
  const ids = Array.from({ length: accounts }, account)
  for (const accountId of ids)
    await store(
      database,
      book,
      types.flatMap(query_type => models.map(model => lesson(accountId, { query_type, model: model.slice(9) }))),
    )
  Bun.gc(true)
  const before = heapStats().heapSize
  await eventually(() => ids.filter(id => book.of(id) === null).length === 0, 10_000)
  Bun.gc(true)
  const inMemory = (heapStats().heapSize - before) / (accounts * types.length)
  const [size] = await database.run(
    ({ sql }) => sql<{ bytes: number }[]>`
      select (sum(pg_column_size(learning_state)) / count(distinct account_id || query_type))::float8 as bytes
      from learning_state where account_id in (select json_array_elements_text(${JSON.stringify(ids)}::text::json))`,
  )
  await book.close()
  process.stdout.write(
    `learning: ${Math.round(inMemory)} bytes in memory, ${Math.round(size?.bytes ?? 0)} on disk, per account and type of 9 models\n`,
  )
  expect(size?.bytes ?? Number.POSITIVE_INFINITY).toBeLessThan(2_048)
  expect(estimateBiases(cells, 0)).toHaveLength(9)
}, 240_000)
