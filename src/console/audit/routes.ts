/** The audit log of an account, for admins and owners. */
import { Type } from '@sinclair/typebox'
import { actingAs } from '../../core/audit/audit.ts'
import { csvLine } from '../../core/text/csv.ts'
import type { Database } from '../../database/database.ts'
import type { AuditFilters, ListedAudit } from '../../database/repositories/audit.ts'
import { listAudit, recordAuditAlone } from '../../database/repositories/audit.ts'
import { createExportSlots, type ExportSlots } from '../../http/export-slots.ts'
import { fileResponse } from '../../http/file-response.ts'
import { type Authenticate, reply, type SessionRequest, sessionRoutes } from '../../http/session-routes.ts'
import { auditExportQuerySchema, auditQuerySchema, cursorOf, readAuditExportQuery, readAuditQuery } from './query.ts'
import { auditEntryShape, auditListShape, type ShownAuditEntry } from './schemas.ts'

type AuditDeps = { readonly database: Database }

/** Entries per query of an export. */
const batchEntries = 500

/** `GET /api/v1/audit` and its export. */
export function auditRoutes(deps: AuditDeps, identify: Authenticate) {
  const slots = createExportSlots()
  return sessionRoutes('audit', identify, [
    {
      method: 'GET',
      path: '/api/v1/audit',
      action: 'audit.see',
      summary: 'List the audit log',
      description: 'Who changed what, newest first, 50 entries per page by default. Entries are kept for 400 days.',
      query: auditQuerySchema,
      answer: auditListShape,
      handle: call => list(deps, call),
    },
    {
      method: 'GET',
      path: '/api/v1/audit/export',
      action: 'audit.see',
      summary: 'Export the audit log',
      description: 'A stream of any length, newest first. Each line of `jsonl` is one entry of the list.',
      query: auditExportQuerySchema,
      answer: auditEntryShape,
      alsoAs: {
        'application/jsonl': Type.String({ description: 'one JSON object per line' }),
        'text/csv': Type.String({ description: 'one line per entry' }),
      },
      answerHeaders: ['download'],
      errors: ['concurrent_requests_exceeded'],
      handle: call => exportLog(deps, slots, call),
    },
  ])
}

async function list({ database }: AuditDeps, { principal, request }: SessionRequest): Promise<Response> {
  const { filters, page } = readAuditQuery(request.url)
  const { limit, after } = page
  const rows = await listAudit(database, principal.accountId, filters, { after, limit: limit + 1 })
  const data = rows.slice(0, limit)
  const last = data.at(-1)
  return reply({
    data: data.map(shownEntry),
    next_cursor: rows.length > limit && last !== undefined ? cursorOf(last.id) : null,
  })
}

async function exportLog(
  deps: AuditDeps,
  slots: ExportSlots,
  { principal, request, actor }: SessionRequest,
): Promise<Response> {
  const { accountId } = principal
  const { format, filters } = readAuditExportQuery(request.url)
  const release = slots.take(accountId)
  // Recorded first: an export that cannot be recorded must not happen.
  const recording = recordAuditAlone(actingAs(deps.database, actor), {
    accountId,
    action: 'audit.exported',
    details: { format },
  })
  return fileResponse(written(deps, { accountId, filters, format, recording }, release), {
    type: format === 'csv' ? 'text/csv; charset=utf-8' : 'application/jsonl',
    name: `audit.${format}`,
  })
}

const columns = ['id', 'at', 'actor', 'user_id', 'email', 'address', 'action', 'target', 'details'] as const

type AuditExport = {
  readonly accountId: string
  readonly filters: AuditFilters
  readonly format: 'csv' | 'jsonl'
  /** The entry of this export in the log, which precedes its first line. */
  readonly recording: Promise<unknown>
}

/** Streams the file in batches. Calls `release` once, however it ends. */
async function* written(
  { database }: AuditDeps,
  { accountId, filters, format, recording }: AuditExport,
  release: () => void,
): AsyncGenerator<string, void> {
  try {
    await recording
    let head = format === 'csv' ? csvLine(columns) : ''
    for (let after: string | null = null; ; ) {
      const rows: readonly ListedAudit[] = await listAudit(database, accountId, filters, {
        after,
        limit: batchEntries,
      })
      const lines = rows.map(row => (format === 'csv' ? csvEntry(row) : `${JSON.stringify(shownEntry(row))}\n`))
      yield head + lines.join('')
      head = ''
      if (rows.length < batchEntries) return
      after = rows.at(-1)?.id ?? null
    }
  } finally {
    release()
  }
}

function csvEntry({ id, atMs, actor, userId, email, address, action, target, details }: ListedAudit): string {
  return csvLine([
    id,
    new Date(atMs).toISOString(),
    actor,
    userId,
    email,
    address,
    action,
    target,
    JSON.stringify(details),
  ])
}

function shownEntry({ userId, actor, email, atMs, ...entry }: ListedAudit): ShownAuditEntry {
  const { id, address, action, target, details } = entry
  return {
    id,
    at: new Date(atMs).toISOString(),
    actor: { type: actor, user_id: userId, email },
    address,
    action,
    target,
    details,
  }
}
