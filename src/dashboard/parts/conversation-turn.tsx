import { useEffect, useRef } from 'preact/hooks'
import type { ChatSummary } from '../../dialects/native/schema.ts'
import type { RequestError } from '../state/api-error.ts'
import { formatCount } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import type { Turn } from '../state/playground.ts'
import { Button, Copy } from './controls.tsx'
import { Badge, FailureNotice, Notice } from './notice.tsx'
import { ModelOutput, ResponseFacts, ResponseRating, ToolCalls } from './turn-parts.tsx'

type TurnViewProps = {
  readonly turn: Turn
  /** Sends the prompt again; null = it is not the last one. */
  readonly onAgain: (() => void) | null
}

/** A prompt, its response, and details. */
export function TurnView({ turn, onAgain }: TurnViewProps) {
  const { question, text, reasoning, state, summary, failure, images } = turn
  const isEnded = state === 'done' || state === 'stopped' || state === 'failed'
  const end = useRef<HTMLDivElement>(null)
  // The composer covers the end of the page: an error must not appear below it.
  useEffect(() => {
    if (failure !== null) end.current?.scrollIntoView({ block: 'nearest' })
  }, [failure, turn.record])
  return (
    <li class="turn">
      <div class="question">
        <span class="unseen">You: </span>
        {question}
        {images.map(({ name }) => (
          <span key={name} class="block quiet">
            Image: {name}
          </span>
        ))}
      </div>
      {reasoning !== '' && (
        <details class="reasoning">
          <summary>Reasoning</summary>
          <p>{reasoning}</p>
        </details>
      )}
      <div class="answer" aria-busy={state === 'waiting' || state === 'answering'}>
        {state === 'waiting' && (
          <p class="quiet" role="status">
            <span class="dots" aria-hidden="true" /> Waiting for the first token
          </p>
        )}
        {text !== '' && <ModelOutput text={text} />}
        {state === 'stopped' && <p class="quiet">Stopped. Received output is billed.</p>}
      </div>
      {/* Announced once at the end: deltas would interrupt each other in a screen reader. */}
      <div class="unseen" aria-live="polite">
        {state === 'done' ? text : ''}
      </div>
      <div class="turn-end" ref={end}>
        {failure !== null && <Refused failure={failure} />}
        {summary !== null && summary.tool_calls.length > 0 && <ToolCalls calls={summary.tool_calls} />}
        {isEnded && summary === null && <ResponseFacts turn={turn} />}
        {isEnded && (
          <div class="actions">
            {text !== '' && <Copy text={text} what="output" />}
            {onAgain !== null && (
              <Button text={state === 'done' ? 'Regenerate' : 'Retry'} look="small" onClick={onAgain} />
            )}
            {turn.requestId !== null && (
              <a class="button small" href={hrefTo(`requests/${turn.requestId}`)}>
                Routing and cost
              </a>
            )}
          </div>
        )}
        {summary !== null && <Account turn={turn} summary={summary} />}
      </div>
    </li>
  )
}

/** An error with the next step that this page offers. */
function Refused({ failure }: { readonly failure: RequestError }) {
  const isUsedUp =
    failure.code === 'daily_tokens_exceeded' ||
    failure.code === 'daily_cost_exceeded' ||
    failure.code === 'monthly_cost_exceeded'
  return (
    <>
      <FailureNotice failure={failure} />
      {(isUsedUp || failure.code === 'payment_required') && (
        <Notice
          actions={
            <a class="button small primary" href={hrefTo('billing')}>
              {isUsedUp ? 'View plans' : 'Open billing'}
            </a>
          }
        >
          {isUsedUp
            ? 'Limits reset at 00:00 UTC. The Usage plan has higher limits.'
            : 'An owner of the account can resolve this.'}
        </Notice>
      )}
    </>
  )
}

/** Reason of the cap if the client set none. */
const outputCapReasons = {
  model_limit: 'limit of the model',
  default: 'default of the gateway',
  account_remaining: 'share of the remaining daily limit',
} as const satisfies Record<NonNullable<ChatSummary['output_cap']>['limited_by'], string>

type AccountProps = { readonly turn: Turn; readonly summary: ChatSummary }

function Account({ turn, summary }: AccountProps) {
  const { routing, enhancement, web } = summary
  const { mode, requested_model: requested } = routing
  return (
    <div class="account">
      <ResponseFacts turn={turn}>
        {mode === 'manual' && requested !== undefined && requested !== summary.model_used && (
          <li>
            <Badge tone="warn">
              Requested {requested}, served {summary.model_used}
            </Badge>
          </li>
        )}
        {summary.finish_reason === 'length' && (
          <li>
            <Badge tone="warn">output limit reached</Badge>
            {summary.output_cap !== undefined &&
              ` ${formatCount(summary.output_cap.tokens)} tokens: ${outputCapReasons[summary.output_cap.limited_by]}`}
          </li>
        )}
        {summary.finish_reason === 'content_filter' && (
          <li>
            <Badge tone="warn">stopped by moderation</Badge>
          </li>
        )}
      </ResponseFacts>
      <ResponseRating requestId={summary.request_id} />
      {enhancement?.changed && (
        <details>
          <summary>The prompt was enhanced</summary>
          <p class="pre">{enhancement.enhanced_prompt}</p>
        </details>
      )}
      {web.searched && (
        <details>
          <summary>Web search: {formatCount(web.sources.length)} sources</summary>
          <ul>
            {web.sources.map(({ url, title }) => (
              <li key={url}>
                {isWebAddress(url) ? (
                  <a href={url} target="_blank" rel="noopener noreferrer">
                    {title === '' ? url : title}
                  </a>
                ) : (
                  title
                )}
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

/** The URL of a source is untrusted: only web pages become links. */
const isWebAddress = (url: string) => /^https?:\/\//i.test(url)
