import { useState } from 'preact/hooks'
import { type Filters, rangeTitle } from '../state/filters.ts'
import { layoutFlow, toFlow } from '../state/flow.ts'
import { compact, formatCount } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { Tabs } from './controls.tsx'
import { DailyChart } from './daily-chart.tsx'
import { Empty, Loaded } from './notice.tsx'
import { Card } from './page.tsx'
import { AsTable } from './table.tsx'
import { useUsage } from './usage.tsx'

const views = { flow: 'Flow', share: 'Share of models' } as const

/** What routing did: query types, the models that served them, and how their requests ended. */
export function RoutingPicture({ filters }: { readonly filters: Filters }) {
  const [view, setView] = useState<keyof typeof views>('flow')
  const isFlow = view === 'flow'
  const { usage, range, linkTo } = useUsage(filters, {
    splitBy: 'model',
    ...(isFlow ? { groupBy: 'query_type' } : {}),
  })
  return (
    <Card
      title="Routing"
      about={range.shortenedTo === null ? rangeTitle(filters) : `Last ${range.shortenedTo} days`}
      actions={<Tabs label="Picture" tabs={views} current={view} onChoice={setView} />}
    >
      <Loaded resource={usage} what="the picture" lines={8}>
        {found =>
          found.total.requests === 0 ? (
            <Empty title="No requests in this range">
              <a href={hrefTo('playground')}>Open the playground</a>
            </Empty>
          ) : isFlow ? (
            <FlowChart flow={toFlow(found)} linkTo={linkTo} />
          ) : (
            <DailyChart usage={found} measure="share" isSplit linkTo={linkTo} />
          )
        }
      </Loaded>
    </Card>
  )
}

/** Horizontal units of the picture, which stretches to its card. */
const width = 1_000
const nodeWidth = 8
/** Pixels. */
const size = { fullHeight: 190, leastSpace: 20 } as const
/** Places of the columns: the names of query types are short, those of models long. */
const places = [0, 0.34, 1] as const
const lastColumn = 2

type FlowChartProps = { readonly flow: ReturnType<typeof toFlow>; readonly linkTo: (filters: Filters) => string }

/** A Sankey diagram: the height of a node or link is its number of requests. The same numbers are available as a table. */
function FlowChart({ flow, linkTo }: FlowChartProps) {
  const { nodes, links, height } = layoutFlow(flow, size)
  const x = (column: number) => (places[column] ?? 0) * (width - nodeWidth)
  const told = ({ source, target, value }: (typeof links)[number]) =>
    `${source.name} → ${target.name}: ${formatCount(value)}`
  const getHref = ({ source, target }: (typeof links)[number]) =>
    source.filters === null || target.filters === null ? undefined : linkTo({ ...source.filters, ...target.filters })
  return (
    <figure class="chart">
      <div class="flow-plot" style={{ blockSize: `${height}px` }}>
        <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
          {links.map(link => {
            const [from, to] = [x(link.source.column) + nodeWidth, x(link.target.column)]
            const middle = (from + to) / 2
            const [top, end] = [link.fromY, link.toY]
            const href = getHref(link)
            return (
              // By keyboard the table has the same links.
              <a key={told(link)} {...(href === undefined ? {} : { href })} tabindex={-1}>
                <path
                  class={`ribbon ${link.source.column === 0 ? link.target.tone : link.source.tone}`}
                  d={`M${from} ${top}C${middle} ${top} ${middle} ${end} ${to} ${end}v${link.height}C${middle} ${end + link.height} ${middle} ${top + link.height} ${from} ${top + link.height}z`}
                >
                  <title>{told(link)}</title>
                </path>
              </a>
            )
          })}
          {nodes.map(({ id, tone, column, y, height: tall }) => (
            <rect key={id} class={tone} x={x(column)} y={y} width={nodeWidth} height={Math.max(1, tall)} />
          ))}
        </svg>
        <ul>
          {nodes.map(({ id, name, filters, column, value, y }) => (
            <li
              key={id}
              class={column === lastColumn ? 'end' : ''}
              style={place(column, y)}
              title={`${name}: ${formatCount(value)}`}
            >
              {/* First, because a long name is cut off at its end. */}
              <span class="legend-value">{compact(value)}</span>{' '}
              {filters === null ? shortName(name) : <a href={linkTo(filters)}>{shortName(name)}</a>}
            </li>
          ))}
        </ul>
      </div>
      <AsTable
        caption="Requests from query types to models to outcomes"
        rows={links}
        rowKey={told}
        columns={[
          { name: 'From', isHeading: true, show: ({ source }) => source.name },
          { name: 'To', show: ({ target }) => target.name },
          {
            figure: 'requests',
            by: ({ value }) => value,
            show: link => {
              const href = getHref(link)
              return href === undefined ? formatCount(link.value) : <a href={href}>{formatCount(link.value)}</a>
            },
          },
        ]}
      />
    </figure>
  )
}

/** Without the provider, which its tooltip and the table have: three columns of names fit a phone. */
const shortName = (name: string) => name.slice(name.indexOf('/') + 1)

const place = (column: number, y: number) => ({
  insetBlockStart: `${y}px`,
  ...(column === lastColumn ? { insetInlineEnd: '0' } : { insetInlineStart: `${(places[column] ?? 0) * 100}%` }),
})
