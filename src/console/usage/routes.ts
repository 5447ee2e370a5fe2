import { Type } from '@sinclair/typebox'
import { GatewayError } from '../../core/validation/errors.ts'
import { recordAuditAlone } from '../../database/repositories/audit.ts'
import { createExportSlots, fileResponse } from '../../http/file-response.ts'
import { countRejected, findRequest, listRejected } from '../../ledger/find-request.ts'
import { exportRequests, readRequests } from '../../ledger/ledger.ts'
import type { LoggedRequest, LogPosition } from '../../ledger/request-filters.ts'
import { readUsage } from '../../ledger/usage-totals.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Authenticate, scopeFor, sessionRoute, sessionRoutes } from '../routes.ts'
import {
  encodeCursor,
  exportQuerySchema,
  readExportQuery,
  readRequestsQuery,
  readUsageQuery,
  rejectedIn,
  requestsQuerySchema,
  usageQuerySchema,
} from './query.ts'
import { type DescribeField, shownRecord } from './record.ts'
import { requestExportShape, requestListShape, requestRecordShape, usageShape } from './schemas.ts'
import { csvHeader, csvRequest, shownRejected, shownRequest, shownUsage } from './serializers.ts'

type UsageDeps = Pick<ConsoleDeps, 'clock'> & { readonly describeField: DescribeField }

/** A client that reads nothing for this long is treated as disconnected. */
const stalledSeconds = 60

/**
 * `GET /api/v1/usage`, `GET /api/v1/requests` and its export. Members see the usage of their own keys and of their
 * projects, admins and owners that of the whole account.
 */
export function usage({ clock, describeField }: UsageDeps, identify: Authenticate) {
  const exports = createExportSlots()

  return sessionRoutes('usage', identify, [
    sessionRoute({
      route: 'GET /api/v1/usage',
      action: 'usage.own',
      summary: 'Get usage totals',
      description:
        'The last 30 days by day, by default; at most three years. Hours, times, dialects, query types and filters other than model, provider, key, member, tag and project: at most 31 days. `split_by` adds series for charts: the usage of each model, key, member, project, dialect or value of a tag on each day, or of each query type. By tag requires `tag` with one tag name: a request has one value of it, so none counts twice.',
      query: usageQuerySchema,
      answer: usageShape,
      async handle({ principal, request, database }) {
        const scope = scopeFor(principal, 'usage.all')
        const query = readUsageQuery(request.url, clock.now(), scope.userId !== null && principal.projects.size > 0)
        const ofRejected = rejectedIn(query)
        const [grouped, rejected] = await Promise.all([
          readUsage(database, scope, query),
          ofRejected && countRejected(database, scope, ofRejected),
        ])
        return { ...shownUsage(query, grouped), rejected }
      },
    }),
    sessionRoute({
      route: 'GET /api/v1/requests',
      action: 'requests.own',
      summary: 'List requests',
      description: 'Newest first, 50 per page by default. Contains no prompts and no outputs.',
      query: requestsQuerySchema,
      answer: requestListShape,
      async handle({ principal, request, database }) {
        const { filters, page, isRejected } = readRequestsQuery(request.url)
        if (isRejected) {
          const rejected = await listRejected(database, scopeFor(principal, 'requests.all'), filters, page)
          return { data: rejected.requests.map(shownRejected), next_cursor: findCursor(rejected.next) }
        }
        const { requests, next } = await readRequests(database, scopeFor(principal, 'requests.all'), filters, page)
        return { data: requests.map(shownRequest), next_cursor: findCursor(next) }
      },
    }),
    sessionRoute({
      route: 'GET /api/v1/requests/:id',
      action: 'requests.own',
      summary: 'Get a request',
      description:
        'One request with its routing at that time, attempts, cost by part, and what to do next. Found by its request ID, the ID of its response in any dialect, or the ID that the provider gave its response. Contains no prompts and no outputs.',
      answer: requestRecordShape,
      errors: ['not_found'],
      ids: /^/,
      async handle({ principal, id, database }) {
        const found = /^[!-~]{1,128}$/.test(id)
          ? await findRequest(database, scopeFor(principal, 'requests.all'), id)
          : null
        if (found === null) throw requestNotFound()
        return shownRecord(found, describeField)
      },
    }),
    sessionRoute({
      route: 'GET /api/v1/requests/export',
      action: 'requests.export_own',
      summary: 'Export the request log',
      description: 'A stream of any length. A truncated file is not valid.',
      query: exportQuerySchema,
      answer: requestExportShape,
      alsoAs: { 'text/csv': Type.String({ description: 'one line per request, in the order of the log' }) },
      answerHeaders: ['download'],
      errors: ['concurrent_requests_exceeded'],
      async handle({ principal, request, server, database }) {
        const { format, filters } = readExportQuery(request.url)
        // Records that are settled from now on would move the end of the list.
        const until = Math.min(filters.to ?? Number.POSITIVE_INFINITY, clock.now())
        const { accountId } = principal
        await recordAuditAlone(database, { accountId, action: 'requests.exported', details: { format } })
        server?.timeout(request, stalledSeconds)
        const release = exports.take(accountId)
        const batches = exportRequests(database, scopeFor(principal, 'requests.export_all'), { ...filters, to: until })
        return fileResponse(written(format, batches, release), {
          type: format === 'csv' ? 'text/csv; charset=utf-8' : 'application/json',
          name: `requests-${new Date(until).toISOString().slice(0, 10)}.${format}`,
        })
      },
    }),
  ])
}

const findCursor = (next: LogPosition | null) => (next === null ? null : encodeCursor(next))

function requestNotFound(): GatewayError {
  const message =
    'No such request in this account. A new request appears within seconds; a rejected one is kept for 30 days.'
  return new GatewayError('not_found', message)
}

/** Streams the file in batches of the log. Calls `release` once, however it ends. */
async function* written(
  format: 'csv' | 'json',
  batches: AsyncGenerator<readonly LoggedRequest[], void>,
  release: () => void,
): AsyncGenerator<string, void> {
  try {
    let head = format === 'csv' ? csvHeader : '{"data":['
    let separator = '\n'
    for await (const batch of batches) {
      const rows = format === 'csv' ? batch.map(csvRequest) : batch.map(row => JSON.stringify(shownRequest(row)))
      const text = rows.join(format === 'csv' ? '' : ',\n')
      // A client that filters for few requests sees at once that its file begins.
      const piece = head + (format === 'csv' || text === '' ? text : separator + text)
      if (piece !== '') yield piece
      head = ''
      if (text !== '') separator = ',\n'
    }
    if (format === 'json') yield '\n]}\n'
  } finally {
    release()
  }
}
