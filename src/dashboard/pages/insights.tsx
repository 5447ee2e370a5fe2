import { useState } from 'preact/hooks'
import type { ShownModelInsight, ShownRecommendation } from '../../console/insights/schemas.ts'
import { Tabs } from '../parts/controls.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { Empty, Loaded, Notice } from '../parts/notice.tsx'
import { Card, Page, Tile } from '../parts/page.tsx'
import { action, useActions } from '../parts/resource.tsx'
import { RoutingPicture } from '../parts/routing.tsx'
import { AsTable, Table } from '../parts/table.tsx'
import { callApi } from '../state/api.ts'
import { logShare } from '../state/chart-paths.ts'
import { figures, showFigure } from '../state/figures.ts'
import { toFilters } from '../state/filters.ts'
import { formatCount, formatDate, formatUsd, humanize, signed } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import type { Confidence, Learning } from '../state/routes.ts'
import { may } from '../state/session.ts'

const everyMs = 30_000
const eraseWord = 'erase'

export function Insights() {
  const learning = useResource('GET /api/v1/insights/learning', { everyMs })
  const filters = toFilters(hashRoute.value.query)
  const { buttons, dialogs } = useActions<null>(learning.reload)
  const isAbsent = learning.failure?.code === 'not_found'
  return (
    <Page
      title="Insights"
      hint="Routing statistics for this account. Contains no prompts or outputs."
      actions={may('learning.delete') && !isAbsent && buttons(null, [erase], '')}
    >
      {isAbsent ? (
        <Notice title="Insights unavailable">Insights are not available in this release.</Notice>
      ) : (
        <>
          <FilterBar path="insights" filters={filters} />
          <RoutingPicture filters={filters} />
          <Loaded resource={learning} what="insights" lines={8}>
            {found => <Learned learning={found} />}
          </Loaded>
        </>
      )}
      {dialogs}
    </Page>
  )
}

const confidenceWords: Readonly<Record<Confidence, string>> = {
  cold_start: 'Fewer than 10 requests per query type and model: routing uses catalog defaults.',
  warm_up: '10 to 49 requests per query type and model: your results have a small effect.',
  established: 'At least 50 requests per query type and model: your results have a large, bounded effect.',
}

function Learned({ learning }: { readonly learning: Learning }) {
  const { state, entries, since, influence, enhancement } = learning
  return (
    <>
      <section class="tiles" aria-label="Summary">
        <Tile
          name="Confidence"
          value={humanize(state)}
          about={confidenceWords[state]}
          note="How much your results count"
        />
        <Tile
          name="Entries"
          value={`${formatCount(entries)} ${entries === 1 ? 'request' : 'requests'}`}
          note={since === null ? 'None so far' : `Since ${formatDate(since)}`}
        />
        <Tile
          name="Routing changes"
          value={`${influence.influenced_pct}%`}
          about={`${influence.classified_pct}% of the requests had a known query type`}
          note="got another model by learning"
        />
        <Tile
          name="Enhancement"
          value={showFigure('quality', enhancement.quality_with)}
          note={`quality over ${formatCount(enhancement.requests)} enhanced requests, ${showFigure('quality', enhancement.quality_without)} without`}
        />
      </section>
      {entries === 0 ? (
        <div class="card">
          <Empty title="No learning data yet">
            Learning data appears after requests in the <a href={hrefTo('playground')}>playground</a> or through the
            API. Ratings count most.
          </Empty>
        </div>
      ) : (
        <>
          {learning.recommendations.length > 0 && <Recommendations list={learning.recommendations} />}
          <ModelMap learning={learning} />
        </>
      )}
    </>
  )
}

function Recommendations({ list }: { readonly list: readonly ShownRecommendation[] }) {
  return (
    <Card title="Recommendations" about="Models that perform better or cost less on your requests.">
      <ul class="recommendations">
        {list.map(({ query_type, model, reason, expected_quality_change, expected_cost_change_pct }) => (
          <li key={`${query_type} ${model}`}>
            <strong>
              {humanize(query_type)}: {model}
            </strong>
            <p>{reason}</p>
            <p class="hint">
              Quality {signed(expected_quality_change, 2)}, cost {signed(expected_cost_change_pct, 0)}%
            </p>
          </li>
        ))}
      </ul>
    </Card>
  )
}

type Cell = ShownModelInsight

/** Figures of a model for a query type; without a range, their scale is logarithmic between the least and the highest. */
const metrics = {
  quality: {
    title: figures.quality.label,
    range: [0, 1],
    show: figures.quality.show,
    of: (row: Cell) => row.quality,
  },
  cost: { title: 'Cost (mean)', range: null, show: formatUsd, of: (row: Cell) => row.cost_usd },
  latency: {
    title: figures.meanLatency.label,
    range: null,
    show: figures.meanLatency.show,
    of: (row: Cell) => row.latency_ms,
  },
  rating: { title: 'Rating', range: [1, 5], show: (value: number) => value.toFixed(1), of: (row: Cell) => row.rating },
  bias: {
    title: 'Learned effect',
    range: [0, 0.2],
    show: (value: number) => signed(value, 2),
    of: (row: Cell) => row.bias,
  },
} as const
type Metric = keyof typeof metrics
const metricTitles: Partial<Record<Metric, string>> = Object.fromEntries(
  Object.entries(metrics).map(([metric, { title }]) => [metric, title]),
)

const told = (value: number | null, show: (value: number) => string) => (value === null ? '–' : show(value))

/** A heat map of models by query type: more color = a higher value. */
function ModelMap({ learning: { models, query_types: types } }: { readonly learning: Learning }) {
  const [metric, setMetric] = useState<Metric>('quality')
  const { show, of, range } = metrics[metric]
  const values = models.flatMap(row => of(row) ?? [])
  const byModel = [...Map.groupBy(models, ({ model }) => model)]
    .map(([model, rows]) => ({ model, rows, requests: rows.reduce((sum, row) => sum + row.requests, 0) }))
    .toSorted((left, right) => right.requests - left.requests)
  const cell = (
    rows: readonly ShownModelInsight[],
    { query_type: type, best_model: best }: Learning['query_types'][number],
  ) => {
    const row = rows.find(({ query_type }) => query_type === type)
    const value = row === undefined ? null : of(row)
    if (row === undefined || value === null) return <span class="quiet">–</span>
    const share = range === null ? logShare(value, values) : (Math.abs(value) - range[0]) / (range[1] - range[0])
    return (
      <span
        class={`heat ${metric === 'bias' && value < 0 ? 'less' : ''} ${row.confidence === 'cold_start' ? 'faint' : ''}`}
        style={{ '--heat': `${Math.round(share * 45)}%` }}
        title={`${formatCount(row.requests)} requests. ${confidenceWords[row.confidence]}`}
      >
        {show(value)}
        {best === row.model && metric === 'quality' && <strong title="Best model of this query type"> ★</strong>}
      </span>
    )
  }
  return (
    <Card
      title="Models by query type"
      about="★ best quality. Cells without color have fewer than 10 requests."
      actions={<Tabs label="Figure" tabs={metricTitles} current={metric} onChoice={setMetric} />}
    >
      <Table
        caption={`${metrics[metric].title} of models by query type`}
        rows={byModel}
        rowKey={({ model }) => model}
        columns={[
          { name: 'Model', isHeading: true, show: ({ model }) => model },
          ...types.map(type => ({
            name: humanize(type.query_type),
            isNumber: true,
            show: ({ rows }: (typeof byModel)[number]) => cell(rows, type),
          })),
        ]}
      />
      <AsTable
        caption="Models and query types"
        rows={models.toSorted((left, right) => right.requests - left.requests)}
        rowKey={({ model, query_type }) => `${model} ${query_type}`}
        columns={[
          { name: 'Model', isHeading: true, by: ({ model }) => model, show: ({ model }) => model },
          { name: 'Query type', by: row => row.query_type, show: row => humanize(row.query_type) },
          { figure: 'requests', by: row => row.requests },
          ...Object.values(metrics).map(({ title, of: read, show: write }) => ({
            name: title,
            isNumber: true,
            by: read,
            show: (row: Cell) => told(read(row), write),
          })),
          { name: 'Confidence', show: row => humanize(row.confidence) },
        ]}
      />
    </Card>
  )
}

const erase = action<null, { readonly word: string }>({
  text: () => 'Delete learning data',
  isDangerous: true,
  start: () => ({ word: '' }),
  dialog: (_, { word }) => ({
    title: 'Delete all learning data?',
    submit: 'Delete learning data',
    isReady: word.trim().toLowerCase() === eraseWord,
    about: (
      <p>
        Deletes all learning entries and ratings of this account permanently. Routing returns to catalog defaults. The
        request log and billing do not change.
      </p>
    ),
    fields: [{ param: 'word', label: `Type “${eraseWord}” to confirm`, autocomplete: 'off' }],
  }),
  perform: async () => {
    await callApi('DELETE /api/v1/insights/data')
    return 'Learning data deleted'
  },
})
