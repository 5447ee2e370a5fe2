/** Usage over time and by part, as the pages Overview, Keys, Tags and API key show it. */
import { useState } from 'preact/hooks'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import { saveCsv } from '../state/export.ts'
import { figures, getSaved, showFigure, tellSaved } from '../state/figures.ts'
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

type UsageOptions = {
  /** Absent = by the unit of time that fits the range. */
  readonly groupBy?: string
  readonly splitBy?: string
  readonly when?: boolean
}

/** Loads usage with filters, and returns the filters of the requests that it covers and links to them. */
export function useUsage(filters: Filters, { groupBy, splitBy, when = true }: UsageOptions = {}) {
  const range = usageQuery(filters, { groupBy, splitBy, isThroughProjects: useIsThroughProjects() })
  const query = { ...range.query, group_by: groupBy ?? range.unit, ...(splitBy && { split_by: splitBy }) }
  const covered = coveredFilters(filters, range)
  return {
    usage: useResource('GET /api/v1/usage', { query, when }),
    range,
    covered,
    linkTo: (added: Filters = {}) => hrefToLog(covered, added),
  }
}

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
  readonly about?: string
}

export function Days({ usage, filters, choice, title = rangeTitle(filters), about }: DaysProps) {
  const [[measure, split], choose] = choice
  const isSplit = split !== 'all'
  // Loaded on demand.
  const { usage: parts, range, linkTo: linkToAll } = useUsage(filters, { splitBy: split, when: isSplit })
  const shown = isSplit ? parts.data : usage
  const isOpen: Partial<Record<Split, boolean>> = {
    // Of a tag name, not of one of its values.
    tag: filters.tag !== undefined && !filters.tag.includes('='),
    member: may('usage.all'),
    project: useProjects().names.size > 0,
  }
  const splitTabs = Object.entries(splits).filter(([key]) => isOpen[key as Split] ?? true)
  const failed: Filters = measure === 'errors' ? failedOnly : {}
  const note = getChartNote(measure, range)
  const linkTo = (added: Filters) => linkToAll({ ...failed, ...added })
  return (
    <Card
      title={title}
      about={about}
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

const tellOfSaved = ({ total }: ShownUsage) =>
  `${figures.saved.label}: ${showFigure('saved', getSaved(total))} (${tellSaved(total)})`

type UsageChartProps = {
  readonly filters: Filters
  /** What it shows at first. */
  readonly first?: ChartChoice[0]
  readonly title?: string
  readonly empty: string
}

/** The chart of usage with filters, which it loads. */
export function UsageChart(props: UsageChartProps) {
  const { filters, first = ['requests', 'all'], title = rangeTitle(filters), empty } = props
  const choice = useState(first)
  const { usage } = useUsage(filters)
  return (
    <Loaded resource={usage} what="usage" lines={6}>
      {found =>
        found.total.requests === 0 ? (
          <Card title={title}>
            <Empty title="No requests in this range">{empty}</Empty>
          </Card>
        ) : (
          <Days usage={found} {...{ filters, choice, title }} about={tellOfSaved(found)} />
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

type UsageRow = Pick<
  ShownUsage['total'],
  'requests' | 'failed' | 'total_tokens' | 'cost_usd' | 'routing_saved_usd' | 'cache_saved_usd'
> & {
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
      figure: 'saved',
      from: 'wide',
      by: getSaved,
      show: row => <span title={tellSaved(row)}>{showFigure('saved', getSaved(row))}</span>,
    },
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
