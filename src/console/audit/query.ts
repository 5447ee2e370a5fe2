/** Query parameters of the audit log: each is known, sent once, and bounded. */
import { type Static, Type } from '@sinclair/typebox'
import { dayMs, timeIn } from '../../core/text/utc-days.ts'
import { checker, invalidField, oneOf } from '../../core/validation/validate.ts'
import type { AuditFilters } from '../../database/repositories/audit.ts'
import { auditActionSchema } from './schemas.ts'

const strict = { additionalProperties: false } as const
const moment = Type.Optional(
  Type.String({
    pattern: '^\\d{4}-\\d\\d-\\d\\d(T\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,3})?)?(Z|[+-]\\d\\d:\\d\\d))?$',
    maxLength: 32,
    description: 'a UTC day `YYYY-MM-DD`, or a time with its zone: `2026-05-05T12:00:00Z`',
  }),
)
const filters = {
  /** A time is exclusive as `to`; a day is inclusive. */
  from: moment,
  to: moment,
  actor: Type.Optional(oneOf(['user', 'cli', 'system'])),
  user: Type.Optional(Type.String({ pattern: '^[\\w-]{1,64}$', maxLength: 64, description: 'the ID of a user' })),
  action: Type.Optional(auditActionSchema),
}
export const auditQuerySchema = Type.Object(
  {
    cursor: Type.Optional(
      Type.String({ pattern: '^[\\w-]{1,100}$', maxLength: 100, description: '`next_cursor` of the previous page' }),
    ),
    limit: Type.Optional(
      Type.String({ pattern: '^([1-9]\\d?|1\\d\\d|200)$', maxLength: 3, description: 'an integer from 1 to 200' }),
    ),
    ...filters,
  },
  strict,
)
export const auditExportQuerySchema = Type.Object(
  { format: Type.Optional(oneOf(['csv', 'jsonl'])), ...filters },
  strict,
)

const checkList = checker(auditQuerySchema)
const checkExport = checker(auditExportQuerySchema)
const defaultLimit = 50

/** `GET /api/v1/audit`. Throws `invalid_request` with the invalid parameter, as does the other. */
export function readAuditQuery(url: string) {
  const query = checkList(parametersOf(url))
  return {
    filters: filtersOf(query),
    page: {
      after: query.cursor === undefined ? null : positionOf(query.cursor),
      limit: query.limit === undefined ? defaultLimit : Number(query.limit),
    },
  }
}

/** `GET /api/v1/audit/export`: JSON lines by default. */
export function readAuditExportQuery(url: string) {
  const query = checkExport(parametersOf(url))
  return { format: query.format ?? 'jsonl', filters: filtersOf(query) }
}

/** Position in the list for clients: opaque. */
export const cursorOf = (entryId: string) => Buffer.from(entryId).toString('base64url')

function positionOf(cursor: string): string {
  const position = Buffer.from(cursor, 'base64url').toString('latin1')
  if (!/^aud_[0-9a-f]{32}$/.test(position))
    throw invalidField('cursor', 'must be an unmodified `next_cursor` from this list')
  return position
}

function filtersOf(query: Omit<Static<typeof auditExportQuerySchema>, 'format'>): AuditFilters {
  const from = query.from === undefined ? undefined : timeOf('from', query.from)
  const to = query.to === undefined ? undefined : timeOf('to', query.to) + (query.to.length === 10 ? dayMs : 0)
  if (from !== undefined && to !== undefined && from > to) throw invalidField('from', 'must not be after `to`')
  return { from, to, actor: query.actor, userId: query.user, action: query.action }
}

function timeOf(param: string, text: string): number {
  const time = timeIn(text)
  if (!(time >= 0) || time >= Date.UTC(2200, 0)) throw invalidField(param, 'must be a date from 1970 to 2199')
  return time
}

/** Converts the query to an object. Without prototype: a name may be `__proto__`. */
function parametersOf(url: string): Record<string, unknown> {
  const parameters: Record<string, unknown> = Object.create(null)
  for (const [name, value] of new URL(url).searchParams) {
    if (Object.hasOwn(parameters, name)) throw invalidField(name.slice(0, 64).toWellFormed(), 'must be sent once')
    parameters[name] = value
  }
  return parameters
}
