import type { ShownRequest } from '../../modules/usage/shapes.ts'
import { milliseconds } from '../state/format.ts'

const height = 72
const step = 4

/** Requests one beside the other, oldest first, as tall as they took long; those that failed are marked. */
export function LatencyStrip({ requests }: { readonly requests: readonly ShownRequest[] }) {
  const shown = requests.toReversed()
  const longest = Math.max(...shown.map(({ latency_ms }) => latency_ms), 1)
  return (
    <figure class="strip">
      <svg
        viewBox={`0 0 ${Math.max(50, shown.length) * step} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Time taken by the latest ${shown.length} requests, ${milliseconds(longest)} at most`}
      >
        {shown.map(({ request_id, latency_ms, status }, index) => {
          const tall = Math.max(2, (latency_ms / longest) * height)
          return (
            <rect
              key={request_id}
              class={status === 'completed' ? 'main' : 'bad'}
              x={index * step}
              y={height - tall}
              width={step - 1}
              height={tall}
            />
          )
        })}
      </svg>
    </figure>
  )
}
