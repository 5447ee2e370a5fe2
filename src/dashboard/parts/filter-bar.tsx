import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { queryTypes } from '../../core/chat/chat.ts'
import {
  type FilterName,
  type Filters,
  filtersFor,
  getRange,
  isCustom,
  rangeChoices,
  toFilters,
  toRangeParam,
} from '../state/filters.ts'
import { dialectNames, humanize } from '../state/format.ts'
import { replaceHashRoute } from '../state/hash-route.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'
import { Button } from './controls.tsx'
import { SelectField, TextField } from './field.tsx'
import { useProjects } from './project-field.tsx'
import { statusWords } from './request-detail.tsx'
import { action, useActions } from './resource.tsx'

/** Named filters of this browser. They contain no data of requests. */
const storageKey = 'gateway-ai.views'
/** More than a list shows at once. */
const mostViews = 50

const savedViews = signal<Readonly<Record<string, Filters>>>(read())

function read(): Record<string, Filters> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(storageKey) ?? '{}')
    if (typeof kept !== 'object' || kept === null) return {}
    return Object.fromEntries(Object.entries(kept).map(([name, filters]) => [name, toFilters(Object(filters))]))
  } catch {
    // Another program wrote it: the views are lost, the page is not.
    return {}
  }
}

/** Saves the filters under a name, replacing an older view of it; null removes the view. */
function saveView(name: string, filters: Filters | null): void {
  const { [name]: _, ...others } = savedViews.peek()
  const views = filters === null ? others : { ...others, [name]: filters }
  savedViews.value = Object.fromEntries(Object.entries(views).slice(-mostViews))
  if (Object.keys(savedViews.value).length === 0) localStorage.removeItem(storageKey)
  else localStorage.setItem(storageKey, JSON.stringify(savedViews.value))
}

/** Returns the name of the view with exactly these filters. */
function findView(filters: Filters): string | null {
  const wanted = toText(filters)
  return Object.entries(savedViews.value).find(([, view]) => toText(view) === wanted)?.[0] ?? null
}

const toText = (filters: Filters) => JSON.stringify(Object.entries(filters).toSorted())

/** Codes of failed requests that the log contains. */
const errorCodes = [
  'invalid_request',
  'invalid_json',
  'unsupported_parameter',
  'model_not_found',
  'model_deprecated',
  'previous_response_not_found',
  'context_length_exceeded',
  'body_too_large',
  'content_blocked',
  'conversation_stopped',
  'forbidden',
  'conflict',
  'already_completed',
  'payment_required',
  'account_paused',
  'requests_per_minute_exceeded',
  'concurrent_requests_exceeded',
  'request_bytes_exceeded',
  'daily_tokens_exceeded',
  'daily_cost_exceeded',
  'monthly_cost_exceeded',
  'upstream_rate_limited',
  'upstream_failed',
  'upstream_timeout',
  'no_model_available',
  'service_unavailable',
] as const

type FilterBarProps = {
  /** Path of the page, whose URL has the filters. */
  readonly path: string
  readonly filters: Filters
  /** The page has a range only. */
  readonly isRangeOnly?: boolean
  /** Further controls of the page. */
  readonly children?: ComponentChildren
}

/** Range and filters of a page, in view while it scrolls. They are in its URL, so a link or a bookmark has them too. */
export function FilterBar({ path, filters, isRangeOnly = false, children }: FilterBarProps) {
  const [isCustomOpen, setCustomOpen] = useState(false)
  const { range: _, from: _from, to: _to, ...others } = filters
  const active = Object.keys(others).length
  const set = (change: Filters) => replaceHashRoute(path, { ...filters, ...change })
  const isSpan = isCustom(filters) || isCustomOpen
  const [isOpen, setOpen] = useState(active > 0 && matchMedia('(min-width: 641px)').matches)
  return (
    <section class="card filter-bar" aria-label="Range and filters">
      <div class="filters-end">
        <SelectField
          label="Range (UTC)"
          value={isSpan ? 'custom' : getRange(filters)}
          onChoice={range => {
            setCustomOpen(range === 'custom')
            if (range !== 'custom') set({ range: toRangeParam(range), from: '', to: '' })
          }}
          choices={[...rangeChoices, ...(isRangeOnly ? [] : [['custom', 'Custom range'] as const])]}
        />
        {isSpan &&
          (['from', 'to'] as const).map(name => (
            <TextField
              isWhole
              key={name}
              label={name === 'from' ? 'From' : 'To'}
              type="datetime-local"
              step="60"
              value={filters[name] ?? ''}
              onText={value => set({ range: '', [name]: value === '' ? '' : value.slice(0, 16) })}
            />
          ))}
        {!isRangeOnly && (
          <>
            <Button
              text={active === 0 ? 'Filters' : `Filters (${active})`}
              aria-expanded={isOpen}
              onClick={() => setOpen(!isOpen)}
            />
            <Views path={path} filters={filters} />
          </>
        )}
        {children}
        {!isRangeOnly && Object.keys(filters).length > 0 && (
          <Button text="Clear filters" look="small" onClick={() => replaceHashRoute(path)} />
        )}
      </div>
      {isOpen && !isRangeOnly && <FilterFields path={path} filters={filters} onChange={set} />}
    </section>
  )
}

type FilterFieldsProps = {
  readonly path: string
  readonly filters: Filters
  readonly onChange: (change: Filters) => void
}

function FilterFields({ path, filters, onChange }: FilterFieldsProps) {
  const models = useResource('GET /api/v1/usage', { query: { group_by: 'model' } })
  const keys = useResource('GET /api/v1/keys')
  const seesAll = may('requests.all')
  const members = useResource('GET /api/v1/team', { when: seesAll })
  const { names: projects } = useProjects()
  // A failed request with automatic routing has no model, and counts under `gateway-ai`.
  const counted = models.data?.data.flatMap(row => ('model' in row && row.model !== null ? [row.model] : [])) ?? []
  const used = counted.filter(model => model.includes('/'))
  const providers = [...new Set(used.map(model => model.slice(0, model.indexOf('/'))))]
  const choice = (name: FilterName, label: string, options: readonly (readonly [string, string])[]) => {
    const chosen = filters[name] ?? ''
    const isListed = chosen === '' || options.some(([value]) => value === chosen)
    return (
      <SelectField
        label={label}
        value={chosen}
        onChoice={value => onChange({ [name]: value })}
        choices={[['', 'Any'], ...(isListed ? [] : [[chosen, chosen] as const]), ...options]}
      />
    )
  }
  const plain = (names: readonly string[]) => names.map(name => [name, name] as const)
  const keyOptions = keys.data?.data.map(
    ({ id, name, prefix, revoked_at }) => [id, `${name} (${revoked_at === null ? prefix : 'revoked'})`] as const,
  )
  return (
    <div class="filters">
      {choice(
        'status',
        'Status',
        // Rejected requests are only in the log.
        [...Object.entries(statusWords), ['failed_or_blocked', 'Failed or blocked'] as const].filter(
          ([status]) => path === 'requests' || status !== 'rejected',
        ),
      )}
      {choice('error_code', 'Error code', plain(errorCodes))}
      {choice('provider', 'Provider', plain(providers))}
      {choice('model', 'Model', plain(used))}
      {choice('key', 'Key', keyOptions ?? [])}
      {seesAll && choice('member', 'Member', members.data?.data.map(({ id, email }) => [id, email] as const) ?? [])}
      {(projects.size > 0 || filters.project_id !== undefined) && choice('project_id', 'Project', [...projects])}
      {choice('dialect', 'Dialect', Object.entries(dialectNames))}
      {choice(
        'query_type',
        'Query type',
        queryTypes.map(name => [name, humanize(name)] as const),
      )}
      {choice('routing_mode', 'Routing', [
        ['auto', 'Automatic'],
        ['manual', 'Manual'],
      ])}
      {choice('streamed', 'Response type', [
        ['true', 'Stream'],
        ['false', 'JSON'],
      ])}
      {choice('unpriced', 'Price', [
        ['true', 'Not fully known'],
        ['false', 'Known'],
      ])}
      {textFilters.map(({ param, ...field }) => (
        <TextField
          isWhole
          key={param}
          {...field}
          value={filters[param] ?? ''}
          onText={value =>
            onChange({ [param]: 'type' in field && value !== '' ? `${Math.round(Number(value))}` : value })
          }
        />
      ))}
    </div>
  )
}

const textFilters = [
  { param: 'min_latency_ms', label: 'Minimum latency (ms)', type: 'number', min: '0' },
  { param: 'max_latency_ms', label: 'Maximum latency (ms)', type: 'number', min: '0' },
  { param: 'tag', label: 'Tag', placeholder: 'name=value or name' },
  { param: 'metadata', label: 'Metadata', placeholder: 'name=value' },
] as const

const save = action<Filters, { readonly name: string }>({
  text: () => 'Save view',
  start: () => ({ name: '' }),
  dialog: () => ({
    title: 'Save view',
    submit: 'Save view',
    fields: [
      {
        param: 'name',
        label: 'Name',
        required: true,
        maxLength: 40,
        hint: 'Saved in this browser. Ranges that end now move with time.',
      },
    ],
  }),
  perform: async (filters, { name }) => {
    saveView(name.trim(), filters)
    return null
  },
})

/** Views of this browser: one choice, and a button for the present filters. */
function Views({ path, filters }: { readonly path: string; readonly filters: Filters }) {
  const { buttons, dialogs } = useActions<Filters>(() => undefined)
  const names = Object.keys(savedViews.value)
  const current = findView(filters)
  return (
    <>
      {names.length > 0 && (
        <SelectField
          label="Saved view"
          value={current ?? ''}
          onChoice={chosen => replaceHashRoute(path, filtersFor(path, savedViews.peek()[chosen] ?? {}))}
          choices={[['', 'None'], ...names.map(name => [name, name] as const)]}
        />
      )}
      {current === null ? (
        Object.keys(filters).length > 0 && buttons(filters, [save], 'small')
      ) : (
        <Button text="Delete view" look="small" onClick={() => saveView(current, null)} />
      )}
      {dialogs}
    </>
  )
}
