import { useState } from 'preact/hooks'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import { saveRows } from '../state/export.ts'
import { coveredFilters, type Filters, hrefToLog, rangeTitle, usageQuery } from '../state/filters.ts'
import { compact, formatCount, percent, usdColumn } from '../state/format.ts'
import { replaceHashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { type Measure, measureTitles } from '../state/usage-series.ts'
import { Button, Tabs } from './controls.tsx'
import { DailyChart } from './daily-chart.tsx'
import { SelectField } from './field.tsx'
import { Empty, Loaded } from './notice.tsx'
import { Card } from './page.tsx'
import { useIsThroughProjects } from './project-field.tsx'
import { Table } from './table.tsx'

/** Usage by tag over the range of the page: a chart of one tag name or tag, and a table of all tags. */

type TagRow = Extract<ShownUsage['data'][number], { tag: string }>
const toTagRows = (usage: ShownUsage | undefined): TagRow[] =>
  usage?.data.flatMap(row => ('tag' in row ? [row] : [])) ?? []
const toTagName = (tag: string) => tag.split('=')[0] ?? tag

export function TagUsage({ filters }: { readonly filters: Filters }) {
  const { tag, ...untagged } = filters
  const options = { groupBy: 'tag', isThroughProjects: useIsThroughProjects() } as const
  const range = usageQuery(untagged, options)
  const { query, shortenedTo } = range
  const all = useResource('GET /api/v1/usage', { query: { ...query, group_by: 'tag' } })
  const chosen = useResource('GET /api/v1/usage', {
    query: { ...usageQuery(filters, options).query, group_by: 'tag' },
    when: tag !== undefined,
  })
  const names = [...new Set(toTagRows(all.data).map(row => toTagName(row.tag)))]
  const charted = tag ?? names[0]
  return (
    <>
      {shortenedTo !== null && (
        <p class="hint">With these filters the totals cover the last {shortenedTo} days of the range.</p>
      )}
      {charted !== undefined && <TagChart key={charted} tag={charted} filters={filters} />}
      <Card
        title="Usage by tag"
        about={`${rangeTitle(filters)}, by cost. A request counts in each of its tags.`}
        actions={
          <SelectField
            label="Tag name"
            value={tag ?? ''}
            onChoice={name => replaceHashRoute('tags', { ...filters, tag: name })}
            choices={[
              ['', 'All'],
              ...[...new Set([...names, ...(tag === undefined ? [] : [tag])])].map(name => [name, name] as const),
            ]}
          />
        }
      >
        <Loaded resource={tag === undefined ? all : chosen} what="the usage">
          {usage => (
            <UsageTable
              usage={usage}
              filters={filters}
              covered={coveredFilters(filters, range)}
              whole={tag === undefined || tag.includes('=') ? undefined : all.data}
            />
          )}
        </Loaded>
      </Card>
    </>
  )
}

const splits = { model: 'By model', key: 'By key', member: 'By member' } as const
type Split = keyof typeof splits

/** Chart of the values of a tag name, or of one tag by model, key or member: parts that count no request twice. */
function TagChart({ tag, filters }: { readonly tag: string; readonly filters: Filters }) {
  const [measure, setMeasure] = useState<Measure>('cost')
  const [split, setSplit] = useState<Split>('model')
  const isOne = tag.includes('=')
  const ofTag = { ...filters, tag }
  const range = usageQuery(ofTag, { isThroughProjects: useIsThroughProjects() })
  const { query, unit } = range
  const usage = useResource('GET /api/v1/usage', {
    query: { ...query, group_by: unit, split_by: isOne ? split : 'tag' },
  })
  const { member: _, ...others } = splits
  return (
    <Card
      title={isOne ? tag : `${tag}, by value`}
      about={rangeTitle(filters)}
      actions={
        <>
          <Tabs label="Metric" tabs={measureTitles} current={measure} onChoice={setMeasure} />
          {isOne && (
            <Tabs<Split>
              label="Group by"
              tabs={may('usage.all') ? splits : others}
              current={split}
              onChoice={setSplit}
            />
          )}
        </>
      }
    >
      <Loaded resource={usage} what="the chart" lines={6}>
        {found =>
          found.total.requests === 0 ? (
            <Empty title="No requests with this tag in this range">Choose a longer range or another tag.</Empty>
          ) : (
            <DailyChart
              usage={found}
              measure={measure}
              isSplit
              linkTo={added => hrefToLog(coveredFilters(ofTag, range), added)}
              note={measure === 'latency' ? 'p50' : undefined}
            />
          )
        }
      </Loaded>
    </Card>
  )
}

/** More rows are shown on request: each session of an agent is a tag. */
const firstRows = 100

type UsageTableProps = {
  readonly usage: ShownUsage
  readonly filters: Filters
  /** Filters of the requests that the usage covers, for the links to the log. */
  readonly covered: Filters
  /** Totals with and without the tag; undefined = no line for requests without it. */
  readonly whole: ShownUsage | undefined
}

type Shown = Pick<TagRow, 'requests' | 'failed' | 'total_tokens' | 'cost_usd'> & { readonly tag: string | null }

function UsageTable({ usage, filters, covered, whole }: UsageTableProps) {
  const [showsAll, setShowsAll] = useState(false)
  const tags = toTagRows(usage)
  const untagged = whole === undefined ? null : subtractTotals(whole.total, usage.total)
  if (tags.length === 0)
    return (
      <Empty title="No requests with tags in this range">
        Add tags to an API key, or send the header <code>x-gateway-tags: team=search</code>.
      </Empty>
    )
  const rows: Shown[] = [
    ...(showsAll ? tags : tags.slice(0, firstRows)),
    ...(untagged === null || untagged.requests === 0 ? [] : [{ ...untagged, tag: null }]),
  ]
  const usd = usdColumn(rows.map(row => row.cost_usd))
  const all: Shown[] = [...tags, ...(untagged === null ? [] : [{ ...untagged, tag: '' }])]
  return (
    <>
      <Table
        caption="Usage by tag"
        rows={rows}
        rowKey={row => row.tag ?? ''}
        columns={[
          {
            name: 'Tag',
            isHeading: true,
            by: row => row.tag,
            show: ({ tag }) =>
              tag === null ? (
                <span class="quiet">Without this tag</span>
              ) : (
                <a class="break" href={hrefTo('tags', { ...filters, tag })}>
                  {tag}
                </a>
              ),
          },
          {
            name: 'Requests',
            isNumber: true,
            by: row => row.requests,
            show: ({ tag, requests }) =>
              tag === null ? (
                formatCount(requests)
              ) : (
                <a href={hrefToLog(covered, { tag })} aria-label={`${formatCount(requests)} requests with ${tag}`}>
                  {formatCount(requests)}
                </a>
              ),
          },
          {
            name: 'Failed or blocked',
            from: 'middle',
            isNumber: true,
            by: row => row.failed,
            show: row => percent(row.requests === 0 ? 0 : row.failed / row.requests, 1),
          },
          {
            name: 'Tokens',
            from: 'middle',
            isNumber: true,
            by: row => row.total_tokens,
            show: row => compact(row.total_tokens),
          },
          { name: 'Cost', isNumber: true, by: row => row.cost_usd, show: row => usd(row.cost_usd) },
        ]}
      />
      <div class="actions">
        {tags.length > firstRows && !showsAll && (
          <Button look="small" onClick={() => setShowsAll(true)}>
            Show all {formatCount(tags.length)}
          </Button>
        )}
        <Button text="Export CSV" look="small" onClick={() => saveRows('tags.csv', all, csvFields)} />
      </div>
    </>
  )
}

/** Differences of sums; money is exact to 1e-8 USD. */
function subtractTotals(whole: ShownUsage['total'], part: ShownUsage['total']): Omit<Shown, 'tag'> {
  return {
    requests: whole.requests - part.requests,
    failed: whole.failed - part.failed,
    total_tokens: whole.total_tokens - part.total_tokens,
    cost_usd: Math.round((whole.cost_usd - part.cost_usd) * 1e8) / 1e8,
  }
}

const csvFields = ['tag', 'requests', 'failed', 'total_tokens', 'cost_usd'] as const
