import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { ChatSummary } from '../../dialects/native/schema.ts'
import { callApi } from '../state/api.ts'
import type { RequestError } from '../state/api-error.ts'
import { formatCount, formatUsd, milliseconds } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import type { Turn } from '../state/playground.ts'
import { useAction } from '../state/resource.ts'
import { Button, Copy } from './controls.tsx'
import { Badge, FailureNotice, Notice } from './notice.tsx'

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
  const isUsedUp = /^(daily|monthly)_/.test(failure.code)
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

/** Tools are never run here: the call is what the model asks for. */
function ToolCalls({ calls }: { readonly calls: ChatSummary['tool_calls'] }) {
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
function ResponseFacts({ turn, children }: { readonly turn: Turn; readonly children?: ComponentChildren }) {
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

const scale = [1, 2, 3, 4, 5] as const

/** One to five stars of a response as radio buttons, for learning. */
function ResponseRating({ requestId }: { readonly requestId: string }) {
  const name = useId()
  const [given, setGiven] = useState<number | null>(null)
  const { run, isBusy, failure } = useAction(async (stars: number) => {
    const before = given
    setGiven(stars)
    try {
      await callApi('POST /api/v1/insights/feedback', { body: { request_id: requestId, score: stars } })
    } catch (thrown) {
      setGiven(before)
      throw thrown
    }
  })
  const refused = failure?.code === 'not_found' ? 'This response cannot be rated.' : failure?.message
  return (
    <div class="rating">
      <fieldset class="stars" disabled={isBusy}>
        <legend class="unseen">Rate this response</legend>
        {scale.map(stars => (
          <label key={stars} class={given !== null && stars <= given ? 'lit' : ''}>
            <input type="radio" name={name} checked={given === stars} onChange={() => void run(stars)} />
            <span class="unseen">{stars === 1 ? '1 star' : `${stars} stars`}</span>
            <svg width="20" height="20" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
              <path d="M12 3.5l2.6 5.4 5.9.8-4.3 4.1 1 5.9L12 16.9l-5.2 2.8 1-5.9L3.5 9.7l5.9-.8z" />
            </svg>
          </label>
        ))}
      </fieldset>
      <span class="hint" role="status">
        {refused ?? (given === null ? 'Rate this response.' : 'Rating saved.')}
      </span>
    </div>
  )
}

/** Shows a model's output as plain text; only fenced code is formatted. */
function ModelOutput({ text }: { readonly text: string }) {
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
