/** A large log: a month of requests, written inside Postgres in batches. */
import { openDatabase } from '../../src/database/database.ts'
import { dailySums, slots } from '../database/daily-sums.ts'
import type { Gateway } from '../harness/gateway.ts'
import { patientStore } from '../harness/patience.ts'

/** Size of a statement: the embedded database answers no other query meanwhile. */
const batchSize = 1_000
const daysOfLog = 29

/** Writes `count` requests of the first account's first key evenly over the last month, with their attempts and daily totals. */
export async function fillLog({ deps, accountId }: Gateway, count: number): Promise<void> {
  // A separate connection: if the gateway gives up on a busy database, it drops its own connections.
  const database = openDatabase(deps.database.address, { connections: 1, ...patientStore })
  // The account is older than its log: the first day of an account has another default range.
  await database.run(
    ({ sql }) => sql`
      update accounts set created_at = now() - ${daysOfLog + 1}::int * interval '1 day' where id = ${accountId}`,
    60_000,
  )
  const secondsApart = Math.floor((daysOfLog * 86_400) / count)
  for (let from = 0; from < count; from += batchSize)
    await database.run(
      ({ sql }) => sql`
        with inserted as (
          insert into usage_records (
            request_id, at, account_id, key_id, provider, model, routing_mode, strategy, query_type, streamed, status,
            error_code, finish_reason, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens,
            reasoning_tokens, estimated, billed_microcents, reserved_microcents, attempts, latency_ms, first_token_ms,
            metadata, tried, requested_model, trace)
          select
            'req_' || lpad(n::text, 20, '0'), now() - n * ${secondsApart}::int * interval '1 second', ${accountId},
            (select id from api_keys where account_id = ${accountId} limit 1), 'openai', 'gpt-' || n % 12, 'auto', null, 'code',
            n % 3 = 0, case when n % 50 = 0 then 'failed' else 'completed' end,
            case when n % 50 = 0 then 'upstream_failed' end, 'stop', 100, 10, 0, 50, 5, false, n, n + 10, 1 + n % 2,
            400 + n * 37 % 2000, 200 + n * 17 % 300, null,
            case n % 2 when 0 then '[]'::jsonb else '[["google/gemini-0", "timeout", 2, 90]]'::jsonb end
              || jsonb_build_array(jsonb_build_array('openai/gpt-' || n % 12, 'served', 95, 105 + n * 17 % 300)), 'openai/gpt-0',
            '{"c":[["openai/gpt-0",812,"score","healthy",[500,200,120,-8,0]],["google/gemini-0",700,"unhealthy","unhealthy",[400,200,110,-10,0]]],"s":[0,200],"b":[1,1,0,3]}'::jsonb
          from generate_series(${from + 1}::int, ${Math.min(count, from + batchSize)}::int) as n
          returning
            *, ${slots(sql)})
        ${dailySums(sql, sql`inserted`)}
        on conflict (account_id, day, key_id, model) do update set
          requests = usage_daily.requests + excluded.requests, completed = usage_daily.completed + excluded.completed,
          failed = usage_daily.failed + excluded.failed, input_tokens = usage_daily.input_tokens + excluded.input_tokens,
          cached_input_tokens = usage_daily.cached_input_tokens + excluded.cached_input_tokens,
          output_tokens = usage_daily.output_tokens + excluded.output_tokens,
          reasoning_tokens = usage_daily.reasoning_tokens + excluded.reasoning_tokens,
          billed_microcents = usage_daily.billed_microcents + excluded.billed_microcents,
          latency = array(select one + other from unnest(usage_daily.latency, excluded.latency) as counts(one, other)),
          first_token = array(select one + other from unnest(usage_daily.first_token, excluded.first_token) as counts(one, other))`,
      60_000,
    )
  await database.close()
}
