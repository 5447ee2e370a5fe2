import type { ShownKey } from '../../console/keys/schemas.ts'
import { compact, formatCount, formatUsd } from '../state/format.ts'

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
