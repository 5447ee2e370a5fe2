import { Fragment } from 'preact'
import type { RequestRecord, ShownRequest } from '../../console/usage/schemas.ts'
import { dialectNames, exactTime, formatCount, formatTags, humanize, milliseconds, usdExact } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import { Copy } from './controls.tsx'
import { Dialog } from './dialog.tsx'
import { Badge, type Tone } from './notice.tsx'
import { Pairs } from './page.tsx'
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
export function findServedModel({ model, status, first_token_ms }: Served): string | null {
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
  const model = findServedModel(request)
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
      <Pairs
        of={[
          ['Received', exactTime(request.created_at)],
          first !== undefined && ['First attempt', `after ${milliseconds(first.after_ms)}`],
          ['Time to first token', request.first_token_ms === null ? 'none' : milliseconds(request.first_token_ms)],
          ['Total latency', milliseconds(request.latency_ms)],
        ]}
      />

      <h3>Routing</h3>
      <Pairs
        of={[
          ['Model', findServedModel(request) ?? 'No model'],
          ['Routing', request.routing_mode === 'auto' ? 'Automatic' : 'Manual'],
          request.strategy !== null && ['Strategy', request.strategy],
          request.query_type !== null && ['Query type', humanize(request.query_type)],
          ['Attempts', formatCount(callCount(request))],
          request.dialect !== null && ['Dialect', dialectNames[request.dialect]],
          ['Response type', request.streamed ? 'Stream' : 'JSON'],
          ['Finish reason', request.finish_reason ?? '–'],
          ['Key', request.key_name ?? request.key_id],
          request.project_id !== null && ['Project', names.get(request.project_id) ?? request.project_id],
          request.user_email !== null && ['Member', request.user_email],
          request.tags !== null && ['Tags', formatTags(request.tags)],
        ]}
      />

      {request.status !== 'rejected' && <Use request={request} />}

      {metadata !== null && Object.keys(metadata).length > 0 && (
        <>
          <h3>Metadata</h3>
          <Pairs of={[...Object.entries(metadata).map(([name, value]) => [name, value] as const)]} />
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
      <Pairs
        of={[
          ['Input', formatCount(request.input_tokens)],
          request.cached_input_tokens > 0 && ['Cached input', formatCount(request.cached_input_tokens)],
          request.cache_write_tokens > 0 && ['Cache writes', formatCount(request.cache_write_tokens)],
          ['Output', formatCount(request.output_tokens)],
          request.reasoning_tokens > 0 && ['Reasoning', formatCount(request.reasoning_tokens)],
          ['Token counts', request.estimated ? 'estimated' : 'reported by provider'],
        ]}
      />

      <h3>Cost</h3>
      <Pairs
        look="sum"
        of={[
          ['Model', usdExact(Math.max(0, request.cost_usd - request.search_cost_usd - request.fetch_cost_usd))],
          request.search_cost_usd > 0 && ['Web search', usdExact(request.search_cost_usd)],
          request.fetch_cost_usd > 0 && ['Page fetches', usdExact(request.fetch_cost_usd)],
          ['Total', usdExact(request.cost_usd)],
        ]}
      />
    </>
  )
}

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
              {details?.[index]?.cause != null && <p class="hint">{formatCause(details[index])}</p>}
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

const formatCause = ({ cause, http_status, after_ms }: Detail) =>
  `After ${milliseconds(after_ms)}: ${cause}, ${http_status === null ? 'no response' : `status ${http_status}`}.`

/** Returns position and length of a time within `all`, always visible and within bounds. */
function stretch(from: number, duration: number, all: number) {
  const start = all === 0 ? 0 : Math.min(1, from / all)
  const length = all === 0 ? 1 : Math.min(1 - start, duration / all)
  return { insetInlineStart: `${start * 100}%`, inlineSize: `${length * 100}%` }
}
