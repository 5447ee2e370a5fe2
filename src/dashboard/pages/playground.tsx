import { useEffect, useRef, useState } from 'preact/hooks'
import type { ShownModel } from '../../dialects/models/schemas.ts'
import { Button } from '../parts/button.tsx'
import { Composer } from '../parts/composer.tsx'
import { TurnView } from '../parts/conversation-turn.tsx'
import { Notice } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { ModelChoice, PlaygroundSettings } from '../parts/playground-settings.tsx'
import { RequestCode } from '../parts/request-code.tsx'
import { requestDryRun } from '../state/chat.ts'
import type { CodeRequest } from '../state/code-body.ts'
import {
  addLane,
  askAgain,
  askLanes,
  clear,
  isAnswering,
  type Lane,
  lanes,
  messagesOf,
  mostLanes,
  openPlayground,
  removeLane,
  requestOf,
  settings,
  stopAnswers,
  takeKey,
} from '../state/playground.ts'
import { useResource } from '../state/resource.ts'

const ideas = [
  'Explain event sourcing to a new colleague in five sentences.',
  'Write a SQL query that finds customers without an order in the last 90 days.',
  'Compare Postgres and SQLite for a small web shop.',
] as const

export function Playground() {
  const [code, setCode] = useState<CodeRequest | null>(null)
  const models = useResource('GET /api/v1/models')
  useEffect(openPlayground, [])
  const all = lanes.value
  const turns = all.reduce((sum, lane) => sum + lane.turns.length, 0)
  const talk = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (turns > 0) talk.current?.querySelector('.turn:last-child')?.scrollIntoView({ block: 'start' })
  }, [turns])
  const isSimulated = models.data?.data.some(({ simulated }) => simulated) ?? false
  return (
    <Page
      title="Playground"
      about="Send a prompt and inspect routing, tokens and cost. The conversation stays in this tab’s memory only."
      actions={
        <>
          <Button
            text={all.length === 1 ? 'Compare' : 'Add model'}
            disabled={all.length >= mostLanes}
            onClick={addLane}
          />
          <Button onClick={() => setCode(codeOf(all[0]))}>View code</Button>
          {turns > 0 && <Button onClick={clear}>Clear conversation</Button>}
        </>
      }
    >
      <div class="playground">
        <div class="talk" ref={talk}>
          {turns === 0 && (
            <Card title="Send a prompt">
              <ul class="ideas">
                {ideas.map(idea => (
                  <li key={idea}>
                    <Button onClick={() => void askLanes(idea, [])}>{idea}</Button>
                  </li>
                ))}
              </ul>
              {isSimulated && (
                <Notice>
                  The providers are simulated: outputs are simulated; routing, limits and billing are real. Set a
                  provider’s key for real ones.
                </Notice>
              )}
            </Card>
          )}
          {(turns > 0 || all.length > 1) && (
            <div class="lanes">
              {all.map((lane, index) => (
                <LaneView
                  key={lane.id}
                  lane={lane}
                  place={all.length === 1 ? null : index + 1}
                  models={models.data?.data ?? []}
                  onCode={() => setCode(codeOf(lane))}
                />
              ))}
            </div>
          )}
          <Composer isAnswering={isAnswering.value} onAsk={askLanes} onStop={stopAnswers} />
        </div>
        <PlaygroundSettings models={models.data?.data ?? []} />
      </div>
      {code !== null && <RequestCode request={code} onClose={() => setCode(null)} />}
    </Page>
  )
}

type LaneViewProps = {
  readonly lane: Lane
  /** Number among the compared; null = the only one. */
  readonly place: number | null
  readonly models: readonly ShownModel[]
  readonly onCode: () => void
}

function LaneView({ lane, place, models, onCode }: LaneViewProps) {
  return (
    <section class="lane" aria-label={place === null ? undefined : `Comparison ${place}`}>
      {place !== null && (
        <div class="lane-head">
          <ModelChoice label={`Model ${place}`} laneId={lane.id} value={lane.model} models={models} />
          <div class="actions">
            <Button text="View code" look="small" aria-label={`View code of model ${place}`} onClick={onCode} />
            <Button
              text="Remove"
              look="small"
              aria-label={`Remove model ${place}`}
              onClick={() => removeLane(lane.id)}
            />
          </div>
        </div>
      )}
      {lane.turns.length > 0 && (
        <ol class="turns" aria-label={place === null ? 'Conversation' : `Conversation ${place}`}>
          {lane.turns.map((turn, index) => (
            <TurnView
              key={turn.id}
              turn={turn}
              explain={async request => requestDryRun(await takeKey(), request)}
              onAgain={index === lane.turns.length - 1 ? () => void askAgain(lane.id) : null}
            />
          ))}
        </ol>
      )}
    </section>
  )
}

/** The last request of a conversation, or an example before the first, with the present settings. */
function codeOf(lane: Lane | undefined): CodeRequest {
  const {
    model,
    strategy,
    enhance_prompt,
    web,
    stream_mode: _,
    ...parameters
  } = requestOf(lane?.model ?? '', settings.peek())
  return {
    origin: location.origin,
    model,
    headers: {
      ...(strategy === undefined ? {} : { 'X-Gateway-Strategy': strategy }),
      ...(enhance_prompt ? { 'X-Gateway-Enhance': 'true' } : {}),
      ...(web === 'off' ? { 'X-Gateway-Web': 'off' } : {}),
    },
    messages: lane?.turns.at(-1)?.request.messages ?? messagesOf([], ideas[0], []),
    parameters,
  }
}
