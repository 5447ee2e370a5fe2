import type { ComponentChildren } from 'preact'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import { mostCountedRejections } from '../../core/usage/usage-groups.ts'
import { type Filters, failedOnly, hrefToLog, rangeTitle, toUnitFilter } from '../state/filters.ts'
import { compact, formatCount, milliseconds, percent } from '../state/format.ts'
import { listDays, listUnits } from '../state/usage-series.ts'
import { Empty } from './notice.tsx'
import { Card } from './page.tsx'

/** Days above this error rate are marked. */
const muchFailed = 0.05

type Props = {
  readonly usage: ShownUsage
  readonly filters: Filters
  /** Filters of the requests that the usage covers, for the links. */
  readonly covered: Filters
}

/** Latency, failed and rejected requests of a range. */
export function LatencyAndErrors({ usage, filters, covered }: Props) {
  const { total, rejected } = usage
  const days = listDays(usage)
  const units = listUnits(usage)
  const slow = total.latency_p95_ms === null ? undefined : { min_latency_ms: String(total.latency_p95_ms) }
  return (
    <Card title="Latency and errors" about={rangeTitle(filters)}>
      {total.requests === 0 ? (
        <Empty title="No requests in this range">
          {rejected ? (
            <>
              <Rejected count={rejected} filters={covered} /> rejected before a model was called.
            </>
          ) : (
            'Latency and errors appear after requests.'
          )}
        </Empty>
      ) : (
        <>
          <dl class="figures">
            <Figure name="p50 latency" value={milliseconds(total.latency_p50_ms)} />
            <Figure
              name="p95 latency"
              value={milliseconds(total.latency_p95_ms)}
              href={slow && hrefToLog(covered, slow)}
            />
            <Figure name="Time to first token (p50)" value={milliseconds(total.first_token_p50_ms)} />
            <Figure
              name="Failed or blocked"
              value={`${compact(total.failed)} (${percent(total.failed / total.requests, 1)})`}
              href={total.failed > 0 ? hrefToLog(covered, failedOnly) : undefined}
            />
            {typeof rejected === 'number' && (
              <Figure name="Rejected" value={rejected === 0 ? '0' : <Rejected count={rejected} filters={covered} />} />
            )}
          </dl>
          <Sparkline
            onChoose={day => location.assign(hrefToLog(covered, toUnitFilter(units[day] ?? '')))}
            label={`p95 latency; ${milliseconds(total.latency_p95_ms)} overall`}
            values={days.map(day => day.latency_p95_ms)}
            isBad={day => (days[day]?.failed ?? 0) > muchFailed * (days[day]?.requests ?? 0)}
          />
          <p class="hint">p95 latency; red marks more than 5% failed.</p>
          {typeof rejected === 'number' && (
            <p class="hint">Limits and checks reject requests before a model is called. No other figure counts them.</p>
          )}
          <p class="hint">
            <a href={hrefToLog(covered)}>All requests</a>
            {total.failed > 0 && (
              <>
                {' · '}
                <a href={hrefToLog(covered, failedOnly)}>Failed or blocked</a>
              </>
            )}
          </p>
        </>
      )}
    </Card>
  )
}

/** The number of rejected requests, as the log lists them. */
function Rejected({ count, filters }: { readonly count: number; readonly filters: Filters }) {
  return (
    <a href={hrefToLog(filters, { status: 'rejected' })}>
      {formatCount(count)}
      {count === mostCountedRejections && '+'}
    </a>
  )
}

type FigureProps = { readonly name: string; readonly value: ComponentChildren; readonly href?: string | undefined }

function Figure({ name, value, href }: FigureProps) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{href === undefined ? value : <a href={href}>{value}</a>}</dd>
    </div>
  )
}

const height = 56
const step = 4

type DaysStripProps = {
  readonly label: string
  /** One per day, oldest first; null = no data. */
  readonly values: readonly (number | null)[]
  /** Returns true for marked days. */
  readonly isBad: (day: number) => boolean
  /** Opens the requests of a day, by mouse: the chart beside it does so by keyboard. */
  readonly onChoose: (day: number) => void
}

/** A small bar chart without axes. */
function Sparkline({ label, values, isBad, onChoose }: DaysStripProps) {
  const most = Math.max(...values.map(value => value ?? 0), 1)
  return (
    <figure class="strip">
      <svg viewBox={`0 0 ${values.length * step} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {values.map((value, day) => {
          const tall = value === null ? 1 : Math.max(2, (value / most) * height)
          const tone = value === null ? 'none' : isBad(day) ? 'bad' : 'main'
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions: a shortcut; the chart offers the same by keyboard
            <g key={day} onClick={() => onChoose(day)}>
              <rect class="hit" x={day * step} y={0} width={step} height={height} />
              <rect class={tone} x={day * step} y={height - tall} width={step - 1} height={tall} />
            </g>
          )
        })}
      </svg>
    </figure>
  )
}
