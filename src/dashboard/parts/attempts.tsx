import type { RequestRecord, ShownRequest } from '../../console/usage/schemas.ts'
import { formatCount, humanize, milliseconds } from '../state/format.ts'
import { Badge } from './badge.tsx'

type AttemptsProps = {
  readonly request: ShownRequest
  /** The same request with the causes of its attempts; null = the log has only the outcomes. */
  readonly record?: RequestRecord | null
}

/** Attempts on the timeline of the request: gray while waiting, then the output. */
export function Attempts({ request, record = null }: AttemptsProps) {
  const { tried, attempts, latency_ms: all } = request
  const details = record?.attempt_details ?? null
  if (tried === null) return <p class="hint">Attempt details are not available for older requests.</p>
  const skipped = attempts - tried.length
  return (
    <>
      <ol class="waterfall" aria-label="Attempts">
        {tried.map(({ model, outcome, after_ms, duration_ms }, index) => {
          const isServed = outcome === 'served'
          return (
            <li key={index}>
              <code>{model}</code>
              <span class="waterfall-told">
                <Badge tone={isServed ? 'good' : 'warn'}>{humanize(outcome)}</Badge> {milliseconds(duration_ms)}
              </span>
              <span class="waterfall-track" aria-hidden="true">
                <span class={isServed ? 'wait' : 'lost'} style={stretch(after_ms, duration_ms, all)} />
                {isServed && <span class="flow" style={stretch(after_ms + duration_ms, all, all)} />}
              </span>
              {details?.[index]?.cause != null && <p class="hint">{causeOf(details[index])}</p>}
            </li>
          )
        })}
      </ol>
      {tried.some(({ outcome }) => outcome === 'served') && (
        <ul class="legend hint" aria-hidden="true">
          {(['wait', 'flow'] as const).map(tone => (
            <li key={tone}>
              <span class={`swatch ${tone}`} />
              {tone === 'wait' ? 'time to first token' : 'streaming'}
            </li>
          ))}
        </ul>
      )}
      {tried.length === 0 && (
        <p class="hint">
          {request.model === null
            ? 'No attempt was made.'
            : `The request ended during the attempt on ${request.model}.`}
        </p>
      )}
      {record?.skipped?.map(({ model, cause }) => (
        <p key={model} class="hint">
          <code>{model}</code> was skipped: {cause}.
        </p>
      ))}
      {skipped > 0 && record?.skipped == null && (
        <p class="hint">
          {formatCount(skipped)} {skipped === 1 ? 'candidate' : 'candidates'} skipped: cost above the remaining daily
          limit, or a cooldown after failures.
        </p>
      )}
    </>
  )
}

type Detail = NonNullable<RequestRecord['attempt_details']>[number]

const causeOf = ({ cause, http_status, after_ms }: Detail) =>
  `After ${milliseconds(after_ms)}: ${cause}, ${http_status === null ? 'no response' : `status ${http_status}`}.`

/** Returns position and length of a time within `all`, always visible and within bounds. */
function stretch(from: number, duration: number, all: number) {
  const start = all === 0 ? 0 : Math.min(1, from / all)
  const length = all === 0 ? 1 : Math.min(1 - start, duration / all)
  return { insetInlineStart: `${start * 100}%`, inlineSize: `${length * 100}%` }
}
