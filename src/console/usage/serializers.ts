/** Converts usage to its API form; ledger rows are never exposed directly. */

import { autoModel } from '../../core/models/models.ts'
import { splitProject } from '../../core/request/tags.ts'
import { type Cell, csvLine } from '../../core/text/csv.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import { latencyQuantile } from '../../core/usage/latency-histogram.ts'
import { decimalUsd, fromUsd, toUsd } from '../../core/usage/money.ts'
import { all, pick } from '../../core/usage/shown-fields.ts'
import { isTime, summedColumns, summedCounts, summedTokens } from '../../core/usage/usage-groups.ts'
import { recordedDialects } from '../../core/usage/usage-record.ts'
import type { RejectedRequest } from '../../ledger/find-request.ts'
import type { LoggedRequest } from '../../ledger/request-filters.ts'
import type { UsageGroup, UsagePeriod, UsageSplit } from '../../ledger/usage-lines.ts'
import type { GroupedUsage, UsagePart, UsageSums } from '../../ledger/usage-totals.ts'
import { requestShape, type ShownRequest, type ShownUsage } from './schemas.ts'

/** Fields that the log shows as the ledger has them. No other column is exposed by accident. */
const kept = [
  ...(['request_id', 'key_id', 'key_name', 'requested_model', 'upstream_id', 'routing_mode', 'strategy'] as const),
  ...(['query_type', 'effort', 'streamed', 'dialect', 'status', 'error_code', 'finish_reason'] as const),
  ...(['input_tokens', 'cached_input_tokens', 'cache_write_tokens', 'output_tokens', 'reasoning_tokens'] as const),
  ...([
    'estimated',
    'unpriced',
    'attempts',
    'latency_ms',
    'first_token_ms',
    'metadata',
    'user_id',
    'user_email',
  ] as const),
] as const

const usd = (microcents: number | null) => (microcents === null ? null : toUsd(microcents))

/** One request of the log. */
export function shownRequest(row: LoggedRequest): ShownRequest {
  const { projectId, tags } = splitProject(row.tags)
  return {
    ...pick(row, kept),
    created_at: getTime(row),
    model: row.model === '' ? null : `${row.provider}/${row.model}`,
    provider: row.provider === '' ? null : row.provider,
    total_tokens: row.input_tokens + row.output_tokens,
    cost_usd: toUsd(row.billed_microcents),
    search_cost_usd: toUsd(row.search_microcents),
    fetch_cost_usd: toUsd(row.fetch_microcents),
    hedge_cost_usd: toUsd(row.hedge_microcents),
    own_key_cost_usd: usd(row.own_key_microcents),
    routing_saved_usd: usd(row.routing_saved_microcents),
    cache_saved_usd: usd(row.cache_saved_microcents),
    tried:
      row.tried?.map(([model, outcome, after_ms, duration_ms]) => ({ model, outcome, after_ms, duration_ms })) ?? null,
    tags: tags && { ...tags },
    constraints: row.guarantees && [...row.guarantees[0]],
    receivers: row.guarantees && [...row.guarantees[1]],
    project_id: projectId,
  }
}

const getTime = ({ at_micros }: Pick<LoggedRequest, 'at_micros'>) =>
  new Date(Math.floor(at_micros / 1000)).toISOString()

/** A rejected request in the form of the log: without usage. */
export function shownRejected(row: RejectedRequest): ShownRequest {
  return {
    ...pick(row, [
      ...(['request_id', 'key_id', 'key_name', 'requested_model', 'strategy', 'streamed', 'dialect'] as const),
      ...(['error_code', 'latency_ms'] as const),
    ]),
    created_at: getTime(row),
    routing_mode: row.requested_model === null || row.requested_model === autoModel ? 'auto' : 'manual',
    status: 'rejected',
    estimated: false,
    tried: [],
    ...all(null, [
      ...(['model', 'upstream_id', 'provider', 'query_type', 'effort', 'finish_reason', 'own_key_cost_usd'] as const),
      ...(['unpriced', 'routing_saved_usd', 'cache_saved_usd', 'first_token_ms', 'metadata', 'tags'] as const),
      ...(['constraints', 'receivers', 'user_id', 'user_email', 'project_id'] as const),
    ]),
    ...all(0, [
      ...(['input_tokens', 'cached_input_tokens', 'cache_write_tokens', 'output_tokens', 'reasoning_tokens'] as const),
      ...(['total_tokens', 'cost_usd', 'search_cost_usd', 'fetch_cost_usd', 'hedge_cost_usd', 'attempts'] as const),
    ]),
  }
}

/** Columns of the file, in the order of the schema. */
const columns = Object.keys(requestShape.properties) as readonly (keyof ShownRequest)[]

export const csvHeader = csvLine(columns)

/** Converts one request to a line of CSV. */
export function csvRequest(row: LoggedRequest): string {
  const request = shownRequest(row)
  return csvLine(columns.map(column => (column === 'tried' ? triedCell(row.tried) : toCell(column, request[column]))))
}

/** Amounts are exact decimals, lists and objects one cell of text. */
function toCell(column: string, value: ShownRequest[keyof ShownRequest]): Cell {
  if (typeof value === 'number' && column.endsWith('_usd')) return decimalUsd(fromUsd(value))
  if (Array.isArray(value)) return value.join('; ')
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
}

/** `openai/gpt-5.5 timeout 2+3000 ms; …`. */
function triedCell(tried: LoggedRequest['tried']): string | null {
  if (tried === null) return null
  return tried.map(([model, outcome, after, duration]) => `${model} ${outcome} ${after}+${duration} ms`).join('; ')
}

/** Converts totals of a period and its parts; a series over time has no gaps. */
export function shownUsage(period: UsagePeriod, { total, groups, parts }: GroupedUsage): Omit<ShownUsage, 'rejected'> {
  const { from, to, groupBy, splitBy } = period
  const known = new Map(groups.map(group => [group.unit, group]))
  const units = unitsBetween(period) ?? groups.map(group => group.unit)
  return {
    from,
    to,
    group_by: groupBy,
    total: shownSums(total),
    data: units.map(unit => {
      const group = known.get(unit)
      return { ...named(groupBy, { unit, name: group?.name ?? null }), ...shownSums(group ?? nothing) }
    }),
    split_by: splitBy,
    series: parts?.flatMap(part => shownPart(part, splitBy, units)) ?? [],
    others: shownOthers(parts, units),
  }
}

function shownPart({ part, byUnit }: UsagePart, splitBy: UsagePeriod['splitBy'], units: readonly string[]) {
  if (part === null) return []
  const { unit, name } = part
  const shown =
    splitBy === 'project'
      ? { project_id: unit === '' ? null : unit, project_name: name }
      : namedPart(splitBy ?? 'model', part)
  return [{ ...shown, ...shownLines(byUnit, units) }]
}

function shownOthers(parts: GroupedUsage['parts'], units: readonly string[]) {
  const others = parts?.find(({ part }) => part === null)
  return others === undefined ? null : shownLines(others.byUnit, units)
}

/** One list per measure instead of one object per day: charts use lists directly, and they have a fifth of the size. */
function shownLines(byUnit: UsagePart['byUnit'], units: readonly string[]) {
  const sums = units.map(unit => byUnit.get(unit) ?? nothing)
  return {
    requests: sums.map(sum => sum.requests),
    completed: sums.map(sum => sum.completed),
    failed: sums.map(sum => sum.failed),
    total_tokens: sums.map(sum => sum.input_tokens + sum.output_tokens),
    cost_usd: sums.map(sum => toUsd(sum.billed_microcents)),
    latency_p50_ms: sums.map(sum => latencyQuantile(sum.latency, 0.5)),
    latency_p95_ms: sums.map(sum => latencyQuantile(sum.latency, 0.95)),
  }
}

const plainSums = [...summedCounts, ...summedTokens] as const

const nothing: UsageSums = { ...all(0, summedColumns), latency: [], first_token: [] }

function named(groupBy: UsageGroup, { unit, name }: NamedUnit) {
  switch (groupBy) {
    case 'minute':
      return { minute: unit }
    case 'hour':
      return { hour: unit }
    case 'day':
      return { day: unit }
    case 'month':
      return { month: unit }
    case 'project':
      return { project_id: unit, project_name: name }
    case 'query_type':
      return { query_type: unit === '' ? null : unit }
    default:
      return namedPart(groupBy, { unit, name })
  }
}

type NamedUnit = { readonly unit: string; readonly name: string | null }

function namedPart(group: Exclude<UsageSplit, 'project'>, { unit, name }: NamedUnit) {
  switch (group) {
    case 'model':
      return { model: unit === '' ? null : unit }
    case 'key':
      return { key_id: unit, key_name: name }
    case 'member':
      return { user_id: unit, email: name }
    case 'tag':
      return { tag: unit }
    case 'dialect':
      return { dialect: recordedDialects.find(dialect => dialect === unit) ?? null }
  }
}

function shownSums(sums: UsageSums) {
  return {
    ...pick(sums, plainSums),
    total_tokens: sums.input_tokens + sums.output_tokens,
    cost_usd: toUsd(sums.billed_microcents),
    own_key_cost_usd: toUsd(sums.own_key_microcents),
    routing_saved_usd: toUsd(sums.routing_saved_microcents),
    cache_saved_usd: toUsd(sums.cache_saved_microcents),
    latency_p50_ms: latencyQuantile(sums.latency, 0.5),
    latency_p95_ms: latencyQuantile(sums.latency, 0.95),
    first_token_p50_ms: latencyQuantile(sums.first_token, 0.5),
  }
}

const unitLengths = { minute: 16, hour: 13, day: 10, month: 7 } as const

/** Returns every minute, hour, day or month of a period, used or not; null if the units are not times. */
function unitsBetween({ from, to, groupBy, filters }: UsagePeriod): string[] | null {
  if (!isTime(groupBy)) return null
  const first = filters?.from ?? Date.parse(from)
  const last = Math.min(filters?.to ?? Number.POSITIVE_INFINITY, Date.parse(to) + dayMs) - 1
  const step = { minute: 60_000, hour: 3_600_000, day: dayMs, month: dayMs }[groupBy]
  const units = new Set<string>()
  for (let time = first - (first % step); time <= last; time += step)
    units.add(new Date(time).toISOString().slice(0, unitLengths[groupBy]))
  return [...units]
}
