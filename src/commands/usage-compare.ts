/**
 * `usage compare`: where the ledger and a provider's export differ, by day and model, or by the provider's request ID if the export has
 * one. It reads only sums and IDs, and leaves out what accounts called with own keys. The ledger does not know which key of the
 * operator served, so that only the export can be of one key.
 */

import type { Sql } from 'postgres'
import { shownUsd } from '../core/usage/money.ts'
import type { Database } from '../database/database.ts'
import { columns } from './command.ts'
import { type ExportLine, exportFields, readExport, type UsageExport } from './usage-exports.ts'
import type { UsageReport } from './usage-reports.ts'

type FieldName = (typeof exportFields)[number]

/** Usage in the ledger, of a day and a model, or of one request. Money is in units of 1e-8 USD. */
type LedgerSums = Readonly<Record<FieldName, number>> & {
  readonly day: string
  readonly model: string
  /** Requests whose tokens the gateway estimated, at least in part. */
  readonly estimated: number
  /** Requests with usage that had no known price. */
  readonly unpriced: number
  /** Attempts that did not serve, which the provider may charge. */
  readonly retried: number
}

type ExportSums = Pick<ExportLine, FieldName> & { readonly tiers: readonly string[]; readonly rows: number }

type Cause =
  | 'unknown price'
  | 'cached tokens'
  | 'tier'
  | 'retried request'
  | 'request outside the gateway'
  | 'rounding'
  | 'estimated tokens'
  | 'not in the export'
  | 'other token counts'
  | 'other price'

type UsageDifference = {
  readonly day: string
  readonly model: string
  readonly id: string | null
  readonly cause: Cause
  /** What the provider and the ledger have; null = nothing. */
  readonly fields: Partial<Readonly<Record<FieldName, readonly [provider: number | null, ledger: number | null]>>>
}

/** Compares an export with the ledger. `providers` null = those of the format. */
export async function compareUsage(
  database: Database,
  text: string,
  { providers, key }: { readonly providers: readonly string[] | null; readonly key: string | null },
): Promise<UsageReport> {
  const given = readExport(text, key)
  const days = given.lines.map(({ day }) => day).sort()
  const scope: Scope = {
    providers: providers ?? given.format.providers,
    from: days[0] ?? '9999-12-31',
    to: days.at(-1) ?? '9999-12-31',
  }
  const ids = given.lines.flatMap(({ id }) => id ?? [])
  const sums = await readSums(database, scope)
  const differences =
    ids.length === 0
      ? byDay(given, sums, key === null)
      : byRequest(given, sums, await readRequests(database, scope, ids), key === null)
  const { lines, otherKeys, unread } = given
  const { from, to } = scope
  return {
    lines: [
      `${given.format.name}, ${from} to ${to}: ${lines.length} lines of usage, ${differences.length} differences.`,
      ...(otherKeys === 0 ? [] : [`${otherKeys} lines of other keys were left out.`]),
      ...(unread === 0 ? [] : [`Lines without a day or a model, or with other cells than the head: ${unread}.`]),
      ...(differences.length === 0
        ? []
        : columns([['DAY', 'MODEL', 'CAUSE', 'PROVIDER / LEDGER', 'ID'], ...differences.map(toRow)])),
    ],
    json: { format: given.format.name, from, to, lines: lines.length, other_keys: otherKeys, unread, differences },
    isWell: differences.length === 0,
  }
}

function toRow({ day, model, cause, fields, id }: UsageDifference): string[] {
  const shown = (field: string, value: number | null) =>
    value === null ? 'nothing' : field === 'cost' ? shownUsd(Math.round(value)) : String(value)
  const values = Object.entries(fields).map(
    ([field, [provider, ledger]]) => `${field} ${shown(field, provider)} / ${shown(field, ledger)}`,
  )
  return [day, model, cause, values.join(', '), id ?? '']
}

function byDay({ lines, format, precision }: UsageExport, sums: readonly LedgerSums[], isWhole: boolean) {
  const models = [...new Set(sums.map(({ model }) => model))]
  const place = ({ day, model }: Pick<ExportLine, 'day' | 'model'>) => `${day} ${model}`
  const named = lines.map(line => ({ ...line, model: findModel(line.model, models, format) ?? line.model }))
  const ledger = new Map(sums.map(line => [place(line), line]))
  const found = [...Map.groupBy(named, place)].flatMap(([at, group]) =>
    group[0] === undefined ? [] : difference(group[0], addUp(group), ledger.get(at) ?? null, precision),
  )
  const told = new Set(named.map(place))
  const missing = isWhole ? sums.filter(line => !told.has(place(line))).map(line => absent(line, line)) : []
  return [...found, ...missing].sort((item, other) => (place(item) < place(other) ? -1 : 1))
}

function byRequest(
  { lines, precision }: UsageExport,
  sums: readonly LedgerSums[],
  requests: ReadonlyMap<string, LedgerSums>,
  isWhole: boolean,
): UsageDifference[] {
  const found = lines.flatMap(line => difference(line, addUp([line]), requests.get(line.id ?? '') ?? null, precision))
  if (!isWhole) return found
  const matched = Map.groupBy(requests.values(), ({ day, model }) => `${day} ${model}`)
  const missing = sums.flatMap(line => {
    const rest = line.requests - (matched.get(`${line.day} ${line.model}`)?.length ?? 0)
    return rest === 0 ? [] : [absent(line, { requests: rest })]
  })
  return [...found, ...missing]
}

function absent({ day, model }: LedgerSums, ledger: Partial<Record<FieldName, number>>): UsageDifference {
  const fields = exportFields.flatMap(field => (ledger[field] === undefined ? [] : [[field, [null, ledger[field]]]]))
  return { day, model, id: null, cause: 'not in the export', fields: Object.fromEntries(fields) }
}

function addUp(lines: readonly ExportLine[]): ExportSums {
  const sum = (field: FieldName) => {
    const numbers = lines.flatMap(line => line[field] ?? [])
    return numbers.length === 0 ? null : numbers.reduce((total, number) => total + number, 0)
  }
  const [requests, input, cached, written, output, cost] = exportFields.map(sum)
  return {
    requests: requests ?? null,
    input: input ?? null,
    cached: cached ?? null,
    written: written ?? null,
    output: output ?? null,
    cost: cost ?? null,
    tiers: lines.flatMap(({ tier }) => tier ?? []),
    rows: lines.length,
  }
}

function difference(
  { day, model, id }: Pick<ExportLine, 'day' | 'model' | 'id'>,
  provider: ExportSums,
  ledger: LedgerSums | null,
  precision: number,
): UsageDifference[] {
  // The gateway rounds each request up to 1e-8 USD, the export each row to its last decimal place.
  const tolerance = (ledger?.requests ?? 0) + provider.rows * precision + 1e-6
  const isOff = (field: FieldName) => {
    const value = provider[field]
    if (value === null) return false
    return field === 'cost' ? Math.abs(value - (ledger?.cost ?? 0)) > tolerance : value !== (ledger?.[field] ?? 0)
  }
  const off = exportFields.filter(isOff)
  if (off.length === 0) return []
  const fields = off.map(field => [field, [provider[field], ledger?.[field] ?? null]])
  const cause = ledger === null ? 'request outside the gateway' : findCause(new Set(off), provider, ledger)
  return [{ day, model: ledger?.model ?? model, id, cause, fields: Object.fromEntries(fields) }]
}

const cent = 1e6
/** Ratios of the prices of tiers: Flex and Batch, inference in one region, Fast and Priority. */
const tierRatios = [0.5, 1.1, 1.8, 2]

function findCause(off: ReadonlySet<FieldName>, provider: ExportSums, ledger: LedgerSums): Cause {
  const excess = (field: FieldName) => (off.has(field) ? (provider[field] ?? 0) - ledger[field] : 0)
  const isRetried = (requests: number) => ledger.retried > 0 && requests <= ledger.retried
  if (excess('requests') > 0) return isRetried(excess('requests')) ? 'retried request' : 'request outside the gateway'
  if (excess('requests') < 0) return 'not in the export'
  if (off.has('input') || off.has('output')) {
    if (ledger.estimated > 0) return 'estimated tokens'
    if (excess('input') >= 0 && excess('output') >= 0) {
      if (ledger.retried > 0) return 'retried request'
      if (provider.requests === null) return 'request outside the gateway'
    }
    const isLess = excess('input') <= 0 && excess('output') <= 0
    return isLess && provider.requests === null ? 'not in the export' : 'other token counts'
  }
  if (off.has('cached') || off.has('written')) return 'cached tokens'
  if (ledger.unpriced > 0) return 'unknown price'
  const ratio = (provider.cost ?? 0) / ledger.cost
  if (provider.tiers.length > 0 || tierRatios.some(usual => Math.abs(ratio / usual - 1) < 0.01)) return 'tier'
  if (Math.abs(excess('cost')) < cent && Math.abs(ratio - 1) < 0.02) return 'rounding'
  if (provider.input === null && ledger.retried > 0 && ratio > 1) return 'retried request'
  // The export does not show them, and they explain a price that is nearly the right one.
  return provider.cached === null && ledger.cached > 0 && Math.abs(ratio - 1) < 0.5 ? 'cached tokens' : 'other price'
}

/** Returns the words and numbers of a name: of `claude-opus-5-5-20260922` as of `Claude Opus 5.5`. */
function getWords(name: string): string[] {
  const plain = name.slice(name.lastIndexOf('/') + 1).replace(/[-@]?(?:\d{8}|\d{4}-\d\d-\d\d)|-v\d+(?::\d+)?$/g, ' ')
  const words = plain
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .match(/[a-z]+|\d+/g)
  return (words ?? []).filter(word => !/^(preview|latest|anthropic|amazon|us|eu|apac|global)$/.test(word)).sort()
}

/** Returns the model of the ledger that an export names: the same words, or the most words of a text. */
function findModel(
  text: string,
  models: readonly string[],
  { namesModelInText }: Pick<UsageExport['format'], 'namesModelInText'>,
): string | null {
  if (models.includes(text)) return text
  const words = getWords(text)
  const isNamed = (own: readonly string[]) => {
    const rest = [...words]
    return own.every(word => rest.includes(word) && rest.splice(rest.indexOf(word), 1))
  }
  const named = models
    .map(model => ({ model, own: getWords(model) }))
    .filter(({ own }) => (namesModelInText ? isNamed(own) : own.join(' ') === words.join(' ')))
    .sort((item, other) => other.own.length - item.own.length)
  return named[0]?.model ?? null
}

/** UTC days, inclusive. */
type Scope = { readonly providers: readonly string[]; readonly from: string; readonly to: string }

const deadlineMs = 300_000

/** What a provider charges the operator for a request, without the attempt that lost a hedge. */
const cost = (sql: Sql) =>
  sql`(billed_microcents + shortfall_microcents - search_microcents - fetch_microcents - hedge_microcents)`

/** Requests that only own keys of the account served, whose provider charges the account. */
const isOnOwnKeys = (sql: Sql) => sql`(own_key_microcents is not null and ${cost(sql)} = 0)`

async function readSums(database: Database, { providers, from, to }: Scope): Promise<readonly LedgerSums[]> {
  return database.run(
    ({ sql }) => sql<LedgerSums[]>`
      with chosen as (
        select to_char(at at time zone 'UTC', 'YYYY-MM-DD') as day, *
        from usage_records
        where at >= ${from}::text::date::timestamp at time zone 'UTC'
          and at < (${to}::text::date + 1)::timestamp at time zone 'UTC'
          and not ${isOnOwnKeys(sql)}
      ), retried as (
        select day, substr(attempt ->> 0, strpos(attempt ->> 0, '/') + 1) as model, count(*) as attempts
        from chosen, jsonb_array_elements(coalesce(tried, '[]')) as attempt
        where attempt ->> 1 <> 'served' and split_part(attempt ->> 0, '/', 1) in ${sql(providers)}
        group by 1, 2
      )
      select day, model, count(*)::int as requests, sum(input_tokens)::float8 as input,
        sum(cached_input_tokens)::float8 as cached, sum(cache_write_tokens)::float8 as written,
        sum(output_tokens)::float8 as output,
        sum(${cost(sql)})::float8 as cost,
        (count(*) filter (where estimated))::int as estimated,
        (count(*) filter (where unpriced is not null))::int as unpriced,
        coalesce((select attempts from retried where retried.day = chosen.day and retried.model = chosen.model), 0)::int as retried
      from chosen
      where provider in ${sql(providers)} and model <> '' and input_tokens + output_tokens > 0
      group by day, model
      order by day, model`,
    deadlineMs,
  )
}

/** IDs of one query. */
const idsAtOnce = 5_000

/** Returns the requests with these IDs of the provider. */
async function readRequests(database: Database, { providers }: Scope, ids: readonly string[]) {
  const found = new Map<string, LedgerSums>()
  for (let at = 0; at < ids.length; at += idsAtOnce) {
    const some = ids.slice(at, at + idsAtOnce)
    const rows = await database.run(
      ({ sql }) => sql<(LedgerSums & { id: string })[]>`
        select upstream_id as id, to_char(at at time zone 'UTC', 'YYYY-MM-DD') as day, model, 1 as requests,
          input_tokens::float8 as input, cached_input_tokens::float8 as cached, cache_write_tokens::float8 as written,
          output_tokens::float8 as output,
          ${cost(sql)}::float8 as cost,
          estimated::int as estimated, (unpriced is not null)::int as unpriced, (attempts - 1)::int as retried
        from usage_records
        where upstream_hash in (select hashtext(id) from json_array_elements_text(${JSON.stringify(some)}::text::json) as id)
          and upstream_id in ${sql(some)} and provider in ${sql(providers)} and not ${isOnOwnKeys(sql)}`,
      deadlineMs,
    )
    for (const { id, ...row } of rows) found.set(id, row)
  }
  return found
}
