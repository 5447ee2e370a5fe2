import { useEffect, useState } from 'preact/hooks'
import type { AccountToday } from '../../routes/account/schemas.ts'
import type { ShownUsage } from '../../routes/usage/schemas.ts'
import { BarList } from '../parts/bar-list.tsx'
import { BillingNotices } from '../parts/billing-notices.tsx'
import { DailyChart } from '../parts/daily-chart.tsx'
import { FirstRun } from '../parts/first-run.tsx'
import { MeterBar } from '../parts/meter.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { Sparkline } from '../parts/sparkline.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { compact, formatCount, formatUsd, milliseconds, percent, relativeTime } from '../state/format.ts'
import { hrefTo } from '../state/hash-route.ts'
import { useResource } from '../state/resource.ts'
import { daysOf, type Measure, measures, splitSeries, wholeSeries } from '../state/usage-series.ts'

const meterEveryMs = 10_000

export function Overview() {
  const today = useResource('GET /api/v1/account', { everyMs: meterEveryMs })
  const days = useResource('GET /api/v1/usage')
  const models = useResource('GET /api/v1/usage', { query: { group_by: 'model' } })
  const keys = useResource('GET /api/v1/usage', { query: { group_by: 'key' } })
  // Stays after the first request to confirm it.
  const [isNew, setNew] = useState(false)
  const isUnused = days.data?.total.requests === 0
  useEffect(() => {
    if (isUnused) setNew(true)
  }, [isUnused])
  const reload = () => {
    for (const one of [today, days, models, keys]) one.reload()
  }
  return (
    <Page title="Overview" about="Usage against today’s limits, and the last 30 days. Days are UTC.">
      <BillingNotices />
      {isNew && <FirstRun onFirstCall={reload} />}
      <Loaded resource={today} what="today" lines={4}>
        {account => <Today account={account} requests={days.data?.data.at(-1)?.requests ?? 0} />}
      </Loaded>
      <div class="columns two-one">
        <Loaded resource={days} what="the last 30 days" lines={6}>
          {usage => <Days usage={usage} />}
        </Loaded>
        <Loaded resource={days} what="latency" lines={6}>
          {usage => <Latency usage={usage} />}
        </Loaded>
      </div>
      <div class="columns">
        <Loaded resource={models} what="models">
          {usage => <ByModel usage={usage} />}
        </Loaded>
        <Loaded resource={keys} what="keys">
          {usage => <ByKey usage={usage} />}
        </Loaded>
      </div>
    </Page>
  )
}

function Today({ account, requests }: { readonly account: AccountToday; readonly requests: number }) {
  const { today, limits } = account
  const { requests_last_minute: minute = 0, seats_taken: seats = 0 } = account.now ?? {}
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
        note={`${formatCount(requests)} today`}
      />
      <MeterBar
        label="Concurrent requests"
        used={seats}
        limit={limits.concurrent_requests}
        show={formatCount}
        note="In progress now"
      />
    </section>
  )
}

const splits = { all: 'All', model: 'By model', key: 'By key' } as const
type Split = keyof typeof splits

const tabsOf = <Key extends string>(titles: Readonly<Record<Key, string>>) =>
  (Object.keys(titles) as Key[]).map(key => ({ key, title: titles[key] }))
const measureTabs = (Object.keys(measures) as Measure[]).map(key => ({ key, title: measures[key].title }))

function Days({ usage }: { readonly usage: ShownUsage }) {
  const [measure, setMeasure] = useState<Measure>('requests')
  const [split, setSplit] = useState<Split>('all')
  // Loaded on demand.
  const parts = useResource('GET /api/v1/usage', { query: { split_by: split }, when: split !== 'all' })
  const days = daysOf(usage).map(({ day }) => day)
  return (
    <Card
      title="Last 30 days"
      actions={
        <>
          <Tabs label="Metric" tabs={measureTabs} current={measure} onChoice={setMeasure} />
          <Tabs label="Group by" tabs={tabsOf(splits)} current={split} onChoice={setSplit} />
        </>
      }
    >
      {split === 'all' ? (
        <DailyChart {...measures[measure]} days={days} series={wholeSeries(usage, measure)} />
      ) : (
        <Loaded resource={parts} what="the chart" lines={6}>
          {found => (
            <DailyChart
              {...measures[measure]}
              days={daysOf(found).map(({ day }) => day)}
              series={splitSeries(found, measure)}
              note={measure === 'latency' ? 'p50' : undefined}
            />
          )}
        </Loaded>
      )}
    </Card>
  )
}

/** Days above this error rate are marked. */
const muchFailed = 0.05

function Latency({ usage }: { readonly usage: ShownUsage }) {
  const { total } = usage
  const days = daysOf(usage)
  return (
    <Card title="Latency and errors" about="Last 30 days">
      {total.requests === 0 ? (
        <Empty title="No requests yet">Latency and errors appear after your first request.</Empty>
      ) : (
        <>
          <dl class="figures">
            <Figure name="p50 latency" value={milliseconds(total.latency_p50_ms)} />
            <Figure name="p95 latency" value={milliseconds(total.latency_p95_ms)} />
            <Figure name="Time to first token (p50)" value={milliseconds(total.first_token_p50_ms)} />
            <Figure name="Error rate" value={percent(total.failed / total.requests, 1)} />
          </dl>
          <Sparkline
            label={`Daily p95 latency; ${milliseconds(total.latency_p95_ms)} overall`}
            values={days.map(day => day.latency_p95_ms)}
            isBad={day => (days[day]?.failed ?? 0) > muchFailed * (days[day]?.requests ?? 0)}
          />
          <p class="hint">Daily p95 latency; red marks days with more than 5% errors.</p>
          <p class="hint">
            <a href={hrefTo('requests')}>All requests</a>
            {total.failed > 0 && (
              <>
                {' · '}
                <a href={hrefTo('requests', { status: 'failed' })}>Failed requests</a>
              </>
            )}
          </p>
        </>
      )}
    </Card>
  )
}

function Figure({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

const shownParts = 8

function tellsTimes({ requests, failed, latency_p50_ms, latency_p95_ms }: ShownUsage['total']): string | undefined {
  if (latency_p50_ms === null) return failed === 0 ? undefined : `${percent(failed / requests, 1)} failed`
  const times = `p50 ${milliseconds(latency_p50_ms)}, p95 ${milliseconds(latency_p95_ms)}`
  return failed === 0 ? times : `${times}, ${percent(failed / requests, 1)} failed`
}

function ByModel({ usage }: { readonly usage: ShownUsage }) {
  const rows = usage.data.flatMap(row => ('model' in row ? [row] : []))
  return (
    <Card title="By model" about="Last 30 days, by cost">
      {rows.length === 0 ? (
        <Empty title="No requests yet">
          <a href={hrefTo('playground')}>Open the playground</a>
        </Empty>
      ) : (
        <BarList
          label="Cost by model"
          shares={rows.slice(0, shownParts).map(row => ({
            key: row.model ?? '',
            name: row.model ?? 'No model',
            value: row.cost_usd,
            told: `${formatUsd(row.cost_usd)} · ${compact(row.requests)} ${row.requests === 1 ? 'request' : 'requests'}`,
            more: tellsTimes(row),
          }))}
        />
      )}
    </Card>
  )
}

function ByKey({ usage }: { readonly usage: ShownUsage }) {
  const keys = usage.data.flatMap(row => ('key_id' in row ? [row] : []))
  // Keys of the same name share a row: the playground's are many and short-lived.
  const rows = [...Map.groupBy(keys, ({ key_name, key_id }) => key_name ?? key_id)].map(([name, ofName]) => ({
    name,
    cost: ofName.reduce((sum, { cost_usd }) => sum + cost_usd, 0),
    requests: ofName.reduce((sum, { requests }) => sum + requests, 0),
    // Times cannot be added.
    times: ofName.length === 1 && ofName[0] !== undefined ? tellsTimes(ofName[0]) : undefined,
  }))
  return (
    <Card title="By key" about="Last 30 days, by cost">
      {rows.length === 0 ? (
        <Empty title="No API key used yet">
          <a href={hrefTo('keys')}>Create an API key</a>
        </Empty>
      ) : (
        <BarList
          label="Cost by key"
          shares={rows.slice(0, shownParts).map(({ name, cost, requests, times }) => ({
            key: name,
            name,
            value: cost,
            told: `${formatUsd(cost)} · ${compact(requests)} ${requests === 1 ? 'request' : 'requests'}`,
            more: times,
          }))}
        />
      )}
    </Card>
  )
}
