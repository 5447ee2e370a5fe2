import { afterAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { migrate, openDatabase } from '../../../src/stores/database.ts'
import { openJournal } from '../../../src/stores/journal.ts'
import { type Amounts, type Claim, createClaims, each, granted, noAmounts } from '../../../src/stores/meter/claims.ts'
import { createShipper } from '../../../src/stores/shipper.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { quiet } from '../database.contract.ts'
import { temporaryFolder, usageRecord } from '../support.ts'

const limits = { requestsPerMinute: 100, concurrentRequests: 10, dailyTokens: 10_000, dailyCostMicrocents: 10_000 }
const amounts = (tokens: number, seats = 0): Amounts => ({ ...noAmounts, tokens, seats })
const wish = (changes: Partial<Claim> = {}): Claim => ({
  accountId: 'acc_1',
  day: 20_000,
  limits,
  out: noAmounts,
  waiting: [],
  need: amounts(100, 1),
  kept: noAmounts,
  spare: noAmounts,
  ...changes,
})

test('however gateways claim, use and give back, all they may have out is never more than the limit', () => {
  const step = fc.record({
    gateway: fc.nat(4),
    need: fc.nat(3_000),
    spare: fc.nat(20_000),
    keptPerMille: fc.nat(1_000),
    usedPerMille: fc.nat(1_000),
    shippedPerMille: fc.nat(1_000),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const mine = [0, 0, 0, 0, 0]
      let ledger = 0
      for (const { gateway, need, spare, keptPerMille, usedPerMille, shippedPerMille } of steps) {
        // Of what it may have out it has used so much, and the ledger has so much of that.
        const used = Math.floor(((mine[gateway] ?? 0) * usedPerMille) / 1_000)
        const shipped = Math.floor((used * shippedPerMille) / 1_000)
        ledger += shipped
        const elsewhere = ledger + mine.reduce((sum, one, index) => (index === gateway ? sum : sum + one), 0)
        const out = amounts(used - shipped)
        const kept = Math.floor((((mine[gateway] ?? 0) - used) * keptPerMille) / 1_000)
        const claim = wish({ need: amounts(need), kept: amounts(kept), spare: amounts(spare) })
        const claimed = granted(claim, amounts(elsewhere), out, 5)
        // What was claimed before may have been handed out while this was on its way.
        expect(claimed.mine.tokens).toBeGreaterThanOrEqual(used - shipped + kept)
        mine[gateway] = claimed.mine.tokens
        expect(claimed.mine.tokens).toBeGreaterThanOrEqual(out.tokens)
        expect(ledger + mine.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(limits.dailyTokens)
        // What is needed is given as long as it is there.
        const free = limits.dailyTokens - elsewhere - out.tokens
        expect(claimed.mine.tokens - out.tokens).toBeGreaterThanOrEqual(Math.min(need, free))
      }
    }),
  )
})

const postgres = await startPostgres()
const database = postgres === null ? null : openDatabase(postgres.url)
if (database !== null) await migrate(database)
afterAll(async () => {
  await database?.close()
  await postgres?.stop()
})

if (database !== null) {
  const partition = 3
  const bit = 1 << partition
  const gateway = (gatewayId: string) => createClaims({ database, gatewayId, partitionOf: () => partition })
  const saying = { inRedis: 0, without: bit, seesRedis: false }
  const age = (gatewayId: string, seconds: number) =>
    database.run(
      ({ sql }) =>
        sql`update gateways set at = clock_timestamp() - ${seconds} * interval '1 second' where id = ${gatewayId}`,
    )
  const reset = () => database.run(({ sql }) => sql`truncate gateways, limit_claims`)

  test('claims made at once are given out of one limit', async () => {
    await reset()
    const all = Array.from({ length: 8 }, (_, index) => gateway(`g${index}`))
    await Promise.all(all.map(one => one.leave(saying, bit, [])))
    const answers = await Promise.all(
      all.map(one => one.claim(bit, [wish({ need: amounts(2_000, 2), spare: amounts(9_000, 9) })])),
    )
    const sum = (name: keyof Amounts) => answers.reduce((total, answer) => total + (answer?.[0]?.mine[name] ?? 0), 0)
    expect([sum('tokens'), sum('seats')]).toEqual([10_000, 10])
  })

  test('nobody is given a claim while another may admit in Redis, and nobody goes there while another must do without', async () => {
    await reset()
    const [one, other] = [gateway('one'), gateway('other')]
    expect(await one.enter({ inRedis: 0, without: 0, seesRedis: true }, bit)).toBe(bit)
    await other.leave(saying, bit, [])
    expect(await other.claim(bit, [wish()])).toBeNull()
    expect(await other.claim(bit << 1, [wish()])).not.toBeNull()
    expect(await one.beat({ inRedis: bit, without: 0, seesRedis: true })).toEqual({
      count: 1,
      without: bit,
      barred: bit,
      living: ['other'],
    })
    await one.leave({ ...saying, seesRedis: true }, bit, [{ ...wish(), out: amounts(700, 3) }])
    const claimed = await other.claim(bit, [wish()])
    expect(claimed?.[0]?.elsewhere).toEqual(amounts(700, 3))
    expect(await one.enter({ inRedis: 0, without: 0, seesRedis: true }, bit | 1)).toBe(1)
    await other.leave({ inRedis: 0, without: 0, seesRedis: true }, 0, [])
    expect(await one.enter({ inRedis: 1, without: 0, seesRedis: true }, bit)).toBe(bit)
  })

  test('a claim made while another leaves Redis is refused, or counts what the other has out', async () => {
    await reset()
    const [leaving, claiming] = [gateway('leaving'), gateway('claiming')]
    const seen = { refused: 0, counted: 0, missed: 0 }
    for (let round = 0; round < 150; round++) {
      await claiming.leave({ ...saying, without: 0 }, 0, [])
      expect(await leaving.enter({ inRedis: 0, without: 0, seesRedis: true }, bit)).toBe(bit)
      await claiming.leave(saying, bit, [])
      const left = leaving.leave(saying, bit, [{ ...wish(), out: amounts(700, 3) }])
      let isDone = false
      void left.then(() => {
        isDone = true
      })
      while (!isDone) {
        const answer = await claiming.claim(bit, [wish()])
        seen[answer === null ? 'refused' : answer[0]?.elsewhere.tokens === 700 ? 'counted' : 'missed']++
      }
    }
    expect(seen.missed).toBe(0)
    expect(seen.refused).toBeGreaterThan(0)
  })

  test('a dead gateway holds nobody up; what it had claimed stays claimed for 12 s', async () => {
    await reset()
    const [dead, living] = [gateway('dead'), gateway('living')]
    await dead.leave(saying, bit, [{ ...wish(), out: amounts(9_950) }])
    await dead.beat({ inRedis: bit, without: 0, seesRedis: true })
    await living.leave(saying, bit, [])
    expect(await living.claim(bit, [wish()])).toBeNull()
    await age('dead', 4)
    expect((await living.claim(bit, [wish()]))?.[0]?.mine).toEqual(amounts(50, 1))
    await age('dead', 13)
    expect((await living.claim(bit, [wish()]))?.[0]?.mine).toEqual(amounts(100, 1))
  })

  test('what waits for the ledger is counted once, in it or on its way', async () => {
    await reset()
    const folder = temporaryFolder()
    const journal = openJournal({ directory: folder.path })
    const shipper = createShipper({ journal, database, clock: { now: () => Date.now() }, log: quiet })
    const record = (name: string) =>
      usageRecord({
        request_id: name,
        account_id: 'acc_ledger',
        at_ms: 20_000 * 86_400_000,
        input_tokens: 10,
        output_tokens: 90,
      })
    journal.append(record('shipped'))
    await shipper.drain(5_000)
    const waiting = ['shipped', 'on-its-way'].map(requestId => ({
      requestId,
      truth: 'final' as const,
      tokens: 100,
      microcents: 30,
      day: 20_000,
    }))
    const one = gateway('one')
    await one.leave(saying, bit, [])
    const claimed = await one.claim(bit, [wish({ accountId: 'acc_ledger', waiting })])
    expect(claimed?.[0]).toMatchObject({ elsewhere: { tokens: 100 }, out: { tokens: 100 }, mine: { tokens: 200 } })
    await shipper.close()
    await journal.close()
    folder.remove()
  })

  test('what ends with a gateway is gone with its rows', async () => {
    await reset()
    const one = gateway('one')
    await one.leave(saying, bit, [{ ...wish(), out: each(() => 1) }])
    await one.end()
    const [left] = await database.run(
      ({ sql }) =>
        sql<
          { rows: number }[]
        >`select ((select count(*) from gateways) + (select count(*) from limit_claims))::int as rows`,
    )
    expect(left?.rows).toBe(0)
  })
}
