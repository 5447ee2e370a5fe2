/** Fills a database with a month of two accounts' requests, through the shipper, and with the other logs of an account. */

import { createKey } from '../../../src/console/keys/stores/keys.ts'
import { dayMs } from '../../../src/core/text/utc-days.ts'
import type { UsageRecord } from '../../../src/core/usage/usage-record.ts'
import type { Database } from '../../../src/database/database.ts'
import { changeAccount, createAccount, findAccountByEmail } from '../../../src/database/repositories/accounts.ts'
import { apiKeys, users } from '../../../src/database/tables.ts'
import { createShipper } from '../../../src/ledger/shipper.ts'
import { type LogAccount, logRecords } from './records.ts'

export const logOwner = { email: 'owner@log.test', password: 'a password of the benchmark' } as const

export const loggedDays = 30

export type FillLogOptions = {
  readonly requests: number
  /** Of `logOwner`'s password. */
  readonly passwordHash: string
  /** Epoch milliseconds of the last request. */
  readonly until: number
  readonly onProgress: (line: string) => void
}

/** Returns true if the database has the accounts of an earlier run. */
export async function isFilled(database: Database): Promise<boolean> {
  return (await findAccountByEmail(database, logOwner.email)) !== null
}

/** Writes both accounts and their logs. Returns the seconds that shipping took. */
export async function fillLog(database: Database, options: FillLogOptions): Promise<number> {
  const { requests, until, onProgress } = options
  const from = until - loggedDays * dayMs
  const accounts = [
    await addAccount(database, { name: 'log', email: logOwner.email, keys: 40, from }, options.passwordHash),
    await addAccount(database, { name: 'other', email: 'owner@other.test', keys: 5, from }, 'argon2id'),
  ]
  const began = performance.now()
  await ship(database, logRecords({ accounts, requests, from, to: until }), onProgress)
  const seconds = (performance.now() - began) / 1000
  for (const { accountId } of accounts) await addOtherLogs(database, accountId, until)
  // As the server's own maintenance does it within minutes; the embedded database has none.
  if (typeof database.address === 'string') await database.run(({ sql }) => sql.unsafe('vacuum analyze'), 600_000)
  return seconds
}

type NewLogAccount = {
  readonly name: string
  readonly email: string
  readonly keys: number
  readonly from: number
}

/** Creates an account whose keys belong to its owner and three members in turn. The second key continues the first. */
async function addAccount(database: Database, { name, email, keys, from }: NewLogAccount, passwordHash: string) {
  const createdAt = new Date(from)
  const accountId = `acc_${name}`
  const userIds = Array.from({ length: 4 }, (_, n) => `usr_${name}${n}`)
  const owner = { id: `usr_${name}0`, accountId, email, passwordHash, role: 'owner', createdAt } as const
  await createAccount(database, { id: accountId, name, plan: 'usage', createdAt }, owner)
  await changeAccount(database, accountId, { dailyTokens: 1e12, dailyCostMicrocents: 1e15 })
  await database.run(({ orm }) =>
    orm.insert(users).values(
      userIds.slice(1).map(id => ({
        id,
        accountId,
        email: `${id}@${name}.test`,
        passwordHash,
        role: 'member' as const,
        createdAt,
      })),
    ),
  )
  const keyIds = Array.from({ length: keys }, (_, n) => `key_${name}${n}`)
  for (const [n, id] of keyIds.entries())
    await createKey(database, {
      id,
      accountId,
      userId: userIds[n % 4] ?? owner.id,
      name: `${name} ${n}`,
      publicId: id.padEnd(12, '_'),
      digest: id,
      createdAt,
    })
  await database.run(
    ({ sql }) => sql`update ${sql('api_keys')} set line_id = ${`key_${name}0`} where id = ${`key_${name}1`}`,
  )
  return { accountId, keyIds } satisfies LogAccount
}

/** Ships records as the gateway does, in its batches, with their daily totals. */
async function ship(database: Database, records: ReturnType<typeof logRecords>, onProgress: (line: string) => void) {
  let now = 0
  let isDone = false
  let shipped = 0
  const shipper = createShipper({
    journal: {
      take(maximum) {
        // Not `records.take`, which ends the generator.
        const batch: string[] = []
        let last: UsageRecord | undefined
        while (batch.length < maximum) {
          const { value, done } = records.next()
          if (done) break
          batch.push(JSON.stringify(value))
          last = value
        }
        if (last === undefined) {
          isDone = true
          return null
        }
        now = last.at_ms
        shipped += batch.length
        if (shipped % 100_000 === 0) onProgress(`${shipped} requests shipped`)
        return { texts: batch, release: () => {} }
      },
      aside: () => 0,
      onRecord() {},
      setAside: ({ request_id }) => {
        throw new Error(`the ledger rejects ${request_id}`)
      },
      backlog: () => (isDone ? 0 : 500),
    },
    database,
    // The shipper creates the partition of the month in which it ships.
    clock: { now: () => now },
    log: { warn: (event, fields) => onProgress(`${event} ${JSON.stringify(fields)}`), error: onProgress },
  })
  await shipper.drain(7_200_000)
  await shipper.close()
}

/** Writes 20,000 audit entries, 20,000 deliveries of webhooks, 20,000 rejected requests and 24 tags with limits. */
async function addOtherLogs(database: Database, accountId: string, until: number): Promise<void> {
  const at = (sql: Parameters<Parameters<Database['run']>[0]>[0]['sql']) =>
    sql`to_timestamp(${until}::float8 / 1000) - n * interval '2 minutes'`
  const [key] = await database.run(({ orm }) => orm.select().from(apiKeys).limit(1))
  await database.run(
    ({ sql }) => sql`
      insert into audit_log (id, account_id, at, actor, user_id, address, action, target, details)
      select 'aud_' || substr(md5(${accountId}::text), 1, 8) || lpad(to_hex(1000000 - n), 24, '0'), ${accountId}, ${at(sql)}, 'user', 'usr_log' || n % 4,
        '192.0.2.' || n % 200, (array['key.created', 'key.revoked', 'requests.exported'])[1 + n % 3], ${key?.id ?? ''}, '{"name":"log"}'
      from generate_series(1, 20000) as n`,
    60_000,
  )
  await database.run(
    ({ sql }) => sql`
      insert into webhook_endpoints (id, account_id, url, events, secret, created_at)
      values (${`whe_${accountId}`}, ${accountId}, 'https://hooks.example.com', array['key.created'], 'sealed', now())`,
  )
  await database.run(
    ({ sql }) => sql`
      insert into webhook_deliveries (id, account_id, endpoint_id, type, body, status, attempts, created_at, attempted_at, response_status)
      select 'msg_' || ${accountId}::text || lpad((1000000 - n)::text, 10, '0'), ${accountId}, ${`whe_${accountId}`}, 'key.created', '{}', 'delivered', 1,
        ${at(sql)}, ${at(sql)}, 200
      from generate_series(1, 20000) as n`,
    60_000,
  )
  await database.run(
    ({ sql }) => sql`
      insert into rejected_requests (request_id, at, account_id, key_id, dialect, streamed, error_code, latency_ms)
      select 'rej_' || ${accountId}::text || n, ${at(sql)}, ${accountId}, ${key?.id ?? ''}, 'chat_completions', false, 'invalid_request', 2
      from generate_series(1, 20000) as n`,
    60_000,
  )
  await database.run(
    ({ sql }) => sql`
      insert into tag_limits (account_id, name, value, limits, created_at)
      select ${accountId}, 'team', (array['search','support','growth','platform','research','billing'])[1 + n % 6] || case when n > 6 then n::text else '' end, '{"requestsPerMinute":null,"concurrentRequests":null,"dailyTokens":null,"dailyCostMicrocents":null,"monthlyCostMicrocents":100000000000}'::jsonb, now() from generate_series(1, 24) as n`,
  )
}
