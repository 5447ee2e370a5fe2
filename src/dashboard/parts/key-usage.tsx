import { saveCsv } from '../state/export.ts'
import { coveredFilters, type Filters, failedOnly, hrefToLog, rangeTitle, usageQuery } from '../state/filters.ts'
import { compact, formatCount, milliseconds, percent, usdColumn } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import { Button } from './button.tsx'
import { Empty, Loaded } from './notice.tsx'
import { Card } from './page.tsx'
import { useIsThroughProjects } from './project-field.tsx'
import { Table } from './table.tsx'

/** Usage of each key over the range of the page. A rotated key counts with the key that it replaced. */
export function KeyUsageCard({ filters }: { readonly filters: Filters }) {
  const range = usageQuery(filters, { isThroughProjects: useIsThroughProjects() })
  const { query, shortenedTo } = range
  const covered = coveredFilters(filters, range)
  const usage = useResource('GET /api/v1/usage', { query: { ...query, group_by: 'key' } })
  const rows = usage.data?.data.flatMap(row => ('key_id' in row ? [row] : [])) ?? []
  const usd = usdColumn(rows.map(({ cost_usd }) => cost_usd))
  const save = () =>
    saveCsv('keys.csv', [
      ['key_id', 'name', 'requests', 'failed', 'total_tokens', 'cost_usd', 'latency_p95_ms'],
      ...rows.map(row => [
        row.key_id,
        row.key_name,
        row.requests,
        row.failed,
        row.total_tokens,
        row.cost_usd,
        row.latency_p95_ms,
      ]),
    ])
  return (
    <Card
      title="Usage by key"
      about={`${rangeTitle(filters)}${shortenedTo === null ? '' : `; these filters cover its last ${shortenedTo} days`}`}
      actions={rows.length > 0 && <Button text="Export CSV" look="small" onClick={save} />}
    >
      <Loaded resource={usage} what="usage by key">
        {() =>
          rows.length === 0 ? (
            <Empty title="No requests in this range">Choose a longer range, or clear the filters.</Empty>
          ) : (
            <Table
              caption="Usage by key"
              rows={rows}
              keyOf={({ key_id }) => key_id}
              columns={[
                {
                  name: 'Key',
                  isHeading: true,
                  show: row => <a href={hrefToLog(covered, { key: row.key_id })}>{row.key_name ?? row.key_id}</a>,
                },
                { name: 'Requests', isNumber: true, show: row => formatCount(row.requests) },
                {
                  name: 'Failed or blocked',
                  from: 'middle',
                  isNumber: true,
                  show: row =>
                    row.failed === 0 ? (
                      '0'
                    ) : (
                      <a href={hrefToLog(covered, { key: row.key_id, ...failedOnly })}>
                        {formatCount(row.failed)} ({percent(row.failed / row.requests, 1)})
                      </a>
                    ),
                },
                { name: 'Tokens', from: 'wide', isNumber: true, show: row => compact(row.total_tokens) },
                { name: 'p95 latency', from: 'wide', isNumber: true, show: row => milliseconds(row.latency_p95_ms) },
                { name: 'Cost', isNumber: true, show: row => usd(row.cost_usd) },
              ]}
            />
          )
        }
      </Loaded>
    </Card>
  )
}
