/** Guarantees of accounts, keys, ledger and shipper on every Postgres: the embedded one and a real one. */
import { describe, expect } from 'bun:test'
import { join } from 'node:path'
import { createKey, createKeyDirectory, listKeys, resumeKeys, revokeKey } from '../../src/console/keys/stores/keys.ts'
import { mintApiKey } from '../../src/core/accounts/api-keys.ts'
import { type PlanName, plans } from '../../src/core/limits/plans.ts'
import { dayMs } from '../../src/core/text/utc-days.ts'
import { durationBoundsMs } from '../../src/core/usage/latency-histogram.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { type Database, migrate, openDatabase } from '../../src/database/database.ts'
import {
  changeAccount,
  createAccount,
  findAccountByEmail,
  hasAccounts,
} from '../../src/database/repositories/accounts.ts'
import { openJournal } from '../../src/ledger/journal.ts'
import { createUsageSeed, getDailyUsage } from '../../src/ledger/ledger.ts'
import type { RequestFilters } from '../../src/ledger/request-filters.ts'
import { createShipper } from '../../src/ledger/shipper.ts'
import { readUsage } from '../../src/ledger/usage-totals.ts'
import { eventually } from '../harness/eventually.ts'
import { getOnDatabase } from './on-database.ts'
import { temporaryFolder, toTexts, usageRecord } from './support.ts'
import { findRequest } from './usage-row.ts'

const random = (count: number) => crypto.getRandomValues(new Uint8Array(count))
const clock = { now: () => Date.now() }
let last = 0
const fresh = (prefix: string) => `${prefix}_${Date.now().toString(36)}${String(++last).padStart(6, '0')}`

/** Creates an account per test, so that the tests share one database. */
export async function newAccount(database: Database, plan: PlanName = 'usage') {
  const accountId = fresh('acc')
  const email = `${accountId}@Example.test`
  const at = new Date()
  const owner = { id: fresh('usr'), accountId, email, passwordHash: 'argon2id', role: 'owner' as const, createdAt: at }
  await createAccount(database, { id: accountId, name: 'Test', plan, createdAt: at }, owner)
  return { accountId, userId: owner.id, email }
}

export async function newKey(
  database: Database,
  owner: { accountId: string; userId: string },
  expiresAt: Date | null = null,
) {
  const minted = mintApiKey(random)
  const keyId = fresh('key')
  await createKey(database, {
    ...owner,
    id: keyId,
    name: 'k',
    publicId: minted.id,
    digest: minted.digest,
    createdAt: new Date(),
    expiresAt,
  })
  return { ...minted, keyId }
}

/** Returns the shortfall of a key, and the request with the largest part of it. */
async function findShortfall(database: Database, { accountId }: { accountId: string }, keyId: string) {
  const key = (await listKeys(database, accountId)).find(({ id }) => id === keyId)
  return [key?.shortfallMicrocents, key?.shortfallRequestId]
}

/** Ships records like a gateway. */
async function shipAll(database: Database, records: readonly UsageRecord[]): Promise<void> {
  const folder = temporaryFolder()
  const journal = openJournal({ directory: join(folder.path, 'journal') })
  for (const record of records) journal.append(record)
  const shipper = createShipper({ journal, database, clock, log: quiet })
  expect(await shipper.drain(30_000)).toBe(true)
  await shipper.close()
  await journal.close()
  folder.remove()
}

export const quiet = { warn: () => {}, error: () => {} }
const anyRequest: RequestFilters = {
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
const directoryOn = (database: Database) => createKeyDirectory({ database, clock, plans, random: () => 0.5 })

export function databaseContract(name: string, open: () => Database | null): void {
  const onDatabase = getOnDatabase(name, open, 60_000)

  describe(name, () => {
    onDatabase('migrations may run again, and several at once', async database => {
      await Promise.all([migrate(database), migrate(database)])
    })

    onDatabase('an account is found by its owner’s e-mail in any case, and made once', async database => {
      const { accountId, userId, email } = await newAccount(database)
      expect(await findAccountByEmail(database, email.toUpperCase())).toMatchObject({
        account: { id: accountId, plan: 'usage', dailyTokens: null },
        user: { id: userId, role: 'owner', email: email.toLowerCase() },
      })
      expect(await findAccountByEmail(database, "' or 1=1 --")).toBeNull()
      expect(await hasAccounts(database)).toBe(true)
      const again = {
        id: fresh('usr'),
        accountId,
        email,
        passwordHash: 'x',
        role: 'owner' as const,
        createdAt: new Date(),
      }
      await expect(
        createAccount(database, { id: fresh('acc'), name: 'B', plan: 'usage', createdAt: new Date() }, again),
      ).rejects.toThrow()
    })

    onDatabase('K2 no table holds the key itself', async database => {
      const { key } = await newKey(database, await newAccount(database))
      const dump = await database.run(({ sql }) => sql`select json_agg(api_keys)::text as text from api_keys`)
      expect(dump[0]?.text).not.toContain(key.slice(21, 64))
    })

    onDatabase('a key is recognised, from then on without a promise, with its plan’s limits', async database => {
      const owner = await newAccount(database)
      const { key, keyId } = await newKey(database, owner)
      const keys = directoryOn(database)
      const caller = { accountId: owner.accountId, keyId, plan: 'usage', limits: plans.usage }
      expect(await keys.find(key)).toEqual(caller as never)
      expect(keys.find(key)).toEqual(caller as never)
      await keys.close()
    })

    onDatabase('unknown, malformed and expired keys are nobody’s', async database => {
      const keys = directoryOn(database)
      const { key } = await newKey(database, await newAccount(database), new Date(Date.now() - 1000))
      expect(await keys.find(key)).toBeNull()
      const unknown = mintApiKey(random).key
      expect(await keys.find(unknown)).toBeNull()
      expect(keys.find(unknown)).toBeNull()
      expect(keys.find('gw_live_nonsense')).toBeNull()
      await keys.close()
    })

    onDatabase('K4 a key with another’s public id is not that key', async database => {
      const owner = await newAccount(database)
      const real = await newKey(database, owner)
      const keys = directoryOn(database)
      // Same ID, another secret, with a valid checksum.
      let calls = 0
      const forged = mintApiKey(count => (calls++ === 0 ? idBytes(real.id) : random(count)))
      expect(forged.id).toBe(real.id)
      expect(await keys.find(forged.key)).toBeNull()
      expect(await keys.find(real.key)).not.toBeNull()
      await keys.close()
    })

    onDatabase('K6 a revoked key is refused within a second even while cached', async database => {
      const owner = await newAccount(database)
      const { key, keyId } = await newKey(database, owner)
      const keys = directoryOn(database)
      expect(await keys.find(key)).not.toBeNull()
      await keys.look()
      expect(await revokeKey(database, owner.accountId, keyId, new Date())).toBe(true)
      await eventually(() => keys.find(key) === null, 1000)
      expect(await revokeKey(database, owner.accountId, keyId, new Date())).toBe(false)
      expect((await listKeys(database, owner.accountId)).map(item => [item.id, item.revokedAt !== null])).toEqual([
        [keyId, true],
      ])
      await keys.close()
    })

    onDatabase('a key in use is listed however many were revoked before it', async database => {
      const owner = await newAccount(database)
      const { keyId } = await newKey(database, owner)
      await database.run(
        ({ sql }) => sql`
          insert into api_keys (id, account_id, user_id, name, public_id, digest, created_at, revoked_at)
          select ${keyId} || n, account_id, user_id, name, public_id || n, digest || n,
            created_at + make_interval(secs => n - 600), created_at
          from api_keys, generate_series(1, 1200) n where id = ${keyId}`,
      )
      const listed = await listKeys(database, owner.accountId)
      const times = listed.map(({ createdAt }) => Number(createdAt))
      expect(listed.filter(({ revokedAt }) => revokedAt === null).map(({ id }) => id)).toEqual([keyId])
      expect([listed.length, times]).toEqual([1000, times.toSorted((time, other) => time - other)])
      // More changes than a poll returns would clear the caches of other tests.
      await database.run(({ sql }) => sql`delete from api_keys where id like ${`${keyId}_%`}`)
    })

    onDatabase(
      'K6 a gateway that is told looks at once, and however often it is told, once more is enough',
      async database => {
        const owner = await newAccount(database)
        const { key, keyId } = await newKey(database, owner)
        const keys = directoryOn(database)
        await keys.look()
        expect(await keys.find(key)).not.toBeNull()
        await revokeKey(database, owner.accountId, keyId, new Date())
        await Promise.all(Array.from({ length: 50 }, () => keys.look()))
        expect(keys.find(key)).toBeNull()
        await keys.close()
      },
    )

    onDatabase(
      'changed limits reach a cached key, and a key made after it was refused becomes known',
      async database => {
        const owner = await newAccount(database)
        const { key } = await newKey(database, owner)
        const keys = directoryOn(database)
        await keys.find(key)
        await keys.look()
        expect(await changeAccount(database, owner.accountId, { requestsPerMinute: 77 })).toBe(true)
        const limits = { ...plans.usage, requestsPerMinute: 77 }
        await eventually(async () => Bun.deepEquals((await keys.find(key))?.limits, limits), 5000)

        const minted = mintApiKey(random)
        expect(await keys.find(minted.key)).toBeNull()
        const row = {
          ...owner,
          id: fresh('key'),
          name: 'k',
          publicId: minted.id,
          digest: minted.digest,
          createdAt: new Date(),
        }
        await createKey(database, row)
        await eventually(async () => (await keys.find(minted.key)) !== null, 6000)
        await keys.close()
      },
    )

    onDatabase('K10 last_used_at is written behind the request', async database => {
      const owner = await newAccount(database)
      const { key } = await newKey(database, owner)
      const keys = directoryOn(database)
      await keys.find(key)
      await keys.find(key)
      await keys.close()
      expect((await listKeys(database, owner.accountId))[0]?.lastUsedAt).toBeInstanceOf(Date)
    })

    onDatabase(
      'createKeyDirectory: writes the last use of a key when its only request is the first one',
      async database => {
        const owner = await newAccount(database)
        const { key } = await newKey(database, owner)
        const lastUse = async () => (await listKeys(database, owner.accountId))[0]?.lastUsedAt?.getTime() ?? null
        const at = Date.parse('2026-03-04T05:06:07.008Z')
        const first = createKeyDirectory({ database, clock: { now: () => at }, plans, random: () => 0.5 })
        await first.find(mintApiKey(random).key)
        expect(await lastUse()).toBeNull()
        await first.find(key)
        await first.close()
        expect(await lastUse()).toBe(at)

        // A restarted process.
        const next = createKeyDirectory({ database, clock: { now: () => at + 1_000 }, plans, random: () => 0.5 })
        await next.find(key)
        await next.close()
        expect(await lastUse()).toBe(at + 1_000)
      },
    )

    onDatabase('createKeyDirectory: writes a last use later when the store refuses the first write', async database => {
      const owner = await newAccount(database)
      const { key } = await newKey(database, owner)
      let isAway = false
      let writes = 0
      const failing: Database = {
        ...database,
        run(work, deadlineMs) {
          if (!isAway) return database.run(work, deadlineMs)
          writes++
          return Promise.reject(new Error('away'))
        },
      }
      const keys = directoryOn(failing)
      await keys.find(key)
      isAway = true
      await eventually(() => writes > 3, 10_000)
      isAway = false
      await eventually(async () => (await listKeys(database, owner.accountId))[0]?.lastUsedAt != null, 10_000)
      await keys.close()
    })

    onDatabase('many lookups of one key ask the store once', async database => {
      const { key } = await newKey(database, await newAccount(database))
      let asked = 0
      const counted: Database = {
        ...database,
        run(work, deadlineMs) {
          asked++
          return database.run(work, deadlineMs)
        },
      }
      const keys = directoryOn(counted)
      const found = await Promise.all(Array.from({ length: 50 }, () => keys.find(key)))
      expect(found.every(item => item !== null)).toBe(true)
      expect(asked).toBe(1)
      await keys.close()
    })

    onDatabase('shipped twice, records are in the ledger and in the daily sums once', async database => {
      const accountId = fresh('acc')
      const at = Date.UTC(2026, 4, 5, 23, 59, 59, 999)
      const records = Array.from({ length: 1200 }, (_, index) =>
        usageRecord({
          request_id: `${accountId}_${index}`,
          account_id: accountId,
          at_ms: index % 2 === 0 ? at : at + 1,
          metadata: index === 0 ? { note: 'a"b' } : null,
          status: index % 3 === 0 ? 'failed' : index % 3 === 1 ? 'completed' : 'client_closed',
          latency_ms: index % 2 === 0 ? 400 : 9_000,
          ...(index === 0 ? { tried: [['openai/gpt-test', 'timeout', 2, 398]] } : {}),
        }),
      )
      for (let round = 0; round < 2; round++) {
        const folder = temporaryFolder()
        const journal = openJournal({ directory: join(folder.path, 'journal') })
        for (const record of records) journal.append(record)
        const shipper = createShipper({ journal, database, clock, log: quiet })
        expect(await shipper.drain(30_000)).toBe(true)
        await shipper.close()
        await journal.close()
        folder.remove()
      }
      const day = Math.floor(at / 86_400_000)
      expect(await getDailyUsage(database, accountId, day)).toEqual({ tokens: 600 * 30, microcents: 600 * 30 })
      expect(await getDailyUsage(database, accountId, day + 1)).toEqual({ tokens: 600 * 30, microcents: 600 * 30 })
      expect(await findRequest(database, `${accountId}_0`)).toMatchObject({
        at: new Date(at),
        metadata: { note: 'a"b' },
        billedMicrocents: 30,
        tried: [['openai/gpt-test', 'timeout', 2, 398]],
      })
      expect((await findRequest(database, `${accountId}_1`))?.tried).toEqual([])
      const sums = await database.run(
        ({ sql }) =>
          sql`select sum(requests)::int as requests, sum(completed)::int as completed, sum(failed)::int as failed from usage_daily where account_id = ${accountId}`,
      )
      expect({ ...sums[0] }).toEqual({ requests: 1200, completed: 400, failed: 400 })
      // Several batches of one day are summed: a histogram each of 400 ms and of 9 s.
      const period = { from: '2026-05-05', to: '2026-05-06', groupBy: 'day', splitBy: null } as const
      const { groups } = await readUsage(database, { accountId, userId: null }, period)
      const counted = groups.map(({ latency }) =>
        latency.flatMap((count, slot) => (count === 0 ? [] : [[slot, count]])),
      )
      const getSlot = (time: number) => durationBoundsMs.filter(bound => bound <= time).length
      expect(counted).toEqual([[[getSlot(400), 200]], [[getSlot(9_000), 200]]])
      expect(groups.map(({ first_token }) => first_token.reduce((sum, count) => sum + count, 0))).toEqual([200, 200])
    })

    onDatabase('usage of a tag names the requested model of requests that no model served', async database => {
      const { accountId } = await newAccount(database)
      const unserved = { provider: '', model: '', status: 'failed', requested_model: 'openai/gpt-lost' } as const
      const records = [
        { tags: { team: 'a' } },
        { ...unserved, tags: { team: 'a', stage: 'x' } },
        { ...unserved, tags: { team: 'b' } },
        unserved,
      ].map((changes, index) =>
        usageRecord({
          ...changes,
          request_id: `${accountId}_${index}`,
          account_id: accountId,
          at_ms: Date.UTC(2026, 4, 5, 12),
        }),
      )
      await shipAll(database, records)
      const period = { from: '2026-05-05', to: '2026-05-05', groupBy: 'model', splitBy: null, tag: 'team=a' } as const
      const scope = { accountId, userId: null }
      const { total, groups } = await readUsage(database, scope, period)
      const counted = groups.map(({ unit, requests, failed }) => [unit, requests, failed])
      expect(counted.toSorted()).toEqual([
        ['openai/gpt-lost', 1, 1],
        ['openai/gpt-test', 1, 0],
      ])
      expect(total.requests).toBe(2)
      const byTag = await readUsage(database, scope, { ...period, groupBy: 'tag', splitBy: null, tag: null })
      expect(byTag.groups.map(({ unit, requests }) => [unit, requests]).toSorted()).toEqual([
        ['stage=x', 1],
        ['team=a', 2],
        ['team=b', 1],
      ])
      const filters = { ...anyRequest, model: 'gpt-lost' }
      const ofModel = await readUsage(database, scope, { ...period, groupBy: 'tag', tag: 'team', filters })
      expect(ofModel.groups.map(({ unit, requests }) => [unit, requests]).toSorted()).toEqual([
        ['team=a', 1],
        ['team=b', 1],
      ])
    })

    onDatabase('shipper: adds the shortfall to its key once when records arrive twice', async database => {
      const owner = await newAccount(database)
      const [{ keyId }, other] = [await newKey(database, owner), await newKey(database, owner)]
      const records = [0, 700, 11].map((shortfall_microcents, index) => ({
        ...usageRecord({ request_id: `${owner.accountId}_${index}`, account_id: owner.accountId, key_id: keyId }),
        ...(shortfall_microcents === 0 ? {} : { shortfall_microcents }),
      }))
      for (const shipped of [records, records.toReversed(), records.slice(1)]) await shipAll(database, shipped)
      const largest = `${owner.accountId}_1`
      expect(await findShortfall(database, owner, keyId)).toMatchObject([711, largest])
      expect(await findShortfall(database, owner, other.keyId)).toEqual([0, null])
      expect((await findRequest(database, largest))?.shortfallMicrocents).toBe(700)
      expect(await resumeKeys(database, owner.accountId)).toBe(711)
      // Usage settled before the account was resumed is not counted again.
      await shipAll(database, records)
      expect(await findShortfall(database, owner, keyId)).toEqual([0, null])
    })

    onDatabase('shipper: counts the shortfall of a key by UTC day, and only that of the newest day', async database => {
      const owner = await newAccount(database)
      const { keyId } = await newKey(database, owner)
      const noon = Math.floor(Date.now() / dayMs) * dayMs - dayMs / 2
      const used = (id: string, at_ms: number, shortfall_microcents: number) =>
        usageRecord({ request_id: fresh(id), account_id: owner.accountId, key_id: keyId, at_ms, shortfall_microcents })
      await shipAll(database, [used('older', noon - dayMs, 900), used('newer', noon, 30)])
      expect(await findShortfall(database, owner, keyId)).toEqual([30, expect.stringContaining('newer')])
      await shipAll(database, [used('late', noon - dayMs, 5_000)])
      expect(await findShortfall(database, owner, keyId)).toEqual([30, expect.stringContaining('newer')])
      await shipAll(database, [used('small', noon, 2)])
      expect(await findShortfall(database, owner, keyId)).toEqual([32, expect.stringContaining('newer')])
      await shipAll(database, [used('next', noon + dayMs, 4)])
      expect(await findShortfall(database, owner, keyId)).toEqual([4, expect.stringContaining('next')])
    })

    onDatabase('shipper: replaces the shortfall of a checkpoint when the final record arrives', async database => {
      const owner = await newAccount(database)
      const { keyId } = await newKey(database, owner)
      const record = usageRecord({ request_id: fresh('req'), account_id: owner.accountId, key_id: keyId })
      await shipAll(database, [{ ...record, truth: 'checkpoint', shortfall_microcents: 500 }])
      await shipAll(database, [{ ...record, shortfall_microcents: 40 }])
      expect(await findShortfall(database, owner, keyId)).toEqual([40, record.request_id])
    })

    onDatabase('shipper: raises shortfalls of many keys when two gateways ship at once', async database => {
      const owners = await Promise.all(Array.from({ length: 8 }, () => newAccount(database)))
      const keys = await Promise.all(owners.map(owner => newKey(database, owner)))
      const getBatch = (gateway: number) =>
        owners.map(({ accountId }, index) =>
          usageRecord({
            request_id: `${accountId}_${gateway}`,
            account_id: accountId,
            key_id: keys[index]?.keyId ?? '',
            shortfall_microcents: 10 ** gateway,
          }),
        )
      await Promise.all(
        [0, 1, 2].map(gateway =>
          shipAll(
            database,
            getBatch(gateway).sort(() => gateway - 1),
          ),
        ),
      )
      const found = await Promise.all(owners.map((owner, at) => findShortfall(database, owner, keys[at]?.keyId ?? '')))
      expect(found).toEqual(owners.map(({ accountId }) => [111, `${accountId}_2`]))
    })

    onDatabase(
      'key directory: pauses one key of an evaluation account until the end of the UTC day',
      async database => {
        const owner = await newAccount(database, 'evaluation')
        const [{ key, keyId }, other] = [await newKey(database, owner), await newKey(database, owner)]
        const keys = createKeyDirectory({ database, clock, plans, maximumShortfall: 100, random: () => 0.5 })
        const getPause = async (text: string) => (await keys.find(text))?.pause
        expect(await getPause(key)).toBeUndefined()
        const at_ms = Date.now()
        const used = (request_id: string, shortfall_microcents: number) =>
          usageRecord({ request_id, account_id: owner.accountId, key_id: keyId, at_ms, shortfall_microcents })
        const [most, above] = [fresh('at_the_limit'), fresh('above')]
        await shipAll(database, [used(most, 100)])
        await keys.look()
        await keys.look()
        expect(await getPause(key)).toBeUndefined()
        await shipAll(database, [used(above, 1)])
        await eventually(async () => (await getPause(key)) !== undefined, 5_000)
        const until = (Math.floor(at_ms / dayMs) + 1) * dayMs
        expect(await getPause(key)).toEqual({ until, requestId: most, userId: owner.userId })
        expect(await getPause(other.key)).toBeUndefined()
        await resumeKeys(database, owner.accountId)
        await eventually(async () => (await getPause(key)) === undefined, 5_000)
        await keys.close()
      },
    )

    onDatabase('key directory: does not pause the keys of an account on the usage plan', async database => {
      const owner = await newAccount(database)
      const { key, keyId } = await newKey(database, owner)
      const account_id = owner.accountId
      await shipAll(database, [
        usageRecord({ request_id: fresh('req'), account_id, key_id: keyId, shortfall_microcents: 1e9 }),
      ])
      const keys = createKeyDirectory({ database, clock, plans, maximumShortfall: 100, random: () => 0.5 })
      expect((await keys.find(key))?.pause).toBeUndefined()
      await keys.close()
    })

    onDatabase('a record that the ledger refuses is set aside and holds up no other', async database => {
      const folder = temporaryFolder()
      const accountId = fresh('acc')
      const journal = openJournal({ directory: join(folder.path, 'journal') })
      for (let index = 0; index < 20; index++)
        journal.append(
          usageRecord({
            request_id: `${accountId}_${index}`,
            account_id: accountId,
            billed_microcents: index === 7 ? -1 : 5,
          }),
        )
      const shipper = createShipper({ journal, database, clock, log: quiet })
      expect(await shipper.drain(30_000)).toBe(true)
      expect((await getDailyUsage(database, accountId, Math.floor(usageRecord().at_ms / 86_400_000))).microcents).toBe(
        95,
      )
      expect(await Bun.file(join(folder.path, 'journal', 'refused.log')).text()).toContain(`${accountId}_7`)
      await shipper.close()
      await journal.close()
      folder.remove()
    })

    onDatabase('a meter’s seed counts what the journal still holds, and nothing twice', async database => {
      const folder = temporaryFolder()
      const accountId = fresh('acc')
      const journal = openJournal({ directory: join(folder.path, 'journal') })
      const records = Array.from({ length: 5 }, (_, index) =>
        usageRecord({ request_id: `${accountId}_${index}`, account_id: accountId }),
      )
      for (const record of records) journal.append(record)
      const day = Math.floor(usageRecord().at_ms / 86_400_000)
      const seed = createUsageSeed(database, journal)
      expect(await seed(accountId, day)).toEqual({ tokens: 150, microcents: 150 })
      // Committed and not yet released: in the ledger and in the journal at once.
      const held = {
        take: () => ({ texts: toTexts(records), release: () => {} }),
        setAside: () => {},
        aside: () => 0,
        onRecord() {},
        backlog: () => 5,
      }
      const shipper = createShipper({ journal: held, database, clock, log: quiet })
      await shipper.drain(300)
      await shipper.close()
      expect(await seed(accountId, day)).toEqual({ tokens: 150, microcents: 150 })
      folder.remove()
    })

    onDatabase('each month has its partition', async database => {
      const folder = temporaryFolder()
      const journal = openJournal({ directory: join(folder.path, 'journal') })
      const at = Date.UTC(2031, 11, 31)
      journal.append(usageRecord({ request_id: fresh('req'), at_ms: at }))
      const shipper = createShipper({ journal, database, clock, log: quiet })
      await shipper.drain(30_000)
      await shipper.close()
      const rows = await database.run(
        ({ sql }) =>
          sql`select distinct tableoid::regclass::text as name from usage_records where at = ${new Date(at).toISOString()}::timestamptz`,
      )
      expect(rows.map(row => row.name)).toEqual(['usage_records_2031_12'])
      folder.remove()
    })

    onDatabase('a query that takes too long is a 503 in time, and the next one is served', async database => {
      const hasty = openDatabase(database.address)
      const slow = hasty.run(({ sql }) => sql`select pg_sleep(2)`, 100)
      await expect(slow).rejects.toMatchObject({ code: 'service_unavailable', retryAfterMs: 1000 })
      await eventually(
        () =>
          hasty
            .run(({ sql }) => sql`select 1`)
            .then(
              () => true,
              error => !(error instanceof GatewayError),
            ),
        10_000,
      )
      await hasty.close()
    })
  })
}

/** Returns bytes from which `randomBase62` creates exactly this text. */
function idBytes(text: string): Uint8Array {
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  return Uint8Array.from(text, letter => alphabet.indexOf(letter))
}
