/** A log that has grown: a month of requests, written inside Postgres a piece at a time. */
import type { Gateway } from '../harness/gateway.ts'

/** Of one statement: the embedded database answers nobody else meanwhile. */
const pieceOf = 2_500
const secondsApart = 25

/** Gives the first account `count` requests of its first key, up to now, with their daily sums. */
export async function fillLog({ deps, accountId }: Gateway, count: number): Promise<void> {
  const { database } = deps
  for (let from = 0; from < count; from += pieceOf)
    await database.run(
      ({ sql }) => sql`
        insert into usage_records (
          request_id, at, account_id, key_id, provider, model, routing_mode, strategy, query_type, streamed, status,
          error_code, finish_reason, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens,
          reasoning_tokens, estimated, billed_microcents, reserved_microcents, attempts, latency_ms, first_token_ms, metadata)
        select
          'req_' || lpad(n::text, 20, '0'), now() - n * ${secondsApart}::int * interval '1 second', ${accountId},
          (select id from api_keys where account_id = ${accountId} limit 1), 'openai', 'gpt-' || n % 12, 'auto', null, 'code',
          n % 3 = 0, case when n % 50 = 0 then 'failed' else 'completed' end,
          case when n % 50 = 0 then 'upstream_failed' end, 'stop', 100, 10, 0, 50, 5, false, n, n + 10, 1 + n % 2,
          400 + n * 37 % 2000, 200 + n * 17 % 300, null
        from generate_series(${from + 1}::int, ${Math.min(count, from + pieceOf)}::int) as n`,
      60_000,
    )
  await database.run(
    ({ sql }) => sql`
      insert into usage_daily (
        account_id, day, key_id, model, requests, completed, input_tokens, cached_input_tokens, output_tokens,
        reasoning_tokens, billed_microcents)
      select
        account_id, (at at time zone 'UTC')::date, key_id, provider || '/' || model, count(*),
        count(*) filter (where status = 'completed'), sum(input_tokens), sum(cached_input_tokens), sum(output_tokens),
        sum(reasoning_tokens), sum(billed_microcents)
      from usage_records where account_id = ${accountId} group by 1, 2, 3, 4`,
    60_000,
  )
}
