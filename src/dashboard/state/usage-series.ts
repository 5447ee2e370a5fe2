/** Usage as chart series: one measure per day, in total or split. */
import type { ShownUsage } from '../../console/usage/schemas.ts'
import { figures } from './figures.ts'
import { type Filters, failedOnly, type UsageQuery } from './filters.ts'
import { compact, dialectNames, formatCount, formatUsd, milliseconds, percent } from './format.ts'

export type Series = {
  readonly name: string
  /** One value per day, lowest part of the bar first; null = none, such as a latency without requests. */
  readonly values: readonly (number | null)[]
  /** Over all days; null = none. */
  readonly whole: number | null
  /** Filter of its requests; null = they have none. */
  readonly filters: Filters | null
  readonly tone: 'main' | 'bad' | 'warn' | 'rest' | `s${number}`
}

const figure = (show: (value: number) => string) => (value: number | null) => (value === null ? '–' : show(value))

export const measures = {
  requests: { title: figures.requests.label, kind: 'bars', show: figure(formatCount), axis: compact, least: 4 },
  tokens: { title: figures.tokens.label, kind: 'bars', show: figure(compact), axis: compact, least: 1_000 },
  cost: { title: figures.cost.label, kind: 'bars', show: figure(formatUsd), axis: formatUsd, least: 0.01 },
  errors: { title: figures.failed.label, kind: 'bars', show: figure(formatCount), axis: compact, least: 4 },
  latency: { title: 'Latency', kind: 'lines', show: milliseconds, axis: milliseconds, least: 100 },
  share: {
    title: 'Share of requests',
    kind: 'areas',
    show: figure(value => percent(value, 1)),
    axis: percent,
    least: 1,
  },
} as const

export type Measure = keyof typeof measures

/** Titles of the measures, for tabs. A share is of parts only. */
export const measureTitles: Partial<Record<Measure, string>> = Object.fromEntries(
  Object.entries(measures).flatMap(([measure, { title }]) => (measure === 'share' ? [] : [[measure, title]])),
)

type Day = Extract<ShownUsage['data'][number], { day: string } | { hour: string } | { minute: string }>
type Part = ShownUsage['series'][number]
type Lines = NonNullable<ShownUsage['others']>

/** The rows of a usage response by day, hour or minute. */
export const listDays = (usage: ShownUsage): Day[] =>
  usage.data.flatMap(row => ('day' in row || 'hour' in row || 'minute' in row ? [row] : []))

/** The days `YYYY-MM-DD`, hours `YYYY-MM-DDTHH` or minutes `YYYY-MM-DDTHH:MM` of a usage response. */
export const listUnits = (usage: ShownUsage): string[] =>
  listDays(usage).map(row => ('day' in row ? row.day : 'hour' in row ? row.hour : row.minute))

/** Returns the total series. */
export function wholeSeries(usage: ShownUsage, measure: Measure): Series[] {
  const { total } = usage
  const days = listDays(usage)
  type Read = (sums: Day | typeof total) => number | null
  const line = (name: string, tone: Series['tone'], read: Read, filters: Filters = {}): Series => ({
    name,
    tone,
    filters,
    values: days.map(read),
    whole: read(total),
  })
  switch (measure) {
    case 'share':
    case 'requests':
      return [
        line('completed', 'main', sums => sums.completed, { status: 'completed' }),
        line('failed or blocked', 'bad', sums => sums.failed, failedOnly),
        line('client disconnected', 'warn', sums => sums.requests - sums.completed - sums.failed, {
          status: 'client_closed',
        }),
      ].filter(({ name, whole }) => name === 'completed' || whole !== 0)
    case 'tokens':
      return [line('input', 'main', sums => sums.input_tokens), line('output', 's1', sums => sums.output_tokens)]
    case 'cost':
      return [line('cost', 'main', sums => sums.cost_usd)]
    case 'errors':
      return [line('failed or blocked', 'bad', sums => sums.failed, failedOnly)]
    case 'latency':
      return [
        line('p50', 'main', sums => sums.latency_p50_ms),
        line('p95', 's1', sums => sums.latency_p95_ms, slow(total.latency_p95_ms)),
      ]
  }
}

const slow = (ms: number | null): Filters => (ms === null ? {} : { min_latency_ms: String(ms) })

/** Returns a series per part, and one for the rest. Latencies use the median, since they cannot be added. */
export function splitSeries(usage: ShownUsage, measure: Measure): Series[] {
  const { series, others, total } = usage
  if (measure === 'share') {
    const all = listDays(usage).map(({ requests }) => requests)
    const toShare = (value: number | null, of: number) => (value === null || of === 0 ? null : value / of)
    return splitSeries(usage, 'requests').map(line => ({
      ...line,
      values: line.values.map((value, day) => toShare(value, all[day] ?? 0)),
      whole: toShare(line.whole, total.requests),
    }))
  }
  const named = [...Map.groupBy(series, part => readPart(part)[0])]
    .map(([name, parts], index) => ({
      name,
      tone: `s${index}` as const,
      filters: toPartFilters(parts, measure),
      // Keys of the same name are merged: the playground's are many and short-lived.
      ...summed(parts, measure),
    }))
    .filter(({ values }) => values.length > 0)
  if (others === null) return named
  return [...named, { name: 'Other', tone: 'rest', filters: null, ...summed([others], measure) }]
}

/** Keys of one name are several, which no filter names. */
function toPartFilters([part, ...more]: readonly Part[], measure: Measure): Filters | null {
  const filters = part === undefined || more.length > 0 ? null : readPart(part)[1]
  return filters && { ...filters, ...(measure === 'errors' ? failedOnly : {}) }
}

/** Returns the name of a part, and the filter of its requests; null = no filter names them. */
function readPart(part: Part): readonly [name: string, filters: Filters | null] {
  if ('key_id' in part) return [part.key_name ?? part.key_id, { key: part.key_id }]
  if ('user_id' in part) return [part.email ?? 'Removed member', { member: part.user_id }]
  if ('tag' in part) return [part.tag, { tag: part.tag }]
  if ('project_id' in part) {
    const { project_id, project_name: name } = part
    return project_id === null ? ['No project', null] : [name ?? project_id, { project_id }]
  }
  if ('dialect' in part) {
    const { dialect } = part
    return dialect === null ? ['Unknown dialect', null] : [dialectNames[dialect], { dialect }]
  }
  return [formatModelName(part.model), part.model === null ? null : { model: part.model }]
}

export const toModelRows = (usage: ShownUsage | undefined) =>
  usage?.data.flatMap(row => ('model' in row ? [row] : [])) ?? []

/** Failed requests with automatic routing count under `gateway-ai`: no model served them. */
export function formatModelName(model: string | null): string {
  if (model === 'gateway-ai') return 'Automatic (no model)'
  return model ?? 'No model'
}

const columns = {
  requests: 'requests',
  tokens: 'total_tokens',
  cost: 'cost_usd',
  errors: 'failed',
  latency: 'latency_p50_ms',
  share: 'requests',
} as const satisfies Record<Measure, keyof Lines>

function summed(parts: readonly Lines[], measure: Measure): Pick<Series, 'values' | 'whole'> {
  const [first] = parts
  if (first === undefined) return { values: [], whole: null }
  if (measure === 'latency') return { values: parts.length === 1 ? first.latency_p50_ms : [], whole: null }
  const column = columns[measure]
  const values = first[column].map((_, day) => parts.reduce((sum, part) => sum + (part[column][day] ?? 0), 0))
  return { values, whole: values.reduce((sum, value) => sum + value, 0) }
}

/** Returns what a split chart shows apart from its title; undefined = nothing else. */
export function getChartNote(measure: Measure, { shortenedTo }: UsageQuery): string | undefined {
  if (measure === 'latency') return 'p50'
  return shortenedTo === null ? undefined : `last ${shortenedTo} days`
}
