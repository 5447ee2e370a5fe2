import { useEffect, useState } from 'preact/hooks'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import { BarList } from '../parts/bar-list.tsx'
import { BillingNotices } from '../parts/billing-notices.tsx'
import { Button } from '../parts/button.tsx'
import { DailyChart } from '../parts/daily-chart.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { GettingStarted } from '../parts/getting-started.tsx'
import { LatencyAndErrors } from '../parts/latency-and-errors.tsx'
import { NothingVisible } from '../parts/nothing-visible.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { useIsThroughProjects, useOwnScope, useProjects } from '../parts/project-field.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { Today } from '../parts/today.tsx'
import {
  coveredFilters,
  type Filters,
  failedOnly,
  filtersOf,
  hrefToLog,
  rangeTitle,
  usageQuery,
} from '../state/filters.ts'
import { compact, milliseconds, percent, usdColumn } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import {
  chartUnitsOf,
  type Measure,
  measures,
  nameOfModel,
  noteOf,
  saveChart,
  splitSeries,
  wholeSeries,
} from '../state/usage-series.ts'

const meterEveryMs = 10_000

export function Overview() {
  const today = useResource('GET /api/v1/account', { everyMs: meterEveryMs })
  const filters = filtersOf(hashRoute.value.query)
  const scope = useOwnScope()
  const isThroughProjects = useIsThroughProjects()
  const range = usageQuery(filters, { isThroughProjects })
  const days = useResource('GET /api/v1/usage', { query: { ...range.query, group_by: range.unit } })
  const models = useResource('GET /api/v1/usage', { query: { ...range.query, group_by: 'model' } })
  const keys = useResource('GET /api/v1/usage', { query: { ...range.query, group_by: 'key' } })
  const covered = coveredFilters(filters, range)
  // Stays after the first request to confirm it.
  const [isNew, setNew] = useState(false)
  const isUnused = days.data?.total.requests === 0 && Object.keys(filters).length === 0
  useEffect(() => {
    if (isUnused) setNew(true)
  }, [isUnused])
  const reload = () => {
    for (const one of [today, days, models, keys]) one.reload()
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
          {usage => <Days usage={usage} filters={filters} />}
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

const tabsOf = <Key extends string>(titles: Readonly<Record<Key, string>>) =>
  (Object.keys(titles) as Key[]).map(key => ({ key, title: titles[key] }))
const measureTabs = (Object.keys(measures) as Measure[]).map(key => ({ key, title: measures[key].title }))

type Shown = { readonly usage: ShownUsage; readonly filters: Filters }
/** Links have the covered filters. */
type Covered = Shown & { readonly covered: Filters }

function Days({ usage, filters }: Shown) {
  const [measure, setMeasure] = useState<Measure>('requests')
  const [split, setSplit] = useState<Split>('all')
  // Loaded on demand.
  const isThroughProjects = useIsThroughProjects()
  const splitRange = usageQuery(filters, { splitBy: split, isThroughProjects })
  const query = { ...splitRange.query, group_by: splitRange.unit, split_by: split }
  const parts = useResource('GET /api/v1/usage', { query, when: split !== 'all' })
  const shown = split === 'all' ? usage : parts.data
  const series = shown && (split === 'all' ? wholeSeries(shown, measure) : splitSeries(shown, measure))
  const seesAll = may('usage.all')
  const hasProjects = useProjects().names.size > 0
  const splitTabs = tabsOf(splits).filter(
    ({ key }) => (key !== 'member' || seesAll) && (key !== 'project' || hasProjects),
  )
  const failed: Filters = measure === 'errors' ? failedOnly : {}
  const linkTo = (added: Filters) => hrefToLog(coveredFilters(filters, splitRange), { ...failed, ...added })
  return (
    <Card
      title={rangeTitle(filters)}
      actions={
        <>
          {shown !== undefined && series !== undefined && (
            <Button text="Export CSV" look="small" onClick={() => saveChart(measure, chartUnitsOf(shown), series)} />
          )}
          <Tabs label="Metric" tabs={measureTabs} current={measure} onChoice={setMeasure} />
          <Tabs label="Group by" tabs={splitTabs} current={split} onChoice={setSplit} />
        </>
      }
    >
      {split === 'all' ? (
        <DailyChart
          {...measures[measure]}
          days={chartUnitsOf(usage)}
          series={wholeSeries(usage, measure)}
          linkTo={linkTo}
        />
      ) : (
        <Loaded resource={parts} what="the chart" lines={6}>
          {found => (
            <DailyChart
              {...measures[measure]}
              days={chartUnitsOf(found)}
              linkTo={linkTo}
              series={splitSeries(found, measure)}
              note={noteOf(measure, splitRange)}
            />
          )}
        </Loaded>
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

function ByModel({ usage, filters, covered }: Covered) {
  const rows = usage.data.flatMap(row => ('model' in row ? [row] : [])).slice(0, shownParts)
  const usd = usdColumn(rows.map(({ cost_usd }) => cost_usd))
  return (
    <Card title="By model" about={`${rangeTitle(filters)}, by cost`}>
      {rows.length === 0 ? (
        <Empty title="No requests in this range">
          <a href={hrefTo('playground')}>Open the playground</a>
        </Empty>
      ) : (
        <BarList
          label="Cost by model"
          shares={rows.map(row => ({
            key: row.model ?? '',
            name: nameOfModel(row.model),
            href: row.model === null ? undefined : hrefToLog(covered, { model: row.model }),
            value: row.cost_usd,
            told: `${usd(row.cost_usd)} · ${compact(row.requests)} ${row.requests === 1 ? 'request' : 'requests'}`,
            more: tellsTimes(row),
          }))}
        />
      )}
    </Card>
  )
}

function ByKey({ usage, filters, covered }: Covered) {
  const keys = usage.data.flatMap(row => ('key_id' in row ? [row] : []))
  // Keys of the same name share a row: the playground's are many and short-lived.
  const all = [...Map.groupBy(keys, ({ key_name, key_id }) => key_name ?? key_id)].map(([name, ofName]) => ({
    name,
    cost: ofName.reduce((sum, { cost_usd }) => sum + cost_usd, 0),
    requests: ofName.reduce((sum, { requests }) => sum + requests, 0),
    // Times cannot be added.
    times: ofName.length === 1 && ofName[0] !== undefined ? tellsTimes(ofName[0]) : undefined,
    href: ofName.length === 1 && ofName[0] !== undefined ? hrefToLog(covered, { key: ofName[0].key_id }) : undefined,
  }))
  const rows = all.slice(0, shownParts)
  const usd = usdColumn(rows.map(({ cost }) => cost))
  return (
    <Card title="By key" about={`${rangeTitle(filters)}, by cost`}>
      {rows.length === 0 ? (
        <Empty title="No API key used in this range">
          {may('keys.own') && <a href={hrefTo('keys')}>Create an API key</a>}
        </Empty>
      ) : (
        <BarList
          label="Cost by key"
          shares={rows.map(({ name, cost, requests, times, href }) => ({
            key: name,
            name,
            href,
            value: cost,
            told: `${usd(cost)} · ${compact(requests)} ${requests === 1 ? 'request' : 'requests'}`,
            more: times,
          }))}
        />
      )}
    </Card>
  )
}
