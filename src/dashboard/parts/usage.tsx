/** Usage over time and by part, as the pages Overview, Keys, Tags and API key show it. */
import { useState } from 'preact/hooks'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import { saveCsv } from '../state/export.ts'
import { coveredFilters, type Filters, failedOnly, hrefToLog, rangeTitle, usageQuery } from '../state/filters.ts'
import { formatCount, percent, usdColumn } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import {
  getChartNote,
  listUnits,
  type Measure,
  measureTitles,
  splitSeries,
  wholeSeries,
} from '../state/usage-series.ts'
import { Button, Tabs } from './controls.tsx'
import { DailyChart } from './daily-chart.tsx'
import { Empty, Loaded } from './notice.tsx'
import { Card } from './page.tsx'
import { useIsThroughProjects, useProjects } from './project-field.tsx'
import type { Column } from './table.tsx'

const splits = {
  all: 'All',
  tag: 'By value',
  model: 'By model',
  key: 'By key',
  member: 'By member',
  dialect: 'By dialect',
  project: 'By project',
} as const
type Split = keyof typeof splits
/** What the chart shows: the page keeps it, because the chart is replaced while usage loads. */
export type ChartChoice = readonly [[Measure, Split], (choice: [Measure, Split]) => void]

type DaysProps = {
  readonly usage: ShownUsage
  readonly filters: Filters
  readonly choice: ChartChoice
  readonly title?: string
}

export function Days({ usage, filters, choice, title = rangeTitle(filters) }: DaysProps) {
  const [[measure, split], choose] = choice
  // Loaded on demand.
  const isThroughProjects = useIsThroughProjects()
  const splitRange = usageQuery(filters, { splitBy: split, isThroughProjects })
  const query = { ...splitRange.query, group_by: splitRange.unit, split_by: split }
  const parts = useResource('GET /api/v1/usage', { query, when: split !== 'all' })
  const shown = split === 'all' ? usage : parts.data
  const isSplit = split !== 'all'
  const isOpen: Partial<Record<Split, boolean>> = {
    // Of a tag name, not of one of its values.
    tag: filters.tag !== undefined && !filters.tag.includes('='),
    member: may('usage.all'),
    project: useProjects().names.size > 0,
  }
  const splitTabs = Object.entries(splits).filter(([key]) => isOpen[key as Split] ?? true)
  const failed: Filters = measure === 'errors' ? failedOnly : {}
  const note = getChartNote(measure, splitRange)
  const linkTo = (added: Filters) => hrefToLog(coveredFilters(filters, splitRange), { ...failed, ...added })
  return (
    <Card
      title={title}
      actions={
        <>
          {shown !== undefined && (
            <Button text="Export CSV" look="small" onClick={() => saveChart(shown, measure, isSplit)} />
          )}
          <Tabs label="Metric" tabs={measureTitles} current={measure} onChoice={key => choose([key, split])} />
          <Tabs<Split>
            label="Group by"
            tabs={Object.fromEntries(splitTabs)}
            current={split}
            onChoice={key => choose([measure, key])}
          />
        </>
      }
    >
      {isSplit ? (
        <Loaded resource={parts} what="the chart" lines={6}>
          {found => <DailyChart usage={found} measure={measure} isSplit linkTo={linkTo} note={note} />}
        </Loaded>
      ) : (
        <DailyChart usage={usage} measure={measure} linkTo={linkTo} />
      )}
    </Card>
  )
}

type UsageChartProps = {
  readonly filters: Filters
  readonly first: ChartChoice[0]
  readonly title: string
  readonly empty: string
}

/** The chart of usage with filters, which it loads. */
export function UsageChart({ filters, first, title, empty }: UsageChartProps) {
  const { query, unit } = usageQuery(filters, { isThroughProjects: useIsThroughProjects() })
  const choice = useState(first)
  const usage = useResource('GET /api/v1/usage', { query: { ...query, group_by: unit } })
  return (
    <Loaded resource={usage} what="usage" lines={6}>
      {found =>
        found.total.requests === 0 ? (
          <Card title={title}>
            <Empty title="No requests in this range">{empty}</Empty>
          </Card>
        ) : (
          <Days usage={found} {...{ filters, choice, title }} />
        )
      }
    </Loaded>
  )
}

/** Saves a chart as CSV: one line per day or hour, one column per series. */
function saveChart(usage: ShownUsage, measure: Measure, isSplit: boolean): void {
  const series = isSplit ? splitSeries(usage, measure) : wholeSeries(usage, measure)
  const lines = listUnits(usage).map((unit, at) => [unit, ...series.map(({ values }) => values[at] ?? null)])
  saveCsv(`${measure}.csv`, [['time_utc', ...series.map(({ name }) => name)], ...lines])
}

type UsageRow = Pick<ShownUsage['total'], 'requests' | 'failed' | 'total_tokens' | 'cost_usd'> & {
  readonly latency_p95_ms: number | null
  /** Absent = unknown. */
  readonly own_key_cost_usd?: number
}

/** Columns of the usage of parts, with links to their requests. `read` returns the name and filter of a part; null = no filter. */
export function usageColumns<Row extends UsageRow>(
  rows: readonly Row[],
  covered: Filters,
  read: (row: Row) => readonly [name: string, filter: Filters] | null,
): readonly Column<Row>[] {
  const usd = usdColumn(rows.map(row => row.cost_usd))
  const toLink = (row: Row, text: string, added: Filters = {}) => {
    const [name, filter] = read(row) ?? []
    return filter === undefined ? (
      text
    ) : (
      <a href={hrefToLog(covered, { ...filter, ...added })} aria-label={`${text} requests with ${name}`}>
        {text}
      </a>
    )
  }
  return [
    { figure: 'requests', by: row => row.requests, show: row => toLink(row, formatCount(row.requests)) },
    {
      figure: 'failed',
      from: 'middle',
      by: row => row.failed,
      show: row =>
        row.failed === 0
          ? '0'
          : toLink(row, `${formatCount(row.failed)} (${percent(row.failed / row.requests, 1)})`, failedOnly),
    },
    { figure: 'tokens', from: 'wide', by: row => row.total_tokens },
    { figure: 'slowLatency', from: 'wide', by: row => row.latency_p95_ms },
    {
      figure: 'cost',
      by: row => row.cost_usd,
      show: ({ cost_usd: cost, own_key_cost_usd: own = 0 }) => (
        <>
          {usd(cost)}
          {own > 0 && <span class="block hint">{usd(own)} with own keys</span>}
        </>
      ),
    },
  ]
}
