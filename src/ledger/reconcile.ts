/**
 * Reconciliation: checks that ledger, daily totals and limit counters agree to the micro-cent, and reports differences.
 * Read-only, and safe beside busy gateways: records in transit from a journal to the ledger are counted once.
 */

import { dayMs, formatDay } from '../core/text/utc-days.ts'
import { type DailyUsage, getSpent, nothing, type Truth, type UsageRecord } from '../core/usage/usage-record.ts'
import {
  type CountedUsage,
  compareTruth,
  countedUsage,
  getCorrection,
  getTruth,
  mergedRecords,
} from '../core/usage/usage-truth.ts'
import type { Database } from '../database/database.ts'
import {
  areDifferent,
  compareTagSums,
  type DailyPlace,
  type DailySums,
  jsonSums,
  ledgerSums,
  type Replaced,
  readReplaced,
  type TagDifference,
  totalColumns,
} from './reconcile/tag-sums.ts'

/** UTC days `YYYY-MM-DD`, inclusive; of one account if given. */
export type AuditScope = { readonly from: string; readonly to: string; readonly accountId: string | null }

/** Usage that the limits counted for an account's UTC day (since the epoch), without open reservations. */
export type Counted = DailyUsage & { readonly accountId: string; readonly day: number }

/** A store that holds usage before the ledger has it. */
export type UsageSource = {
  /** True if its limit counters can be read. The counters of the in-process meter cannot. */
  readonly keepsCounters: boolean
  /**
   * Returns the counters of `accountIds`, and all records waiting in the store. One consistent view if both are in one
   * store.
   */
  read(accountIds: readonly string[]): Promise<{
    readonly counted: readonly Counted[]
    readonly waiting: readonly UsageRecord[]
    /** Records that the ledger rejected. */
    readonly refused: readonly UsageRecord[]
    /** Lines that no longer contain a record. */
    readonly damagedLines: number
  }>
}

/** A difference between two counts of the same usage. Money is an integer of 1e-8 USD; null = nothing stored. */
export type Difference =
  | (DailyPlace & { readonly kind: 'rollup'; readonly ledger: DailySums | null; readonly rollup: DailySums | null })
  | TagDifference
  | {
      readonly kind: 'counter'
      readonly account_id: string
      readonly day: string
      /** Including waiting records. */
      readonly ledger: DailyUsage
      readonly counter: DailyUsage
    }
  /**
   * `refused` = rejected, so it will not arrive on its own; `record` = the waiting record and the stored one of the
   * same ID differ.
   */
  | (DailyPlace & {
      readonly kind: 'refused' | 'record'
      readonly request_id: string
      readonly ledger: DailyUsage | null
      readonly recorded: DailyUsage
    })

export type Audit = Replaced & {
  readonly requests: number
  readonly billed_microcents: number
  /** Number of compared account days; null = no source has counters. */
  readonly counters: number | null
  /** Durable but not yet in the ledger; not a difference. */
  readonly waiting: { readonly requests: number; readonly billed_microcents: number }
  readonly damaged_lines: number
  /** The first 1,000. */
  readonly differences: readonly Difference[]
  readonly isWhole: boolean
}

const auditDeadlineMs = 600_000
const maximumDifferences = 1_000
/**
 * Reads at two times may differ because of requests in between. Differences that persist after this many attempts are
 * real.
 */
const tries = 5
const retryMs = 300

/** Compares all sources. Throws `GatewayError` if Postgres cannot be read, or a source's own error. */
export async function audit(database: Database, sources: readonly UsageSource[], scope: AuditScope): Promise<Audit> {
  const { totals, differences } = await compareSums(database, scope)
  const bounds = { maximum: maximumDifferences, deadlineMs: auditDeadlineMs }
  const ofTags = await compareTagSums(database, scope, bounds)
  let counters = await compareCounters(database, sources, scope)
  for (let tried = 1; tried < tries && counters.differences.length > 0; tried++) {
    await Bun.sleep(retryMs)
    counters = await compareCounters(database, sources, scope)
  }
  const found = [...differences, ...ofTags, ...counters.differences].slice(0, maximumDifferences)
  return {
    ...totals,
    counters: counters.compared,
    waiting: counters.waiting,
    damaged_lines: counters.damagedLines,
    ...(await readReplaced(database, scope, bounds)),
    differences: found,
    isWhole: found.length === 0 && counters.damagedLines === 0,
  }
}

/** Compares the ledger with the daily totals per account, day, key and model in one statement, hence one snapshot. */
async function compareSums(database: Database, { from, to, accountId }: AuditScope) {
  const rows = await database.run(
    ({ sql }) => sql<{ totals: string; differences: string | null }[]>`
      with ledger as materialized (
        select
          account_id, (at at time zone 'UTC')::date as day, key_id,
          case when model = '' then '' else provider || '/' || model end as model,
          ${ledgerSums(sql)}
        from usage_records
        where at >= (${from}::text || ' 00:00+00')::timestamptz
          and at < (${to}::text || ' 00:00+00')::timestamptz + interval '1 day'
          ${accountId === null ? sql`` : sql`and account_id = ${accountId}`}
        group by 1, 2, 3, 4
      ), rollup as (
        select ${totalColumns(sql)} from usage_daily
        where day between ${from}::text::date and ${to}::text::date
          ${accountId === null ? sql`` : sql`and account_id = ${accountId}`}
      ), different as (
        select
          'rollup' as kind, account_id, day, key_id, model, ${jsonSums(sql)}
        from ledger full join rollup using (account_id, day, key_id, model)
        where ${areDifferent(sql)}
        order by account_id, day, key_id, model
        limit ${maximumDifferences}
      )
      select
        (select json_build_object(
          'requests', coalesce(sum(requests), 0), 'billed_microcents', coalesce(sum(billed_microcents), 0)
        ) from ledger)::text as totals,
        (select json_agg(different) from different)::text as differences`,
    auditDeadlineMs,
  )
  const totals = JSON.parse(rows[0]?.totals ?? '{}') as Pick<Audit, 'requests' | 'billed_microcents'>
  return { totals, differences: JSON.parse(rows[0]?.differences ?? '[]') as Difference[] }
}

/** Compares the ledger plus waiting records with the limit counters and the rejected records. */
async function compareCounters(database: Database, sources: readonly UsageSource[], scope: AuditScope) {
  const isMeant = (record: UsageRecord) =>
    (scope.accountId === null || record.account_id === scope.accountId) &&
    dayText(dayOfRecord(record)) >= scope.from &&
    dayText(dayOfRecord(record)) <= scope.to
  const accountIds = await getAccounts(database, scope)
  // A record that left a source before this read is in the ledger when the ledger is read afterwards.
  const found = await Promise.all(sources.map(source => source.read(accountIds)))
  const waiting = byId(found.flatMap(source => source.waiting).filter(isMeant))
  const refused = byId(found.flatMap(source => source.refused).filter(isMeant))
  const counted = found
    .flatMap(source => source.counted)
    .filter(({ day }) => dayText(day) >= scope.from && dayText(day) <= scope.to)
  const { spent, present } = await getLedger(database, counted, [...waiting.values(), ...refused.values()])

  const onTheWay = [...waiting.values()].filter(record => isTruer(record, present.get(record.request_id)))
  for (const record of onTheWay) {
    const sums = spent.get(`${dayOfRecord(record)} ${record.account_id}`)
    if (sums === undefined) continue
    const { tokens, microcents } = getCorrection(present.get(record.request_id), countedUsage(record))
    sums.tokens += tokens
    sums.microcents += microcents
  }
  return {
    differences: [
      ...[...refused.values()].flatMap(record => differentRecord('refused', record, present) ?? []),
      ...[...waiting.values()].flatMap(record => differentRecord('record', record, present) ?? []),
      ...counted.flatMap(item => differentCounter(item, spent) ?? []),
    ],
    compared: sources.some(source => source.keepsCounters) ? counted.length : null,
    waiting: {
      requests: onTheWay.length,
      billed_microcents: onTheWay.reduce(
        (sum, record) => sum + getCorrection(present.get(record.request_id), countedUsage(record)).microcents,
        0,
      ),
    },
    damagedLines: found.reduce((sum, source) => sum + source.damagedLines, 0),
  }
}

/**
 * Returns true if the ledger will store a waiting record: it has none of the request, or one that the record replaces.
 */
function isTruer(record: UsageRecord, ledger: CountedUsage | undefined): boolean {
  return ledger === undefined || (ledger.truth === 'checkpoint' && compareTruth(countedUsage(record), ledger) > 0)
}

/** A rejected record must have arrived another way; a waiting one need not. A checkpoint may have been replaced. */
function differentRecord(
  kind: 'refused' | 'record',
  record: UsageRecord,
  present: ReadonlyMap<string, CountedUsage>,
): Difference | null {
  const found = present.get(record.request_id)
  const recorded = getSpent(record)
  const isSame = found !== undefined && found.microcents === recorded.microcents && found.tokens === recorded.tokens
  if (isSame || (kind === 'record' && isTruer(record, found))) return null
  if (found !== undefined && getTruth(record) === 'checkpoint' && compareTruth(found, countedUsage(record)) > 0)
    return null
  const ledger = found === undefined ? null : { tokens: found.tokens, microcents: found.microcents }
  return { kind, ...getPlace(record), request_id: record.request_id, ledger, recorded }
}

/** `spent` is the usage of the ledger and of waiting records, by `day account`. */
function differentCounter(counted: Counted, spent: ReadonlyMap<string, DailyUsage>): Difference | null {
  const { accountId, day, tokens, microcents } = counted
  const ledger = spent.get(`${day} ${accountId}`) ?? nothing
  if (ledger.microcents === microcents && ledger.tokens === tokens) return null
  return { kind: 'counter', account_id: accountId, day: dayText(day), ledger, counter: { tokens, microcents } }
}

/**
 * Returns accounts with usage within the scope's last two days: older counters are not kept. A deleted account has no limits
 * left, and its counters are forgotten while its last requests still end.
 */
async function getAccounts(database: Database, { to, accountId }: AuditScope): Promise<string[]> {
  const rows = await database.run(
    ({ sql }) => sql<{ account_id: string }[]>`
      (select account_id from usage_daily
        where ${accountId}::text is null and day between ${to}::text::date - 1 and ${to}::text::date
        union select ${accountId} where ${accountId}::text is not null)
      except select id from accounts where deleted_at is not null`,
    auditDeadlineMs,
  )
  return rows.map(row => row.account_id)
}

/** Returns the ledger's sums of these days and which of the records it has, in one statement, hence one snapshot. */
async function getLedger(database: Database, days: readonly Counted[], records: readonly UsageRecord[]) {
  const spent = new Map<string, { tokens: number; microcents: number }>()
  const present = new Map<string, CountedUsage>()
  if (days.length + records.length === 0) return { spent, present }
  const places = days.map(({ accountId, day }) => ({ account_id: accountId, day }))
  const wanted = records.map(({ request_id, account_id, at_ms }) => ({ request_id, account_id, at_ms }))
  const rows = await database.run(
    ({ sql }) => sql<{ name: string; truth: Truth | null; tokens: number; microcents: number }[]>`
      select
        place.day || ' ' || place.account_id as name, null as truth,
        coalesce(sum(input_tokens + output_tokens), 0)::float8 as tokens,
        coalesce(sum(billed_microcents), 0)::float8 as microcents
      from json_to_recordset(${JSON.stringify(places)}::text::json) as place(account_id text, day int)
      left join usage_records on usage_records.account_id = place.account_id
        and at >= timestamptz 'epoch' + place.day * interval '24 hours'
        and at < timestamptz 'epoch' + (place.day + 1) * interval '24 hours'
      group by 1
      union all
      select request_id, truth, (input_tokens + output_tokens)::float8, billed_microcents::float8
      from json_to_recordset(${JSON.stringify(wanted)}::text::json) as wanted(request_id text, account_id text, at_ms bigint)
      join usage_records using (request_id, account_id)`,
    auditDeadlineMs,
  )
  for (const { name, truth, tokens, microcents } of rows)
    if (truth === null) spent.set(name, { tokens, microcents })
    else present.set(name, { truth, tokens, microcents })
  return { spent, present }
}

const dayOfRecord = (record: UsageRecord) => formatDay(record.at_ms)
const dayText = (day: number) => new Date(day * dayMs).toISOString().slice(0, 10)
const byId = (records: readonly UsageRecord[]) =>
  new Map(mergedRecords(records).map(record => [record.request_id, record]))

function getPlace(record: UsageRecord): DailyPlace {
  const model = record.model === '' ? '' : `${record.provider}/${record.model}`
  return { account_id: record.account_id, day: dayText(dayOfRecord(record)), key_id: record.key_id, model }
}
