/** Range and filters of Overview, Requests, Keys and Tags, in the URL. All times are UTC. */
import { accountCreatedAt, hrefTo, openedAt } from './href.ts'

const filterNames = [
  'range',
  'from',
  'to',
  'provider',
  'model',
  'key',
  'member',
  'status',
  'error_code',
  'dialect',
  'query_type',
  'min_latency_ms',
  'max_latency_ms',
  'routing_mode',
  'streamed',
  'unpriced',
  'tag',
  'metadata',
  'project_id',
] as const
export type FilterName = (typeof filterNames)[number]
/** `from` and `to` are minutes, `2026-11-23T07:00`; `tag` is `name=value` or a name with any value, `metadata` is `name=value`. */
export type Filters = Readonly<Partial<Record<FilterName, string>>>

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** Ranges end now, those of hours to the minute. Days are whole UTC days with today, so that they agree with the daily totals. */
export const ranges = {
  '1h': { title: 'Last hour', hours: 1 },
  '24h': { title: 'Last 24 hours', hours: 24 },
  '7d': { title: 'Last 7 days', days: 7 },
  '30d': { title: 'Last 30 days', days: 30 },
  '90d': { title: 'Last 90 days', days: 90 },
  month: { title: 'This month', monthsAgo: 0 },
  'last-month': { title: 'Last month', monthsAgo: 1 },
} as const
export const rangeChoices = Object.entries(ranges).map(([name, { title }]) => [name, title] as const)
type RangeName = keyof typeof ranges
/** Longer ranges have one column per day. */
const mostHours = 48
/**
 * Days of totals that sum the log itself: 250,000 of a million requests per month take about a second. Failed requests
 * have an index.
 */
const mostLogDays = 7
const mostFailedDays = 30

/** Returns the filters among the parameters of the URL. Empty ones are omitted. */
export function toFilters(query: Readonly<Record<string, string>>): Filters {
  return Object.fromEntries(
    filterNames.flatMap(name => (query[name] === undefined || query[name] === '' ? [] : [[name, query[name]]])),
  )
}

/** Returns the filters that a page accepts: only the log has rejected requests, and the totals refuse their status. */
export function filtersFor(path: string, { status, ...others }: Filters): Filters {
  return status === undefined || (status === 'rejected' && path !== 'requests') ? others : { ...others, status }
}

/** The requests that totals count as failed. */
export const failedOnly: Filters = { status: 'failed_or_blocked' }

export const isCustom = ({ from, to }: Filters) => from !== undefined || to !== undefined

/** In the first day of an account, all its requests would be one column of 30 days. */
const getDefaultRange = (): RangeName => (openedAt.value - accountCreatedAt.value < dayMs ? '24h' : '30d')
/** Returns the parameter of a chosen range; the default one has none. */
export const toRangeParam = (range: string) => (range === getDefaultRange() ? '' : range)

const isRange = (name: string | undefined): name is RangeName => name !== undefined && Object.hasOwn(ranges, name)
export const getRange = ({ range }: Filters): RangeName => (isRange(range) ? range : getDefaultRange())

export function rangeTitle(filters: Filters): string {
  if (!isCustom(filters)) return ranges[getRange(filters)].title
  const shown = (hour: string | undefined) => hour?.replace('T', ' ')
  return `${shown(filters.from) ?? 'First request'} to ${shown(filters.to) ?? 'now'}`
}

/** Epoch milliseconds: the first included, and the first excluded; null = now. */
type Span = { readonly from: number; readonly to: number | null }

function toSpan(filters: Filters, now: number): Span {
  if (isCustom(filters)) {
    const to = toTime(filters.to)
    return { from: toTime(filters.from) ?? (to ?? getRangeEnd(filters, now)) - mostFailedDays * dayMs, to }
  }
  const range = ranges[getRange(filters)]
  if ('monthsAgo' in range) {
    const [year, month] = [new Date(now).getUTCFullYear(), new Date(now).getUTCMonth() - range.monthsAgo]
    return { from: Date.UTC(year, month), to: range.monthsAgo === 0 ? null : Date.UTC(year, month + 1) }
  }
  return 'hours' in range
    ? { from: Math.ceil(now / minuteMs) * minuteMs - range.hours * hourMs, to: null }
    : { from: Math.floor(now / dayMs) * dayMs - (range.days - 1) * dayMs, to: null }
}

function toTime(minute = ''): number | null {
  // Chromium reads years into other texts, such as 2000 into `undefined:00Z`.
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(minute) ? Date.parse(`${minute}:00Z`) : Number.NaN
  return Number.isFinite(time) ? time : null
}

/** Parameters of the request log for these filters. */
export function logQuery(filters: Filters, now = openedAt.value): Record<string, string> {
  const { from, to } = toSpan(filters, now)
  return { ...withoutRange(filters), from: iso(from), ...(to === null ? {} : { to: iso(to) }) }
}

export type UsageQuery = {
  /** Parameters of the usage totals, without a group. */
  readonly query: Record<string, string>
  /** Length of a column of the chart. */
  readonly unit: 'minute' | 'hour' | 'day'
  /** The totals cover only these last days of the range; null = all. */
  readonly shortenedTo: number | null
}

type UsageOptions = {
  readonly now?: number
  readonly groupBy?: string | undefined
  readonly splitBy?: string | undefined
  /** The user sees the usage of others only through projects. */
  readonly isThroughProjects?: boolean
}

/** Parameters of the usage totals for these filters. Whole days are sent as days, which the daily totals know. */
export function usageQuery(
  filters: Filters,
  { now = openedAt.value, groupBy, splitBy, isThroughProjects = false }: UsageOptions = {},
): UsageQuery {
  const span = toSpan(filters, now)
  const end = span.to ?? getRangeEnd(filters, now)
  const { provider, model, key, member, tag, project_id, ...others } = withoutRange(filters)
  const isWhole = span.from % dayMs === 0 && end % dayMs === 0
  const length = end - span.from
  const unit = length <= hourMs ? 'minute' : length <= mostHours * hourMs ? 'hour' : 'day'
  // The totals of tags have no project: only the log knows both.
  const isOfTag = tag !== undefined || groupBy === 'tag' || splitBy === 'tag'
  const isOfProjects = isThroughProjects || project_id !== undefined || splitBy === 'project'
  const isOfTagInProject = isOfTag && isOfProjects
  const needsLog =
    unit !== 'day' ||
    !isWhole ||
    isOfTagInProject ||
    groupBy === 'query_type' ||
    splitBy === 'dialect' ||
    Object.keys(others).length > 0
  const isOfFailed = others.error_code !== undefined || (others.status ?? 'completed') !== 'completed'
  const mostDays = isOfFailed ? mostFailedDays : mostLogDays
  const shortenedTo = needsLog && length > mostDays * dayMs ? mostDays : null
  const from = shortenedTo === null ? span.from : Math.ceil((end - mostDays * dayMs) / dayMs) * dayMs
  const times = isWhole
    ? { from: iso(from).slice(0, 10), to: iso(end - dayMs).slice(0, 10) }
    : { from: iso(from), to: iso(end) }
  return { query: { ...withoutRange(filters), ...times }, unit, shortenedTo }
}

/** The end of a range that ends now: of the minute, of the UTC day, or of the hour for one with a chosen start. */
function getRangeEnd(filters: Filters, now: number): number {
  if (isCustom(filters)) return Math.ceil(now / hourMs) * hourMs
  const unit = 'hours' in ranges[getRange(filters)] ? minuteMs : dayMs
  return unit === dayMs ? Math.floor(now / dayMs) * dayMs + dayMs : Math.ceil(now / minuteMs) * minuteMs
}

/** Returns the parameters of the range of the same length before. */
export function rangeBefore({ query }: UsageQuery): Record<string, string> {
  const { from = '', to = '' } = query
  const isDays = from.length === 10
  const start = Date.parse(from)
  const length = Date.parse(to) - start + (isDays ? dayMs : 0)
  const times = [start - length, isDays ? start - dayMs : start].map(time => iso(time).slice(0, from.length))
  return { ...query, from: times[0] ?? '', to: times[1] ?? '' }
}

/** Returns the filters of the requests that the totals cover: those of a shortened range begin later. */
export function coveredFilters(filters: Filters, { query, shortenedTo }: UsageQuery): Filters {
  const { from = '' } = query
  if (shortenedTo === null) return filters
  return { ...filters, range: '', from: from.length === 10 ? `${from}T00:00` : from.slice(0, 16) }
}

const iso = (time: number) => `${new Date(time).toISOString().slice(0, 19)}Z`

function withoutRange({ range, from, to, metadata = '', ...others }: Filters): Record<string, string> {
  const at = metadata.indexOf('=')
  return { ...others, ...(at < 1 ? {} : { [`metadata[${metadata.slice(0, at)}]`]: metadata.slice(at + 1) }) }
}

/** Returns the link to the log with these filters, and those that a chart element adds. */
export function hrefToLog(filters: Filters, added: Filters = {}, now = openedAt.value): string {
  // The first and last column of a chart begin and end with the range, not with their hour.
  const { from, to } = toSpan(filters, now)
  const isEarlier = (toTime(added.from) ?? Number.POSITIVE_INFINITY) < from
  const isLater = to !== null && (toTime(added.to) ?? Number.NEGATIVE_INFINITY) > to
  const isNarrower = added.status === failedOnly.status && ['failed', 'blocked'].includes(filters.status ?? '')
  return hrefTo('requests', {
    ...filters,
    ...added,
    ...(isEarlier ? { from: toMinute(from) } : {}),
    ...(isLater ? { to: toMinute(to) } : {}),
    ...(isNarrower ? { status: filters.status } : {}),
  })
}

const toMinute = (time: number) => new Date(time).toISOString().slice(0, 16)

/** Start of a column of a chart: a UTC day `2026-11-23`, an hour `2026-11-23T07`, or a minute `2026-11-23T07:12`. */
export const unitStart = (unit: string) =>
  Date.parse(unit.length === 10 ? unit : unit.length === 13 ? `${unit}:00Z` : `${unit}Z`)

/** The filter of a column of a chart, or of all from it to `last`. */
export function toUnitFilter(unit: string, last = unit): Filters {
  const length = unit.length === 10 ? dayMs : unit.length === 13 ? hourMs : minuteMs
  return { range: '', from: toMinute(unitStart(unit)), to: toMinute(unitStart(last) + length) }
}
