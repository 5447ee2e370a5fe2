import type { ShownKeyPage } from '../../console/keys/schemas.ts'
import { compact, formatCount, formatUsd } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { DetailRow } from './conversation-turn.tsx'
import { MeterBar } from './meter.tsx'
import { Card } from './page.tsx'

/** Each limit of a key with its used part. A key without limits shows its use only. */
export function KeyLimits({ of: { limits, used, requests_last_minute } }: { readonly of: ShownKeyPage }) {
  const bars = [
    ['Daily tokens', used.daily_tokens, limits?.daily_tokens, compact, 'This UTC day'],
    ['Daily cost', used.daily_cost_usd, limits?.daily_cost_usd, formatUsd, 'This UTC day'],
    ['Monthly cost', used.monthly_cost_usd, limits?.monthly_cost_usd, formatUsd, 'This UTC calendar month'],
    ['Requests per minute', requests_last_minute, limits?.requests_per_minute, formatCount, 'Ended in the last minute'],
  ] as const
  const limited = bars.flatMap(([label, value, limit, show, note]) =>
    limit == null ? [] : [<MeterBar key={label} label={label} used={value} limit={limit} show={show} note={note} />],
  )
  const unlimited = bars.filter(([, , limit]) => limit == null)
  const concurrent = limits?.concurrent_requests ?? null
  return (
    <>
      {limited.length > 0 && (
        <section aria-label="Limits" class="meters">
          {limited}
        </section>
      )}
      <Card
        title={limits === null ? 'No limits of its own' : 'Other limits'}
        about={
          <>
            All keys share the <a href={hrefTo('')}>limits of the account</a>. Keys of one rotation share those of the
            key.
          </>
        }
      >
        <dl class="pairs">
          {unlimited.map(([label, value, , show, note]) => (
            <DetailRow
              key={label}
              name={label}
              value={`${show(value)} used, no limit (${note.replace('This', 'this').replace('Ended', 'ended')})`}
            />
          ))}
          <DetailRow
            name="Concurrent requests"
            value={concurrent === null ? 'No limit' : `At most ${formatCount(concurrent)}`}
          />
        </dl>
      </Card>
    </>
  )
}
