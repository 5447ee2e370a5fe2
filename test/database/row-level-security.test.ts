/**
 * Protection in Postgres behind the queries' own filters: accounts see only their own rows, and billed records are
 * immutable.
 */
import { afterAll, beforeAll, describe, expect } from 'bun:test'
import type { TransactionSql } from 'postgres'
import { type Database, migrate, openDatabase } from '../../src/database/database.ts'
import { type Embedded, openEmbedded } from '../../src/database/embedded.ts'
import { withAccountRls } from '../../src/database/statement.ts'
import { openJournal } from '../../src/ledger/journal.ts'
import { createShipper } from '../../src/ledger/shipper.ts'
import { freshDataFolder } from '../harness/data-folder.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'
import { newAccount, newKey, quiet } from './database.contract.ts'
import { getOnDatabase } from './on-database.ts'
import { temporaryFolder, usageRecord } from './support.ts'

let embedded: Embedded | null = null
let postgres: PrivatePostgres | null = null
const databases: Record<'embedded' | 'real', Database | null> = { embedded: null, real: null }

beforeAll(async () => {
  embedded = await openEmbedded(await freshDataFolder())
  databases.embedded = openDatabase(embedded.address, patientStore)
  await migrate(databases.embedded)
  postgres = await startPostgres()
  if (postgres === null) return
  databases.real = openDatabase(postgres.url, patientStore)
  await migrate(databases.real)
}, 240_000)
afterAll(async () => {
  for (const database of Object.values(databases)) await database?.close()
  await embedded?.close()
  await postgres?.stop()
}, 240_000)

/** Tables with a policy, and the query for an account's rows. */
const walled = [
  'accounts',
  'users',
  'api_keys',
  'sessions',
  'session_tokens',
  'invitations',
  'password_resets',
  'known_addresses',
  'email_verifications',
  'user_identities',
  'oidc_sign_ins',
  'totp_secrets',
  'totp_recovery_codes',
  'payment_methods',
  'plan_changes',
  'billing_cycles',
  'invoices',
  'invoice_lines',
  'webhook_events',
  'idempotency_keys',
  'email_notices',
  'usage_records',
  'usage_daily',
  'usage_replaced',
  'rejected_requests',
  'learning_accounts',
  'learning_state',
  'audit_log',
  'webhook_endpoints',
  'webhook_deliveries',
  'alert_rules',
  'projects',
  'project_members',
] as const

/** Creates an account with a row in every table. */
async function settled(database: Database): Promise<{ accountId: string; userId: string }> {
  const owner = await newAccount(database)
  const { accountId, userId } = owner
  await newKey(database, owner)
  const [ses, cyc, inv] = [`ses_${accountId}`, `cyc_${accountId}`, `inv_${accountId}`]
  await database.run(async ({ sql }) => {
    await sql`insert into sessions (id, account_id, user_id, created_at, last_used_at, expires_at) values (${ses}, ${accountId}, ${userId}, now(), now(), now())`
    await sql`insert into session_tokens (digest, session_id, created_at) values (${ses}, ${ses}, now())`
    await sql`insert into invitations (id, account_id, email, role, invited_by, digest, created_at, expires_at) values (${inv}, ${accountId}, 'a@b', 'member', ${userId}, ${inv}, now(), now())`
    await sql`insert into password_resets (digest, user_id, email, created_at, expires_at) values (${ses}, ${userId}, 'a@b', now(), now())`
    await sql`insert into known_addresses (user_id, digest, last_used_at) values (${userId}, ${ses}, now())`
    await sql`insert into email_verifications (digest, user_id, email, created_at, expires_at) values (${ses}, ${userId}, 'a@b', now(), now())`
    await sql`insert into user_identities (issuer, subject, user_id, created_at, last_used_at) values (${accountId}, 's', ${userId}, now(), now())`
    await sql`insert into oidc_sign_ins (digest, user_id, created_at, expires_at) values (${ses}, ${userId}, now(), now())`
    await sql`insert into totp_secrets (user_id, secret, created_at) values (${userId}, ${ses}, now())`
    await sql`insert into totp_recovery_codes (user_id, digest) values (${userId}, ${ses})`
    await sql`insert into payment_methods (id, account_id, kind, created_at) values (${`pay_${accountId}`}, ${accountId}, 'manual', now())`
    await sql`insert into plan_changes (account_id, version, from_plan, to_plan, requested_at, effective_at) values (${accountId}, 1, 'evaluation', 'usage', now(), now())`
    await sql`insert into billing_cycles (id, account_id, starts_at, ends_at) values (${cyc}, ${accountId}, now(), now() + interval '1 day')`
    await sql`insert into invoices (id, account_id, cycle_id, status, total_microcents, total_cents, issued_at) values (${inv}, ${accountId}, ${cyc}, 'open', 5, 1, now())`
    await sql`insert into invoice_lines (invoice_id, model, requests, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, amount_microcents) values (${inv}, 'm', 1, 1, 0, 1, 0, 5)`
    await sql`insert into webhook_events (id, type, account_id, occurred_at, received_at) values (${`evt_${accountId}`}, 't', ${accountId}, now(), now())`
    await sql`insert into idempotency_keys (account_id, name, request_digest, status, lease_ends_at, created_at) values (${accountId}, 'n', 'd', 'running', now(), now())`
    await sql`insert into email_notices (account_id, kind, subject, user_id, due_at, created_at) values (${accountId}, 'invoice_unpaid', ${inv}, ${userId}, now(), now())`
    await sql`insert into audit_log (id, account_id, actor, action, details) values (${`aud_${accountId}`}, ${accountId}, 'system', 'key.created', '{}')`
    await sql`insert into webhook_endpoints (id, account_id, url, events, secret, created_at) values (${`whk_${accountId}`}, ${accountId}, 'u', '{}', 's', now())`
    await sql`insert into webhook_deliveries (id, account_id, endpoint_id, type, body) values (${`msg_${accountId}`}, ${accountId}, ${`whk_${accountId}`}, 't', '{}')`
    await sql`insert into alert_rules (id, account_id, metric, threshold, window_minutes, created_at) values (${`alr_${accountId}`}, ${accountId}, 'spend', 1, 15, now())`
    await sql`insert into projects (id, account_id, name, created_at) values (${`prj_${accountId}`}, ${accountId}, 'p', now())`
    await sql`insert into project_members (project_id, user_id, account_id, role, created_at) values (${`prj_${accountId}`}, ${userId}, ${accountId}, 'admin', now())`
    await sql`insert into rejected_requests (request_id, at, account_id, key_id, streamed, error_code, latency_ms) values (${`rej_${accountId}`}, now(), ${accountId}, 'k', false, 'invalid_request', 1)`
    await sql`insert into learning_accounts (account_id) values (${accountId})`
    await sql`insert into learning_state (account_id, query_type, model, requests, entries, since, at, weight, quality, spread, slump, slump_weight, slump_quality, latency_ms, cost_microcents, ratio, ratio_variance, ratings, rating, automatic, influenced, enhanced, enhanced_quality, plain_quality) values (${accountId}, 'code', 'm', 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)`
  }, 240_000)
  const record = usageRecord({ request_id: `req_${accountId}`, account_id: accountId })
  await shipped(database, [{ ...record, truth: 'checkpoint', status: 'failed' }])
  await shipped(database, [record])
  return { accountId, userId }
}

async function shipped(database: Database, records: Parameters<ReturnType<typeof openJournal>['append']>[0][]) {
  const folder = temporaryFolder()
  const journal = openJournal({ directory: folder.path })
  for (const record of records) journal.append(record)
  const shipper = createShipper({ journal, database, clock: { now: Date.now }, log: quiet })
  expect(await shipper.drain(5000)).toBe(true)
  await shipper.close()
  await journal.close()
  folder.remove()
}

for (const name of ['embedded', 'real'] as const) {
  const on = getOnDatabase(name, () => databases[name], 60_000)

  describe(`row-level security on the ${name} database [A2]`, () => {
    on('a query without its filter finds the account’s own rows alone, in every table', async database => {
      const [own, other] = [await settled(database), await settled(database)]
      for (const table of walled) {
        const text = await withAccountRls(database, own.accountId).sql(
          sql => sql<{ rows: string }[]>`select json_agg(t)::text as rows from ${sql(table)} as t`,
        )
        expect([table, text[0]?.rows.includes(own.accountId)]).toEqual([table, true])
        expect([table, text[0]?.rows.includes(other.accountId)]).toEqual([table, false])
        const all = await database.run(
          ({ sql }) => sql<{ rows: string }[]>`select json_agg(t)::text as rows from ${sql(table)} as t`,
        )
        expect([table, all[0]?.rows.includes(other.accountId)]).toEqual([table, true])
      }
    })

    on('Drizzle’s queries stand behind the same wall', async database => {
      const [own, other] = [await settled(database), await settled(database)]
      const { apiKeys } = await import('../../src/database/tables.ts')
      const rows = await withAccountRls(database, own.accountId).orm(step => step.select().from(apiKeys))
      expect(rows.map(row => row.accountId)).toEqual([own.accountId])
      expect(rows.some(row => row.accountId === other.accountId)).toBe(false)
    })

    on('a write without its filter changes no foreign row, and none can be made', async database => {
      const [own, other] = [await settled(database), await settled(database)]
      const inside = withAccountRls(database, own.accountId)
      expect((await inside.sql(sql => sql`update users set password_hash = 'x' returning account_id`)).length).toBe(1)
      expect((await inside.sql(sql => sql`delete from sessions returning account_id`)).length).toBe(1)
      const foreign = inside.sql(
        sql => sql`insert into api_keys (id, account_id, user_id, name, public_id, digest, created_at)
          values ('key_foreign', ${other.accountId}, ${other.userId}, 'n', 'p', 'd', now())`,
      )
      await expect(foreign).rejects.toThrow('row-level security')
      const moved = inside.sql(sql => sql`update api_keys set account_id = ${other.accountId}`)
      await expect(moved).rejects.toThrow('row-level security')
    })

    on('no account entered is no account seen, and the wall goes with the transaction', async database => {
      await settled(database)
      expect(await withAccountRls(database, '').sql(sql => sql`select 1 from usage_records`)).toHaveLength(0)
      expect((await database.run(({ sql }) => sql`select 1 from usage_records`)).length).toBeGreaterThan(0)
      const [role] = await database.run(({ sql }) => sql<{ role: string }[]>`select current_user::text as role`)
      expect(role?.role).toBe('postgres')
    })

    on('C3 who has entered an account is not the tables’ owner', async database => {
      const { accountId } = await settled(database)
      const inside = withAccountRls(database, accountId)
      for (const forbidden of [
        (sql: Parameters<Parameters<typeof inside.sql>[0]>[0]) => sql`drop table users`,
        (sql: Parameters<Parameters<typeof inside.sql>[0]>[0]) => sql`alter table users disable row level security`,
        (sql: Parameters<Parameters<typeof inside.sql>[0]>[0]) => sql`select 1 from sign_in_failures`,
        (sql: Parameters<Parameters<typeof inside.sql>[0]>[0]) => sql`update usage_records set billed_microcents = 0`,
        (sql: Parameters<Parameters<typeof inside.sql>[0]>[0]) => sql`update usage_records set truth = 'final'`,
        (sql: Parameters<Parameters<typeof inside.sql>[0]>[0]) => sql`update usage_records set quality = 1`,
        (sql: Parameters<Parameters<typeof inside.sql>[0]>[0]) => sql`update usage_replaced set account_id = 'acc_1'`,
        (sql: Parameters<Parameters<typeof inside.sql>[0]>[0]) => sql`delete from invoice_lines`,
      ])
        await expect(inside.sql(sql => forbidden(sql))).rejects.toThrow(/must be owner|permission denied/)
    })
  })

  describe(`row-level security of the team on the ${name} database [C3]`, () => {
    on('who may only read sees what was used and billed by everybody, and no secret', async database => {
      const [item, other] = [await settled(database), await settled(database)]
      const analyze = <T>(work: (sql: TransactionSql) => PromiseLike<T>) =>
        database.run(({ sql }) =>
          sql.begin(async step => {
            await step`set local role gateway_read`
            await work(step)
          }),
        )
      await analyze(async sql => {
        const rows = await sql<{ account_id: string }[]>`select account_id from usage_records`
        const seen = new Set(rows.map(row => row.account_id))
        expect([seen.has(item.accountId), seen.has(other.accountId)]).toEqual([true, true])
      })
      await expect(analyze(sql => sql`select 1 from users`)).rejects.toThrow('permission denied')
      await expect(analyze(sql => sql`select 1 from api_keys`)).rejects.toThrow('permission denied')
      await expect(analyze(sql => sql`insert into invoices default values`)).rejects.toThrow('permission denied')
    })
  })

  describe(`row-level security of billing on the ${name} database [M3]`, () => {
    on('what was billed can be neither changed nor deleted, by the owner of the tables either', async database => {
      await settled(database)
      const { run } = database
      for (const tampering of [
        () => run(({ sql }) => sql`update usage_records set billed_microcents = 0`),
        () => run(({ sql }) => sql`delete from usage_records`),
        () => run(({ sql }) => sql`truncate usage_records`),
        () => run(({ sql }) => sql`update invoice_lines set amount_microcents = 0`),
        () => run(({ sql }) => sql`delete from invoice_lines`),
        () => run(({ sql }) => sql`delete from plan_changes`),
        () => run(({ sql }) => sql`update invoices set total_cents = 0`),
        () => run(({ sql }) => sql`delete from invoices`),
        () => run(({ sql }) => sql`update billing_cycles set ends_at = ends_at + interval '1 day'`),
        () => run(({ sql }) => sql`delete from webhook_events`),
      ])
        await expect(tampering()).rejects.toThrow('append-only')
      expect((await run(({ sql }) => sql`update invoices set status = 'unpaid' returning id`)).length).toBeGreaterThan(
        0,
      )
    })

    on('a month’s partition may be dropped whole', async database => {
      const at = Date.UTC(2032, 5, 15)
      await shipped(database, [usageRecord({ request_id: `dropped_${name}`, at_ms: at })])
      await database.run(({ sql }) => sql`drop table usage_records_2032_06`)
      const left = await database.run(
        ({ sql }) => sql`select 1 from usage_records where request_id = ${`dropped_${name}`}`,
      )
      expect(left).toHaveLength(0)
    })

    on('a request shipped twice around a month’s end is in the ledger and the sums once', async database => {
      const { accountId } = await newAccount(database)
      const midnight = Date.UTC(2033, 2, 1)
      const twice = ['one', 'two'].flatMap(id => [
        usageRecord({ request_id: `${accountId}_${id}`, account_id: accountId, at_ms: midnight - 3 }),
        usageRecord({ request_id: `${accountId}_${id}`, account_id: accountId, at_ms: midnight }),
      ])
      await shipped(
        database,
        twice.filter((_, index) => index !== 3),
      )
      await shipped(database, twice)
      const [sums] = await database.run(
        ({ sql }) => sql<{ requests: number; rows: number }[]>`
          select coalesce(sum(requests), 0)::int as requests,
            (select count(*)::int from usage_records where account_id = ${accountId}) as rows
          from usage_daily where account_id = ${accountId}`,
      )
      expect({ ...sums }).toEqual({ requests: 2, rows: 2 })
    })
  })
}

describe('database user without superuser rights', () => {
  testNeeding(
    'postgres',
    'activates row-level security if it may create roles, and reports it otherwise [C3]',
    async () => {
      await needed(databases.real).run(async ({ sql }) => {
        await sql`create role may_make login createrole`
        await sql`create role may_not login`
        await sql`create database maker owner may_make`
        await sql`create database other owner may_not`
        // Roles belong to the whole server: renaming them simulates a first start.
        await sql`alter role gateway_app rename to gateway_app_aside`
        await sql`alter role gateway_read rename to gateway_read_aside`
      }, 240_000)
      const open = (user: string, name: string) => {
        const url = new URL(postgres?.url ?? '')
        url.username = user
        url.pathname = `/${name}`
        return openDatabase(url.href, patientStore)
      }
      const [poor, maker] = [open('may_not', 'other'), open('may_make', 'maker')]
      try {
        expect(await migrate(poor)).toBe(false)
        const [item, two] = [await newAccount(poor), await newAccount(poor)]
        // Everything still works, with the queries' filters as the only protection.
        const seen = await withAccountRls(poor, item.accountId).sql(
          sql => sql<{ id: string }[]>`select id from accounts`,
        )
        expect(seen.map(({ id }) => id).sort()).toEqual([item.accountId, two.accountId].sort())

        expect(await migrate(maker)).toBe(true)
        expect(await migrate(maker)).toBe(true)
        const own = await newAccount(maker)
        await newAccount(maker)
        const rows = await withAccountRls(maker, own.accountId).sql(
          sql => sql<{ id: string }[]>`select id from accounts`,
        )
        expect(rows.map(({ id }) => id)).toEqual([own.accountId])
      } finally {
        await poor.close()
        await maker.close()
      }
    },
    240_000,
  )
})
