/**
 * The buckets of `core/usage/latency-histogram.ts` in SQL. The migration that added the columns creates the functions.
 */
import type { Sql, TransactionSql } from 'postgres'
import { bucketCount, durationBoundsMs } from '../core/usage/latency-histogram.ts'

type Queries = Sql | TransactionSql

const bounds = `{${durationBoundsMs.join()}}`
/** More than a bucket number; a power of two. */
const radix = 64

type Milliseconds = 'latency_ms' | 'first_token_ms'

/** SQL for the bucket of a row by a column of milliseconds; null if the request did not complete. */
export const getDurationSlot = (sql: Queries, milliseconds: Milliseconds) =>
  // The subselect reads the bounds once instead of for each row. Postgres has a fast search for doubles only.
  sql`case when status = 'completed' then width_bucket(${sql(milliseconds)}::float8, (select ${bounds}::text::float8[])) end`

/** SQL for the number of rows per bucket in a group. */
export const countedBy = (sql: Queries, slot: 'latency_slot' | 'first_token_slot') =>
  sql`gateway_counts(array_agg(${sql(slot)}) filter (where ${sql(slot)} is not null), ${bucketCount}::int)`

/** SQL for both buckets of a row as one integer, so that rows can be grouped by it; null if the request did not complete. */
export const getDurationSlots = (sql: Queries) => sql`
  ${getDurationSlot(sql, 'latency_ms')} * ${radix}::int + coalesce(${getDurationSlot(sql, 'first_token_ms')}, ${radix - 1}::int)`

/**
 * SQL for the sums of stored counts per bucket. Sums of elements are plain SQL: an aggregate function of our own takes ten
 * times as long over many rows.
 */
export const summedCounts = (sql: Queries, counts: 'latency' | 'first_token') => {
  const sums = Array.from({ length: bucketCount }, (_, slot) => `coalesce(sum(${counts}[${slot + 1}]), 0)::float8`)
  return sql.unsafe(`json_build_array(${sums})`)
}

/** SQL for the same sums in the form of stored counts, so that they can be summed further. */
export const addedCounts = (sql: Queries, counts: 'latency' | 'first_token') => {
  const sums = Array.from({ length: bucketCount }, (_, slot) => `coalesce(sum(${counts}[${slot + 1}]), 0)::int`)
  return sql.unsafe(`array[${sums}]`)
}

/**
 * SQL for the sums of `requests` per bucket over rows that are grouped by `slots` (`getDurationSlots`). Sums of filtered
 * rows are plain SQL, which Postgres can run in parallel, and there are few such rows.
 */
export const summedBySlots = (sql: Queries, milliseconds: Milliseconds) => {
  const slot = milliseconds === 'latency_ms' ? `slots / ${radix}` : `slots % ${radix}`
  const sums = Array.from(
    { length: bucketCount },
    (_, number) => `coalesce(sum(requests) filter (where ${slot} = ${number}), 0)::float8`,
  )
  // Text of constants only: a parameter for each number would make the statement as large again.
  return sql.unsafe(`json_build_array(${sums})`)
}
