import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import type { ChatSummary } from '../../dialects/native/schema.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { formatCount, formatUsd, milliseconds } from '../state/format.ts'
import type { Turn } from '../state/playground.ts'
import { Badge } from './notice.tsx'

/** Tools are never run here: the call is what the model asks for. */
export function ToolCalls({ calls }: { readonly calls: ChatSummary['tool_calls'] }) {
  return (
    <ul class="attempts" aria-label="Tool calls">
      {calls.map(({ id, function: { name, arguments: json } }) => (
        <li key={id}>
          <Badge>Tool call</Badge> <code>{name}</code> <code class="wrap">{json}</code>
        </li>
      ))}
    </ul>
  )
}

/** Model, tokens, cost and times of a response: from its summary, or if it ended early, from the log. `children` are further facts. */
export function ResponseFacts({ turn, children }: { readonly turn: Turn; readonly children?: ComponentChildren }) {
  const { summary, record, firstTokenMs, totalMs } = turn
  const model = summary?.model_used ?? record?.model ?? null
  const usage = summary?.usage ?? record
  return (
    <ul class="inline-list quiet" aria-label="About this response">
      {model !== null && (
        <li>
          <Badge tone={summary === null ? 'plain' : 'good'}>{model}</Badge>
        </li>
      )}
      {usage !== null && usage.input_tokens + usage.output_tokens > 0 && (
        <>
          <li>
            {formatCount(usage.input_tokens)} input, {formatCount(usage.output_tokens)} output tokens
            {usage.estimated && ' (estimated)'}
          </li>
          <li>{formatUsd(usage.cost_usd)}</li>
        </>
      )}
      <li>
        {firstTokenMs !== null && `TTFT ${milliseconds(firstTokenMs)}, `}total {milliseconds(totalMs)}
      </li>
      {children}
    </ul>
  )
}

/** Stars of a response, for learning. */
export function ResponseRating({ requestId }: { readonly requestId: string }) {
  const [given, setGiven] = useState<number | null>(null)
  const rating = useAction(async (stars: number) => {
    const before = given
    setGiven(stars)
    try {
      await callApi('POST /api/v1/insights/feedback', { body: { request_id: requestId, score: stars } })
    } catch (thrown) {
      setGiven(before)
      throw thrown
    }
  })
  const isUnknown = rating.failure?.code === 'not_found'
  return (
    <div class="rating">
      <Stars given={given} onRate={stars => void rating.run(stars)} disabled={rating.isBusy} />
      <span class="hint" role="status">
        {rating.failure !== null
          ? isUnknown
            ? 'This response cannot be rated.'
            : rating.failure.message
          : given === null
            ? 'Rate this response.'
            : 'Rating saved.'}
      </span>
    </div>
  )
}

const scale = [1, 2, 3, 4, 5] as const

type StarsProps = {
  readonly given: number | null
  readonly onRate: (stars: number) => void
  readonly disabled?: boolean
}

/** One to five stars as radio buttons. */
function Stars({ given, onRate, disabled = false }: StarsProps) {
  const name = useId()
  return (
    <fieldset class="stars" disabled={disabled}>
      <legend class="unseen">Rate this response</legend>
      {scale.map(stars => (
        <label key={stars} class={given !== null && stars <= given ? 'lit' : ''}>
          <input type="radio" name={name} checked={given === stars} onChange={() => onRate(stars)} />
          <span class="unseen">{stars === 1 ? '1 star' : `${stars} stars`}</span>
          <svg width="20" height="20" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
            <path d="M12 3.5l2.6 5.4 5.9.8-4.3 4.1 1 5.9L12 16.9l-5.2 2.8 1-5.9L3.5 9.7l5.9-.8z" />
          </svg>
        </label>
      ))}
    </fieldset>
  )
}

/** Shows a model's output as plain text; only fenced code is formatted. */
export function ModelOutput({ text }: { readonly text: string }) {
  return (
    <>
      {text.split(/^```/m).map((part, index) => {
        if (index % 2 === 0) {
          const trimmed = part.trim()
          return trimmed === '' ? null : <p key={index}>{trimmed}</p>
        }
        return (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
          <pre key={index} tabIndex={0}>
            {part.replace(/^[\w+#.-]*\n/, '').trimEnd()}
          </pre>
        )
      })}
    </>
  )
}
