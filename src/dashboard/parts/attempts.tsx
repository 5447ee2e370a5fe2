import type { ShownRequest } from '../../routes/usage/schemas.ts'
import { formatCount, humanize, milliseconds } from '../state/format.ts'
import { Badge } from './badge.tsx'

/** Attempts on the timeline of the request: gray while waiting, then the output. */
export function Attempts({ request }: { readonly request: ShownRequest }) {
  const { tried, attempts, latency_ms: all } = request
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
      {skipped > 0 && (
        <p class="hint">
          {formatCount(skipped)} {skipped === 1 ? 'candidate' : 'candidates'} skipped: cost above the remaining daily
          limit, or a cooldown after failures.
        </p>
      )}
    </>
  )
}

/** Returns position and length of a time within `all`, always visible and within bounds. */
function stretch(from: number, duration: number, all: number) {
  const start = all === 0 ? 0 : Math.min(1, from / all)
  const length = all === 0 ? 1 : Math.min(1 - start, duration / all)
  return { insetInlineStart: `${start * 100}%`, inlineSize: `${length * 100}%` }
}
