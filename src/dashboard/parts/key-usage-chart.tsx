import { useState } from 'preact/hooks'
import type { ShownKeyPage } from '../../console/keys/schemas.ts'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import { type Filters, failedOnly, hrefToLog, rangeOf, ranges, usageQuery } from '../state/filters.ts'
import { hashRoute, replaceHashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import { chartUnitsOf, type Measure, measures, wholeSeries } from '../state/usage-series.ts'
import { DailyChart } from './daily-chart.tsx'
import { SelectField } from './field.tsx'
import { Empty, Loaded } from './notice.tsx'
import { Card } from './page.tsx'
import { Tabs } from './tabs.tsx'

/** Usage of a key with the keys of its rotation, over the range in the URL. */
export function KeyUsageChart({ of: { id, lineage } }: { readonly of: ShownKeyPage }) {
  const { range = '' } = hashRoute.value.query
  // The filter of the first key includes those that replaced it.
  const filters = { range, key: lineage[0]?.id ?? id }
  const query = usageQuery(filters)
  const usage = useResource('GET /api/v1/usage', { query: { ...query.query, group_by: query.unit } })
  return (
    <>
      <section class="card filter-bar" aria-label="Range of the usage">
        <div class="filters-end">
          <SelectField
            label="Range (UTC)"
            value={rangeOf({ range })}
            onChoice={chosen => replaceHashRoute(`keys/${id}`, { range: chosen === '30d' ? '' : chosen })}
          >
            {Object.entries(ranges).map(([name, { title }]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </SelectField>
          <a class="button" href={hrefToLog(filters)}>
            {lineage.length > 1 ? 'Requests of all keys of the rotation' : 'Requests with this key'}
          </a>
          {lineage.length > 1 && filters.key !== id && (
            <a class="button" href={hrefToLog({ ...filters, key: id })}>
              Requests with this key
            </a>
          )}
        </div>
      </section>
      <Loaded resource={usage} what="usage" lines={6}>
        {found =>
          found.total.requests === 0 ? (
            <Card title={ranges[rangeOf({ range })].title}>
              <Empty title="No requests in this range">Send one with the code below, or choose a longer range.</Empty>
            </Card>
          ) : (
            <Chart usage={found} filters={filters} />
          )
        }
      </Loaded>
    </>
  )
}

const measureTabs = (Object.keys(measures) as Measure[]).map(key => ({ key, title: measures[key].title }))

function Chart({ usage, filters }: { readonly usage: ShownUsage; readonly filters: Filters }) {
  const [measure, setMeasure] = useState<Measure>('requests')
  const failed: Filters = measure === 'errors' ? failedOnly : {}
  return (
    <Card
      title={ranges[rangeOf(filters)].title}
      about={<a href={hrefTo('', filters)}>Open in the overview</a>}
      actions={<Tabs label="Metric" tabs={measureTabs} current={measure} onChoice={setMeasure} />}
    >
      <DailyChart
        {...measures[measure]}
        days={chartUnitsOf(usage)}
        series={wholeSeries(usage, measure)}
        linkTo={added => hrefToLog(filters, { ...failed, ...added })}
      />
    </Card>
  )
}
