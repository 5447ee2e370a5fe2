/**
 * Ships usage records from the journal to Postgres: in batches, oldest first, repeated until they
 * are stored. A batch's rows and its daily totals are one statement that only sums new or replaced rows, so a batch
 * with an unknown outcome can be sent again.
 */

import type { Sql } from 'postgres'
import { whenNeeded } from '../core/jobs/repeating.ts'
import type { Clock, Log } from '../core/ports.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import { mergedRecords } from '../core/usage/usage-truth.ts'
import { failureReason } from '../core/validation/errors.ts'
import { type Database, isRowFault, postgresError } from '../database/database.ts'
import { countedBy, getDurationSlot } from '../database/duration-sql.ts'
import type { Journal } from './journal.ts'

type Work = (records: readonly UsageRecord[]) => Promise<unknown>

type ShipperOptions = {
  readonly journal: Pick<Journal, 'take' | 'setAside' | 'aside' | 'backlog' | 'onRecord'>
  readonly database: Database
  /** Receives records that are in the ledger, possibly repeatedly. */
  readonly learn?: Work
  readonly clock: Pick<Clock, 'now'>
  readonly log: Pick<Log, 'warn' | 'error'>
}

export type Shipper = {
  /** Returns the number of unshipped records. */
  backlog(): number
  /** Returns the number of records that Postgres rejected. */
  aside(): number
  /** Returns how long the oldest record of the current batch has waited since its settlement; 0 = none. */
  lagMs(): number
  /** Ships remaining records for at most `deadlineMs`; returns true if none is left. For shutdown. */
  drain(deadlineMs: number): Promise<boolean>
  /** Stops the timers and waits for the current batch. */
  close(): Promise<void>
}

const maximumBatch = 500
const tickMs = 100
/**
 * Pause after a batch per record of it, unless the next batch is full earlier. A single record is shipped at the next
 * tick. Under load, larger batches share their dozen statements, on which the embedded database spends most of its CPU
 * time.
 */
const pauseMsPerRecord = 5
const maximumPauseMs = 500
const insertDeadlineMs = 5000
const firstBackoffMs = 200
const maximumBackoffMs = 2000

/** Starts shipping. At rest nothing runs. */
export function createShipper({ journal, database, learn = async () => {}, clock, log }: ShipperOptions): Shipper {
  let running: Promise<void> | null = null
  let failures = 0
  let notBefore = 0
  let pausedUntil = 0
  let partitionedMonth = ''
  /** Settlement time of the oldest record in the current batch, in epoch milliseconds. */
  let oldestAt: number | null = null

  const { backlog } = journal

  const shipAll = async () => {
    for (let batch = journal.take(maximumBatch); batch !== null; batch = journal.take(maximumBatch)) {
      const [oldest] = batch.records
      if (oldest !== undefined) {
        oldestAt = oldest.at_ms + oldest.latency_ms
        const month = getMonth(Math.max(clock.now(), ...batch.records.map(record => record.at_ms)))
        const refusal = month === partitionedMonth ? null : await addMonths(database, month)
        await apply(mergedRecords(batch.records), records => insert(database, records))
        if (refusal !== null) log.warn('usage_partition_failed', { month, detail: refusal })
        partitionedMonth = month
        await apply(batch.records, learn)
        pausedUntil = performance.now() + Math.min(maximumPauseMs, batch.records.length * pauseMsPerRecord)
      }
      batch.release()
      oldestAt = null
      failures = 0
      if (batch.records.length < maximumBatch) return
    }
  }

  /**
   * Runs `work` on all records. If Postgres rejects the values of a row, the batch is halved until the row is isolated
   * and set aside, so that it does not block the others forever. Any other failure is thrown: all records wait.
   */
  const apply = async (records: readonly UsageRecord[], work: Work): Promise<void> => {
    try {
      await work(records)
    } catch (error) {
      if (!isRowFault(error)) throw error
      if (records.length > 1) {
        const half = Math.ceil(records.length / 2)
        await apply(records.slice(0, half), work)
        return apply(records.slice(half), work)
      }
      for (const record of records) {
        journal.setAside(record)
        log.error('usage_record_rejected', { request_id: record.request_id, detail: failureReason(error) })
      }
    }
  }

  const run = (): Promise<void> => {
    running ??= shipAll()
      .catch(error => {
        failures++
        notBefore = performance.now() + Math.min(maximumBackoffMs, firstBackoffMs * 2 ** Math.min(failures, 8))
        if (failures === 1 || failures % 20 === 0)
          log.warn('usage_shipping_failed', { backlog: backlog(), failures, detail: failureReason(error) })
      })
      .finally(() => {
        running = null
      })
    return running
  }

  const isDue = (now: number) => {
    if (running !== null || now < notBefore) return false
    const waiting = backlog()
    return waiting >= maximumBatch || (waiting > 0 && now >= pausedUntil)
  }
  const ticking = whenNeeded(tickMs, () => {
    if (isDue(performance.now())) void run()
    if (running !== null || backlog() > 0) ticking.need()
  })
  journal.onRecord(ticking.need)
  ticking.need()

  return {
    backlog,
    aside: journal.aside,
    lagMs: () => (oldestAt === null ? 0 : Math.max(0, clock.now() - oldestAt)),
    async drain(deadlineMs) {
      const until = performance.now() + deadlineMs
      while (backlog() > 0 && performance.now() < until) {
        const before = failures
        await atMost(run(), until - performance.now())
        if (failures > before) await Bun.sleep(Math.min(tickMs, Math.max(0, until - performance.now())))
      }
      return backlog() === 0
    },
    async close() {
      await ticking.close()
      await running
    },
  }
}

/**
 * Inserts records, one per request, and adds new usage to the daily totals and the keys' shortfalls. A truer record
 * replaces a checkpoint in the order of `core/usage/usage-truth.ts`; a trigger archives the old row and subtracts it
 * from the totals. Rows are ordered, so that two instances cannot deadlock. Of
 * two records that name both sides of a midnight, the day of the first counts.
 */
function insert(database: Database, records: readonly UsageRecord[]): Promise<unknown> {
  return database.run(
    ({ sql }) => sql`
      with record as materialized (
        select *, (to_timestamp(at_ms / 1000.0) at time zone 'UTC')::time not between '00:01' and '22:59' as near_midnight,
          -- Every key has a name until its account or user is erased (decision 0080): late labels are not stored.
          coalesce((select api_keys.name = '' from api_keys where api_keys.id = key_id), false) as is_erased
        from json_to_recordset(${JSON.stringify(records)}::text::json) as record(
          request_id text, at_ms bigint, account_id text, key_id text, provider text, model text, routing_mode text,
          strategy text, query_type text, streamed boolean, dialect text, status text, error_code text, finish_reason text,
          input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, output_tokens bigint,
          reasoning_tokens bigint, estimated boolean, billed_microcents bigint, reserved_microcents bigint,
          shortfall_microcents bigint, search_microcents bigint, fetch_microcents bigint, hedge_microcents bigint, attempts smallint, tried jsonb,
          latency_ms bigint, first_token_ms bigint, metadata jsonb, requested_model text, upstream_id text, trace jsonb, truth text, tags jsonb)),
      first_seen as (
        insert into usage_near_midnight (request_id, at)
        select request_id, to_timestamp(at_ms / 1000.0) from record where near_midnight order by request_id
        on conflict (request_id) do update set at = usage_near_midnight.at
        returning request_id, at),
      inserted as (
        insert into usage_records (
          request_id, at, account_id, key_id, provider, model, routing_mode, strategy, query_type, streamed, dialect, status,
          error_code, finish_reason, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
          estimated, billed_microcents, reserved_microcents, shortfall_microcents, search_microcents, fetch_microcents,
          hedge_microcents, attempts, tried, latency_ms, first_token_ms, metadata, requested_model, upstream_id, trace, truth, tags)
        select
          request_id, coalesce(first_seen.at, to_timestamp(at_ms / 1000.0)), account_id, key_id, provider, model, routing_mode, strategy, query_type,
          streamed, dialect, status, error_code, finish_reason, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens,
          reasoning_tokens, estimated, billed_microcents, reserved_microcents, coalesce(shortfall_microcents, 0),
          coalesce(search_microcents, 0), coalesce(fetch_microcents, 0), coalesce(hedge_microcents, 0), attempts, tried, latency_ms, first_token_ms,
          case when not is_erased then metadata end, requested_model, upstream_id, trace, coalesce(truth, 'final'), case when not is_erased then tags end
        from record left join first_seen using (request_id)
        order by account_id, request_id
        on conflict (request_id, at) do update set
          provider = excluded.provider, model = excluded.model, routing_mode = excluded.routing_mode,
          strategy = excluded.strategy, query_type = excluded.query_type, streamed = excluded.streamed,
          dialect = excluded.dialect,
          status = excluded.status, error_code = excluded.error_code, finish_reason = excluded.finish_reason,
          input_tokens = excluded.input_tokens, cached_input_tokens = excluded.cached_input_tokens,
          cache_write_tokens = excluded.cache_write_tokens, output_tokens = excluded.output_tokens,
          reasoning_tokens = excluded.reasoning_tokens, estimated = excluded.estimated,
          billed_microcents = excluded.billed_microcents, reserved_microcents = excluded.reserved_microcents,
          shortfall_microcents = excluded.shortfall_microcents, search_microcents = excluded.search_microcents, fetch_microcents = excluded.fetch_microcents,
          hedge_microcents = excluded.hedge_microcents,
          attempts = excluded.attempts, tried = excluded.tried, latency_ms = excluded.latency_ms,
          first_token_ms = excluded.first_token_ms, metadata = excluded.metadata, requested_model = excluded.requested_model,
          upstream_id = excluded.upstream_id, trace = excluded.trace, truth = excluded.truth, tags = excluded.tags
        where usage_records.truth = 'checkpoint' and (
          excluded.truth = 'final', excluded.billed_microcents, excluded.input_tokens + excluded.output_tokens,
          excluded.latency_ms
        ) > (
          false, usage_records.billed_microcents, usage_records.input_tokens + usage_records.output_tokens,
          usage_records.latency_ms
        )
        returning request_id, account_id, at, key_id, provider, model, status, input_tokens, cached_input_tokens, output_tokens,
          reasoning_tokens, billed_microcents, shortfall_microcents, tags, ${getDurationSlot(sql, 'latency_ms')} as latency_slot, ${getDurationSlot(sql, 'first_token_ms')} as first_token_slot),
      short as (
        select distinct on (key_id)
          key_id, (at at time zone 'UTC')::date as day, sum(shortfall_microcents)::bigint as microcents,
          max(shortfall_microcents) as most, (array_agg(request_id order by shortfall_microcents desc, request_id))[1] as request_id
        from inserted where shortfall_microcents > 0
        group by 1, 2
        order by 1, 2 desc),
      locked as materialized (
        select id from api_keys where id in (select key_id from short) order by id for update),
      held as (
        update api_keys set
          shortfall_day = short.day,
          shortfall_microcents = case when shortfall_day = short.day then shortfall_microcents else 0 end + short.microcents,
          shortfall_request_microcents = greatest(case when shortfall_day = short.day then shortfall_request_microcents else 0 end, short.most),
          shortfall_request_id = case
            when shortfall_day = short.day and shortfall_request_microcents >= short.most then shortfall_request_id else short.request_id end,
          updated_at = clock_timestamp()
        from short join locked on locked.id = short.key_id
        where api_keys.id = short.key_id and (shortfall_day is null or shortfall_day <= short.day)),
      tagged as (
        insert into usage_tags_daily (tag, ${daily(sql)})
        select key || '=' || value, ${dailySums(sql)}
        from inserted, jsonb_each_text(tags)
        group by 1, 2, 3, 4, 5
        order by 2, 1, 3, 4, 5
        on conflict (account_id, tag, day, key_id, model) do update set ${dailyAdded(sql, sql`usage_tags_daily`)})
      insert into usage_daily (${daily(sql)})
      select ${dailySums(sql)}
      from inserted
      group by 1, 2, 3, 4
      order by 1, 2, 3, 4
      on conflict (account_id, day, key_id, model) do update set ${dailyAdded(sql, sql`usage_daily`)}`,
    insertDeadlineMs,
  )
}

const daily = (sql: Sql) => sql`
  account_id, day, key_id, model, requests, completed, failed, input_tokens, cached_input_tokens, output_tokens,
  reasoning_tokens, billed_microcents, latency, first_token`

const dailySums = (sql: Sql) => sql`
  account_id, (at at time zone 'UTC')::date, key_id, case when model = '' then '' else provider || '/' || model end,
  count(*), count(*) filter (where status = 'completed'), count(*) filter (where status in ('failed', 'blocked')),
  sum(input_tokens), sum(cached_input_tokens), sum(output_tokens), sum(reasoning_tokens), sum(billed_microcents),
  ${countedBy(sql, 'latency_slot')}, ${countedBy(sql, 'first_token_slot')}`

const dailyAdded = (sql: Sql, table: ReturnType<Sql>) => sql`
  requests = ${table}.requests + excluded.requests,
  completed = ${table}.completed + excluded.completed,
  failed = ${table}.failed + excluded.failed,
  input_tokens = ${table}.input_tokens + excluded.input_tokens,
  cached_input_tokens = ${table}.cached_input_tokens + excluded.cached_input_tokens,
  output_tokens = ${table}.output_tokens + excluded.output_tokens,
  reasoning_tokens = ${table}.reasoning_tokens + excluded.reasoning_tokens,
  billed_microcents = ${table}.billed_microcents + excluded.billed_microcents,
  latency = gateway_counts_added(${table}.latency, excluded.latency),
  first_token = gateway_counts_added(${table}.first_token, excluded.first_token)`

const getMonth = (at: number) => new Date(at).toISOString().slice(0, 7)

/**
 * Creates the partitions of a month (`YYYY-MM`) and the next one. Gives up its lock after 2 s, so that it never blocks
 * the ledger: the default partition accepts the rows too. Returns why Postgres refused; null = it did not. Throws if
 * Postgres does not answer.
 */
function addMonths(database: Database, month: string): Promise<string | null> {
  const [year = 0, index = 0] = month.split('-').map(Number)
  const [first, next, end] = [0, 1, 2].map(more =>
    new Date(Date.UTC(year, index - 1 + more, 1)).toISOString().slice(0, 10),
  )
  // Only digits and hyphens: a table's name and bounds cannot be parameters.
  const partition = (from = '', to = '') =>
    `create table if not exists usage_records_${from.slice(0, 7).replace('-', '_')}
      partition of usage_records for values from ('${from} 00:00+00') to ('${to} 00:00+00')`
  return database.run(
    ({ sql }) =>
      sql
        .begin(async transaction => {
          await transaction`set local lock_timeout = 2000`
          await transaction`delete from usage_near_midnight where at < clock_timestamp() - interval '40 days'`
          await transaction.unsafe(partition(first, next))
          await transaction.unsafe(partition(next, end))
          return null
        })
        .catch((error: unknown) => {
          const refusal = postgresError(error)
          if (refusal === null) throw error
          return refusal.message
        }),
    insertDeadlineMs,
  )
}

/** Waits for `work`, but not longer than `milliseconds`. Leaves no timer behind that would keep the process alive. */
function atMost(work: Promise<void>, milliseconds: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, Math.max(0, milliseconds))
  return Promise.race([work, promise]).finally(() => clearTimeout(timer))
}
