import { useEffect, useState } from 'preact/hooks'
import type { AccountToday } from '../../modules/account/shapes.ts'
import type { ShownUsage } from '../../modules/usage/shapes.ts'
import { Badge } from '../parts/badge.tsx'
import { BillingNotices } from '../parts/billing-notices.tsx'
import { DaysChart } from '../parts/days-chart.tsx'
import { FirstRun } from '../parts/first-run.tsx'
import { LatencyStrip } from '../parts/latency-strip.tsx'
import { Meter } from '../parts/meter.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { Shares } from '../parts/shares.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { ago, compact, count, milliseconds, percent, usd, words } from '../state/format.ts'
import { hrefTo } from '../state/place.ts'
import { useResource } from '../state/resource.ts'
import type { RequestList } from '../state/routes.ts'

const meterEveryMs = 10_000
const latest = 200

export function Overview() {
  const today = useResource('GET /api/v1/account', { everyMs: meterEveryMs })
  const days = useResource('GET /api/v1/usage')
  const models = useResource('GET /api/v1/usage', { query: { group_by: 'model' } })
  const keys = useResource('GET /api/v1/usage', { query: { group_by: 'key' } })
  const log = useResource('GET /api/v1/requests', { query: { limit: String(latest) } })
  // It stays after the first call, to say that it was one.
  const [isNew, setNew] = useState(false)
  const isUnused = days.data?.total.requests === 0
  useEffect(() => {
    if (isUnused) setNew(true)
  }, [isUnused])
  const reload = () => {
    for (const one of [today, days, models, keys, log]) one.reload()
  }
  return (
    <Page title="Overview" about="What today has used of its limits, and the last 30 days. Days are UTC.">
      <BillingNotices />
      {isNew && <FirstRun onFirstCall={reload} />}
      <Loaded resource={today} what="today" lines={4}>
        {account => <Today account={account} requests={days.data?.data.at(-1)?.requests ?? 0} />}
      </Loaded>
      <div class="columns two-one">
        <Loaded resource={days} what="the last 30 days" lines={6}>
          {usage => <Days usage={usage} />}
        </Loaded>
        <Loaded resource={log} what="latency" lines={6}>
          {list => <Latency requests={list.data} />}
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
      <Meter
        label="Tokens today"
        used={today.tokens}
        limit={limits.daily_tokens}
        show={compact}
        note={`Starts anew ${ago(today.resets_at)}`}
      />
      <Meter
        label="Money today"
        used={today.cost_usd}
        limit={limits.daily_cost_usd}
        show={usd}
        note={`${usd(today.remaining_cost_usd)} left`}
      />
      <Meter
        label="Requests this minute"
        used={minute}
        limit={limits.requests_per_minute}
        show={count}
        note={`${count(requests)} today`}
      />
      <Meter
        label="Seats"
        used={seats}
        limit={limits.concurrent_requests}
        show={count}
        note="Requests being answered now"
      />
    </section>
  )
}

const measures = {
  requests: { title: 'Requests', show: count, axis: compact, least: 4 },
  tokens: { title: 'Tokens', show: compact, axis: compact, least: 1_000 },
  cost: { title: 'Cost', show: usd, axis: usd, least: 0.01 },
} as const

type Measure = keyof typeof measures

function Days({ usage }: { readonly usage: ShownUsage }) {
  const [measure, setMeasure] = useState<Measure>('requests')
  const { title, show, axis, least } = measures[measure]
  const rows = usage.data.flatMap(row => ('day' in row ? [row] : []))
  const series = {
    requests: [
      { name: 'completed', tone: 'main', values: rows.map(row => row.completed) },
      { name: 'not completed', tone: 'bad', values: rows.map(row => row.requests - row.completed) },
    ],
    tokens: [{ name: 'tokens', tone: 'main', values: rows.map(row => row.total_tokens) }],
    cost: [{ name: 'cost', tone: 'main', values: rows.map(row => row.cost_usd) }],
  } as const
  return (
    <Card
      title="30 days"
      actions={
        <Tabs
          label="What the chart shows"
          tabs={Object.entries(measures).map(([key, one]) => ({ key: key as Measure, title: one.title }))}
          current={measure}
          onChoice={setMeasure}
        />
      }
    >
      <DaysChart
        title={title}
        days={rows.map(row => row.day)}
        series={series[measure]}
        show={show}
        axis={axis}
        least={least}
      />
    </Card>
  )
}

function Latency({ requests }: { readonly requests: RequestList['data'] }) {
  const completed = requests.filter(({ status }) => status === 'completed')
  const failed = requests.filter(({ status }) => status === 'failed' || status === 'blocked')
  const times = completed.map(({ latency_ms }) => latency_ms)
  const first = completed.flatMap(({ first_token_ms }) => (first_token_ms === null ? [] : [first_token_ms]))
  const codes = Map.groupBy(failed, ({ error_code }) => error_code ?? 'failed')
  return (
    <Card
      title="Latency and errors"
      about={requests.length === 1 ? 'The latest request' : `The latest ${count(requests.length)} requests`}
    >
      {requests.length === 0 ? (
        <Empty title="No requests yet">Times and errors show up here with the first ones.</Empty>
      ) : (
        <>
          <dl class="figures">
            <Figure name="Typical" value={milliseconds(quantile(times, 0.5))} />
            <Figure name="Slowest 5 %" value={milliseconds(quantile(times, 0.95))} />
            <Figure name="First token" value={milliseconds(quantile(first, 0.5))} />
            <Figure name="Errors" value={percent(failed.length / requests.length, 1)} />
          </dl>
          <LatencyStrip requests={requests.slice(0, 100)} />
          {failed.length > 0 && (
            <ul class="inline-list" aria-label="Errors by kind">
              {[...codes].map(([code, ones]) => (
                <li key={code}>
                  <Badge tone="bad">
                    {count(ones.length)} × {words(code)}
                  </Badge>
                </li>
              ))}
            </ul>
          )}
          <p class="hint">
            <a href={hrefTo('requests')}>All requests</a>
            {failed.length > 0 && (
              <>
                {' · '}
                <a href={hrefTo('requests', { status: 'failed' })}>the failed ones</a>
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

function quantile(values: readonly number[], share: number): number | null {
  return values.toSorted((left, right) => left - right)[Math.floor((values.length - 1) * share)] ?? null
}

const shownParts = 8

function ByModel({ usage }: { readonly usage: ShownUsage }) {
  const rows = usage.data.flatMap(row => ('model' in row ? [row] : []))
  return (
    <Card title="By model" about="30 days, by cost">
      {rows.length === 0 ? (
        <Empty title="No model was asked yet">
          <a href={hrefTo('playground')}>Ask one in the playground</a>
        </Empty>
      ) : (
        <Shares
          label="Cost by model"
          shares={rows.slice(0, shownParts).map(row => ({
            key: row.model ?? '',
            name: row.model ?? 'None was reached',
            value: row.cost_usd,
            told: `${usd(row.cost_usd)} · ${compact(row.requests)} ${row.requests === 1 ? 'request' : 'requests'}`,
          }))}
        />
      )}
    </Card>
  )
}

function ByKey({ usage }: { readonly usage: ShownUsage }) {
  const keys = usage.data.flatMap(row => ('key_id' in row ? [row] : []))
  // Keys of one name are one line: the playground's are many, and short-lived.
  const rows = [...Map.groupBy(keys, ({ key_name, key_id }) => key_name ?? key_id)].map(([name, ofName]) => ({
    name,
    cost: ofName.reduce((sum, { cost_usd }) => sum + cost_usd, 0),
    requests: ofName.reduce((sum, { requests }) => sum + requests, 0),
  }))
  return (
    <Card title="By key" about="30 days, by cost">
      {rows.length === 0 ? (
        <Empty title="No key was used yet">
          <a href={hrefTo('keys')}>Make one</a>
        </Empty>
      ) : (
        <Shares
          label="Cost by key"
          shares={rows.slice(0, shownParts).map(({ name, cost, requests }) => ({
            key: name,
            name,
            value: cost,
            told: `${usd(cost)} · ${compact(requests)} ${requests === 1 ? 'request' : 'requests'}`,
          }))}
        />
      )}
    </Card>
  )
}
