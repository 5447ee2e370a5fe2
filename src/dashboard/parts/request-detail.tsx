import type { RequestRecord, ShownRequest } from '../../console/usage/schemas.ts'
import { formatCount, humanize, milliseconds } from '../state/format.ts'
import { BarList } from './daily-chart.tsx'
import { Badge, type Tone } from './notice.tsx'

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

/** Says that another model served than the one that the request named; null = none did. */
export function tellSubstitution(request: Served): string | null {
  const { requested_model, routing_mode } = request
  const model = findServedModel(request)
  if (routing_mode === 'auto' || model === null || requested_model === null || model === requested_model) return null
  return `Requested ${requested_model}, served ${model}`
}

export const unpricedTexts: Readonly<Record<NonNullable<ShownRequest['unpriced']>, string>> = {
  model: 'Unpriced: no price of this model is known, so its tokens counted as free.',
  tier: 'Unpriced tier: the provider reports a service tier without a known price, so the usual price applied.',
  audio: 'Unpriced audio: the price of audio tokens is not known, so they counted as text.',
}

/** Calls of models; candidates that were skipped do not count. */
export const callCount = ({ tried, attempts }: Pick<ShownRequest, 'tried' | 'attempts'>) => tried?.length ?? attempts

/** Attempts on the timeline of the request: gray while waiting, then the output. */
export function Attempts({ record }: { readonly record: RequestRecord }) {
  const { tried, attempts, attempt_details: details, latency_ms: all } = record
  if (tried === null) return <p class="hint">Attempt details are not available for older requests.</p>
  const skipped = attempts - tried.length
  return (
    <>
      <BarList
        label="Attempts"
        shares={tried.map(({ model, outcome, after_ms, duration_ms }, index) => {
          const isServed = outcome === 'served'
          const bars = [
            { name: '', tone: 'gap', value: after_ms },
            {
              name: isServed ? 'time to first token' : '',
              tone: isServed ? 'wait attempt' : 'lost attempt',
              value: duration_ms,
            },
            ...(isServed ? [{ name: 'streaming', tone: 'flow attempt', value: all - after_ms - duration_ms }] : []),
          ]
          return {
            key: `${index} ${model}`,
            name: <code>{model}</code>,
            value: all,
            told: (
              <>
                <Badge tone={isServed ? 'good' : 'warn'}>{humanize(outcome)}</Badge> {milliseconds(duration_ms)}
              </>
            ),
            // A failed attempt can take less than a millisecond.
            parts: bars.filter(({ tone, value }) => value > 0 || tone.startsWith('lost')),
            more: details?.[index]?.cause == null ? undefined : formatCause(details[index]),
          }
        })}
      />
      {tried.length === 0 && (
        <p class="hint">
          {record.model === null ? 'No attempt was made.' : `The request ended during the attempt on ${record.model}.`}
        </p>
      )}
      {record.skipped?.map(({ model, cause }) => (
        <p key={model} class="hint">
          <code>{model}</code> was skipped: {cause}.
        </p>
      ))}
      {skipped > 0 && record.skipped === null && (
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
