import type { Sql } from 'postgres'
import { bucketCount } from '../../src/core/usage/latency-histogram.ts'
import { getDurationSlot } from '../../src/ledger/usage-lines.ts'

/** SQL for the latency buckets of a request, as columns that `dailySums` adds up. */
export const slots = (sql: Sql) =>
  sql`${getDurationSlot(sql, 'latency_ms')} as latency_slot, ${getDurationSlot(sql, 'first_token_ms')} as first_token_slot`

const countedBy = (sql: Sql, slot: 'latency_slot' | 'first_token_slot') => {
  const counts = Array.from(
    { length: bucketCount },
    (_, bucket) => sql`count(*) filter (where ${sql(slot)} = ${bucket}::int)::int`,
  )
  return sql`array[${counts.reduce((list, count) => sql`${list}, ${count}`)}]`
}

/** SQL that writes the daily totals of `records`, a table of requests with their buckets. */
export const dailySums = (sql: Sql, records: ReturnType<Sql>) => sql`
  insert into usage_daily (
    account_id, day, key_id, model, requests, completed, failed, input_tokens, cached_input_tokens, output_tokens,
    reasoning_tokens, billed_microcents, latency, first_token)
  select
    account_id, (at at time zone 'UTC')::date, key_id, provider || '/' || model, count(*),
    count(*) filter (where status = 'completed'), count(*) filter (where status = 'failed'), sum(input_tokens),
    sum(cached_input_tokens), sum(output_tokens), sum(reasoning_tokens), sum(billed_microcents),
    ${countedBy(sql, 'latency_slot')}, ${countedBy(sql, 'first_token_slot')}
  from ${records}
  group by 1, 2, 3, 4`
