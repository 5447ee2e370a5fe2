/** The counts of `core/durations.ts`, in SQL. The functions are in the migration that made room for them. */
import type { Sql, TransactionSql } from 'postgres'
import { bucketCount, durationBoundsMs } from '../core/usage/latency-histogram.ts'

type Queries = Sql | TransactionSql

const bounds = `{${durationBoundsMs.join()}}`

/** Which count a row of requests belongs to by a column of milliseconds; null where it was not completed. */
export const slotOf = (sql: Queries, milliseconds: 'latency_ms' | 'first_token_ms') =>
  // In a select of its own the bounds are read once, not for each row.
  sql`case when status = 'completed' then width_bucket(${sql(milliseconds)}, (select ${bounds}::text::bigint[])) end`

/** Of a group of rows: how many are in each slot. */
export const countedBy = (sql: Queries, slot: 'latency_slot' | 'first_token_slot') =>
  sql`gateway_counts(array_agg(${sql(slot)}) filter (where ${sql(slot)} is not null), ${bucketCount}::int)`
