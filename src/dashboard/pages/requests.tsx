import { useState } from 'preact/hooks'
import type { ShownRequest } from '../../console/usage/schemas.ts'
import { mostCountedRejections } from '../../core/usage/usage-groups.ts'
import { NothingVisible } from '../parts/account-notices.tsx'
import { Button, Icon, Tabs } from '../parts/controls.tsx'
import { Switch, TextField } from '../parts/field.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { Empty, FailureNotice, Loading } from '../parts/notice.tsx'
import { Page, showToast } from '../parts/page.tsx'
import { useOwnScope } from '../parts/project-field.tsx'
import {
  CodeText,
  callCount,
  findServedModel,
  RequestDetail,
  requestedModelText,
  ServedBadge,
  StatusBadge,
} from '../parts/request-detail.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { saveExport, saveRows } from '../state/export.ts'
import { type Filters, logQuery, toFilters, usageQuery } from '../state/filters.ts'
import { compact, exactTime, formatCount, listTime, milliseconds, usdColumn } from '../state/format.ts'
import { hashRoute, replaceHashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { useLog } from '../state/log.ts'
import { useResource } from '../state/resource.ts'

const admissions = { admitted: 'Admitted', rejected: 'Rejected' } as const

export function Requests() {
  const [isLive, setLive] = useState(false)
  const [chosen, setChosen] = useState<ShownRequest | null>(null)
  const filters = toFilters(hashRoute.value.query)
  const scope = useOwnScope()
  const log = useLog(logQuery(filters), isLive)
  const isRejected = filters.status === 'rejected'
  const isFiltered = Object.keys(filters).length > 0
  // Live updates add rows after the count.
  const whole = useWhole(filters, log.hasMore && !isLive)
  return (
    <Page
      title="Requests"
      about={`Model, latency, tokens and cost of each request${scope === null ? '' : ` of ${scope}`}. Prompts and outputs are never stored.`}
      actions={isRejected ? <RejectedExport rows={log.rows ?? []} /> : <Exports filters={filters} />}
    >
      <NothingVisible />
      <FilterBar path="requests" filters={filters}>
        <Switch label="Live updates" isOn={isLive} onSwitch={setLive} />
      </FilterBar>
      <FindRequest />
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
            {log.rows.length > 0 && <RequestTable rows={log.rows} fresh={log.fresh} onChoose={setChosen} />}
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
      {chosen !== null && <RequestDetail request={chosen} onClose={() => setChosen(null)} />}
    </Page>
  )
}

/**
 * Number of all requests that match; null = not counted: sums of the whole log take long without an index, and those of
 * a shortened range are not of the list.
 */
function useWhole(filters: Filters, canCount: boolean): string | null {
  const { status, ...others } = filters
  const isRejected = status === 'rejected'
  const isOfFailed = isRejected || filters.error_code !== undefined || (status ?? 'completed') !== 'completed'
  const { query, unit, shortenedTo } = usageQuery(isRejected ? others : filters)
  const when = canCount && isOfFailed && shortenedTo === null
  const { data } = useResource('GET /api/v1/usage', { query: { ...query, group_by: unit }, when })
  const count = isRejected ? data?.rejected : data?.total.requests
  if (!when || typeof count !== 'number') return null
  return `${formatCount(count)}${isRejected && count === mostCountedRejections ? '+' : ''}`
}

function Exports({ filters }: { readonly filters: Filters }) {
  const [bytes, setBytes] = useState(0)
  const saving = useAction(async (format: 'csv' | 'json') => {
    setBytes(0)
    await saveExport(format, logQuery(filters), setBytes)
    showToast('Export downloaded')
  })
  const megabytes = `${(bytes / 1_000_000).toFixed(1)} MB`
  return (
    <>
      {saving.failure !== null && <FailureNotice failure={saving.failure} />}
      {(['csv', 'json'] as const).map(format => (
        <Button
          key={format}
          disabled={saving.isBusy}
          title="Export the filtered requests"
          onClick={() => void saving.run(format)}
        >
          <Icon name="download" size={16} /> {saving.isBusy ? megabytes : `Export ${format.toUpperCase()}`}
        </Button>
      ))}
    </>
  )
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
  readonly onChoose: (request: ShownRequest) => void
}

function RequestTable({ rows, fresh, onChoose }: RequestTableProps) {
  const usd = usdColumn(rows.map(({ cost_usd }) => cost_usd))
  // Rejected requests have no usage.
  const hasUsage = rows.some(({ status }) => status !== 'rejected')
  return (
    <Table
      caption="Requests, newest first"
      rows={rows}
      rowKey={({ request_id }) => request_id}
      rowClass={({ request_id }) => (fresh.has(request_id) ? 'fresh' : '')}
      columns={[
        {
          name: 'Time',
          isHeading: true,
          show: row => (
            <Button
              text={listTime(row.created_at)}
              look="link"
              title={exactTime(row.created_at)}
              aria-label={`${listTime(row.created_at)}, details`}
              onClick={() => onChoose(row)}
            />
          ),
        },
        {
          name: 'Status',
          show: row => (
            <>
              <StatusBadge request={row} />
              {row.error_code !== null && <CodeText code={row.error_code} />}
            </>
          ),
        },
        {
          name: 'Model',
          show: row => (
            <>
              {findServedModel(row) ?? (
                <span class="quiet">
                  {requestedModelText(row)}
                  {row.status !== 'rejected' && ' (not served)'}
                </span>
              )}{' '}
              <ServedBadge request={row} />
              {callCount(row) > 1 && <span class="quiet"> {callCount(row)} attempts</span>}
            </>
          ),
        },
        { name: 'Key', from: 'wide', show: row => row.key_name ?? '–' },
        ...(hasUsage ? usageColumns(usd) : []),
        { name: 'Total latency', from: 'middle', isNumber: true, show: row => milliseconds(row.latency_ms) },
      ]}
    />
  )
}

const usageColumns = (usd: (value: number) => string): readonly Column<ShownRequest>[] => [
  { name: 'Tokens', from: 'middle', isNumber: true, show: row => compact(row.total_tokens) },
  { name: 'Cost', from: 'middle', isNumber: true, show: row => usd(row.cost_usd) },
  { name: 'Time to first token', from: 'wide', isNumber: true, show: row => milliseconds(row.first_token_ms) },
]

/** Opens the page of a request by any of its IDs, or says that none has it. */
function FindRequest() {
  const [id, setId] = useState('')
  const finding = useAction(async () => {
    const { request_id } = await callApi('GET /api/v1/requests/:id', { params: { id: id.trim() } })
    location.assign(hrefTo(`requests/${encodeURIComponent(request_id)}`))
  })
  return (
    <search class="card">
      <form
        class="row"
        onSubmit={event => {
          event.preventDefault()
          void finding.run()
        }}
      >
        <TextField
          label="Find a request by ID"
          type="search"
          autocomplete="off"
          required
          maxLength={128}
          hint="The x-request-id header, the ID of a response, the ID that a provider gave, or the request ID of an already_completed error."
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
