import { useState } from 'preact/hooks'
import type { ShownRequest, ShownUsage } from '../../console/usage/schemas.ts'
import { mostCountedRejections } from '../../core/usage/usage-groups.ts'
import { NothingVisible } from '../parts/account-notices.tsx'
import { Button, Icon, type IconName, Tabs } from '../parts/controls.tsx'
import { DailyChart } from '../parts/daily-chart.tsx'
import { Switch, TextField } from '../parts/field.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { Empty, FailureNotice, Loading } from '../parts/notice.tsx'
import { Exports, Page, showToast } from '../parts/page.tsx'
import { useOwnScope } from '../parts/project-field.tsx'
import {
  callCount,
  findServedModel,
  requestedModelText,
  StatusBadge,
  tellSubstitution,
  unpricedTexts,
} from '../parts/request-detail.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { useUsage } from '../parts/usage.tsx'
import { callApi } from '../state/api.ts'
import { saveRows } from '../state/export.ts'
import { logQuery, toFilters, type UsageQuery } from '../state/filters.ts'
import { compact, exactTime, formatCount, formatUsd, localTime, percent, usdColumn } from '../state/format.ts'
import { hashRoute, replaceHashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { useLog } from '../state/log.ts'
import { useAction } from '../state/resource.ts'
import { getChartNote } from '../state/usage-series.ts'

const admissions = { admitted: 'Admitted', rejected: 'Rejected' } as const

export function Requests() {
  const [isLive, setLive] = useState(false)
  const filters = toFilters(hashRoute.value.query)
  const scope = useOwnScope()
  const log = useLog(logQuery(filters), isLive)
  const isFiltered = Object.keys(filters).length > 0
  const { status, ...ofAll } = filters
  const isRejected = status === 'rejected'
  const { usage: counted, range, linkTo } = useUsage(isRejected ? ofAll : filters)
  const usage = counted.data
  // Live updates add rows after the count.
  const whole = usage === undefined || !log.hasMore || isLive ? null : tellWhole(usage, isRejected, range)
  return (
    <Page
      title="Requests"
      hint={`Requests of ${scope ?? 'the account'}. Prompts and outputs are never stored.`}
      actions={
        isRejected ? (
          <RejectedExport rows={log.rows ?? []} />
        ) : (
          <Exports of="requests" query={logQuery(filters)} formats={{ csv: 'CSV', json: 'JSON' }} />
        )
      }
    >
      <NothingVisible />
      <FilterBar path="requests" filters={filters}>
        <Switch label="Live updates" isOn={isLive} onSwitch={setLive} />
        <FindRequest />
      </FilterBar>
      {!isRejected && usage !== undefined && usage.total.requests > 0 && (
        // The totals cannot show requests that were rejected, only their number.
        <section class="card log-chart" aria-label="Requests by status">
          <DailyChart usage={usage} measure="requests" note={getChartNote('requests', range)} linkTo={linkTo} />
        </section>
      )}
      <section class="card">
        <div>
          <Tabs
            label="Requests"
            tabs={admissions}
            current={isRejected ? 'rejected' : 'admitted'}
            onChoice={chosen =>
              replaceHashRoute('requests', { ...filters, status: chosen === 'rejected' ? chosen : '' })
            }
          />
        </div>
        <p class="hint">
          {isRejected
            ? 'A limit or a check rejected these requests before a model was called. Kept for 30 days.'
            : 'Requests that a limit or a check rejected are under “Rejected”.'}
        </p>
        {log.failure !== null && <FailureNotice failure={log.failure} retry={log.reload} />}
        {log.rows === undefined && log.failure === null && <Loading what="requests" lines={8} />}
        {log.rows?.length === 0 && !log.hasMore && (
          <Empty
            title={
              isFiltered
                ? 'No matching requests'
                : `No requests${scope === null ? '' : ` of ${scope}`} in the last 30 days`
            }
          >
            {isFiltered ? (
              <Button text="Show all" look="small" onClick={() => replaceHashRoute('requests')} />
            ) : (
              'Requests appear here seconds after they finish.'
            )}
          </Empty>
        )}
        {log.rows !== undefined && (log.rows.length > 0 || log.hasMore) && (
          <>
            {log.rows.length > 0 && <RequestTable rows={log.rows} fresh={log.fresh} />}
            <p class="table-foot" role="status">
              {formatCount(log.rows.length)}
              {whole !== null && ` of ${whole}`} shown
              {isLive && ' · live'}
              {log.hasMore && log.isLoading && ' · searching older requests'}
            </p>
            {log.hasMore && (
              <Button
                text={log.isLoading ? 'Loading…' : 'Load more'}
                look="wide"
                disabled={log.isLoading}
                onClick={log.loadMore}
              />
            )}
          </>
        )}
      </section>
    </Page>
  )
}

/** Number of all requests that match; null = unknown: the totals of a shortened range are not of the list. */
function tellWhole({ rejected, total }: ShownUsage, isRejected: boolean, { shortenedTo }: UsageQuery): string | null {
  const count = isRejected ? rejected : total.requests
  if (count === null || shortenedTo !== null) return null
  return `${formatCount(count)}${isRejected && count === mostCountedRejections ? '+' : ''}`
}

/** Rejected requests have no usage and no export of their own: the file has the rows that are shown. */
function RejectedExport({ rows }: { readonly rows: readonly ShownRequest[] }) {
  const save = () => {
    saveRows('rejected-requests.csv', rows, [
      'request_id',
      'created_at',
      'error_code',
      'requested_model',
      'key_name',
      'dialect',
      'streamed',
      'latency_ms',
    ])
    showToast('Export downloaded')
  }
  return (
    <Button disabled={rows.length === 0} onClick={save}>
      <Icon name="download" size={16} /> Export CSV
    </Button>
  )
}

type RequestTableProps = {
  readonly rows: readonly ShownRequest[]
  readonly fresh: ReadonlySet<string>
}

/** One line per request; on narrow screens two, with the same figures. */
function RequestTable({ rows, fresh }: RequestTableProps) {
  const usd = usdColumn(rows.map(({ cost_usd }) => cost_usd))
  // Rejected requests have no usage.
  const hasUsage = rows.some(({ status }) => status !== 'rejected')
  return (
    <Table
      caption="Requests, newest first"
      isOrdered
      rows={rows}
      rowKey={({ request_id }) => request_id}
      rowClass={({ request_id }) => (fresh.has(request_id) ? 'request fresh' : 'request')}
      columns={[
        {
          name: 'Local time',
          isHeading: true,
          show: ({ request_id, created_at }) => (
            <a href={hrefTo(`requests/${encodeURIComponent(request_id)}`)} title={exactTime(created_at)}>
              {localTime(created_at)}
            </a>
          ),
        },
        {
          name: 'Status',
          show: row => (
            <>
              <StatusBadge request={row} />{' '}
              {row.error_code !== null && (
                <code class="quiet" title={row.error_code}>
                  {row.error_code}
                </code>
              )}
            </>
          ),
        },
        { name: 'Model', show: row => <ModelName request={row} /> },
        { name: 'Marks', from: 'middle', show: row => <Marks request={row} /> },
        { name: 'Key', from: 'wide', show: row => row.key_name ?? '–' },
        ...(hasUsage ? usageColumns(usd) : []),
        { figure: 'requestLatency', by: row => row.latency_ms },
      ]}
    />
  )
}

const usageColumns = (usd: (value: number) => string): readonly Column<ShownRequest>[] => [
  {
    figure: 'tokens',
    by: row => row.total_tokens,
    show: row => (
      <span title="Input → output tokens">
        {compact(row.input_tokens)} → {compact(row.output_tokens)}
      </span>
    ),
  },
  { figure: 'cost', by: row => row.cost_usd, show: row => usd(row.cost_usd) },
  { figure: 'firstToken', from: 'wide', by: row => row.first_token_ms },
]

/** The model that served behind the initial of its provider, in a color of the charts. */
function ModelName({ request }: { readonly request: ShownRequest }) {
  const name = findServedModel(request)
  if (name === null) return <span class="quiet">{requestedModelText(request)}</span>
  const at = name.indexOf('/') + 1
  const tone = [...name.slice(0, at)].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % 8
  return (
    <span title={name}>
      <span class={`provider-mark s${tone}`} aria-hidden="true">
        {name.charAt(0).toUpperCase()}
      </span>
      <span class="unseen">{name.slice(0, at)}</span>
      {name.slice(at)}
    </span>
  )
}

/** Particulars of a request as icons, with words for pointers and screen readers. */
function Marks({ request }: { readonly request: ShownRequest }) {
  const { input_tokens: input, cached_input_tokens: cached } = request
  const marks: readonly (readonly [IconName, string | null | false])[] = [
    ['stream', request.streamed && 'Stream'],
    ['auto', request.routing_mode === 'auto' && 'Automatic routing'],
    ['tools', request.finish_reason === 'tool_calls' && 'Tool call'],
    ['cached', cached > 0 && `${percent(cached / input)} of the input cached`],
    ['again', callCount(request) > 1 && `${callCount(request)} attempts`],
    ['keys', request.own_key_cost_usd !== null && `${formatUsd(request.own_key_cost_usd)} with an own provider key`],
    ['warning', tellSubstitution(request)],
    ['warning', request.unpriced !== null && unpricedTexts[request.unpriced]],
  ]
  return marks.map(
    ([icon, words]) =>
      words && (
        <span key={words} class="request-mark" title={words}>
          <Icon name={icon} size={15} />
          <span class="unseen">{words}. </span>
        </span>
      ),
  )
}

/** Opens the page of a request by any of its IDs, or says that none has it. */
function FindRequest() {
  const [id, setId] = useState('')
  const finding = useAction(async () => {
    const { request_id } = await callApi('GET /api/v1/requests/:id', { params: { id: id.trim() } })
    location.assign(hrefTo(`requests/${encodeURIComponent(request_id)}`))
  })
  return (
    <search title="The x-request-id header, the ID of a response, the ID that a provider gave, or the request ID of an already_completed error.">
      <form
        class="filters-end"
        onSubmit={event => {
          event.preventDefault()
          void finding.run()
        }}
      >
        <TextField
          label="Request ID"
          type="search"
          autocomplete="off"
          required
          maxLength={128}
          value={id}
          onText={text => {
            setId(text)
            finding.clear()
          }}
        />
        <Button text={finding.isBusy ? 'Searching…' : 'Find request'} type="submit" disabled={finding.isBusy} />
      </form>
      {finding.failure !== null && <FailureNotice failure={finding.failure} />}
    </search>
  )
}
