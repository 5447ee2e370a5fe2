/** Query parameters: each is known, sent once, and bounded. Those of the usage routes, and what all lists share. */

import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { dayMs, timeIn } from '../../core/text/utc-days.ts'
import { isTime, needsLog, statusFilters, usageGroups, usageSplits } from '../../core/usage/usage-groups.ts'
import { recordedDialects } from '../../core/usage/usage-record.ts'
import { invalidField, oneOf, strictObject, validate } from '../../core/validation/validate.ts'
import { projectIdSchema } from '../../http/schemas.ts'
import type { LogPosition, LogRange, RequestFilters } from '../../ledger/request-filters.ts'
import type { UsagePeriod } from '../../ledger/usage-lines.ts'

const metadataName = /^metadata\[(.*)\]$/s

/** Reads and checks the query of a URL, each name once, with `metadata[…]` as one field. */
export function readQuery<S extends TSchema>(url: string, schema: S): Static<S> {
  // Without prototype: a name may be `__proto__`.
  const parameters: Record<string, unknown> = Object.create(null)
  const metadata: Record<string, string> = Object.create(null)
  for (const [name, value] of new URL(url).searchParams) {
    const pair = metadataName.exec(name)?.[1]
    const [group, key] = pair === undefined ? [parameters, name] : [metadata, pair]
    if (Object.hasOwn(group, key)) throw invalidField(name.slice(0, 64).toWellFormed(), 'must be sent once')
    group[key] = value
    if (pair !== undefined) parameters.metadata = metadata
  }
  return validate(schema, parameters)
}

const moment = Type.Optional(
  Type.String({
    pattern: '^\\d{4}-\\d\\d-\\d\\d(T\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,3})?)?(Z|[+-]\\d\\d:\\d\\d))?$',
    maxLength: 32,
    description: 'a UTC day `YYYY-MM-DD`, or a time with its zone: `2026-05-05T12:00:00Z`',
  }),
)

/** A period. A time is exclusive as `to`; a day is inclusive. */
export const periodFields = { from: moment, to: moment }

/** Returns a period in epoch milliseconds, null = open. Throws `invalid_request` if it ends before it begins. */
export function readPeriod(query: { readonly from?: string; readonly to?: string }) {
  const from = query.from === undefined ? null : readTime('from', query.from)
  const to = query.to === undefined ? null : readTime('to', query.to) + (query.to.length === 10 ? dayMs : 0)
  if (from !== null && to !== null && from > to) throw invalidField('from', 'must not be after `to`')
  return { from, to }
}

/** Returns a parameter's time in epoch milliseconds. Throws `invalid_request` if it is out of range. */
function readTime(param: string, text: string): number {
  const time = timeIn(text)
  if (!(time >= 0) || time >= Date.UTC(2200, 0)) throw invalidField(param, 'must be a date from 1970 to 2199')
  return time
}

/** Entries of one page. */
export const pageLimit = Type.Optional(
  Type.String({ pattern: '^([1-9]\\d?|1\\d\\d|200)$', maxLength: 3, description: 'an integer from 1 to 200' }),
)

/** Returns the entries of one page, 50 by default. */
export const readPageLimit = (sent: string | undefined) => (sent === undefined ? 50 : Number(sent))

/** No control characters: Postgres cannot store a NUL. */
const words = (maxLength: number) =>
  Type.Optional(
    Type.String({
      minLength: 1,
      maxLength,
      pattern: '^[^\\u0000-\\u001f\\u007f]+$',
      description: `1 to ${maxLength} characters without control characters`,
    }),
  )
const milliseconds = Type.Optional(
  Type.String({ pattern: '^\\d{1,9}$', maxLength: 9, description: 'whole milliseconds, inclusive' }),
)

const filters = {
  ...periodFields,
  /** `provider/model`, or only the model. */
  model: words(256),
  provider: words(64),
  /** ID of the key. */
  key: words(64),
  /** ID of the user whose keys made the requests. */
  member: words(64),
  status: Type.Optional(oneOf(statusFilters)),
  error_code: words(64),
  dialect: Type.Optional(oneOf(recordedDialects)),
  query_type: words(32),
  min_latency_ms: milliseconds,
  max_latency_ms: milliseconds,
  routing_mode: Type.Optional(oneOf(['auto', 'manual'])),
  streamed: Type.Optional(oneOf(['true', 'false'])),
  /** Whether a part of the usage has no known price. */
  unpriced: Type.Optional(oneOf(['true', 'false'])),
  /** `name=value`, or a name with any value. */
  tag: Type.Optional(
    Type.String({
      maxLength: 97,
      pattern: '^[^$\\u0000-\\u001f\\u007f][^\\u0000-\\u001f\\u007f]*$',
      description: 'a tag `name=value`, or its name; `project_id` selects a project',
    }),
  ),
  /** Project of the key at the time of the request. */
  project_id: Type.Optional(projectIdSchema),
  metadata: Type.Optional(
    Type.Record(
      Type.String({ pattern: '^[^\\u0000-\\u001f\\u007f]{1,64}$' }),
      Type.String({ pattern: '^[^\\u0000]{0,512}$' }),
      {
        maxProperties: 16,
        additionalProperties: false,
        description: 'written `metadata[name]=value`, at most 16 of them',
      },
    ),
  ),
}

export const requestsQuerySchema = strictObject({
  ...filters,
  /** `rejected`: requests that were rejected before admission. They have no tags and no metadata. */
  status: Type.Optional(oneOf([...statusFilters, 'rejected'])),
  cursor: words(100),
  limit: pageLimit,
})
export const exportQuerySchema = strictObject({ format: Type.Optional(oneOf(['csv', 'json'])), ...filters })
export const usageQuerySchema = strictObject({
  ...filters,
  group_by: Type.Optional(oneOf(usageGroups)),
  /** For hours, days, months and query types: each of them split. By tag requires `tag` with one tag name. */
  split_by: Type.Optional(oneOf(usageSplits)),
})

const defaultDays = 30
/** Three years. */
const maximumDays = 1_096
/** Of totals that sum the log itself: a month of a busy account stays within the statement's deadline. */
const maximumLogDays = 31
/** Of totals by minute, which a chart can still show. */
const maximumMinutesMs = 12 * 3_600_000

type RequestsQuery = {
  readonly filters: RequestFilters
  readonly page: LogRange
  /** Lists requests that were rejected before admission. */
  readonly isRejected: boolean
}

/** `GET /api/v1/requests`. Throws `invalid_request` with the invalid parameter, as do the others. */
export function readRequestsQuery(url: string): RequestsQuery {
  const { status, ...query } = readQuery(url, requestsQuerySchema)
  return {
    isRejected: status === 'rejected',
    filters: getFilters(status === undefined || status === 'rejected' ? query : { ...query, status }),
    page: {
      before: query.cursor === undefined ? null : decodeCursor(query.cursor),
      limit: readPageLimit(query.limit),
    },
  }
}

/** `GET /api/v1/requests/export`: JSON by default. */
export function readExportQuery(url: string): { readonly format: 'csv' | 'json'; readonly filters: RequestFilters } {
  const query = readQuery(url, exportQuerySchema)
  return { format: query.format ?? 'json', filters: getFilters(query) }
}

/** `GET /api/v1/usage`: the last 30 days by day, by default. `isOfProjects`: the client sees more than own keys by its projects. */
export function readUsageQuery(url: string, now: number, isOfProjects: boolean): UsagePeriod {
  const query = readQuery(url, usageQuerySchema)
  const to = query.to === undefined ? now : readTime('to', query.to)
  const from = query.from === undefined ? to - (defaultDays - 1) * dayMs : readTime('from', query.from)
  const isByProject = query.group_by === 'project' || query.split_by === 'project'
  const { tag: wanted = null, ...others } = query
  // The totals of projects do not have their requests' tags: only the log knows both.
  const tag = isByProject ? null : wanted
  const filters = {
    ...getFilters(isByProject ? query : others),
    from: timeIfExact('from', query.from),
    to: timeIfExact('to', query.to),
  }
  if (from > to) throw invalidField('from', 'must not be after `to`')
  if (to - from >= maximumDays * dayMs)
    throw invalidField('from', `must be less than ${maximumDays} days before \`to\``)
  const { group_by: groupBy = 'day', split_by: splitBy = null } = query
  if (groupBy === 'minute' && (filters.from ?? 0) < (filters.to ?? now) - maximumMinutesMs)
    throw invalidField('from', 'must be a time at most 12 hours before `to` for minutes')
  if (splitBy !== null && !isTime(groupBy) && groupBy !== 'query_type')
    throw invalidField('split_by', 'requires `group_by` to be `minute`, `hour`, `day`, `month` or `query_type`')
  if (splitBy === 'tag' && tag === null)
    throw invalidField('split_by', 'by tag requires `tag` with one tag name, so that no request counts twice')
  const period = { from: getDay(from), to: getDay(to), groupBy, splitBy, tag, filters }
  const isOfTagInProject = (tag !== null || groupBy === 'tag') && (isOfProjects || filters.projectId !== null)
  if ((isOfTagInProject || needsLog(groupBy, filters, splitBy)) && to - from > maximumLogDays * dayMs)
    throw invalidField(
      'from',
      `must be at most ${maximumLogDays} days before \`to\` for hours, times, dialects, query types and these filters`,
    )
  return period
}

/** Filters of the rejected requests of a period; null = they are not counted by this group, split or tag. */
export function rejectedIn({ from, to, groupBy, splitBy, tag, filters }: UsagePeriod): RequestFilters | null {
  if (!isTime(groupBy) || splitBy !== null || (tag ?? null) !== null || filters == null) return null
  return { ...filters, from: filters.from ?? Date.parse(from), to: filters.to ?? Date.parse(to) + dayMs }
}

/** Epoch milliseconds of a time; null for a day, which the daily totals know. */
function timeIfExact(param: string, text: string | undefined): number | null {
  return text === undefined || text.length === 10 ? null : readTime(param, text)
}

const getDay = (time: number) => new Date(time).toISOString().slice(0, 10)

/** Position in a list for clients: opaque, and only valid for the next page. */
export function encodeCursor({ atMicros, requestId }: LogPosition): string {
  return Buffer.from(`${atMicros} ${requestId}`).toString('base64url')
}

function decodeCursor(cursor: string): LogPosition {
  const found = /^(\d{1,16}) ([\w-]{1,64})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'))
  if (found === null) throw invalidField('cursor', 'must be an unmodified `next_cursor` from this list')
  return { atMicros: Number(found[1]), requestId: found[2] ?? '' }
}

function getFilters(query: Omit<Static<typeof exportQuerySchema>, 'format'>): RequestFilters {
  const { provider, model } = getModel(query.provider, query.model)
  const { from, to } = readPeriod(query)
  return {
    from,
    to,
    keyId: query.key ?? null,
    memberId: query.member ?? null,
    provider,
    model,
    status: query.status ?? null,
    errorCode: query.error_code ?? null,
    dialect: query.dialect ?? null,
    queryType: query.query_type ?? null,
    minimumLatencyMs: query.min_latency_ms === undefined ? null : Number(query.min_latency_ms),
    maximumLatencyMs: query.max_latency_ms === undefined ? null : Number(query.max_latency_ms),
    routingMode: query.routing_mode ?? null,
    streamed: query.streamed === undefined ? null : query.streamed === 'true',
    unpriced: query.unpriced === undefined ? null : query.unpriced === 'true',
    metadata: query.metadata ?? null,
    tag: query.tag ?? null,
    projectId: query.project_id ?? null,
  }
}

/** Matches the model at every provider. */
function getModel(provider: string | undefined, model: string | undefined) {
  const slash = model?.indexOf('/') ?? -1
  if (model === undefined || slash < 1) return { provider: provider ?? null, model: model ?? null }
  const named = model.slice(0, slash)
  if (provider !== undefined && provider !== named)
    throw invalidField('provider', 'must match the provider of `model`, or be omitted')
  return { provider: named, model: model.slice(slash + 1) }
}
