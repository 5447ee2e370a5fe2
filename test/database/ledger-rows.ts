/** Creates thousands of ledger rows inside Postgres. */
import type { TransactionSql } from 'postgres'
import { createKey } from '../../src/console/keys/stores/keys.ts'
import type { Database } from '../../src/database/database.ts'
import { users } from '../../src/database/tables.ts'
import { dailySums, slots } from './daily-sums.ts'
import { newAccount } from './database.contract.ts'

let last = 0
const fresh = (prefix: string) => `${prefix}_${Date.now().toString(36)}l${String(++last).padStart(6, '0')}`

/** The ledger is append-only: only a superuser who disables triggers can insert a fault. */
export function tampered<T>(database: Database, work: (sql: TransactionSql) => PromiseLike<T>): Promise<unknown> {
  return database.run(
    ({ sql }) =>
      sql.begin(async step => {
        await step`set local session_replication_role = replica`
        await work(step)
      }),
    60_000,
  )
}

/** Creates an account with an owner and a member with two keys each. */
export async function newTeam(database: Database) {
  const { accountId, userId: ownerId, email } = await newAccount(database)
  const memberId = fresh('usr')
  await database.run(({ orm }) =>
    orm.insert(users).values({
      id: memberId,
      accountId,
      email: `m.${email.toLowerCase()}`,
      passwordHash: 'argon2id',
      role: 'member',
      createdAt: new Date(),
    }),
  )
  const key = async (userId: string, name: string) => {
    const id = fresh('key')
    await createKey(database, { id, accountId, userId, name, publicId: id, digest: id, createdAt: new Date() })
    return id
  }
  return {
    accountId,
    ownerId,
    memberId,
    ownerKeys: [await key(ownerId, 'production'), await key(ownerId, '=cmd()')] as const,
    memberKeys: [await key(memberId, 'laptop'), await key(memberId, 'batch')] as const,
  }
}

export type Generated = {
  readonly accountId: string
  /** Used in turn. */
  readonly keyIds: readonly string[]
  readonly count: number
  /** Epoch milliseconds of the first; each is `stepMs` later than the previous one. */
  readonly start: number
  readonly stepMs: number
}

/**
 * Writes `count` requests and their daily sums: number n (from 1) is of key n, model n mod 20, provider n mod 2, streamed
 * every third, auto every other, failed every 500th, tagged `team` = `search` every tenth, billed n microcents, and was served
 * by the first model it asked.
 */
export async function generateUsage(database: Database, { accountId, keyIds, count, start, stepMs }: Generated) {
  await database.run(
    ({ sql }) => sql`
      insert into usage_records (
        request_id, at, account_id, key_id, provider, model, routing_mode, strategy, query_type, streamed, status,
        error_code, finish_reason, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
        estimated, billed_microcents, reserved_microcents, attempts, latency_ms, first_token_ms, metadata, tried)
      select
        'req_' || md5(${accountId}::text || n), timestamptz 'epoch' + (${start}::bigint + (n - 1) * ${stepMs}::bigint) * interval '1 ms',
        ${accountId}, (${JSON.stringify(keyIds)}::text::json) ->> (n % ${keyIds.length}::int), case n % 2 when 0 then 'openai' else 'google' end,
        'model-' || n % 20, case n % 2 when 0 then 'auto' else 'manual' end, null, 'code', n % 3 = 0,
        case when n % 500 = 0 then 'failed' else 'completed' end, case when n % 500 = 0 then 'upstream_failed' end, 'stop',
        100, 10, 0, 50, 5, false, n, n + 10, 1, 1200, 300,
        case when n % 10 = 0 then '{"team":"search"}'::jsonb end,
        jsonb_build_array(jsonb_build_array('openai/model-' || n % 20, 'served', 2, 298))
      from generate_series(1, ${count}::int) as n`,
    120_000,
  )
  await database.run(
    ({ sql }) =>
      dailySums(sql, sql`(select *, ${slots(sql)} from usage_records where account_id = ${accountId}) as records`),
    120_000,
  )
}
