/** Formats numbers, money and times. Days are UTC, as the gateway counts them; times are local. */

const whole = new Intl.NumberFormat('en')
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const moment = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' })
const exact = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' })
const clock = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hourCycle: 'h23' })
const listed = new Intl.DateTimeFormat('en', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})
const dayMonth = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' })
const date = new Intl.DateTimeFormat('en', { dateStyle: 'medium' })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

export const formatCount = (value: number) => whole.format(value)
export const compact = (value: number) => (value < 10_000 ? whole.format(value) : short.format(value))

/** Formats cents; smaller amounts get as many places as they need. */
export function formatUsd(value: number): string {
  const places = value === 0 || value >= 1 ? 2 : value >= 0.01 ? 4 : Math.min(8, 2 - Math.floor(Math.log10(value)))
  // The same number of places for amounts below a cent, so that digits align.
  const least = value > 0 && value < 0.01 ? places : 2
  return `$${value.toLocaleString('en', { minimumFractionDigits: least, maximumFractionDigits: places })}`
}

/** Formats all decimal places. */
export const usdExact = (value: number) =>
  `$${value.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 8 })}`

export const percent = (share: number, places = 0) => `${(share * 100).toFixed(places)}\u00a0%`

export function milliseconds(value: number | null): string {
  if (value === null) return '–'
  if (value < 1_000) return `${Math.round(value)} ms`
  return value < 60_000
    ? `${(value / 1_000).toFixed(1)} s`
    : `${Math.floor(value / 60_000)} min ${Math.round((value % 60_000) / 1_000)} s`
}

/** Formats a time in a list; omits today's date. */
export function listTime(time: string): string {
  const at = new Date(time)
  return at.toDateString() === new Date().toDateString() ? clock.format(at) : listed.format(at)
}

export const dateTime = (time: string) => moment.format(new Date(time))
export const exactTime = (time: string) => exact.format(new Date(time))
export const dateOf = (time: string) => date.format(new Date(time))
/** Formats a UTC day, `YYYY-MM-DD`. */
export const formatUtcDay = (day: string) => dayMonth.format(new Date(`${day}T00:00:00Z`))

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

/** `code_algorithm` → `Code algorithm` */
export function humanize(name: string): string {
  const text = name.replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}
