import type { ShownKey } from '../../console/keys/schemas.ts'
import { compact, formatCount, formatUsd, type Period, percent, projectUse, tellPace } from '../state/format.ts'

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
