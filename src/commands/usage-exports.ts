/** Usage and cost exports of providers. Each format is a row of the table; one reader takes CSV and JSON of all of them. */
import { csvRows } from '../core/text/csv.ts'
import { isRecord, type Json, record, records } from '../providers/json.ts'
import { CommandFailure } from './command.ts'
import file from './usage-formats.json'

/** Usage of one line of an export; null = the export does not say. The input includes cached and written tokens. */
export type ExportLine = {
  /** UTC day, `YYYY-MM-DD`. */
  readonly day: string
  /** A model ID, a display name, or a text that names the model. */
  readonly model: string
  readonly id: string | null
  readonly tier: string | null
  readonly requests: number | null
  readonly input: number | null
  readonly cached: number | null
  readonly written: number | null
  readonly output: number | null
  /** Units of 1e-8 USD. */
  readonly cost: number | null
}

/** Fields that are summed over lines. */
export const exportFields = ['requests', 'input', 'cached', 'written', 'output', 'cost'] as const

type Row = ReadonlyMap<string, string>
type Field = 'day' | 'model' | 'key' | 'id' | 'tier' | (typeof exportFields)[number]

type Format = {
  readonly name: string
  /** Providers of the gateway whose usage it has, unless the operator names one. */
  readonly providers: readonly string[]
  /** Columns that only this format has. */
  readonly needs: readonly string[]
  /**
   * Columns by field, in snake case. Of texts the first one with a value counts; numbers are summed, so that parts make a total.
   */
  readonly columns: { readonly [Name in Field]?: readonly string[] | undefined }
  /** USD per unit of the cost; absent = 1. */
  readonly costUnit?: number | undefined
  /** The model is part of a longer text. */
  readonly namesModelInText?: boolean | undefined
  /** Only rows with this pattern in any column are usage of models. */
  readonly mentions?: string | undefined
  /** Only rows with this pattern in a column are. */
  readonly keeps?: { readonly [column: string]: string | undefined } | undefined
}

const formats: readonly Format[] = file

function isUsage({ mentions, keeps = {} }: Format, row: Row): boolean {
  const matches = (pattern: string | undefined, value: string) =>
    pattern === undefined || new RegExp(pattern, 'i').test(value)
  return (
    matches(mentions, [...row.values()].join(' ')) &&
    Object.entries(keeps).every(([column, pattern]) => matches(pattern, row.get(column) ?? ''))
  )
}

export type UsageExport = {
  readonly format: Pick<Format, 'name' | 'providers' | 'namesModelInText'>
  readonly lines: readonly ExportLine[]
  /** Rows of other keys, which were left out. */
  readonly otherKeys: number
  /** Rows without a day or a model, or with another number of cells than the head. */
  readonly unread: number
  /** Half of the last decimal place of the costs, in units of 1e-8 USD. */
  readonly precision: number
}

/** Reads an export, of only one key of the provider if it is named. Throws `CommandFailure` if the format is unknown. */
export function readExport(text: string, key: string | null): UsageExport {
  const body = text.replace(/^\uFEFF/, '')
  const { table, uneven } = /^\s*[[{]/.test(body) ? { table: jsonRows(body), uneven: 0 } : csvTable(body)
  const [first] = table
  const format = formats.find(({ needs }) => needs.every(name => first?.has(name)))
  if (format === undefined)
    throw new CommandFailure(
      `The file has no line in a known form (JSON, or CSV with commas): ${formats.map(({ name }) => name).join(', ')}.`,
    )
  const used = table.filter(row => isUsage(format, row))
  const own = used.filter(row => key === null || textIn(row, format.columns.key) === key)
  const read = own.flatMap(row => toLine(format, row) ?? [])
  const lines = read.filter(line => exportFields.some(field => line[field]))
  // Without a line there is no day to compare, so that nothing could differ.
  if (lines.length === 0)
    throw new CommandFailure(
      `${format.name}: the file has no line of usage${key === null ? '' : ` of the key ${key}`}.`,
    )
  const { costUnit = 1 } = format
  const decimals = own.reduce((most, row) => Math.max(most, decimalsIn(textIn(row, format.columns.cost))), 0)
  return {
    format,
    lines,
    otherKeys: used.length - own.length,
    unread: own.length - read.length + uneven,
    precision: (costUnit * 1e8) / 10 ** decimals / 2,
  }
}

function toLine({ columns, namesModelInText, costUnit = 1 }: Format, row: Row): ExportLine | null {
  const day = dayIn(textIn(row, columns.day))
  const names = columns.model?.flatMap(name => row.get(name) || []) ?? []
  const model = (namesModelInText ? names.join(' ') : names[0]) || null
  if (day === null || model === null) return null
  const sum = (names: readonly string[] = []) => {
    const numbers = names.flatMap(name => numberIn(row.get(name)) ?? [])
    return numbers.length === 0 ? null : numbers.reduce((total, number) => total + number, 0)
  }
  // Of costs the first column counts: the others are rounded.
  const cost = numberIn(textIn(row, columns.cost) ?? undefined)
  return {
    day,
    model,
    id: textIn(row, columns.id),
    tier: columns.tier?.map(name => tierIn(name, row.get(name))).find(tier => tier !== null) ?? null,
    requests: sum(columns.requests) ?? (columns.id === undefined ? null : 1),
    input: sum(columns.input),
    cached: sum(columns.cached),
    written: sum(columns.written),
    output: sum(columns.output),
    cost: cost === null ? null : cost * costUnit * 1e8,
  }
}

function textIn(row: Row, names: readonly string[] = []): string | null {
  return names.map(name => row.get(name)).find(value => value !== undefined && value !== '') ?? null
}

function numberIn(text: string | undefined): number | null {
  const number = Number((text ?? '').replace(/[$,\s]/g, '') || Number.NaN)
  return Number.isFinite(number) ? number : null
}

const decimalsIn = (text: string | null) => text?.split('.')[1]?.length ?? 0

/** Returns a tier with a price of its own. */
function tierIn(name: string, value = ''): string | null {
  if (name === 'batch') return value === 'true' ? name : null
  return /^(|null|default|standard|message|auto)$/i.test(value) ? null : value
}

/** Returns the UTC day of a date, a time without a zone (which is UTC), or seconds since the epoch. */
function dayIn(text: string | null): string | null {
  if (text === null) return null
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text)
  const hasZone = isDay || /(?:Z|[+-]\d\d:?\d\d|UTC)$/.test(text)
  const isSeconds = /^\d{9,10}$/.test(text)
  const time = isSeconds ? Number(text) * 1_000 : Date.parse(hasZone ? text : `${text.replace(' ', 'T')}Z`)
  if (Number.isNaN(time)) return null
  const day = new Date(time).toISOString().slice(0, 10)
  // No database has a February 30, and no gateway ran before 2000.
  return day.startsWith('20') && (!isDay || day === text) ? day : null
}

/**
 * Returns the rows below the first line that is the head of a known format; exports begin with lines about the invoice.
 * `uneven` counts rows with another number of cells: their columns are unknown.
 */
function csvTable(text: string): { readonly table: readonly Row[]; readonly uneven: number } {
  const all = csvRows(text)
  const at = all.findIndex(cells => {
    const head = new Set(cells.map(snake))
    return formats.some(({ needs }) => needs.every(name => head.has(name)))
  })
  const head = all[at]?.map(snake) ?? []
  const rows = all.slice(at + 1).filter(cells => cells.some(cell => cell.trim() !== ''))
  const even = rows.filter(cells => cells.length === head.length)
  const table = even.map(cells => new Map(head.map((name, column) => [name, (cells[column] ?? '').trim()])))
  return { table, uneven: rows.length - even.length }
}

/** `lineItem/UsageType`, `Usage type` and `usage.type` become snake case. */
function snake(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_|_$/g, '')
}

/** Returns the results of all time buckets with the fields of their bucket, or the items of a list. */
function jsonRows(text: string): readonly Row[] {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw new CommandFailure('The file is no valid JSON.')
  }
  const pages = Array.isArray(body) ? body : [body]
  const items = pages.flatMap(page => (Array.isArray(record(page).data) ? records(record(page).data) : records([page])))
  return items.flatMap(({ results, ...bucket }) =>
    Array.isArray(results) ? records(results).map(result => flat({ ...bucket, ...result })) : [flat(bucket)],
  )
}

function flat(fields: Json, prefix = ''): Map<string, string> {
  const row = new Map<string, string>()
  for (const [name, value] of Object.entries(fields)) {
    if (isRecord(value)) for (const [inner, text] of flat(value, `${prefix}${name}_`)) row.set(inner, text)
    else row.set(`${prefix}${name}`, value === null ? '' : String(value))
  }
  return row
}
