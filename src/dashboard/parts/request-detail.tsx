import { Fragment } from 'preact'
import type { ShownRequest } from '../../console/usage/schemas.ts'
import { dialectNames, exactTime, formatCount, formatTags, humanize, milliseconds, usdExact } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { Attempts } from './attempts.tsx'
import { Badge } from './badge.tsx'
import { DetailRow } from './conversation-turn.tsx'
import { Copy } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import type { Tone } from './notice.tsx'
import { useProjects } from './project-field.tsx'

const tones: Readonly<Record<ShownRequest['status'], Tone>> = {
  completed: 'good',
  failed: 'bad',
  blocked: 'bad',
  rejected: 'bad',
  client_closed: 'warn',
}
export const statusWords: Readonly<Record<ShownRequest['status'], string>> = {
  completed: 'Completed',
  failed: 'Failed',
  blocked: 'Blocked',
  rejected: 'Rejected',
  client_closed: 'Client disconnected',
}

export function StatusBadge({ request: { status } }: { readonly request: Pick<ShownRequest, 'status'> }) {
  return <Badge tone={tones[status]}>{statusWords[status]}</Badge>
}

/** An error code that breaks after its underscores on narrow screens. */
export function CodeText({ code }: { readonly code: string }) {
  return (
    <code class="block quiet">
      {code.split('_').map((part, index) => (
        <Fragment key={index}>
          {index > 0 && (
            <>
              _<wbr />
            </>
          )}
          {part}
        </Fragment>
      ))}
    </code>
  )
}

type Served = Pick<ShownRequest, 'model' | 'requested_model' | 'routing_mode' | 'status' | 'first_token_ms'>

/** The model that served; null = none did. The record of a failed request names the model of its last attempt. */
export function servedModelOf({ model, status, first_token_ms }: Served): string | null {
  return status === 'completed' || first_token_ms !== null ? model : null
}

/** The requested model in words. An unknown name is never stored: it may be a secret in the wrong field. */
export function requestedModelText({
  requested_model,
  error_code,
}: Pick<ShownRequest, 'requested_model' | 'error_code'>) {
  if (requested_model === 'gateway-ai') return 'Automatic (gateway-ai)'
  return requested_model ?? (error_code === 'model_not_found' ? 'Not in the catalog' : 'Unknown')
}

/** Says that another model served than the one that the request named. */
export function ServedBadge({ request }: { readonly request: Served }) {
  const { requested_model, routing_mode } = request
  const model = servedModelOf(request)
  if (routing_mode === 'auto' || model === null || requested_model === null || model === requested_model) return null
  return (
    <Badge tone="warn">
      Requested {requested_model}, served {model}
    </Badge>
  )
}

/** Calls of models; candidates that were skipped do not count. */
export const callCount = ({ tried, attempts }: Pick<ShownRequest, 'tried' | 'attempts'>) => tried?.length ?? attempts

/** Everything that the log contains about one request. */
export function RequestDetail({ request, onClose }: { readonly request: ShownRequest; readonly onClose: () => void }) {
  const { metadata, tried } = request
  const [first] = tried ?? []
  const { names } = useProjects()
  return (
    <Dialog kind="beside" title="Request" onClose={onClose}>
      <p>
        <StatusBadge request={request} /> {request.error_code !== null && <code>{request.error_code}</code>}
      </p>
      <p class="copied-line">
        <span class="mono wrap">{request.request_id}</span>
        <Copy text={request.request_id} what="ID" />
      </p>
      <p>
        <ServedBadge request={request} />{' '}
        <a href={hrefTo(`requests/${encodeURIComponent(request.request_id)}`)}>Explain this request</a>
      </p>

      <h3>Time</h3>
      <Attempts request={request} />
      <dl class="pairs">
        <DetailRow name="Received" value={exactTime(request.created_at)} />
        {first !== undefined && <DetailRow name="First attempt" value={`after ${milliseconds(first.after_ms)}`} />}
        <DetailRow
          name="Time to first token"
          value={request.first_token_ms === null ? 'none' : milliseconds(request.first_token_ms)}
        />
        <DetailRow name="Total latency" value={milliseconds(request.latency_ms)} />
      </dl>

      <h3>Routing</h3>
      <dl class="pairs">
        <DetailRow name="Model" value={servedModelOf(request) ?? 'No model'} />
        <DetailRow name="Routing" value={request.routing_mode === 'auto' ? 'Automatic' : 'Manual'} />
        {request.strategy !== null && <DetailRow name="Strategy" value={request.strategy} />}
        {request.query_type !== null && <DetailRow name="Query type" value={humanize(request.query_type)} />}
        <DetailRow name="Attempts" value={formatCount(callCount(request))} />
        {request.dialect !== null && <DetailRow name="Dialect" value={dialectNames[request.dialect]} />}
        <DetailRow name="Response type" value={request.streamed ? 'Stream' : 'JSON'} />
        <DetailRow name="Finish reason" value={request.finish_reason ?? '–'} />
        <DetailRow name="Key" value={request.key_name ?? request.key_id} />
        {request.project_id !== null && (
          <DetailRow name="Project" value={names.get(request.project_id) ?? request.project_id} />
        )}
        {request.user_email !== null && <DetailRow name="Member" value={request.user_email} />}
        {request.tags !== null && <DetailRow name="Tags" value={formatTags(request.tags)} />}
      </dl>

      {request.status !== 'rejected' && <Use request={request} />}

      {metadata !== null && Object.keys(metadata).length > 0 && (
        <>
          <h3>Metadata</h3>
          <dl class="pairs">
            {Object.entries(metadata).map(([name, value]) => (
              <DetailRow key={name} name={name} value={value} />
            ))}
          </dl>
        </>
      )}
    </Dialog>
  )
}

/** Tokens and cost. Rejected requests have none. */
function Use({ request }: { readonly request: ShownRequest }) {
  return (
    <>
      <h3>Tokens</h3>
      <dl class="pairs">
        <DetailRow name="Input" value={formatCount(request.input_tokens)} />
        {request.cached_input_tokens > 0 && (
          <DetailRow name="Cached input" value={formatCount(request.cached_input_tokens)} />
        )}
        {request.cache_write_tokens > 0 && (
          <DetailRow name="Cache writes" value={formatCount(request.cache_write_tokens)} />
        )}
        <DetailRow name="Output" value={formatCount(request.output_tokens)} />
        {request.reasoning_tokens > 0 && <DetailRow name="Reasoning" value={formatCount(request.reasoning_tokens)} />}
        <DetailRow name="Token counts" value={request.estimated ? 'estimated' : 'reported by provider'} />
      </dl>

      <h3>Cost</h3>
      <dl class="pairs sum">
        <DetailRow
          name="Model"
          value={usdExact(Math.max(0, request.cost_usd - request.search_cost_usd - request.fetch_cost_usd))}
        />
        {request.search_cost_usd > 0 && <DetailRow name="Web search" value={usdExact(request.search_cost_usd)} />}
        {request.fetch_cost_usd > 0 && <DetailRow name="Page fetches" value={usdExact(request.fetch_cost_usd)} />}
        <DetailRow name="Total" value={usdExact(request.cost_usd)} />
      </dl>
    </>
  )
}
