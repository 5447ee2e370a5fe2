import { useState } from 'preact/hooks'
import type { ShownRecommendation } from '../../console/insights/schemas.ts'
import { Button } from '../parts/controls.tsx'
import { Badge, Empty, Loaded, Notice, type Tone } from '../parts/notice.tsx'
import { Card, Page, Tile } from '../parts/page.tsx'
import { action, useActions } from '../parts/resource.tsx'
import { Table } from '../parts/table.tsx'
import { callApi } from '../state/api.ts'
import { formatCount, formatDate, humanize, milliseconds, signed, usdColumn } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import type { Confidence, Learning } from '../state/routes.ts'
import { may } from '../state/session.ts'

const everyMs = 30_000
const eraseWord = 'erase'

export function Insights() {
  const learning = useResource('GET /api/v1/insights/learning', { everyMs })
  const { buttons, dialogs } = useActions<null>(learning.reload)
  const isAbsent = learning.failure?.code === 'not_found'
  return (
    <Page
      title="Insights"
      about="Routing statistics for this account. Contains no prompts or outputs."
      actions={may('learning.delete') && !isAbsent && buttons(null, [erase], '')}
    >
      {isAbsent ? (
        <Notice title="Insights unavailable">Insights are not available in this release.</Notice>
      ) : (
        <Loaded resource={learning} what="insights" lines={8}>
          {found => <Learned learning={found} />}
        </Loaded>
      )}
      {dialogs}
    </Page>
  )
}

const confidenceTones: Readonly<Record<Confidence, Tone>> = {
  cold_start: 'plain',
  warm_up: 'warn',
  established: 'good',
}
const confidenceWords: Readonly<Record<Confidence, string>> = {
  cold_start: 'Fewer than 10 requests per query type and model: routing uses catalog defaults.',
  warm_up: '10 to 49 requests per query type and model: your results have a small effect.',
  established: 'At least 50 requests per query type and model: your results have a large, bounded effect.',
}

function Certainty({ of: confidence }: { readonly of: Confidence }) {
  return (
    <span title={confidenceWords[confidence]}>
      <Badge tone={confidenceTones[confidence]}>{humanize(confidence)}</Badge>
    </span>
  )
}

function Learned({ learning }: { readonly learning: Learning }) {
  const { state, entries, since, influence, enhancement } = learning
  return (
    <>
      <section class="tiles" aria-label="Summary">
        <Tile name="Confidence" value={humanize(state)} note={confidenceWords[state]} />
        <Tile
          name="Entries"
          value={`${formatCount(entries)} ${entries === 1 ? 'request' : 'requests'}`}
          note={since === null ? 'None so far' : `Since ${formatDate(since)}`}
        />
        <Tile
          name="Routing changes"
          value={`${influence.influenced_pct}%`}
          note={`of requests got another model because of learning; ${influence.classified_pct}% had a known query type`}
        />
        <Tile
          name="Enhancement"
          value={qualityText(enhancement.quality_with)}
          note={`quality over ${formatCount(enhancement.requests)} enhanced requests, ${qualityText(enhancement.quality_without)} without`}
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
          <Recommendations list={learning.recommendations} />
          <QueryTypes learning={learning} />
          <ModelTable learning={learning} />
        </>
      )}
    </>
  )
}

const qualityText = (quality: number | null) => (quality === null ? '–' : quality.toFixed(2))

function Recommendations({ list }: { readonly list: readonly ShownRecommendation[] }) {
  return (
    <Card title="Recommendations" about="Models that perform better or cost less on your requests.">
      {list.length === 0 ? (
        <Empty title="No recommendations yet">They appear when another model performs clearly better.</Empty>
      ) : (
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
      )}
    </Card>
  )
}

function QueryTypes({ learning }: { readonly learning: Learning }) {
  return (
    <Card title="By query type">
      <Table
        caption="Query types"
        rows={learning.query_types}
        rowKey={({ query_type }) => query_type}
        columns={[
          { name: 'Query type', isHeading: true, show: type => humanize(type.query_type) },
          { name: 'Requests', from: 'middle', isNumber: true, show: type => formatCount(type.requests) },
          { name: 'Best model', show: type => type.best_model ?? '–' },
          { name: 'Confidence', show: type => <Certainty of={type.confidence} /> },
        ]}
      />
    </Card>
  )
}

const shownAtFirst = 12

function ModelTable({ learning }: { readonly learning: Learning }) {
  const [showsAll, setShowsAll] = useState(false)
  const rows = learning.models.toSorted((left, right) => right.requests - left.requests)
  const usd = usdColumn(rows.map(({ cost_usd }) => cost_usd))
  return (
    <Card title="By model">
      <Table
        caption="Models by query type"
        rows={showsAll ? rows : rows.slice(0, shownAtFirst)}
        rowKey={({ model, query_type }) => `${model} ${query_type}`}
        columns={[
          {
            name: 'Model',
            isHeading: true,
            show: row => (
              <>
                {row.model} <span class="block quiet">{humanize(row.query_type)}</span>
              </>
            ),
          },
          { name: 'Requests', from: 'middle', isNumber: true, show: row => formatCount(row.requests) },
          { name: 'Quality', isNumber: true, show: row => row.quality.toFixed(2) },
          {
            name: 'Rating',
            from: 'middle',
            isNumber: true,
            show: row => (row.rating === null ? '–' : row.rating.toFixed(1)),
          },
          { name: 'Latency', from: 'middle', isNumber: true, show: row => milliseconds(row.latency_ms) },
          { name: 'Cost', from: 'wide', isNumber: true, show: row => usd(row.cost_usd) },
          { name: 'Learned bias', isNumber: true, show: row => signed(row.bias, 2) },
        ]}
      />
      {rows.length > shownAtFirst && (
        <Button
          text={showsAll ? 'Show fewer' : `Show all ${formatCount(rows.length)}`}
          look="wide"
          aria-expanded={showsAll}
          onClick={() => setShowsAll(!showsAll)}
        />
      )}
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
