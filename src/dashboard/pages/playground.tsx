import { useEffect, useRef, useState } from 'preact/hooks'
import type { ShownModel } from '../../dialects/models/schemas.ts'
import { Button, Icon } from '../parts/controls.tsx'
import { TurnView } from '../parts/conversation-turn.tsx'
import { Notice } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { ModelChoice, PlaygroundSettings } from '../parts/playground-settings.tsx'
import { RequestCode } from '../parts/request-code.tsx'
import type { CodeRequest } from '../state/code-body.ts'
import {
  type Attachment,
  askAgain,
  askLanes,
  clear,
  draft,
  isAnswering,
  type Lane,
  lanes,
  openPlayground,
  removeLane,
  setModel,
  settings,
  stopAnswers,
  toMessages,
  toPlaygroundRequest,
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
      hint="Send a prompt and inspect routing, tokens and cost. The conversation stays in this tab’s memory only."
      actions={
        <>
          <Button onClick={() => setCode(toCodeRequest(all[0]))}>View code</Button>
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
                  onCode={() => setCode(toCodeRequest(lane))}
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
          <ModelChoice
            label={`Model ${place}`}
            value={lane.model}
            onChoice={model => setModel(lane.id, model)}
            models={models}
          />
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
              onAgain={index === lane.turns.length - 1 ? () => void askAgain(lane.id) : null}
            />
          ))}
        </ol>
      )}
    </section>
  )
}

/** The last request of a conversation, or an example before the first, with the present settings. */
function toCodeRequest(lane: Lane | undefined): CodeRequest {
  const {
    model,
    strategy,
    enhance_prompt,
    web,
    stream_mode: _,
    ...parameters
  } = toPlaygroundRequest(lane?.model ?? '', settings.peek())
  return {
    origin: location.origin,
    model,
    headers: {
      ...(strategy === undefined ? {} : { 'X-Gateway-Strategy': strategy }),
      ...(enhance_prompt ? { 'X-Gateway-Enhance': 'true' } : {}),
      ...(web === 'off' ? { 'X-Gateway-Web': 'off' } : {}),
    },
    messages: lane?.turns.at(-1)?.request.messages ?? toMessages([], ideas[0], []),
    parameters,
  }
}

type ComposerProps = {
  readonly isAnswering: boolean
  readonly onAsk: (question: string, images: readonly Attachment[]) => Promise<void>
  readonly onStop: () => void
}

const mostImages = 4
/** As a request body: four of them stay below the gateway's default limit. */
const mostImageBytes = 2_000_000

/** The prompt with its images. */
function Composer({ isAnswering, onAsk, onStop }: ComposerProps) {
  const text = draft.value
  const [images, setImages] = useState<readonly Attachment[]>([])
  const [rejected, setRejected] = useState('')
  const field = useRef<HTMLTextAreaElement>(null)
  const send = () => {
    const question = text.trim()
    if (question === '' || isAnswering) return
    draft.value = ''
    setImages([])
    void onAsk(question, images)
    field.current?.focus()
  }
  const attach = async (files: readonly File[]) => {
    const fitting = files.filter(({ size }) => size <= mostImageBytes).slice(0, mostImages - images.length)
    setRejected(fitting.length < files.length ? 'At most 4 images of 2 MB each.' : '')
    const added = await Promise.all(fitting.map(async file => ({ name: file.name, url: await readDataUrl(file) })))
    setImages(now => [...now, ...added])
  }
  return (
    <form
      class="composer"
      onSubmit={event => {
        event.preventDefault()
        send()
      }}
    >
      {(images.length > 0 || rejected !== '') && (
        <div class="attachments">
          {images.map(({ name }, index) => (
            <Button
              key={index}
              look="small"
              aria-label={`Remove image ${name}`}
              onClick={() => setImages(now => now.filter((_, at) => at !== index))}
            >
              {name} <Icon name="close" size={13} />
            </Button>
          ))}
          {rejected !== '' && <Notice tone="warn">{rejected}</Notice>}
        </div>
      )}
      <textarea
        ref={field}
        aria-label="Your message"
        placeholder="Your message"
        rows={2}
        value={text}
        onInput={event => {
          draft.value = event.currentTarget.value
        }}
        onKeyDown={event => {
          // While text is being composed, Enter belongs to the input method.
          if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
            event.preventDefault()
            send()
          }
        }}
      />
      <label class="button plain square attach">
        <Icon name="image" />
        <input
          type="file"
          class="unseen"
          aria-label="Attach images"
          accept="image/png,image/jpeg,image/webp,image/gif"
          multiple
          onChange={event => {
            const input = event.currentTarget
            void attach([...(input.files ?? [])])
            input.value = ''
          }}
        />
      </label>
      {isAnswering ? (
        <Button onClick={onStop}>
          <Icon name="stop" size={16} /> Stop
        </Button>
      ) : (
        <Button type="submit" look="primary" disabled={text.trim() === ''}>
          <Icon name="send" size={16} /> Send
        </Button>
      )}
    </form>
  )
}

function readDataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener('load', () => resolve(String(reader.result)))
    reader.addEventListener('error', () => reject(reader.error))
    reader.readAsDataURL(file)
  })
}
