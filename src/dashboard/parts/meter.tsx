import type { ShownKey } from '../../console/keys/schemas.ts'
import { height, step, toPath, toRemaining } from '../state/chart-paths.ts'
import {
  compact,
  formatCount,
  formatUsd,
  type Period,
  percent,
  projectUse,
  tellPace,
  toPeriod,
} from '../state/format.ts'
import { openedAt } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import { listDays } from '../state/usage-series.ts'

type MeterProps = {
  readonly label: string
  readonly used: number
  readonly limit: number
  readonly show: (value: number) => string
  /** Words after the values. */
  readonly words: string
  /** UTC period of the limit: the bar shows its use at the end at the present pace, and when it is reached. */
  readonly period?: Period | undefined
}

/** Used part of a limit. Color and text change at 80% and 100%. */
export function MeterBar({ label, used, limit, show, words, period }: MeterProps) {
  const part = limit <= 0 ? 1 : used / limit
  const share = Math.min(1, part)
  const state = share >= 1 ? 'full' : share >= 0.8 ? 'near' : 'calm'
  const told = `${show(used)} of ${show(limit)}`
  const pace = period === undefined ? '' : tellPace(used, limit, period, show)
  const projected = period === undefined ? null : projectUse(used, period)
  const ahead = projected === null || limit <= 0 ? 0 : Math.min(1, projected / limit) - share
  const isAtRisk = state !== 'full' && pace.startsWith('Reached')
  return (
    <div class={`meter ${state}`} title={pace}>
      <div class="meter-head">
        <span>
          {told} {words}
        </span>
        <span class="quiet">{state === 'full' ? 'Reached' : percent(part)}</span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: browsers draw `<meter>` each in their own way */}
      <div
        class="bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        aria-valuetext={pace === '' ? told : `${told}. ${pace}`}
      >
        <div style={{ width: `${share * 100}%` }} />
        {ahead > 0 && <div class={isAtRisk ? 'ahead risk' : 'ahead'} style={{ width: `${ahead * 100}%` }} />}
      </div>
      {isAtRisk && <span class="hint">{pace}</span>}
    </div>
  )
}

type UsedLimitsProps = {
  readonly limits: ShownKey['limits']
  readonly used: ShownKey['used']
  readonly models?: ShownKey['models']
  /** Use at this moment; null = unknown: the limit is a text. */
  readonly minute?: number | null
  readonly concurrent?: number | null
}

/** The limits of an account, a key, a project or a tag: bars where their use is known, and the rest as text. */
export function UsedLimits({ limits, used, models = null, minute = null, concurrent = null }: UsedLimitsProps) {
  const all = [
    ['Daily tokens', used.daily_tokens, limits?.daily_tokens, compact, 'tokens today', 'day'],
    ['Daily cost', used.daily_cost_usd, limits?.daily_cost_usd, formatUsd, 'today', 'day'],
    ['Monthly cost', used.monthly_cost_usd, limits?.monthly_cost_usd, formatUsd, 'this month', 'month'],
    ['Requests per minute', minute, limits?.requests_per_minute, formatCount, 'in the last minute', undefined],
    ['Concurrent requests', concurrent, limits?.concurrent_requests, formatCount, 'concurrent', undefined],
  ] as const
  const others = all.flatMap(([label, value, limit]) =>
    limit == null || value !== null ? [] : [`${label}: ${formatCount(limit)}`],
  )
  return (
    <div class="budgets">
      {all.map(
        ([label, value, limit, show, words, period]) =>
          limit != null &&
          value !== null && <MeterBar key={label} {...{ label, limit, show, words, period }} used={value} />,
      )}
      {[...others, ...(models === null ? [] : [`Only ${models.join(', ')}`])].map(text => (
        <span key={text} class="hint">
          {text}
        </span>
      ))}
    </div>
  )
}

const dayMs = 86_400_000
const toDay = (time: number) => new Date(time).toISOString().slice(0, 10)

type BurnDownProps = {
  /** US dollars per UTC month; null and undefined = no limit. */
  readonly limit: number | null | undefined
  /** Parameters of the usage that counts. */
  readonly of: Readonly<Record<string, string>>
}

/** The remaining part of a monthly cost limit after each day, beside even use to its end, and at the present pace. */
export function BurnDown({ limit, of }: BurnDownProps) {
  const now = openedAt.value
  const [start, end] = toPeriod('month', now)
  const query = { ...of, from: toDay(start), to: toDay(now), group_by: 'day' }
  const { data } = useResource('GET /api/v1/usage', { query, when: limit != null && limit > 0 })
  if (limit == null || limit <= 0 || data === undefined || data.total.requests === 0) return null
  const left = toRemaining(
    listDays(data).map(day => day.cost_usd),
    limit,
  )
  const width = ((end - start) / dayMs) * step
  const at = ((now - start) / dayMs) * step
  const y = (value: number) => height - (Math.max(0, value) / limit) * height
  const projected = projectUse(data.total.cost_usd, 'month', now)
  const told = `${formatUsd(left.at(-1) ?? limit)} of ${formatUsd(limit)} left this month`
  return (
    <figure class="chart burn-down" title="Gray: even use to the end of the month. Dashed: at the present pace.">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={told}>
        <path class="rest" d={`M0 0L${width} ${height}`} vector-effect="non-scaling-stroke" />
        <path class="main" d={toPath(left, limit)} vector-effect="non-scaling-stroke" />
        {projected !== null && (
          <path
            class="dashed main"
            d={`M${at} ${y(left.at(-1) ?? limit)}L${width} ${y(limit - projected)}`}
            vector-effect="non-scaling-stroke"
          />
        )}
      </svg>
      <figcaption class="quiet">
        {told}. {tellPace(data.total.cost_usd, limit, 'month', formatUsd, now)}
      </figcaption>
    </figure>
  )
}
