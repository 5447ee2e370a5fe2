import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type Action, isAllowed } from '../../core/accounts/roles.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { Principal } from '../../http/authentication.ts'
import { session } from '../../http/policies.ts'
import { withRouteDocs } from '../../http/route-docs.ts'
import { type Authenticate, forbidden, reply } from '../../http/session-routes.ts'
import type { LedgerReader, LoggedRequest } from '../../ledger/ledger.ts'
import type { UsageScope } from '../../ledger/usage-totals.ts'
import {
  encodeCursor,
  exportQuerySchema,
  readExportQuery,
  readRequestsQuery,
  readUsageQuery,
  requestsQuerySchema,
  usageQuerySchema,
} from './query.ts'
import { requestExportShape, requestListShape, usageShape } from './schemas.ts'
import { csvHeader, csvRequest, shownRequest, shownUsage } from './serializers.ts'

type UsageDeps = { readonly ledger: LedgerReader; readonly clock: { now(): number } }

/** Of one account at a time: each keeps the database at work as fast as its reader reads. */
const maximumExports = 2
/** A reader who takes nothing for so long is gone. */
const stalledSeconds = 60

/**
 * `GET /api/v1/usage`, `GET /api/v1/requests` and its export. Members are shown what their own keys used, admins and
 * owners all of the account.
 */
export function usage({ ledger, clock }: UsageDeps, identify: Authenticate) {
  const exports = new Map<string, number>()
  const allowed = async (request: Request, action: Action): Promise<Principal> => {
    const principal = await identify.principal(request.headers)
    if (!isAllowed(principal.role, action)) throw forbidden()
    return principal
  }

  return new Elysia({ name: 'usage' })
    .get(
      '/api/v1/usage',
      async ({ request }) => {
        const principal = await allowed(request, 'usage.own')
        const query = readUsageQuery(request.url, clock.now())
        return reply(shownUsage(query, await ledger.usage(scopeOf(principal, 'usage.all'), query)))
      },
      withRouteDocs(session('usage.own'), {
        summary: 'Usage totals',
        description:
          'The last 30 days by day, unless told; three years at most. `split_by` adds series for charts: what each model or key used on each of the days.',
        query: usageQuerySchema,
        answer: usageShape,
      }),
    )
    .get(
      '/api/v1/requests',
      async ({ request }) => {
        const principal = await allowed(request, 'requests.own')
        const { filters, page } = readRequestsQuery(request.url)
        const { requests, next } = await ledger.requests(scopeOf(principal, 'requests.all'), filters, page)
        return reply({ data: requests.map(shownRequest), next_cursor: next === null ? null : encodeCursor(next) })
      },
      withRouteDocs(session('requests.own'), {
        summary: 'Request log',
        description: 'Newest first, 50 a page unless told. No prompt and no answer is ever in it.',
        query: requestsQuerySchema,
        answer: requestListShape,
      }),
    )
    .get(
      '/api/v1/requests/export',
      async ({ request, server }) => {
        const principal = await allowed(request, 'requests.export_own')
        const { format, filters } = readExportQuery(request.url)
        // Records settled from now on would move the end away from the reader.
        const until = Math.min(filters.to ?? Number.POSITIVE_INFINITY, clock.now())
        server?.timeout(request, stalledSeconds)
        const release = take(exports, principal.accountId)
        const batches = ledger.export(scopeOf(principal, 'requests.export_all'), { ...filters, to: until })
        return exported(written(format, batches, release), format, new Date(until).toISOString().slice(0, 10))
      },
      withRouteDocs(session('requests.export_own'), {
        summary: 'Request log as a file',
        description: 'Sent as it is read, of any length: a file that was cut off is no valid one.',
        query: exportQuerySchema,
        answer: requestExportShape,
        alsoAs: { 'text/csv': Type.String({ description: 'a line per request, in the order of the log' }) },
        answerHeaders: ['download'],
        errors: ['concurrent_requests_exceeded'],
      }),
    )
}

function scopeOf({ accountId, userId, role }: Principal, all: Action): UsageScope {
  return { accountId, userId: isAllowed(role, all) ? null : userId }
}

function take(exports: Map<string, number>, accountId: string): () => void {
  const running = exports.get(accountId) ?? 0
  if (running >= maximumExports)
    throw new GatewayError(
      'concurrent_requests_exceeded',
      `Concurrency limit reached: ${maximumExports} exports are running. Retry when one has finished.`,
      { retryAfterMs: 5_000 },
    )
  exports.set(accountId, running + 1)
  return () => {
    const left = (exports.get(accountId) ?? 1) - 1
    if (left === 0) exports.delete(accountId)
    else exports.set(accountId, left)
  }
}

/** The file, a batch of the log at a time. `release` is called once, however it ends. */
async function* written(
  format: 'csv' | 'json',
  batches: AsyncGenerator<readonly LoggedRequest[], void>,
  release: () => void,
): AsyncGenerator<string, void> {
  try {
    let separator = '\n'
    // The first batch is there before the first byte: a database that is away is a 503, not half a file.
    let head = format === 'csv' ? csvHeader : '{"data":['
    for await (const batch of batches) {
      if (format === 'csv') yield head + batch.map(csvRequest).join('')
      else yield head + separator + batch.map(row => JSON.stringify(shownRequest(row))).join(',\n')
      head = ''
      separator = ',\n'
    }
    if (format === 'json') yield `${head}\n]}\n`
    else if (head !== '') yield head
  } finally {
    release()
  }
}

/** Sent as it is read: nothing is written ahead of the reader, and one who leaves ends the reading. */
async function exported(pieces: AsyncGenerator<string, void>, format: 'csv' | 'json', day: string): Promise<Response> {
  const encoder = new TextEncoder()
  let piece = await pieces.next()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          if (piece.done) return controller.close()
          controller.enqueue(encoder.encode(piece.value))
          piece = await pieces.next()
        } catch (cause) {
          // Cut off, so that half a file never looks like a whole one.
          controller.error(cause)
        }
      },
      async cancel() {
        await pieces.return()
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, {
    headers: {
      'content-type': format === 'csv' ? 'text/csv; charset=utf-8' : 'application/json',
      'content-disposition': `attachment; filename="requests-${day}.${format}"`,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    },
  })
}
