import { afterAll, describe, expect, test } from 'bun:test'
import { appendFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { journalFolders, reconcileUsage, replayFolders, replayUsage } from '../../src/commands/usage-reports.ts'
import { anonymizeUser, deleteAccount } from '../../src/console/account/store.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { lockDataFolder } from '../../src/database/data-folder.ts'
import type { Database } from '../../src/database/database.ts'
import { openJournal } from '../../src/ledger/journal.ts'
import { createLimitLedger } from '../../src/ledger/ledger.ts'
import { journalSource, redisSource } from '../../src/ledger/reconcile/sources.ts'
import { type AuditScope, audit } from '../../src/ledger/reconcile.ts'
import { createShipper } from '../../src/ledger/shipper.ts'
import { SharedMeter } from '../../src/limits/shared.ts'
import { quiet } from '../database/database.contract.ts'
import { generateUsage, newTeam, tampered } from '../database/ledger-rows.ts'
import { getOnDatabase } from '../database/on-database.ts'
import { movableClock, temporaryFolder, usageRecord } from '../database/support.ts'
import { testedDatabases } from '../database/tested-databases.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patient } from '../harness/patience.ts'
import { startRedis } from '../harness/redis.ts'
import { admitted, send, settlement } from '../limits/meter.contract.ts'
import { openLimitRedis } from '../limits/rig.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())
const databases = testedDatabases()

const start = Date.UTC(2026, 4, 5, 12)
const hour = 3_600_000
const year = { from: '2026-01-01', to: '2026-12-31' }
let journals = 0
const newJournal = () => join(folder.path, `other-${++journals}`, 'journal')

/** Ships through a separate journal, like a gateway. */
async function ship(database: Database, records: readonly UsageRecord[]): Promise<void> {
  const journal = openJournal({ directory: newJournal() })
  const shipper = createShipper({ journal, database, clock: { now: () => Date.now() }, log: quiet })
  for (const record of records) journal.append(record)
  expect(await shipper.drain(10_000)).toBe(true)
  await shipper.close()
  await journal.close()
}

for (const [name, open] of databases) {
  const onDatabase = getOnDatabase(name, open, 60_000)

  describe(`${name} Postgres`, () => {
    onDatabase(
      'a ledger and its daily sums are whole; one micro-cent of one cell is found, and where',
      async database => {
        const team = await newTeam(database)
        const keyIds = [...team.ownerKeys, ...team.memberKeys]
        await generateUsage(database, { ...team, keyIds, count: 2000, start, stepMs: hour })
        const scope: AuditScope = { ...year, accountId: team.accountId }
        const whole = await audit(database, [], scope)
        expect(whole).toMatchObject({ isWhole: true, requests: 2000, billed_microcents: 2_001_000, differences: [] })

        const place = {
          account_id: team.accountId,
          day: '2026-05-07',
          key_id: team.memberKeys[0],
          model: 'openai/model-10',
        }
        const change = (by: number) =>
          database.run(
            ({ sql }) => sql`
          update usage_daily set billed_microcents = billed_microcents + ${by}
          where account_id = ${place.account_id} and day = ${place.day} and key_id = ${place.key_id} and model = ${place.model}`,
          )
        await change(1)
        const found = await audit(database, [], scope)
        expect(found).toMatchObject({ isWhole: false, differences: [{ kind: 'rollup', ...place }] })
        const [difference] = found.differences
        if (difference?.kind !== 'rollup') throw new Error('a daily sum differs')
        expect((difference.rollup?.billed_microcents ?? 0) - (difference.ledger?.billed_microcents ?? 0)).toBe(1)
        const report = await reconcileUsage(database, [], scope)
        expect(report).toMatchObject({ isWell: false, json: { counters: null } })
        expect(report.lines.join('\n')).toContain(
          `${place.account_id} 2026-05-07 ${place.key_id} openai/model-10: billed_microcents`,
        )
        await change(-1)
        expect((await audit(database, [], scope)).isWhole).toBe(true)
      },
    )

    onDatabase('a lost row and a lost sum are found on either side, a period outside is left alone', async database => {
      const team = await newTeam(database)
      await generateUsage(database, { ...team, keyIds: [team.ownerKeys[0]], count: 48, start, stepMs: hour })
      const scope: AuditScope = { ...year, accountId: team.accountId }
      await tampered(
        database,
        sql => sql`delete from usage_records where account_id = ${team.accountId} and billed_microcents = 1`,
      )
      await database.run(
        ({ sql }) => sql`delete from usage_daily where account_id = ${team.accountId} and model = 'openai/model-14'`,
      )
      const { differences } = await audit(database, [], scope)
      expect(differences).toEqual([
        expect.objectContaining({ kind: 'rollup', day: '2026-05-05', model: 'google/model-1', ledger: null }),
        expect.objectContaining({ kind: 'rollup', day: '2026-05-06', model: 'openai/model-14', rollup: null }),
      ])
      expect((await audit(database, [], { ...scope, from: '2026-06-01' })).isWhole).toBe(true)
    })

    onDatabase(
      'usage reconcile: reports a daily total of a tag that differs, lacks or has no requests',
      async database => {
        const { accountId } = await newTeam(database)
        const record = (index: number, tags: Record<string, string>) =>
          usageRecord({ request_id: `${accountId}_${index}`, account_id: accountId, tags })
        await ship(database, [
          record(1, { team: 'a', env: 'x=y' }),
          record(2, { team: 'a' }),
          { ...record(3, { team: 'b' }), own_key_microcents: 7 },
        ])
        const scope: AuditScope = { ...year, accountId }
        expect((await audit(database, [], scope)).differences).toEqual([])
        const setOwn = (to: number) =>
          database.run(
            ({ sql }) => sql`update usage_daily set own_key_microcents = ${to} where account_id = ${accountId}`,
          )
        await setOwn(8)
        expect((await audit(database, [], scope)).differences).toMatchObject([
          { kind: 'rollup', ledger: { own_key_microcents: 7 }, rollup: { own_key_microcents: 8 } },
        ])
        await setOwn(7)
        await database.run(
          ({ sql }) => sql`
          update usage_tags_daily set billed_microcents = billed_microcents + 1, own_key_microcents = 5, tag = case tag when 'team=b' then 'team=c' else tag end
          where account_id = ${accountId} and tag like 'team=%'`,
        )
        const { differences, isWhole } = await audit(database, [], scope)
        const sums = { requests: 2, billed_microcents: 60 }
        expect(isWhole).toBe(false)
        expect(differences).toMatchObject([
          {
            kind: 'tag_rollup',
            tag: 'team=a',
            ledger: sums,
            rollup: { ...sums, billed_microcents: 61, own_key_microcents: 5 },
          },
          { kind: 'tag_rollup', tag: 'team=b', ledger: { requests: 1, own_key_microcents: 7 }, rollup: null },
          { kind: 'tag_rollup', tag: 'team=c', ledger: null, rollup: { billed_microcents: 31 } },
        ])
        const { lines } = await reconcileUsage(database, [], scope)
        expect(lines.join('\n')).toContain('tag team=a: billed_microcents 60 in the ledger, 61 in the total')
      },
    )

    onDatabase('late records of an erased account or user: count, and have no labels', async database => {
      const parts = { at: Date.now(), newId: (prefix: string) => `${prefix}_${Bun.randomUUIDv7()}` }
      const [gone, team] = [await newTeam(database), await newTeam(database)]
      await deleteAccount(database, gone.accountId, parts)
      await anonymizeUser(database, { accountId: team.accountId, userId: team.memberId }, parts)
      const record = (accountId: string, keyId: string) =>
        usageRecord({
          request_id: `late_${keyId}`,
          account_id: accountId,
          key_id: keyId,
          metadata: { note: 'x' },
          tags: { who: 'x' },
        })
      await ship(database, [
        record(gone.accountId, gone.ownerKeys[0]),
        record(team.accountId, team.memberKeys[0]),
        record(team.accountId, team.ownerKeys[0]),
      ])
      const rows = await database.run(
        ({ sql }) => sql`
          select key_id, metadata is not null or tags is not null as "isLabeled", exists (
            select from usage_tags_daily where usage_tags_daily.key_id = usage_records.key_id) as "isTagged"
          from usage_records where account_id = ${gone.accountId} or account_id = ${team.accountId}`,
      )
      const labels = Object.fromEntries(rows.map(row => [row.key_id, [row.isLabeled, row.isTagged]]))
      expect(labels).toEqual({
        [gone.ownerKeys[0]]: [false, false],
        [team.memberKeys[0]]: [false, false],
        [team.ownerKeys[0]]: [true, true],
      })
      for (const { accountId } of [gone, team])
        expect((await audit(database, [], { ...year, accountId })).isWhole).toBe(true)
    })

    onDatabase('what waits in a journal is on its way, replaying brings it there, once', async database => {
      const { accountId } = await newTeam(database)
      const directory = newJournal()
      const record = (index: number) =>
        usageRecord({
          request_id: `${accountId}_${index}`,
          account_id: accountId,
          billed_microcents: 30 + index,
          reserved_microcents: 100,
        })
      const journal = openJournal({ directory })
      for (const index of [1, 2, 3]) journal.append(record(index))
      await ship(database, [record(1)])
      const scope: AuditScope = { ...year, accountId }
      const sources = [journalSource(directory)]
      // Its writer is alive and at the last line.
      const file = readdirSync(directory)[0] ?? ''
      expect(await audit(database, sources, scope)).toMatchObject({
        isWhole: true,
        requests: 1,
        waiting: { requests: 2, billed_microcents: 65 },
        damaged_lines: 0,
      })
      await journal.close()
      appendFileSync(join(directory, file), 'half a li')
      expect((await audit(database, sources, scope)).damaged_lines).toBe(0)

      expect(await replayUsage(database, directory)).toMatchObject({
        isWell: true,
        json: { found: 3, left: 0, refused: 0 },
      })
      expect(await replayUsage(database, directory)).toMatchObject({ isWell: true, json: { found: 0 } })
      const after = await reconcileUsage(database, sources, scope)
      // It never reports agreeing counters without having read any.
      expect(after.lines.at(-1)).toBe('Ledger and daily totals agree.')
      expect(after.lines.join(' ')).toContain('Without Redis, in-process counters cannot be compared')
      expect(after.json).toMatchObject({ ok: true, requests: 3, billed_microcents: 96, waiting: { requests: 0 } })
    })

    onDatabase(
      'usage reconcile: counts an end that waits beside its checkpoint, then shows it as replaced',
      async database => {
        const { accountId } = await newTeam(database)
        const directory = newJournal()
        const end = usageRecord({ request_id: `${accountId}_1`, account_id: accountId, billed_microcents: 45 })
        await ship(database, [
          { ...end, truth: 'checkpoint', status: 'failed', output_tokens: 5, billed_microcents: 15 },
        ])
        const journal = openJournal({ directory })
        journal.append(end)
        await journal.close()
        const sources = [journalSource(directory)]
        const scope: AuditScope = { ...year, accountId }
        expect(await audit(database, sources, scope)).toMatchObject({
          isWhole: true,
          billed_microcents: 15,
          waiting: { requests: 1, billed_microcents: 30 },
          replaced: { requests: 0 },
        })
        expect(await replayUsage(database, directory)).toMatchObject({ isWell: true, json: { found: 1, left: 0 } })
        const { lines, json, isWell } = await reconcileUsage(database, sources, scope)
        expect(isWell).toBe(true)
        expect(json).toMatchObject({
          billed_microcents: 45,
          waiting: { requests: 0 },
          replaced: { requests: 1, tokens: 15, billed_microcents: 30 },
        })
        const text = lines.join('\n')
        expect(text).toContain(
          'replaced: 1 requests, whose checkpoint was settled before their end: +15 tokens, $0.00000030',
        )
        expect(text).toContain(
          `${accountId}_1 of ${accountId} 2026-05-05: failed, 15 tokens, $0.00000015 became completed, 30 tokens, $0.00000045`,
        )
      },
    )

    onDatabase(
      'a record that the ledger refused, one that it has otherwise, and a broken line are told',
      async database => {
        const { accountId } = await newTeam(database)
        const directory = newJournal()
        const journal = openJournal({ directory })
        const base = { account_id: accountId, reserved_microcents: 100 }
        const good = usageRecord({ ...base, request_id: `${accountId}_1` })
        await ship(database, [good])
        journal.append({ ...good, billed_microcents: 31 })
        journal.append(
          usageRecord({ ...base, request_id: `${accountId}_2`, billed_microcents: 101, search_microcents: 102 }),
        )
        await journal.close()
        expect((await replayUsage(database, directory)).isWell).toBe(false)
        expect((await audit(database, [journalSource(directory)], { ...year, accountId })).differences).toEqual([
          expect.objectContaining({
            kind: 'refused',
            request_id: `${accountId}_2`,
            model: 'openai/gpt-test',
            ledger: null,
          }),
        ])
        // Rejected again if nothing has changed; accepted when the ledger's rule has.
        expect((await replayUsage(database, directory)).json).toMatchObject({ found: 1, refused: 1 })
        const rule = (words: string) => database.run(({ sql }) => sql.unsafe(`alter table usage_records ${words}`))
        await rule('drop constraint usage_records_web')
        expect(await replayUsage(database, directory)).toMatchObject({ isWell: true, json: { found: 1, shipped: 1 } })
        expect((await audit(database, [journalSource(directory)], { ...year, accountId })).isWhole).toBe(true)
        await tampered(database, async sql => {
          await sql`update usage_records set billed_microcents = 100, search_microcents = 0 where billed_microcents > 100`
          await sql`update usage_daily set billed_microcents = billed_microcents - 1 where account_id = ${accountId}`
        })
        await rule(
          'add constraint usage_records_web check (least(search_microcents, fetch_microcents) >= 0 and search_microcents + fetch_microcents <= billed_microcents)',
        )
        // A copy of a journal, as in a backup.
        const copy = newJournal()
        const again = openJournal({ directory: copy })
        again.append({ ...good, billed_microcents: 31 })
        await again.close()
        writeFileSync(join(copy, '000000000009.log'), '00000000 {"not":"whole"}\n')
        const found = await audit(database, [journalSource(copy)], { ...year, accountId })
        expect(found).toMatchObject({ isWhole: false, damaged_lines: 1 })
        expect(found.differences).toEqual([
          expect.objectContaining({
            kind: 'record',
            ledger: { tokens: 30, microcents: 30 },
            recorded: { tokens: 30, microcents: 31 },
          }),
        ])
      },
    )
  })
}

test("journalFolders: returns a data folder's journal and its workers' journals", async () => {
  const database = needed(databases[0][1]())
  const { accountId } = await newTeam(database)
  const data = join(folder.path, 'with-workers')
  for (const name of ['journal', 'worker-1/journal', 'worker-2/journal', 'worker-2/other', 'elsewhere/journal']) {
    const journal = openJournal({ directory: join(data, name) })
    journal.append(usageRecord({ request_id: `${accountId}_${name}`, account_id: accountId }))
    await journal.close()
  }
  const folders = journalFolders(data)
  expect(folders).toEqual(['journal', 'worker-1/journal', 'worker-2/journal'].map(name => join(data, name)))
  expect(await replayFolders(database, folders)).toMatchObject({
    isWell: true,
    json: { folders: [{ found: 1 }, { found: 1 }, { found: 1 }] },
  })
  await expect(replayFolders(database, [])).rejects.toThrow('No journal')
})

test('replayUsage: rejects a missing journal and one that a running gateway writes to', async () => {
  const database = needed(databases[0][1]())
  await expect(replayUsage(database, join(folder.path, 'nothing'))).rejects.toThrow('No journal')
  const directory = newJournal()
  const release = lockDataFolder(join(directory, '..'))
  await openJournal({ directory }).close()
  // Another process than this one.
  writeFileSync(join(directory, '..', 'gateway.pid'), JSON.stringify({ pid: process.ppid, began: 'another boot/1' }))
  await expect(replayUsage(database, directory)).rejects.toThrow(
    'This journal is in use by a process of another container',
  )
  release()
})

testNeeding(
  'redis',
  'reconciliation: matches Redis counters without reservations to ledger and journal to the micro-cent',
  async () => {
    const database = needed(databases[0][1]())
    const redisServer = needed(await startRedis())
    const { keys, redis } = openLimitRedis([redisServer.url])
    let closeMeter = async () => {}
    try {
      await eventually(() => redis.isReady(), 5000)
      const clock = movableClock(start)
      const directory = newJournal()
      const journal = openJournal({ directory })
      const meter = new SharedMeter({
        redis,
        keys,
        ledger: createLimitLedger(database),
        reportGraceMs: 0,
        clock: { now: clock.now, monotonic: () => performance.now() },
        time: clock.now,
        isManual: true,
        deadlines: patient,
        journal: {
          appendTogether: async record => void journal.append(record),
          isWritable: () => true,
          untilDurable: async () => {},
          waiting: () => [],
        },
        gatewayId: Bun.randomUUIDv7(),
      })
      closeMeter = meter.close.bind(meter)
      await eventually(() => meter.isShared(), 5000)
      const accounts = await Promise.all(Array.from({ length: 5 }, async () => (await newTeam(database)).accountId))
      const [first = ''] = accounts
      for (const accountId of accounts)
        for (const index of [1, 2, 3, 4]) {
          const reservation = admitted(await meter.admit(send(`${accountId}_${index}`, { accountId })))
          if (index < 4) await meter.settle(settlement(reservation, 30, 1000 + index, start))
        }
      // Some records have arrived and are still in the journal, some are only there.
      const records = journal.waiting()
      expect(records).toHaveLength(15)
      await ship(
        database,
        records.filter(record => !record.request_id.endsWith('_3')),
      )
      const addCost = (microcents: number) =>
        redis.send('', ['HINCRBY', keys.account(first), 'cost', String(microcents)])
      // An allowance is no usage.
      await meter.renew()
      expect(Number(await redis.send('', ['HLEN', `${keys.account(first)}:held`]))).toBe(1)
      const scope: AuditScope = { from: '2026-05-04', to: '2026-05-05', accountId: null }
      const own = async (accountId: string) =>
        audit(database, [journalSource(directory), redisSource(redis, keys)], { ...scope, accountId })
      for (const accountId of accounts)
        expect(await own(accountId)).toMatchObject({
          isWhole: true,
          counters: 1,
          requests: 2,
          waiting: { requests: 1 },
        })
      // Nor does usage without a reservation differ.
      const last = accounts.at(-1) ?? ''
      await meter.charge(usageRecord({ request_id: 'charged', account_id: last, at_ms: start, billed_microcents: 70 }))
      expect(await own(last)).toMatchObject({ isWhole: true, waiting: { requests: 2 } })

      await addCost(1)
      expect((await own(first)).differences).toEqual([
        {
          kind: 'counter',
          account_id: first,
          day: '2026-05-05',
          ledger: { tokens: 90, microcents: 3006 },
          counter: { tokens: 90, microcents: 3007 },
        },
      ])
      // The counters of a deleted account are forgotten while its last requests end.
      const setDeleted = (at: string | null) =>
        database.run(({ sql }) => sql`update accounts set deleted_at = ${at}::text::timestamptz where id = ${first}`)
      await setDeleted('2026-05-05')
      expect(await own(first)).toMatchObject({ isWhole: true, counters: 0, waiting: { requests: 1 } })
      await setDeleted(null)
      await addCost(-1)
      // In another generation nothing is counted, hence nothing can differ.
      await redis.send('', ['HSET', keys.state(0), 'g', 'another:1'])
      expect(await own(first)).toMatchObject({ isWhole: true, counters: 0 })
    } finally {
      await closeMeter()
      redis.close()
      await redisServer.stop()
    }
  },
  240_000,
)
