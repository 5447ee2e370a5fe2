import { useState } from 'preact/hooks'
import type { ChatSummary } from '../../dialects/native/schema.ts'
import { useAction } from '../state/action.ts'
import { call } from '../state/api.ts'
import type { RequestError } from '../state/api-error.ts'
import type { ChatRequest } from '../state/chat.ts'
import type { Turn } from '../state/conversation.ts'
import { count, humanize, milliseconds, usd } from '../state/format.ts'
import { hrefTo } from '../state/hash-route.ts'
import type { DryRun } from '../state/routes.ts'
import { Badge } from './badge.tsx'
import { ModelOutput } from './model-output.tsx'
import { FailureNotice, Notice } from './notice.tsx'
import { Stars } from './stars.tsx'

type Explain = (request: ChatRequest) => Promise<DryRun | null>

/** A prompt, its response, and details. */
export function TurnView({ turn, explain }: { readonly turn: Turn; readonly explain: Explain }) {
  const { question, text, reasoning, state, summary, failure } = turn
  return (
    <li class="turn">
      <div class="question">
        <span class="unseen">You: </span>
        {question}
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
            <span class="dots" aria-hidden="true" /> Waiting for the first words
          </p>
        )}
        {text !== '' && <ModelOutput text={text} />}
        {state === 'stopped' && <p class="quiet">Stopped. What had arrived is billed.</p>}
      </div>
      {/* Announced once at the end: deltas would interrupt each other in a screen reader. */}
      <div class="unseen" aria-live="polite">
        {state === 'done' ? text : ''}
      </div>
      {failure !== null && <Refused failure={failure} />}
      {summary !== null && <Account turn={turn} summary={summary} explain={explain} />}
    </li>
  )
}

/** An error with the next step that this page offers. */
function Refused({ failure }: { readonly failure: RequestError }) {
  const isUsedUp = failure.code === 'daily_tokens_exceeded' || failure.code === 'daily_cost_exceeded'
  return (
    <>
      <FailureNotice failure={failure} />
      {(isUsedUp || failure.code === 'payment_required') && (
        <Notice
          actions={
            <a class="button small primary" href={hrefTo('billing')}>
              {isUsedUp ? 'See the plans' : 'To billing'}
            </a>
          }
        >
          {isUsedUp
            ? 'Limits start anew at midnight UTC. The plan “usage” has larger ones.'
            : 'An owner of the account can settle this.'}
        </Notice>
      )}
    </>
  )
}

/** Reason of the cap if the client set none. */
const outputCapReasons = {
  model_limit: 'limit of the model',
  default: 'default of the gateway',
  account_remaining: 'share of what the account has left today',
} as const satisfies Record<NonNullable<ChatSummary['output_cap']>['limited_by'], string>

type AccountProps = { readonly turn: Turn; readonly summary: ChatSummary; readonly explain: Explain }

function Account({ turn, summary, explain }: AccountProps) {
  const { usage, routing, enhancement, web } = summary
  return (
    <div class="account">
      <ul class="inline-list" aria-label="About this answer">
        <li>
          <Badge tone="good">{summary.model_used}</Badge>
        </li>
        <li>
          {count(usage.input_tokens)} in, {count(usage.output_tokens)} out{usage.estimated && ' (estimated)'}
        </li>
        <li>{usd(usage.cost_usd)}</li>
        <li>
          {milliseconds(turn.firstTokenMs)} to the first words, {milliseconds(turn.totalMs)} in all
        </li>
        {summary.finish_reason === 'length' && (
          <li>
            <Badge tone="warn">cut at the output limit</Badge>
            {summary.output_cap !== undefined &&
              ` ${count(summary.output_cap.tokens)} tokens: ${outputCapReasons[summary.output_cap.limited_by]}`}
          </li>
        )}
        {summary.finish_reason === 'content_filter' && (
          <li>
            <Badge tone="warn">ended by the safety rules</Badge>
          </li>
        )}
      </ul>
      <Rating requestId={summary.request_id} />
      <details>
        <summary>Why this model, and what it cost</summary>
        <div class="stack">
          <p>{whyRouted(routing)}</p>
          <ol class="attempts" aria-label="Attempts">
            {routing.attempts.map(({ model, outcome }, index) => (
              <li key={index}>
                <code>{model}</code> <Badge tone={outcome === 'served' ? 'good' : 'warn'}>{humanize(outcome)}</Badge>
              </li>
            ))}
          </ol>
          <Candidates explain={() => explain(turn.request)} />
          <dl class="pairs">
            <DetailRow name="Model" value={usd(usage.cost.model_usd)} />
            <DetailRow name="Web search" value={usd(usage.cost.search_usd)} />
            <DetailRow name="Pages read" value={usd(usage.cost.fetch_usd)} />
            <DetailRow name="Cached input" value={`${count(usage.cached_input_tokens)} tokens`} />
            <DetailRow name="Reasoning" value={`${count(usage.reasoning_tokens)} tokens`} />
            <DetailRow name="Request" value={summary.request_id} />
          </dl>
        </div>
      </details>
      {enhancement?.changed && (
        <details>
          <summary>The prompt was enhanced</summary>
          <p class="pre">{enhancement.enhanced_prompt}</p>
        </details>
      )}
      {web.searched && (
        <details>
          <summary>The web was searched: {count(web.sources.length)} sources</summary>
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

/** Loaded on demand. */
function Candidates({ explain }: { readonly explain: () => Promise<DryRun | null> }) {
  const [found, setFound] = useState<DryRun | null | undefined>()
  const asking = useAction(async () => setFound(await explain()))
  if (found === null) return <p class="hint">This gateway does not tell its other candidates.</p>
  if (found === undefined)
    return (
      <>
        {asking.failure !== null && <FailureNotice failure={asking.failure} />}
        <button type="button" class="button small" disabled={asking.isBusy} onClick={() => void asking.run()}>
          {asking.isBusy ? 'One moment…' : 'Show how the models rank for this prompt'}
        </button>
      </>
    )
  return (
    <ol class="attempts" aria-label="Candidates, best first">
      {found.candidates.slice(0, shownCandidates).map(({ model, score, reasons }) => (
        <li key={model}>
          <code>{model}</code> {score.toFixed(3)} <span class="quiet">{reasons.join('; ')}</span>
        </li>
      ))}
    </ol>
  )
}

const shownCandidates = 6

/** The URL of a source is untrusted: only web pages become links. */
const isWebAddress = (url: string) => /^https?:\/\//i.test(url)

export function DetailRow({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

function whyRouted({ mode, strategy, query_type, complexity, learned, attempts }: ChatSummary['routing']): string {
  const read =
    query_type === null || complexity === null
      ? ''
      : ` It reads as ${humanize(query_type).toLowerCase()}, ${complexity < 0.34 ? 'simple' : complexity < 0.67 ? 'of middling difficulty' : 'hard'} (${complexity.toFixed(2)}).`
  const choice =
    mode === 'manual'
      ? 'You named the model.'
      : strategy === null
        ? `The prompt decided.${read}`
        : `The strategy “${strategy}” decided.${read}`
  return [
    choice,
    learned ? 'What was learned from your own requests changed the choice.' : '',
    attempts.length > 1 ? `${attempts.length} models were asked or skipped; the last one served.` : '',
  ]
    .filter(Boolean)
    .join(' ')
}

function Rating({ requestId }: { readonly requestId: string }) {
  const [given, setGiven] = useState<number | null>(null)
  const rating = useAction(async (stars: number) => {
    const before = given
    setGiven(stars)
    try {
      await call('POST /api/v1/insights/feedback', { body: { request_id: requestId, score: stars } })
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
            ? 'It cannot be rated: this request was not learned from.'
            : rating.failure.message
          : given === null
            ? 'Rate the answer: it counts for the next one.'
            : 'Thank you. It counts from now on.'}
      </span>
    </div>
  )
}
