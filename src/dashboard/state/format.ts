/** Formats numbers, money and times. Times are UTC, as the gateway counts days and as filters mean them, unless named local. */
import { unitStart } from './filters.ts'

const whole = new Intl.NumberFormat('en')
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const zone = { timeZone: 'UTC', hourCycle: 'h23' } as const
const day = { day: 'numeric', month: 'short' } as const
const minute = { hour: '2-digit', minute: '2-digit' } as const
const moment = new Intl.DateTimeFormat('en', { ...zone, ...day, year: 'numeric', ...minute })
const exact = new Intl.DateTimeFormat('en', { ...zone, ...day, year: 'numeric', ...minute, second: '2-digit' })
const listed = new Intl.DateTimeFormat('en', { ...zone, ...day, ...minute, second: '2-digit' })
const local = new Intl.DateTimeFormat('en', { ...day, ...minute, second: '2-digit', hourCycle: 'h23' })
const dayMonth = new Intl.DateTimeFormat('en', { ...zone, ...day })
const hourOfDay = new Intl.DateTimeFormat('en', { ...zone, ...day, ...minute })
const date = new Intl.DateTimeFormat('en', { ...zone, ...day, year: 'numeric' })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

export const formatCount = (value: number) => whole.format(value)
export const compact = (value: number) => (value < 10_000 ? whole.format(value) : short.format(value))

/** Formats cents; smaller amounts get as many places as they need. */
export function formatUsd(value: number): string {
  if (value < 0) return `−${formatUsd(-value)}`
  const places = value === 0 || value >= 1 ? 2 : value >= 0.01 ? 4 : Math.min(8, 2 - Math.floor(Math.log10(value)))
  // The same number of places for amounts below a cent, so that digits align.
  const least = value > 0 && value < 0.01 ? places : 2
  return `$${value.toLocaleString('en', { minimumFractionDigits: least, maximumFractionDigits: places })}`
}

/**
 * Returns a format for the amounts of one column: as many decimal places as its smallest amount needs for two
 * significant digits, at least 2 and at most 6, so that digits align and amounts compare.
 */
export function usdColumn(amounts: readonly number[]): (value: number) => string {
  const least = Math.min(...amounts.filter(amount => amount > 0))
  const places = Number.isFinite(least) ? Math.max(2, Math.min(6, 1 - Math.floor(Math.log10(least)))) : 2
  const format = { minimumFractionDigits: places, maximumFractionDigits: places }
  const smallest = 10 ** -places
  return value =>
    value > 0 && value < smallest / 2 ? `<$${smallest.toFixed(places)}` : `$${value.toLocaleString('en', format)}`
}

/** Formats all decimal places. */
export const usdExact = (value: number) =>
  `${value < 0 ? '−' : ''}$${Math.abs(value).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 8 })}`

export const signed = (value: number, places: number) =>
  `${value > 0 ? '+' : value < 0 ? '−' : '±'}${Math.abs(value).toFixed(places)}`

export const percent = (share: number, places = 0) => `${Number((share * 100).toFixed(places))}%`

export function milliseconds(value: number | null): string {
  if (value === null) return '–'
  if (value < 1_000) return `${Math.round(value)} ms`
  return value < 60_000
    ? `${(value / 1_000).toFixed(1)} s`
    : `${Math.floor(value / 60_000)} min ${Math.round((value % 60_000) / 1_000)} s`
}

/** Formats a time in a list, without the year. */
export const listTime = (time: string) => listed.format(new Date(time))
/** Formats a time in a list, in the time zone of the browser. */
export const localTime = (time: string) => local.format(new Date(time))
export const dateTime = (time: string) => moment.format(new Date(time))
export const exactTime = (time: string) => `${exact.format(new Date(time))} UTC`
export const formatDate = (time: string) => date.format(new Date(time))
/** Formats the start of a chart's column. */
export function formatUtcUnit(unit: string): string {
  return (unit.length === 10 ? dayMonth : hourOfDay).format(unitStart(unit))
}

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** `3 hours ago`, `in 2 days`. */
export function relativeTime(time: string, now = Date.now()): string {
  const distance = Date.parse(time) - now
  for (const [unit, size] of units)
    if (Math.abs(distance) >= size) return relative.format(Math.round(distance / size), unit)
  return distance > 0 ? 'in less than a minute' : 'just now'
}

const fixedWords: Readonly<Record<string, string>> = {
  json_schema: 'JSON schema',
  warm_up: 'Warm-up',
  served: 'Succeeded',
  request_refused: '400 Invalid request',
  credential_refused: 'Credential rejected',
  bad_answer: 'Invalid response',
  empty_answer: 'Empty response',
  no_tool_call: 'No tool call',
}

export type Period = 'day' | 'month'
/** A projection from the first minutes of a period would mislead. */
const leastShareOfPeriod = 1 / 48

/** Returns the start and end of the present UTC day or month, in epoch milliseconds. */
export function toPeriod(period: Period, now: number): readonly [start: number, end: number] {
  const at = new Date(now)
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()]
  return period === 'day'
    ? [Date.UTC(year, month, day), Date.UTC(year, month, day + 1)]
    : [Date.UTC(year, month), Date.UTC(year, month + 1)]
}

/** Returns what a period comes to at the present pace; null = too early to say. */
export function projectUse(used: number, period: Period, now = Date.now()): number | null {
  const [start, end] = toPeriod(period, now)
  const share = (now - start) / (end - start)
  return used === 0 || share < leastShareOfPeriod ? null : used / share
}

/** Tells when a limit of this UTC day or month is reached at the present pace, or what the period comes to; null = no limit. */
export function tellPace(
  used: number,
  limit: number | null,
  period: Period,
  show: (value: number) => string,
  now = Date.now(),
): string {
  if (limit !== null && used >= limit) return `Reached for this ${period}.`
  const projected = projectUse(used, period, now)
  if (projected === null) return ''
  const [start] = toPeriod(period, now)
  const reachedAt = start + ((limit ?? Number.POSITIVE_INFINITY) / used) * (now - start)
  if (limit !== null && projected > limit)
    return `Reached ${dateTime(new Date(reachedAt).toISOString())} UTC at this pace.`
  return `${show(projected)} by the end of the ${period} at this pace.`
}

/** `code_algorithm` → `Code algorithm`. Names of the API whose plain form misleads have words of their own. */
export function humanize(name: string): string {
  const text = name.replaceAll('_', ' ')
  return fixedWords[name] ?? text.charAt(0).toUpperCase() + text.slice(1)
}

/** `team=search, env=prod`. */
export const formatTags = (tags: Readonly<Record<string, string>>) =>
  Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ')

/** Names of the API forms. */
export const dialectNames = {
  chat_completions: 'Chat Completions',
  native: 'Gateway chat',
  responses: 'Responses',
  messages: 'Messages',
  gemini: 'Gemini',
  embeddings: 'Embeddings',
  decisions: 'Decisions',
} as const
