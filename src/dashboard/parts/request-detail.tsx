import type { ShownRequest } from '../../modules/usage/shapes.ts'
import { count, exactTime, milliseconds, usd, words } from '../state/format.ts'
import { Badge } from './badge.tsx'
import { Copy } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import type { Tone } from './notice.tsx'
import { Pair } from './turn.tsx'

const tones: Readonly<Record<ShownRequest['status'], Tone>> = {
  completed: 'good',
  failed: 'bad',
  blocked: 'bad',
  client_closed: 'warn',
}
const statusWords: Readonly<Record<ShownRequest['status'], string>> = {
  completed: 'Completed',
  failed: 'Failed',
  blocked: 'Blocked',
  client_closed: 'Caller left',
}

export function StatusBadge({ request: { status } }: { readonly request: Pick<ShownRequest, 'status'> }) {
  return <Badge tone={tones[status]}>{statusWords[status]}</Badge>
}

/** All that the log knows of one request. */
export function RequestDetail({ request, onClose }: { readonly request: ShownRequest; readonly onClose: () => void }) {
  const { metadata } = request
  return (
    <Dialog kind="side" title="Request" onClose={onClose}>
      <p>
        <StatusBadge request={request} /> {request.error_code !== null && <code>{request.error_code}</code>}
      </p>
      <p class="mono wrap">{request.request_id}</p>
      <Copy text={request.request_id} what="id" />

      <h3>Time</h3>
      <Timing request={request} />
      <dl class="pairs">
        <Pair name="Received" value={exactTime(request.created_at)} />
        <Pair name="First token" value={milliseconds(request.first_token_ms)} />
        <Pair name="In all" value={milliseconds(request.latency_ms)} />
      </dl>

      <h3>Routing</h3>
      <dl class="pairs">
        <Pair name="Model" value={request.model ?? 'none was reached'} />
        <Pair name="Chosen" value={request.routing_mode === 'auto' ? 'automatically' : 'by the caller'} />
        <Pair name="Strategy" value={request.strategy ?? '–'} />
        <Pair name="Query type" value={request.query_type === null ? '–' : words(request.query_type)} />
        <Pair name="Attempts" value={count(request.attempts)} />
        <Pair name="Delivered" value={request.streamed ? 'as a stream' : 'whole'} />
        <Pair name="Ended" value={request.finish_reason ?? '–'} />
        <Pair name="Key" value={request.key_name ?? request.key_id} />
      </dl>

      <h3>Tokens and cost</h3>
      <dl class="pairs">
        <Pair name="Input" value={count(request.input_tokens)} />
        <Pair name="… of it cached" value={count(request.cached_input_tokens)} />
        <Pair name="… written to cache" value={count(request.cache_write_tokens)} />
        <Pair name="Output" value={count(request.output_tokens)} />
        <Pair name="… of it reasoning" value={count(request.reasoning_tokens)} />
        <Pair name="Counted by" value={request.estimated ? 'the gateway' : 'the provider'} />
        <Pair name="Web search" value={usd(request.search_cost_usd)} />
        <Pair name="Pages read" value={usd(request.fetch_cost_usd)} />
        <Pair
          name="Model"
          value={usd(Math.max(0, request.cost_usd - request.search_cost_usd - request.fetch_cost_usd))}
        />
        <Pair name="Billed" value={usd(request.cost_usd)} />
      </dl>

      {metadata !== null && Object.keys(metadata).length > 0 && (
        <>
          <h3>Metadata</h3>
          <dl class="pairs">
            {Object.entries(metadata).map(([name, value]) => (
              <Pair key={name} name={name} value={value} />
            ))}
          </dl>
        </>
      )}
    </Dialog>
  )
}

/** How much of the time passed before the first token. */
function Timing({ request: { first_token_ms: first, latency_ms: all } }: { readonly request: ShownRequest }) {
  const share = first === null || all === 0 ? 1 : Math.min(1, first / all)
  return (
    <div class="timing" aria-hidden="true">
      <span class="wait" style={{ width: `${share * 100}%` }} />
      <span class="flow" style={{ width: `${(1 - share) * 100}%` }} />
    </div>
  )
}
