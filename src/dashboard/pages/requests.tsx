import { useMemo, useState } from 'preact/hooks'
import type { ShownRequest } from '../../routes/usage/schemas.ts'
import { SelectField, Switch, TextField } from '../parts/field.tsx'
import { Icon } from '../parts/icon.tsx'
import { Empty, FailureNotice, Loading } from '../parts/notice.tsx'
import { Page } from '../parts/page.tsx'
import { RequestDetail, ServedBadge, StatusBadge } from '../parts/request-detail.tsx'
import { Table } from '../parts/table.tsx'
import { showToast } from '../parts/toast.tsx'
import { useAction } from '../state/action.ts'
import { saveExport } from '../state/export.ts'
import { compact, exactTime, formatCount, formatUsd, listTime, milliseconds } from '../state/format.ts'
import { hashRoute, replaceHashRoute } from '../state/hash-route.ts'
import { useLog } from '../state/log.ts'
import { useResource } from '../state/resource.ts'

const filterNames = ['status', 'model', 'key', 'routing_mode', 'streamed', 'from', 'to'] as const
type FilterName = (typeof filterNames)[number]
type Filters = Readonly<Partial<Record<FilterName, string>>>

export function Requests() {
  const [isLive, setLive] = useState(false)
  const [chosen, setChosen] = useState<ShownRequest | null>(null)
  const filters = filtersOf(hashRoute.value.query)
  const log = useLog(filters, isLive)
  const isFiltered = Object.keys(filters).length > 0
  return (
    <Page
      title="Requests"
      about="Model, latency, tokens and cost of each request. Prompts and outputs are never stored."
      actions={<Exports filters={filters} />}
    >
      <section class="card">
        <FilterBar filters={filters} isLive={isLive} onLive={setLive} />
        {log.failure !== null && <FailureNotice failure={log.failure} retry={log.reload} />}
        {log.rows === undefined && log.failure === null && <Loading what="requests" lines={8} />}
        {log.rows?.length === 0 && !log.hasMore && (
          <Empty title={isFiltered ? 'No matching requests' : 'No requests yet'}>
            {isFiltered ? (
              <button type="button" class="button small" onClick={() => replaceHashRoute('requests')}>
                Show all
              </button>
            ) : (
              'Requests appear here seconds after they finish.'
            )}
          </Empty>
        )}
        {log.rows !== undefined && (log.rows.length > 0 || log.hasMore) && (
          <>
            <RequestTable rows={log.rows} fresh={log.fresh} onChoose={setChosen} />
            <p class="table-foot" role="status">
              {formatCount(log.rows.length)} shown
              {isLive && ' · live'}
            </p>
            {log.hasMore && (
              <button type="button" class="button wide" disabled={log.isLoading} onClick={log.loadMore}>
                {log.isLoading ? 'Loading…' : 'Load more'}
              </button>
            )}
          </>
        )}
      </section>
      {chosen !== null && <RequestDetail request={chosen} onClose={() => setChosen(null)} />}
    </Page>
  )
}

function filtersOf(query: Readonly<Record<string, string>>): Filters {
  return Object.fromEntries(
    filterNames.flatMap(name => (query[name] === undefined || query[name] === '' ? [] : [[name, query[name]]])),
  )
}

type FilterBarProps = {
  readonly filters: Filters
  readonly isLive: boolean
  readonly onLive: (isLive: boolean) => void
}

function FilterBar({ filters, isLive, onLive }: FilterBarProps) {
  const models = useResource('GET /api/v1/usage', { query: { group_by: 'model' } })
  const keys = useResource('GET /api/v1/keys')
  const set = (name: FilterName, value: string) => replaceHashRoute('requests', { ...filters, [name]: value })
  const used = models.data?.data.flatMap(row => ('model' in row && row.model !== null ? [row.model] : [])) ?? []
  const known = filters.model === undefined || used.includes(filters.model) ? used : [filters.model, ...used]
  const keysByStanding = [
    ...Map.groupBy(keys.data?.data ?? [], ({ revoked_at }) => (revoked_at === null ? 'Valid' : 'Revoked')),
  ]
  const isFiltered = Object.keys(filters).length > 0
  const isWide = useMemo(() => matchMedia('(min-width: 641px)').matches, [])
  return (
    <>
      {/* On narrow screens the log comes first. */}
      <details class="filter-box" open={isWide}>
        <summary>Filters</summary>
        <div class="filters">
          <SelectField label="Status" value={filters.status ?? ''} onChoice={value => set('status', value)}>
            <option value="">Any</option>
            <option value="completed">Completed</option>
            <option value="failed">Failed</option>
            <option value="client_closed">Client disconnected</option>
            <option value="blocked">Blocked</option>
            <option value="rejected">Rejected before admission</option>
          </SelectField>
          <SelectField label="Model" value={filters.model ?? ''} onChoice={value => set('model', value)}>
            <option value="">Any</option>
            {known.map(model => (
              <option key={model} value={model}>
                {model}
              </option>
            ))}
          </SelectField>
          <SelectField label="Key" value={filters.key ?? ''} onChoice={value => set('key', value)}>
            <option value="">Any</option>
            {keysByStanding.map(([standing, ofStanding]) => (
              <optgroup key={standing} label={standing}>
                {ofStanding.map(({ id, name, prefix }) => (
                  <option key={id} value={id}>
                    {name} ({prefix})
                  </option>
                ))}
              </optgroup>
            ))}
          </SelectField>
          <SelectField
            label="Routing"
            value={filters.routing_mode ?? ''}
            onChoice={value => set('routing_mode', value)}
          >
            <option value="">Any</option>
            <option value="auto">Automatic</option>
            <option value="manual">Manual</option>
          </SelectField>
          <SelectField label="Response type" value={filters.streamed ?? ''} onChoice={value => set('streamed', value)}>
            <option value="">Any</option>
            <option value="true">Stream</option>
            <option value="false">JSON</option>
          </SelectField>
          <TextField
            label="From day (UTC)"
            type="date"
            value={filters.from ?? ''}
            onText={value => set('from', value)}
          />
          <TextField label="To day (UTC)" type="date" value={filters.to ?? ''} onText={value => set('to', value)} />
        </div>
      </details>
      <div class="filters-end">
        <Switch label="Live updates" isOn={isLive} onSwitch={onLive} />
        {isFiltered && (
          <button type="button" class="button small" onClick={() => replaceHashRoute('requests')}>
            Clear filters
          </button>
        )}
      </div>
    </>
  )
}

function Exports({ filters }: { readonly filters: Filters }) {
  const [bytes, setBytes] = useState(0)
  const saving = useAction(async (format: 'csv' | 'json') => {
    setBytes(0)
    await saveExport(format, filters, setBytes)
    showToast('Export saved to your downloads')
  })
  const megabytes = `${(bytes / 1_000_000).toFixed(1)} MB`
  return (
    <>
      {saving.failure !== null && <FailureNotice failure={saving.failure} />}
      {(['csv', 'json'] as const).map(format => (
        <button
          key={format}
          type="button"
          class="button"
          disabled={saving.isBusy}
          title="Export the filtered requests"
          onClick={() => void saving.run(format)}
        >
          <Icon name="download" size={16} /> {saving.isBusy ? megabytes : `Export ${format.toUpperCase()}`}
        </button>
      ))}
    </>
  )
}

type RequestTableProps = {
  readonly rows: readonly ShownRequest[]
  readonly fresh: ReadonlySet<string>
  readonly onChoose: (request: ShownRequest) => void
}

function RequestTable({ rows, fresh, onChoose }: RequestTableProps) {
  return (
    <Table
      caption="Requests, newest first"
      rows={rows}
      keyOf={({ request_id }) => request_id}
      classOf={({ request_id }) => (fresh.has(request_id) ? 'fresh' : '')}
      columns={[
        {
          name: 'Time',
          isHeading: true,
          show: row => (
            <button
              type="button"
              class="link"
              title={exactTime(row.created_at)}
              aria-label={`${listTime(row.created_at)}, details`}
              onClick={() => onChoose(row)}
            >
              {listTime(row.created_at)}
            </button>
          ),
        },
        { name: 'Status', show: row => <StatusBadge request={row} /> },
        {
          name: 'Model',
          show: row => (
            <>
              {row.model ?? <span class="quiet">{row.requested_model ?? 'No model'} (not served)</span>}{' '}
              <ServedBadge request={row} />
              {row.attempts > 1 && <span class="quiet"> {row.attempts} attempts</span>}
            </>
          ),
        },
        { name: 'Key', from: 'wide', show: row => row.key_name ?? '–' },
        { name: 'Tokens', from: 'middle', isNumber: true, show: row => compact(row.total_tokens) },
        { name: 'Cost', from: 'middle', isNumber: true, show: row => formatUsd(row.cost_usd) },
        { name: 'Time to first token', from: 'wide', isNumber: true, show: row => milliseconds(row.first_token_ms) },
        { name: 'Total latency', from: 'middle', isNumber: true, show: row => milliseconds(row.latency_ms) },
      ]}
    />
  )
}
