/**
 * The buckets of `core/usage/latency-histogram.ts` in SQL. The migration that added the columns creates the functions.
 */
import type { Sql, TransactionSql } from 'postgres'
import { bucketCount, durationBoundsMs } from '../core/usage/latency-histogram.ts'

type Queries = Sql | TransactionSql

const bounds = `{${durationBoundsMs.join()}}`

/** SQL for the bucket of a row by a column of milliseconds; null if the request did not complete. */
export const durationSlotOf = (sql: Queries, milliseconds: 'latency_ms' | 'first_token_ms') =>
  // The subselect reads the bounds once instead of for each row.
  sql`case when status = 'completed' then width_bucket(${sql(milliseconds)}, (select ${bounds}::text::bigint[])) end`

/** SQL for the number of rows per bucket in a group. */
export const countedBy = (sql: Queries, slot: 'latency_slot' | 'first_token_slot') =>
  sql`gateway_counts(array_agg(${sql(slot)}) filter (where ${sql(slot)} is not null), ${bucketCount}::int)`
