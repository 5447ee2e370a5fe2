/** The audit log of an account, for admins and owners. */

import { type Static, Type } from '@sinclair/typebox'
import { csvLine } from '../../core/text/csv.ts'
import { invalidField, oneOf, strictObject } from '../../core/validation/validate.ts'
import type { Database } from '../../database/database.ts'
import { type AuditFilters, type ListedAudit, listAudit, recordAuditAlone } from '../../database/repositories/audit.ts'
import { createExportSlots, type ExportSlots, fileResponse } from '../../http/file-response.ts'
import { type Authenticate, type SessionRequest, sessionRoute, sessionRoutes } from '../routes.ts'
import { pageLimit, periodFields, readPageLimit, readPeriod, readQuery } from '../usage/query.ts'
import { auditActionSchema, auditEntryShape, auditListShape } from './schemas.ts'

/** Entries per query of an export. */
const batchEntries = 500

/** `GET /api/v1/audit` and its export. */
export function auditRoutes(identify: Authenticate) {
  const slots = createExportSlots()
  return sessionRoutes('audit', identify, [
    sessionRoute({
      route: 'GET /api/v1/audit',
      action: 'audit.see',
      summary: 'List the audit log',
      description: 'Who changed what, newest first, 50 entries per page by default. Entries are kept for 400 days.',
      query: auditQuerySchema,
      answer: auditListShape,
      handle: list,
    }),
    sessionRoute({
      route: 'GET /api/v1/audit/export',
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
      handle: call => exportLog(slots, call),
    }),
  ])
}

async function list({ principal, request, database }: SessionRequest) {
  const { filters, page } = readAuditQuery(request.url)
  const { limit, after } = page
  const rows = await listAudit(database, principal.accountId, filters, { after, limit: limit + 1 })
  const data = rows.slice(0, limit)
  const last = data.at(-1)
  return {
    data,
    next_cursor: rows.length > limit && last !== undefined ? getCursor(last.id) : null,
  }
}

async function exportLog(slots: ExportSlots, { principal: { accountId }, request, database }: SessionRequest) {
  const { format, filters } = readAuditExportQuery(request.url)
  const release = slots.take(accountId)
  // Recorded first: an export that cannot be recorded must not happen.
  const recording = recordAuditAlone(database, { accountId, action: 'audit.exported', details: { format } })
  return fileResponse(written(database, { accountId, filters, format, recording }, release), {
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
  database: Database,
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
      const lines = rows.map(row => (format === 'csv' ? csvEntry(row) : `${JSON.stringify(row)}\n`))
      yield head + lines.join('')
      head = ''
      if (rows.length < batchEntries) return
      after = rows.at(-1)?.id ?? null
    }
  } finally {
    release()
  }
}

function csvEntry({ id, at, actor, address, action, target, details }: ListedAudit): string {
  const { type, user_id, email } = actor
  return csvLine([id, at, type, user_id, email, address, action, target, JSON.stringify(details)])
}

/** Query parameters of the audit log: each is known, sent once, and bounded. */

const filters = {
  ...periodFields,
  actor: Type.Optional(oneOf(['user', 'cli', 'system'])),
  user: Type.Optional(Type.String({ pattern: '^[\\w-]{1,64}$', maxLength: 64, description: 'the ID of a user' })),
  action: Type.Optional(auditActionSchema),
}
const auditQuerySchema = strictObject({
  cursor: Type.Optional(
    Type.String({ pattern: '^[\\w-]{1,100}$', maxLength: 100, description: '`next_cursor` of the previous page' }),
  ),
  limit: pageLimit,
  ...filters,
})
const auditExportQuerySchema = strictObject({ format: Type.Optional(oneOf(['csv', 'jsonl'])), ...filters })

/** `GET /api/v1/audit`. Throws `invalid_request` with the invalid parameter, as does the other. */
function readAuditQuery(url: string) {
  const query = readQuery(url, auditQuerySchema)
  return {
    filters: getFilters(query),
    page: {
      after: query.cursor === undefined ? null : getPosition(query.cursor),
      limit: readPageLimit(query.limit),
    },
  }
}

/** `GET /api/v1/audit/export`: JSON lines by default. */
function readAuditExportQuery(url: string) {
  const query = readQuery(url, auditExportQuerySchema)
  return { format: query.format ?? 'jsonl', filters: getFilters(query) }
}

/** Position in the list for clients: opaque. */
const getCursor = (entryId: string) => Buffer.from(entryId).toString('base64url')

function getPosition(cursor: string): string {
  const position = Buffer.from(cursor, 'base64url').toString('latin1')
  if (!/^aud_[0-9a-f]{32}$/.test(position))
    throw invalidField('cursor', 'must be an unmodified `next_cursor` from this list')
  return position
}

function getFilters(query: Omit<Static<typeof auditExportQuerySchema>, 'format'>): AuditFilters {
  const { from, to } = readPeriod(query)
  return { from: from ?? undefined, to: to ?? undefined, actor: query.actor, userId: query.user, action: query.action }
}
