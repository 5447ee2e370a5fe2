import { useEffect, useState } from 'preact/hooks'
import type { AccountToday } from '../../console/account/schemas.ts'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import { BillingNotices, NothingVisible } from '../parts/account-notices.tsx'
import { BarList } from '../parts/daily-chart.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { GettingStarted } from '../parts/getting-started.tsx'
import { UsedLimits } from '../parts/meter.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { useOwnScope } from '../parts/project-field.tsx'
import { RoutingPicture } from '../parts/routing.tsx'
import { type ChartChoice, Days, useUsage } from '../parts/usage.tsx'
import { type Filters, hrefToLog, rangeBefore, rangeTitle, toFilters } from '../state/filters.ts'
import { compact, milliseconds, percent, relativeTime, usdColumn } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { accountCreatedAt, hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { Answers, Attention } from './answers.tsx'

const meterEveryMs = 10_000

export function Overview() {
  const today = useResource('GET /api/v1/account', { everyMs: meterEveryMs })
  const filters = toFilters(hashRoute.value.query)
  const scope = useOwnScope()
  const { usage: days, range, covered } = useUsage(filters)
  const { usage: models } = useUsage(filters, { groupBy: 'model' })
  const { usage: keys } = useUsage(filters, { groupBy: 'key' })
  // A range that began before the account would make each change look large.
  const earlier = rangeBefore(range)
  const before = useResource('GET /api/v1/usage', {
    query: { ...earlier, group_by: 'model' },
    when: Date.parse(earlier.from ?? '') >= accountCreatedAt.value,
  })
  const choice = useState<ChartChoice[0]>(['requests', 'all'])
  // Stays after the first request to confirm it.
  const [isNew, setNew] = useState(false)
  const isUnused = days.data?.total.requests === 0 && Object.keys(filters).length === 0
  useEffect(() => {
    if (isUnused) setNew(true)
  }, [isUnused])
  const reload = () => {
    for (const resource of [today, days, models, keys, before]) resource.reload()
  }
  return (
    <Page title="Overview" about={`Usage of ${scope ?? 'the account'}. All times are UTC.`}>
      <BillingNotices />
      <NothingVisible />
      {may('keys.own') && <GettingStarted isNew={isNew} requests={days.data?.total.requests} onFirstCall={reload} />}
      <FilterBar path="" filters={filters} />
      {range.shortenedTo !== null && (
        <p class="hint">With these filters the charts cover the last {range.shortenedTo} days of the range.</p>
      )}
      <Loaded resource={days} what="usage" lines={6}>
        {usage => <Answers usage={usage} before={before.data} covered={covered} />}
      </Loaded>
      <div class="columns two-one">
        <Loaded resource={days} what="usage" lines={6}>
          {usage => <Days usage={usage} filters={filters} choice={choice} />}
        </Loaded>
        <div class="column">
          {days.data !== undefined && <Attention usage={days.data} models={models.data} covered={covered} />}
          <Loaded resource={today} what="limits" lines={4}>
            {account => <Limits account={account} />}
          </Loaded>
        </div>
      </div>
      <div class="columns two-one">
        <RoutingPicture filters={filters} />
        <Loaded resource={keys} what="keys">
          {usage => <KeyCosts {...{ usage, filters, covered }} />}
        </Loaded>
      </div>
    </Page>
  )
}

/** Links have the covered filters. */
type Covered = { readonly usage: ShownUsage; readonly filters: Filters; readonly covered: Filters }

const shownParts = 8

function tellsTimes({ requests, failed, latency_p50_ms, latency_p95_ms }: ShownUsage['total']): string | undefined {
  if (latency_p50_ms === null) return failed === 0 ? undefined : `${percent(failed / requests, 1)} failed`
  const times = `p50 ${milliseconds(latency_p50_ms)}, p95 ${milliseconds(latency_p95_ms)}`
  return failed === 0 ? times : `${times}, ${percent(failed / requests, 1)} failed`
}

/** Cost by key. Keys of one name share a row: the playground's are many. Times cannot be added. */
function KeyCosts({ usage, filters, covered }: Covered) {
  const rows = usage.data.flatMap(row => ('key_id' in row ? [row] : []))
  const named = Map.groupBy(rows, row => row.key_name ?? row.key_id)
  const shown = [...named].slice(0, shownParts).map(([name, parts]) => ({
    name,
    only: parts.length === 1 ? parts[0] : undefined,
    cost: parts.reduce((sum, row) => sum + row.cost_usd, 0),
    own: parts.reduce((sum, row) => sum + row.own_key_cost_usd, 0),
    requests: parts.reduce((sum, row) => sum + row.requests, 0),
  }))
  const usd = usdColumn(shown.map(({ cost }) => cost))
  return (
    <Card title="By key" about={`${rangeTitle(filters)}, by cost`}>
      {shown.length === 0 ? (
        <Empty title="No requests in this range">
          {may('keys.own') && <a href={hrefTo('keys')}>Create an API key</a>}
        </Empty>
      ) : (
        <BarList
          label="Cost by key"
          shares={shown.map(({ name, only, cost, own, requests }) => ({
            key: name,
            name,
            href: only && hrefToLog(covered, { key: only.key_id }),
            value: cost,
            told: `${usd(cost)}${own > 0 ? ` + ${usd(own)} with own keys` : ''} · ${compact(requests)} ${requests === 1 ? 'request' : 'requests'}`,
            more: only && tellsTimes(only),
          }))}
        />
      )}
    </Card>
  )
}

/** Use of the account's limits now and today. */
function Limits({ account: { now, today, limits } }: { readonly account: AccountToday }) {
  return (
    <Card title="Limits" about={`Of the whole account; days reset ${relativeTime(today.resets_at)}`}>
      <UsedLimits
        limits={{ ...limits, monthly_cost_usd: null }}
        used={{ daily_tokens: today.tokens, daily_cost_usd: today.cost_usd, monthly_cost_usd: 0 }}
        minute={now?.requests_last_minute ?? 0}
        concurrent={now?.seats_taken ?? 0}
      />
    </Card>
  )
}
