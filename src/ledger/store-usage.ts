/**
 * The transaction that stores usage records: rows, sums and learning always agree. New rows are copied without a look at
 * the ledger. Its key finds a request that is already there; only then, or for records that another one may precede, is
 * each row compared. So a batch with an unknown outcome can be stored again. The thread of the embedded database imports
 * this file.
 */
import { dayMs } from '../core/text/utc-days.ts'
import { bucketCount, getBucket } from '../core/usage/latency-histogram.ts'
import { summedColumns } from '../core/usage/usage-groups.ts'
import { servingModel, type UsageRecord } from '../core/usage/usage-record.ts'
import { getTruth, mergedRecords } from '../core/usage/usage-truth.ts'
import type { Statements } from '../database/transact.ts'
import { applyLessons, lockEpochs } from '../learning/learning-cells.ts'

type Input = { readonly records: readonly UsageRecord[]; readonly isNew: boolean }

/**
 * Stores records, one per request, and returns the accounts that learned. `isNew`: the ledger is expected to have none of
 * them, and the transaction fails if it has one.
 */
export async function run(statements: Statements, input: string): Promise<string> {
  const all: Input = JSON.parse(input)
  const records = mergedRecords(all.records)
  const isNew = all.isNew && records.every(record => getTruth(record) === 'final' && !isNearMidnight(record))
  // Keys first, as deletions of accounts lock them; a later statement locks no others, so that none wait for each other.
  const known = await withLockedKeys(statements, records, isNew)
  const epochs = await lockEpochs(statements, records)
  const rows: LedgerRow[] = known.map((record, index) => ({ record, at: record.at_ms, epoch: epochs[index] ?? null }))
  const counted = isNew && statements.copy !== null ? rows : await insertCompared(statements, rows)
  if (counted === rows) await statements.copy?.(`usage_records (${columns})`, toCopyLines(rows))
  await addSums(statements, counted)
  return JSON.stringify(
    await applyLessons(
      statements,
      counted.filter(({ epoch }) => epoch !== null).map(({ record }) => record),
    ),
  )
}

/** Inserts rows and returns those that count. */
async function insertCompared(statements: Statements, rows: readonly LedgerRow[]): Promise<LedgerRow[]> {
  const firstSeen = await placeNearMidnight(statements, rows)
  const placed = rows.map(row => ({ ...row, at: firstSeen.get(row.record.request_id) ?? row.at }))
  const counted = await insertRows(statements, placed)
  return placed.filter(({ record }) => counted.has(record.request_id))
}

const minuteMs = 60_000

/**
 * Two records of such a request may name both sides of a midnight: the day of the first one counts. A request lasts an
 * hour at most.
 */
function isNearMidnight({ at_ms }: UsageRecord): boolean {
  const ofDay = at_ms % dayMs
  return ofDay < minuteMs || ofDay > dayMs - 61 * minuteMs
}

/** Returns the time of the first record that arrived of each request near midnight. */
async function placeNearMidnight(statements: Statements, rows: readonly LedgerRow[]): Promise<Map<string, number>> {
  const near = rows.filter(({ record }) => isNearMidnight(record)).map(({ record }) => record)
  if (near.length === 0) return new Map()
  const seen = await statements.query<{ id: string; at: number }>(
    `insert into usage_near_midnight (request_id, at)
      select request_id, to_timestamp(at_ms / 1000.0)
      from json_to_recordset($1::text::json) as record(request_id text, at_ms bigint)
      order by request_id
      on conflict (request_id) do update set at = usage_near_midnight.at
      returning request_id as id, (extract(epoch from at) * 1000)::float8 as at`,
    [JSON.stringify(near.map(({ request_id, at_ms }) => ({ request_id, at_ms })))],
  )
  return new Map(seen.map(({ id, at }) => [id, at]))
}

/**
 * Locks the keys of records with labels or a shortfall; of all records if one may replace another. Late labels of erased
 * keys are not stored: every key has a name until its account or user is (decision 0080).
 */
async function withLockedKeys(
  statements: Statements,
  records: readonly UsageRecord[],
  isNew: boolean,
): Promise<readonly UsageRecord[]> {
  const locking = records.filter(
    ({ metadata, tags, shortfall_microcents = 0 }) =>
      !isNew || metadata !== null || tags !== undefined || shortfall_microcents > 0,
  )
  if (locking.length === 0) return records
  // An erasure waits for these locks, and then finds the new rows.
  const keys = await statements.query<{ id: string; isErased: boolean }>(
    `select id, name = '' as "isErased" from api_keys
      where id in (select json_array_elements_text($1::text::json)) order by id for no key update`,
    [JSON.stringify([...new Set(locking.map(record => record.key_id))])],
  )
  const erased = new Set(keys.filter(({ isErased }) => isErased).map(({ id }) => id))
  return records.map(record => {
    if (!erased.has(record.key_id)) return record
    const { tags: _, ...rest } = record
    return { ...rest, metadata: null }
  })
}

/**
 * A record, the time under which the ledger has it in epoch milliseconds, and the epoch of its learning data; null =
 * none is stored.
 */
type LedgerRow = { readonly record: UsageRecord; readonly at: number; readonly epoch: number | null }

const fixed = ['request_id', 'account_id', 'key_id'] as const
/** What a truer record replaces. */
const changing = [
  ...(['provider', 'model', 'requested_model', 'upstream_id', 'routing_mode', 'strategy', 'query_type'] as const),
  ...(['streamed', 'dialect', 'status', 'error_code', 'finish_reason', 'input_tokens', 'cached_input_tokens'] as const),
  ...(['cache_write_tokens', 'output_tokens', 'reasoning_tokens', 'estimated', 'billed_microcents'] as const),
  ...(['reserved_microcents', 'shortfall_microcents', 'search_microcents', 'fetch_microcents'] as const),
  ...([
    'hedge_microcents',
    'own_key_microcents',
    'unpriced',
    'routing_saved_microcents',
    'cache_saved_microcents',
    'attempts',
    'tried',
    'latency_ms',
    'first_token_ms',
    'metadata',
    'trace',
  ] as const),
  ...(['truth', 'tags'] as const),
]
const learned = ['quality', 'influenced', 'choice_probability', 'enhanced'] as const
const names = [...changing, 'learning_epoch', ...learned]
const columns = [...fixed, 'at', ...names]
const ifAbsent: Readonly<Partial<Record<keyof UsageRecord, unknown>>> = {
  shortfall_microcents: 0,
  search_microcents: 0,
  fetch_microcents: 0,
  hedge_microcents: 0,
  truth: 'final',
}

/** Returns the values of a row in the order of `columns`. */
function getValues({ record, at, epoch }: LedgerRow): unknown[] {
  const lesson = epoch === null ? null : record.learning
  const values: unknown[] = fixed.map(name => record[name])
  values.push(new Date(at).toISOString())
  for (const name of changing) values.push(record[name] ?? ifAbsent[name])
  values.push(epoch)
  for (const name of learned) values.push(lesson?.[name])
  return values
}

/** Returns lines for `COPY`. Ordered, so that two instances cannot deadlock. */
export function toCopyLines(rows: readonly LedgerRow[]): string {
  let lines = ''
  for (const row of inOrder(rows)) lines += `${getValues(row).map(field).join('\t')}\n`
  return lines
}

/**
 * Inserts rows that the ledger may have, and returns the IDs of those that count: it did not have the request, or a
 * checkpoint that the record replaces in the order of `core/usage/usage-truth.ts`.
 */
async function insertRows(statements: Statements, rows: readonly LedgerRow[]): Promise<ReadonlySet<string>> {
  const values = inOrder(rows).map(row => {
    const all = getValues(row)
    return Object.fromEntries(columns.map((name, index) => [name, all[index]]))
  })
  const counted = await statements.query<{ id: string }>(
    `insert into usage_records (${columns})
      select ${columns} from json_populate_recordset(null::usage_records, $1::text::json)
      on conflict (request_id, at) do update set ${names.map(name => `${name} = excluded.${name}`).join()}
      where usage_records.truth = 'checkpoint' and (
        excluded.truth = 'final', excluded.billed_microcents, excluded.input_tokens + excluded.output_tokens,
        excluded.latency_ms
      ) > (
        false, usage_records.billed_microcents, usage_records.input_tokens + usage_records.output_tokens,
        usage_records.latency_ms
      )
      returning request_id as id`,
    [JSON.stringify(values)],
  )
  return new Set(counted.map(({ id }) => id))
}

function inOrder(all: readonly LedgerRow[]): LedgerRow[] {
  const getKey = ({ record }: LedgerRow) => `${record.account_id} ${record.request_id}`
  return all.toSorted((item, other) => (getKey(item) < getKey(other) ? -1 : 1))
}

/** Returns a value in the text format of `COPY`. */
function field(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return special.test(value) ? value.replace(specials, escaped) : value
    case 'number':
      return String(value)
    case 'boolean':
      return value ? 't' : 'f'
    default:
      return value == null ? '\\N' : field(JSON.stringify(value))
  }
}

const special = /[\\\n\r\t]/
const specials = /[\\\n\r\t]/g
const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }
const escaped = (character: string) => escapes[character] ?? character

/** Returns what rows add to the daily totals and to those of their tags. */
export function getSums(rows: readonly LedgerRow[]) {
  const daily = new Map<string, Sums>()
  const tagged = new Map<string, Sums>()
  for (const row of rows) {
    const place = getPlace(row)
    const added = getAdded(row.record)
    addRecord(daily, place, added)
    for (const [name, value] of Object.entries(row.record.tags ?? {}))
      addRecord(tagged, { ...place, tag: `${name}=${value}` }, added)
  }
  return { daily: byName(daily), tagged: byName(tagged) }
}

/** Adds rows to the daily totals, to those of their tags, and to the shortfalls of their keys. */
async function addSums(statements: Statements, rows: readonly LedgerRow[]): Promise<void> {
  const { daily, tagged } = getSums(rows)
  // In the order of the trigger that subtracts a replaced row.
  if (daily.length > 0) await addDaily(statements, 'usage_daily', places, daily)
  if (tagged.length > 0) await addDaily(statements, 'usage_tags_daily', ['tag', ...places], tagged)
  const short = rows.flatMap(row => {
    const { key_id, request_id, shortfall_microcents: microcents = 0 } = row.record
    return microcents === 0 ? [] : [{ key_id, day: getPlace(row).day, microcents, request_id }]
  })
  if (short.length > 0) await statements.query(addedShortfalls, [JSON.stringify(short)])
}

const byName = <T>(sums: ReadonlyMap<string, T>): T[] =>
  [...sums].toSorted(([name], [other]) => (name < other ? -1 : 1)).map(([, item]) => item)

const places = ['account_id', 'day', 'key_id', 'model'] as const
const histograms = ['latency', 'first_token'] as const

type Place = Record<(typeof places)[number], string> & { readonly tag?: string }
type Counts = Record<(typeof summedColumns)[number], number>
type Sums = Place & Counts & Record<(typeof histograms)[number], number[]>
/** What a request adds to sums: to each histogram one count in a bucket, or none. */
type Added = Readonly<Counts & Record<(typeof histograms)[number], number | null>>

/** Adds sums to a table. As one array per column: rows as JSON, and a function that adds counts, took twice as long. */
async function addDaily(
  statements: Statements,
  table: 'usage_daily' | 'usage_tags_daily',
  keys: readonly (keyof Place)[],
  sums: readonly Sums[],
): Promise<void> {
  const listed = [...keys, ...summedColumns, ...histograms]
  const arrays = listed.map((name, index) => `$${index + 1}::text::${arrayType(name)}`)
  const values = listed.map(name => (isHistogram(name) ? `${name}::int[]` : name))
  const add = (column: string) => `coalesce(${table}.${column}, 0) + excluded.${column}`
  const slots = Array.from({ length: bucketCount }, (_, slot) => slot + 1)
  await statements.query(
    `insert into ${table} (${listed})
      select ${values} from unnest(${arrays}) as added (${listed})
      on conflict (${keys}) do update set
        ${summedColumns.map(name => `${name} = ${add(name)}`)},
        ${histograms.map(name => `${name} = array[${slots.map(slot => add(`${name}[${slot}]`))}]`)}`,
    listed.map(name => toArray(sums.map(line => line[name]))),
  )
}

const isHistogram = (name: string) => histograms.some(histogram => histogram === name)

function arrayType(name: string): string {
  if (name === 'day') return 'date[]'
  return summedColumns.some(column => column === name) ? 'bigint[]' : 'text[]'
}

/** Returns values in the text format of arrays of Postgres. */
function toArray(values: readonly (string | number | readonly number[] | undefined)[]): string {
  const texts = values.map(value => (typeof value === 'object' ? `{${value}}` : String(value)))
  return `{${texts.map(text => `"${text.replace(/["\\]/g, '\\$&')}"`)}}`
}

function getPlace({ record, at }: LedgerRow): Place {
  return {
    account_id: record.account_id,
    day: new Date(at).toISOString().slice(0, 10),
    key_id: record.key_id,
    model: servingModel(record),
  }
}

function getAdded(record: UsageRecord): Added {
  const { status, latency_ms, first_token_ms } = record
  const isCompleted = status === 'completed'
  return {
    requests: 1,
    completed: Number(isCompleted),
    failed: Number(status === 'failed' || status === 'blocked'),
    input_tokens: record.input_tokens,
    cached_input_tokens: record.cached_input_tokens,
    output_tokens: record.output_tokens,
    reasoning_tokens: record.reasoning_tokens,
    billed_microcents: record.billed_microcents,
    own_key_microcents: record.own_key_microcents ?? 0,
    routing_saved_microcents: record.routing_saved_microcents ?? 0,
    cache_saved_microcents: record.cache_saved_microcents ?? 0,
    latency: isCompleted ? getBucket(latency_ms) : null,
    first_token: isCompleted && first_token_ms !== null ? getBucket(first_token_ms) : null,
  }
}

function addRecord(all: Map<string, Sums>, place: Place, added: Added): void {
  const name = Object.values(place).join('\n')
  let sums = all.get(name)
  if (sums === undefined) {
    sums = { ...added, ...place, latency: emptyHistogram(), first_token: emptyHistogram() }
    all.set(name, sums)
  } else for (const count of summedColumns) sums[count] += added[count]
  for (const histogram of histograms) {
    const bucket = added[histogram]
    if (bucket !== null) sums[histogram][bucket] = (sums[histogram][bucket] ?? 0) + 1
  }
}

const emptyHistogram = () => new Array<number>(bucketCount).fill(0)

const addedShortfalls = `
  with short as materialized (
    select distinct on (key_id)
      key_id, day, sum(microcents)::bigint as microcents, max(microcents) as most,
      (array_agg(request_id order by microcents desc, request_id))[1] as request_id
    from json_to_recordset($1::text::json) as record(key_id text, day date, microcents bigint, request_id text)
    group by key_id, day
    order by key_id, day desc)
  update api_keys set
    shortfall_day = short.day,
    shortfall_microcents = case when shortfall_day = short.day then shortfall_microcents else 0 end + short.microcents,
    shortfall_request_microcents = greatest(case when shortfall_day = short.day then shortfall_request_microcents else 0 end, short.most),
    shortfall_request_id = case
      when shortfall_day = short.day and shortfall_request_microcents >= short.most then shortfall_request_id else short.request_id end,
    updated_at = clock_timestamp()
  from short
  where api_keys.id = short.key_id and (shortfall_day is null or shortfall_day <= short.day)`
