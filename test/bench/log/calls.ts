/** The API calls of every dashboard page, with its filters and ranges, as the page itself makes them. */
import { dayMs } from '../../../src/core/text/utc-days.ts'
import { type Filters, logQuery, usageQuery } from '../../../src/dashboard/state/filters.ts'

/** A call, or a sequence of pages of one list. Cursors come from the responses. */
export type LogCall = {
  readonly page: string
  readonly name: string
  readonly path: string
  /** Pages to read in sequence; only the last one is timed. */
  readonly pages?: number
  /** Times all pages until this many rows: a filter that matches rarely has short pages. */
  readonly untilRows?: number
  /** Times the first bytes only. */
  readonly isStream?: boolean
}

const hour = (time: number) => new Date(Math.floor(time / 3_600_000) * 3_600_000).toISOString().slice(0, 16)

/** A request by which the log is searched. */
export type ServedRequest = { readonly request_id: string; readonly upstream_id: string }

const ranges = (now: number): Readonly<Record<string, Filters>> => ({
  '1 h': { range: '1h' },
  '24 h': { range: '24h' },
  '7 d': { range: '7d' },
  '30 d': { range: '30d' },
  custom: { from: hour(now - 9.3 * dayMs), to: hour(now - 3.2 * dayMs) },
})

const filters: Readonly<Record<string, Filters>> = {
  'no filter': {},
  model: { model: 'openai/gpt-4.1' },
  provider: { provider: 'anthropic' },
  key: { key: 'key_log1' },
  'rare key': { key: 'key_log39' },
  'tag or metadata': { tag: 'release=2026.4' },
  'rare metadata': { tag: 'user=u-77' },
  'status completed': { status: 'completed' },
  'status failed': { status: 'failed' },
  'error code': { error_code: 'upstream_timeout' },
  API: { dialect: 'chat_completions' },
  'rare API': { dialect: 'embeddings' },
  'minimum latency': { min_latency_ms: '300' },
  'slow requests': { min_latency_ms: '6000' },
  'maximum latency': { max_latency_ms: '5000' },
  'routing mode': { routing_mode: 'auto' },
  'JSON responses': { streamed: 'false' },
  'API, model and key': { dialect: 'messages', model: 'openai/gpt-5', key: 'key_log4' },
}

const getPath = (path: string, query: Readonly<Record<string, string>>) => `${path}?${new URLSearchParams(query)}`

/** Returns all calls. `now` is epoch milliseconds, `served` a request of the log. */
export function logCalls(now: number, served: ServedRequest): readonly LogCall[] {
  return [...overviewCalls(now), ...requestCalls(now, served), ...otherCalls(now)]
}

function overviewCalls(now: number): LogCall[] {
  return Object.entries(filters).flatMap(([filter, chosen]) =>
    Object.entries(ranges(now)).flatMap(([range, times]): LogCall[] => {
      const { query, unit } = usageQuery({ ...times, ...chosen }, { now })
      const groups = {
        time: { group_by: unit },
        key: { group_by: 'key' },
        'time by model': { group_by: unit, split_by: 'model' },
        ...(filter === 'no filter' ? { 'time by project': { group_by: unit, split_by: 'project' } } : {}),
      }
      return Object.entries(groups).map(([group, by]) => ({
        page: 'Overview',
        name: `${filter}, ${range}, ${group}`,
        path: getPath('/api/v1/usage', { ...query, ...by }),
      }))
    }),
  )
}

function requestCalls(now: number, served: ServedRequest): LogCall[] {
  const lists = Object.entries(filters).flatMap(([filter, chosen]) =>
    Object.entries(ranges(now)).flatMap(([range, times]): LogCall[] => {
      const query = logQuery({ ...times, ...chosen }, now)
      const path = getPath('/api/v1/requests', { ...query, limit: '50' })
      return [
        { page: 'Requests', name: `${filter}, ${range}, first page`, path, untilRows: 20 },
        ...(range === '30 d' ? [{ page: 'Requests', name: `${filter}, ${range}, page 50`, path, pages: 50 }] : []),
        ...(range === '30 d'
          ? [
              {
                page: 'Requests',
                name: `${filter}, ${range}, start of CSV`,
                path: getPath('/api/v1/requests/export', { ...query, format: 'csv' }),
                isStream: true,
              },
            ]
          : []),
      ]
    }),
  )
  return [
    ...lists,
    { page: 'Requests', name: 'rejected requests', path: '/api/v1/requests?status=rejected&limit=50' },
    { page: 'Request', name: 'by request ID', path: `/api/v1/requests/${served.request_id}` },
    { page: 'Request', name: 'by provider ID', path: `/api/v1/requests/${served.upstream_id}` },
    { page: 'Request', name: 'unknown ID', path: '/api/v1/requests/req_unknown' },
  ]
}

function otherCalls(now: number): LogCall[] {
  const keysQuery = usageQuery({}, { now }).query
  const simple = {
    Overview: ['/api/v1/account', '/api/v1/billing', '/api/v1/usage?group_by=model'],
    Keys: ['/api/v1/keys', getPath('/api/v1/usage', { ...keysQuery, group_by: 'key' }), '/api/v1/tags'],
    Models: ['/api/v1/models', '/api/v1/models/health', '/api/v1/providers', '/api/v1/insights/learning'],
    Team: ['/api/v1/team', '/api/v1/usage?group_by=member'],
    Billing: ['/api/v1/billing/invoices'],
    Alerts: ['/api/v1/alerts'],
    Tags: ['/api/v1/usage?group_by=tag', '/api/v1/usage?tag=team&group_by=tag', '/api/v1/usage?tag=team%3Dsearch'],
    'Audit log': ['/api/v1/audit', '/api/v1/audit?action=key.created', '/api/v1/audit?user=usr_log2&actor=user'],
    Webhooks: ['/api/v1/webhooks', '/api/v1/webhooks/whe_acc_log/deliveries'],
    Settings: ['/api/v1/auth/sessions', '/api/v1/auth/two-factor'],
  }
  return [
    ...Object.entries(simple).flatMap(([page, paths]) => paths.map(path => ({ page, name: path, path }))),
    { page: 'Audit log', name: '/api/v1/audit, page 50', path: '/api/v1/audit', pages: 50 },
    { page: 'Audit log', name: 'start of CSV', path: '/api/v1/audit/export?format=csv', isStream: true },
  ]
}
