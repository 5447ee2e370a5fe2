/** Converts usage to its API form; ledger rows are never exposed directly. */

import { splitProject } from '../../core/request/tags.ts'
import { type Cell, csvLine } from '../../core/text/csv.ts'
import { dayMs } from '../../core/text/utc-days.ts'
import { latencyQuantile } from '../../core/usage/latency-histogram.ts'
import { decimalUsd, toUsd } from '../../core/usage/money.ts'
import { isTime } from '../../core/usage/usage-groups.ts'
import { recordedDialects } from '../../core/usage/usage-record.ts'
import type { LoggedRequest } from '../../ledger/request-filters.ts'
import type { UsageGroup, UsagePeriod, UsageSplit } from '../../ledger/usage-lines.ts'
import type { GroupedUsage, UsagePart, UsageSums } from '../../ledger/usage-totals.ts'
import type { ShownRequest, ShownUsage } from './schemas.ts'

/** One request of the log. */
export function shownRequest(row: LoggedRequest): ShownRequest {
  const { projectId, tags } = splitProject(row.tags)
  return {
    request_id: row.request_id,
    created_at: new Date(Math.floor(row.at_micros / 1000)).toISOString(),
    key_id: row.key_id,
    key_name: row.key_name,
    /** Null = no model served. */
    model: row.model === '' ? null : `${row.provider}/${row.model}`,
    requested_model: row.requested_model ?? null,
    upstream_id: row.upstream_id ?? null,
    provider: row.provider === '' ? null : row.provider,
    routing_mode: row.routing_mode,
    strategy: row.strategy,
    query_type: row.query_type,
    effort: row.effort ?? null,
    streamed: row.streamed,
    dialect: row.dialect ?? null,
    status: row.status,
    error_code: row.error_code,
    finish_reason: row.finish_reason,
    input_tokens: row.input_tokens,
    cached_input_tokens: row.cached_input_tokens,
    cache_write_tokens: row.cache_write_tokens,
    output_tokens: row.output_tokens,
    reasoning_tokens: row.reasoning_tokens,
    total_tokens: row.input_tokens + row.output_tokens,
    estimated: row.estimated,
    cost_usd: toUsd(row.billed_microcents),
    search_cost_usd: toUsd(row.search_microcents),
    fetch_cost_usd: toUsd(row.fetch_microcents),
    hedge_cost_usd: toUsd(row.hedge_microcents),
    own_key_cost_usd: row.own_key_microcents === null ? null : toUsd(row.own_key_microcents),
    unpriced: row.unpriced,
    routing_saved_usd: row.routing_saved_microcents === null ? null : toUsd(row.routing_saved_microcents),
    cache_saved_usd: row.cache_saved_microcents === null ? null : toUsd(row.cache_saved_microcents),
    attempts: row.attempts,
    tried:
      row.tried?.map(([model, outcome, after_ms, duration_ms]) => ({ model, outcome, after_ms, duration_ms })) ?? null,
    latency_ms: row.latency_ms,
    first_token_ms: row.first_token_ms,
    metadata: row.metadata,
    tags: tags === null ? null : { ...tags },
    constraints: row.guarantees === null ? null : [...row.guarantees[0]],
    receivers: row.guarantees === null ? null : [...row.guarantees[1]],
    user_id: row.user_id,
    user_email: row.user_email,
    project_id: projectId,
  }
}

const columns = [
  'request_id',
  'created_at',
  'key_id',
  'key_name',
  'model',
  'provider',
  'routing_mode',
  'strategy',
  'query_type',
  'streamed',
  'status',
  'error_code',
  'finish_reason',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'total_tokens',
  'estimated',
  'cost_usd',
  'search_cost_usd',
  'fetch_cost_usd',
  'attempts',
  'latency_ms',
  'first_token_ms',
  'metadata',
  'dialect',
  'tried',
  'requested_model',
  'upstream_id',
  'hedge_cost_usd',
  'tags',
  'user_id',
  'user_email',
  'project_id',
  'own_key_cost_usd',
  'effort',
  'unpriced',
  'routing_saved_usd',
  'cache_saved_usd',
  'constraints',
  'receivers',
] as const satisfies readonly (keyof ShownRequest)[]

export const csvHeader = csvLine(columns)

/**
 * Converts one request to a line of CSV; `metadata` and `tags` are one cell of JSON each, `tried` one of text: `openai/gpt-5.5 timeout
 * 2+3000 ms; …`.
 */
export function csvRequest(row: LoggedRequest): string {
  const request = shownRequest(row)
  const shown = {
    ...request,
    cost_usd: decimalUsd(row.billed_microcents),
    search_cost_usd: decimalUsd(row.search_microcents),
    fetch_cost_usd: decimalUsd(row.fetch_microcents),
    hedge_cost_usd: decimalUsd(row.hedge_microcents),
    own_key_cost_usd: row.own_key_microcents === null ? null : decimalUsd(row.own_key_microcents),
    routing_saved_usd: row.routing_saved_microcents === null ? null : decimalUsd(row.routing_saved_microcents),
    cache_saved_usd: row.cache_saved_microcents === null ? null : decimalUsd(row.cache_saved_microcents),
    metadata: jsonCell(row.metadata),
    tried: triedCell(row.tried),
    tags: jsonCell(request.tags),
    constraints: request.constraints?.join('; ') ?? null,
    receivers: request.receivers?.join('; ') ?? null,
  }
  return csvLine(columns.map((column): Cell => shown[column]))
}

function jsonCell(fields: LoggedRequest['tags']): string | null {
  return fields === null ? null : JSON.stringify(fields)
}

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

const nothing: UsageSums = {
  requests: 0,
  completed: 0,
  failed: 0,
  input_tokens: 0,
  cached_input_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  billed_microcents: 0,
  own_key_microcents: 0,
  routing_saved_microcents: 0,
  cache_saved_microcents: 0,
  latency: [],
  first_token: [],
}

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
    requests: sums.requests,
    completed: sums.completed,
    failed: sums.failed,
    input_tokens: sums.input_tokens,
    cached_input_tokens: sums.cached_input_tokens,
    output_tokens: sums.output_tokens,
    reasoning_tokens: sums.reasoning_tokens,
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
