import { useState } from 'preact/hooks'
import type { ChatSummary } from '../../dialects/native/schema.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { formatCount, formatUsd, humanize, milliseconds } from '../state/format.ts'
import type { Turn } from '../state/playground.ts'
import { Badge } from './badge.tsx'
import { Stars } from './stars.tsx'

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

/** Timing of a response that was stopped or failed; its tokens and cost come from the log. */
export function WithoutSummary({ turn: { record, firstTokenMs, totalMs } }: { readonly turn: Turn }) {
  const failed = record?.tried?.filter(({ outcome }) => outcome !== 'served') ?? []
  return (
    <ul class="inline-list quiet" aria-label="About this response">
      {record?.model != null && (
        <li>
          <Badge>{record.model}</Badge>
        </li>
      )}
      {failed.map(({ model, outcome }, index) => (
        <li key={index}>
          <code>{model}</code> <Badge tone="warn">{humanize(outcome)}</Badge>
        </li>
      ))}
      {record != null && record.total_tokens > 0 && (
        <>
          <li>
            {formatCount(record.input_tokens)} input, {formatCount(record.output_tokens)} output tokens
          </li>
          <li>{formatUsd(record.cost_usd)}</li>
        </>
      )}
      <li>
        {firstTokenMs === null ? '' : `TTFT ${milliseconds(firstTokenMs)}, `}total {milliseconds(totalMs)}
      </li>
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
