import type { AccountToday } from '../../console/account/schemas.ts'
import { compact, formatCount, formatUsd, relativeTime } from '../state/format.ts'
import { MeterBar } from './meter.tsx'

/** Use of the account's limits now and today. */
export function Today({ account }: { readonly account: AccountToday }) {
  const { today, limits } = account
  const { requests_last_minute: minute = 0, seats_taken: seats = 0 } = account.now ?? {}
  return (
    <section aria-label="Today" class="meters">
      <MeterBar
        label="Daily tokens"
        used={today.tokens}
        limit={limits.daily_tokens}
        show={compact}
        note={`Resets ${relativeTime(today.resets_at)}`}
      />
      <MeterBar
        label="Daily cost"
        used={today.cost_usd}
        limit={limits.daily_cost_usd}
        show={formatUsd}
        note={`${formatUsd(today.remaining_cost_usd)} remaining`}
      />
      <MeterBar
        label="Requests per minute"
        used={minute}
        limit={limits.requests_per_minute}
        show={formatCount}
        note="In the last minute"
      />
      <MeterBar
        label="Concurrent requests"
        used={seats}
        limit={limits.concurrent_requests}
        show={formatCount}
        note="In progress now"
      />
    </section>
  )
}
