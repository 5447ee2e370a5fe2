import type { ShownKey } from '../../console/keys/schemas.ts'
import { compact, formatCount, formatUsd, percent } from '../state/format.ts'

type MeterProps = {
  readonly label: string
  readonly used: number
  readonly limit: number
  readonly show: (value: number) => string
  readonly note?: string
}

/** Used part of a limit. Color and text change at 80% and 100%. */
export function MeterBar({ label, used, limit, show, note }: MeterProps) {
  const part = limit <= 0 ? 1 : used / limit
  const share = Math.min(1, part)
  const state = share >= 1 ? 'full' : share >= 0.8 ? 'near' : 'calm'
  return (
    <div class={`meter ${state}`}>
      <div class="meter-head">
        <span>{label}</span>
        <span class="quiet">{percent(part)} used</span>
      </div>
      <p class="figure">
        {show(used)} <small>of {show(limit)}</small>
      </p>
      {/* biome-ignore lint/a11y/useSemanticElements: browsers draw `<meter>` each in their own way */}
      <div
        class="bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        aria-valuetext={`${show(used)} of ${show(limit)}`}
      >
        <div style={{ width: `${share * 100}%` }} />
      </div>
      {note !== undefined && <p class="hint">{note}</p>}
    </div>
  )
}

type UsedLimitsProps = Pick<ShownKey, 'limits' | 'used'> & { readonly models?: ShownKey['models'] }

/** Shows limits and models of a key or a project, and how much is used on this UTC day and in its month. */
export function UsedLimits({ limits, used, models = null }: UsedLimitsProps) {
  const { daily_tokens: tokens = null, daily_cost_usd: day = null, monthly_cost_usd: month = null } = limits ?? {}
  const { requests_per_minute: minute = null, concurrent_requests: concurrent = null } = limits ?? {}
  const parts = [
    ...(tokens === null ? [] : [`${compact(used.daily_tokens)} of ${compact(tokens)} tokens today`]),
    ...(day === null ? [] : [`${formatUsd(used.daily_cost_usd)} of ${formatUsd(day)} today`]),
    ...(month === null ? [] : [`${formatUsd(used.monthly_cost_usd)} of ${formatUsd(month)} this month`]),
    ...(minute === null ? [] : [`${formatCount(minute)} ${minute === 1 ? 'request' : 'requests'} per minute`]),
    ...(concurrent === null
      ? []
      : [`${formatCount(concurrent)} concurrent ${concurrent === 1 ? 'request' : 'requests'}`]),
    ...(models === null ? [] : [`Only ${models.join(', ')}`]),
  ]
  return (
    <>
      {parts.map(part => (
        <span key={part} class="block">
          {part}
        </span>
      ))}
    </>
  )
}
