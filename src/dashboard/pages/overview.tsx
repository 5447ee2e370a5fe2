import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { AccountToday } from '../../console/account/schemas.ts'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import { BillingNotices, NothingVisible } from '../parts/account-notices.tsx'
import { Button, Tabs } from '../parts/controls.tsx'
import { BarList, DailyChart } from '../parts/daily-chart.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { GettingStarted } from '../parts/getting-started.tsx'
import { LatencyAndErrors } from '../parts/latency-and-errors.tsx'
import { MeterBar } from '../parts/meter.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { useIsThroughProjects, useOwnScope, useProjects } from '../parts/project-field.tsx'
import {
  coveredFilters,
  type Filters,
  failedOnly,
  hrefToLog,
  rangeTitle,
  toFilters,
  usageQuery,
} from '../state/filters.ts'
import { compact, formatCount, formatUsd, milliseconds, percent, relativeTime, usdColumn } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { formatModelName, getChartNote, type Measure, measureTitles, saveChart } from '../state/usage-series.ts'

const meterEveryMs = 10_000

export function Overview() {
  const today = useResource('GET /api/v1/account', { everyMs: meterEveryMs })
  const filters = toFilters(hashRoute.value.query)
  const scope = useOwnScope()
  const isThroughProjects = useIsThroughProjects()
  const range = usageQuery(filters, { isThroughProjects })
  const days = useResource('GET /api/v1/usage', { query: { ...range.query, group_by: range.unit } })
  const models = useResource('GET /api/v1/usage', { query: { ...range.query, group_by: 'model' } })
  const keys = useResource('GET /api/v1/usage', { query: { ...range.query, group_by: 'key' } })
  const covered = coveredFilters(filters, range)
  const choice = useState<[Measure, Split]>(['requests', 'all'])
  // Stays after the first request to confirm it.
  const [isNew, setNew] = useState(false)
  const isUnused = days.data?.total.requests === 0 && Object.keys(filters).length === 0
  useEffect(() => {
    if (isUnused) setNew(true)
  }, [isUnused])
  const reload = () => {
    for (const resource of [today, days, models, keys]) resource.reload()
  }
  return (
    <Page
      title="Overview"
      about={`Today’s limits, which the whole account shares. Below: usage of ${scope ?? 'the account'} in the chosen range. All times are UTC.`}
    >
      <BillingNotices />
      <NothingVisible />
      {may('keys.own') && <GettingStarted isNew={isNew} requests={days.data?.total.requests} onFirstCall={reload} />}
      <Loaded resource={today} what="today" lines={4}>
        {account => <Today account={account} />}
      </Loaded>
      <FilterBar path="" filters={filters} />
      {range.shortenedTo !== null && (
        <p class="hint">With these filters the charts cover the last {range.shortenedTo} days of the range.</p>
      )}
      <div class="columns two-one">
        <Loaded resource={days} what="usage" lines={6}>
          {usage => <Days usage={usage} filters={filters} choice={choice} />}
        </Loaded>
        <Loaded resource={days} what="latency" lines={6}>
          {usage => <LatencyAndErrors usage={usage} filters={filters} covered={covered} />}
        </Loaded>
      </div>
      <div class="columns">
        <Loaded resource={models} what="models">
          {usage => <ByModel usage={usage} filters={filters} covered={covered} />}
        </Loaded>
        <Loaded resource={keys} what="keys">
          {usage => <ByKey usage={usage} filters={filters} covered={covered} />}
        </Loaded>
      </div>
    </Page>
  )
}

const splits = {
  all: 'All',
  model: 'By model',
  key: 'By key',
  member: 'By member',
  dialect: 'By dialect',
  project: 'By project',
} as const
type Split = keyof typeof splits
/** What the chart shows: the page keeps it, because the chart is replaced while usage loads. */
type ChartChoice = readonly [[Measure, Split], (choice: [Measure, Split]) => void]

type Shown = { readonly usage: ShownUsage; readonly filters: Filters }
/** Links have the covered filters. */
type Covered = Shown & { readonly covered: Filters }

function Days({ usage, filters, choice }: Shown & { readonly choice: ChartChoice }) {
  const [[measure, split], choose] = choice
  // Loaded on demand.
  const isThroughProjects = useIsThroughProjects()
  const splitRange = usageQuery(filters, { splitBy: split, isThroughProjects })
  const query = { ...splitRange.query, group_by: splitRange.unit, split_by: split }
  const parts = useResource('GET /api/v1/usage', { query, when: split !== 'all' })
  const shown = split === 'all' ? usage : parts.data
  const isSplit = split !== 'all'
  const hasProjects = useProjects().names.size > 0
  const splitTabs = Object.entries(splits).filter(
    ([key]) => (key !== 'member' || may('usage.all')) && (key !== 'project' || hasProjects),
  )
  const failed: Filters = measure === 'errors' ? failedOnly : {}
  const note = getChartNote(measure, splitRange)
  const linkTo = (added: Filters) => hrefToLog(coveredFilters(filters, splitRange), { ...failed, ...added })
  return (
    <Card
      title={rangeTitle(filters)}
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

const shownParts = 8

function tellsTimes({ requests, failed, latency_p50_ms, latency_p95_ms }: ShownUsage['total']): string | undefined {
  if (latency_p50_ms === null) return failed === 0 ? undefined : `${percent(failed / requests, 1)} failed`
  const times = `p50 ${milliseconds(latency_p50_ms)}, p95 ${milliseconds(latency_p95_ms)}`
  return failed === 0 ? times : `${times}, ${percent(failed / requests, 1)} failed`
}

type Costs = { readonly name: string; readonly rows: readonly ShownUsage['total'][]; readonly link: Filters | null }

type CostsProps = { readonly title: string; readonly costs: readonly Costs[]; readonly empty: ComponentChildren }

/** Cost by model or by key. Times cannot be added, so only a single row has them. */
function CostBars({ title, costs, filters, covered, empty }: CostsProps & Omit<Covered, 'usage'>) {
  const sum = (rows: Costs['rows'], field: 'cost_usd' | 'requests') =>
    rows.reduce((total, row) => total + row[field], 0)
  const shown = costs.slice(0, shownParts)
  const usd = usdColumn(shown.map(({ rows }) => sum(rows, 'cost_usd')))
  return (
    <Card title={title} about={`${rangeTitle(filters)}, by cost`}>
      {shown.length === 0 ? (
        empty
      ) : (
        <BarList
          label={`Cost ${title.toLowerCase()}`}
          shares={shown.map(({ name, rows, link }) => {
            const [cost, requests] = [sum(rows, 'cost_usd'), sum(rows, 'requests')]
            return {
              key: name,
              name,
              href: link === null ? undefined : hrefToLog(covered, link),
              value: cost,
              told: `${usd(cost)} · ${compact(requests)} ${requests === 1 ? 'request' : 'requests'}`,
              more: rows.length === 1 && rows[0] !== undefined ? tellsTimes(rows[0]) : undefined,
            }
          })}
        />
      )}
    </Card>
  )
}

function ByModel({ usage, ...shared }: Covered) {
  const rows = usage.data.flatMap(row => ('model' in row ? [row] : []))
  const costs = rows.map(row => ({
    name: formatModelName(row.model),
    rows: [row],
    link: row.model === null ? null : { model: row.model },
  }))
  const empty = (
    <Empty title="No requests in this range">
      <a href={hrefTo('playground')}>Open the playground</a>
    </Empty>
  )
  return <CostBars {...shared} title="By model" costs={costs} empty={empty} />
}

function ByKey({ usage, ...shared }: Covered) {
  const keys = usage.data.flatMap(row => ('key_id' in row ? [row] : []))
  // Keys of the same name share a row: the playground's are many and short-lived.
  const costs = [...Map.groupBy(keys, ({ key_name, key_id }) => key_name ?? key_id)].map(([name, rows]) => ({
    name,
    rows,
    link: rows.length === 1 && rows[0] !== undefined ? { key: rows[0].key_id } : null,
  }))
  const empty = (
    <Empty title="No API key used in this range">
      {may('keys.own') && <a href={hrefTo('keys')}>Create an API key</a>}
    </Empty>
  )
  return <CostBars {...shared} title="By key" costs={costs} empty={empty} />
}

/** Use of the account's limits now and today. */
function Today({ account }: { readonly account: AccountToday }) {
  const { today, limits } = account
  const { requests_last_minute: minute = 0, seats_taken: reservations = 0 } = account.now ?? {}
  return (
    <section aria-label="Today" class="meters">
      <MeterBar
        label="Daily tokens"
        used={today.tokens}
        limit={limits.daily_tokens}
        show={compact}
        note={`Resets ${relativeTime(today.resets_at)}`}
      />
      <MeterBar
        label="Daily cost"
        used={today.cost_usd}
        limit={limits.daily_cost_usd}
        show={formatUsd}
        note={`${formatUsd(today.remaining_cost_usd)} remaining`}
      />
      <MeterBar
        label="Requests per minute"
        used={minute}
        limit={limits.requests_per_minute}
        show={formatCount}
        note="In the last minute"
      />
      <MeterBar
        label="Concurrent requests"
        used={reservations}
        limit={limits.concurrent_requests}
        show={formatCount}
        note="In progress now"
      />
    </section>
  )
}
