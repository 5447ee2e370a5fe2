import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { type Strategy, strategies } from '../../core/chat/chat.ts'
import type { ShownModel } from '../../routes/models/schemas.ts'
import { TurnView } from '../parts/conversation-turn.tsx'
import { SelectField, Switch, TextField } from '../parts/field.tsx'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { Card, Page } from '../parts/page.tsx'
import { RequestCode } from '../parts/request-code.tsx'
import { type ChatMessage, requestDryRun } from '../state/chat.ts'
import { useConversation } from '../state/conversation.ts'
import { humanize } from '../state/format.ts'
import { createPageKey } from '../state/playground-key.ts'
import type { CodeRequest } from '../state/request-code.ts'
import { useResource } from '../state/resource.ts'

type Choices = {
  /** `gateway-ai`, `gateway-ai/<strategy>`, or a model. */
  readonly model: string
  readonly enhances: boolean
  readonly usesWeb: boolean
  readonly isSmooth: boolean
  readonly system: string
  readonly ownKey: string
}

const autoModel = 'gateway-ai'
const start: Choices = { model: autoModel, enhances: false, usesWeb: true, isSmooth: true, system: '', ownKey: '' }

const ideas = [
  'Explain event sourcing to a new colleague in five sentences.',
  'Write a SQL query that finds customers without an order in the last 90 days.',
  'Compare Postgres and SQLite for a small web shop.',
]

export function Playground() {
  const [choices, setChoices] = useState(start)
  const [code, setCode] = useState<CodeRequest | null>(null)
  const models = useResource('GET /api/v1/models')
  const pageKey = useMemo(createPageKey, [])
  useEffect(() => {
    const closing = () => pageKey.giveBack(true)
    addEventListener('pagehide', closing)
    return () => {
      removeEventListener('pagehide', closing)
      pageKey.giveBack(false)
    }
  }, [pageKey])

  const ownKey = choices.ownKey.trim()
  const takeKey = () => (ownKey === '' ? pageKey.take() : Promise.resolve(ownKey))
  const talk = useConversation(takeKey)
  const ask = (question: string) => talk.ask(question, requestOf(choices), choices.system)
  const newest = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (talk.turns.length > 0) newest.current?.querySelector('.turn:last-child')?.scrollIntoView({ block: 'start' })
  }, [talk.turns.length])
  const isSimulated = models.data?.data.some(({ simulated }) => simulated) ?? false
  return (
    <Page
      title="Playground"
      about="Send a prompt and inspect routing, tokens and cost. The conversation is not stored."
      actions={
        <>
          <button
            type="button"
            class="button"
            onClick={() => setCode(codeOf(choices, talk.turns.at(-1)?.request.messages))}
          >
            View code
          </button>
          {talk.turns.length > 0 && (
            <button type="button" class="button" onClick={talk.clear}>
              Clear conversation
            </button>
          )}
        </>
      }
    >
      <div class="playground">
        <div class="talk" ref={newest}>
          {talk.turns.length === 0 ? (
            <Card title="Send a prompt">
              <ul class="ideas">
                {ideas.map(idea => (
                  <li key={idea}>
                    <button type="button" class="button" onClick={() => void ask(idea)}>
                      {idea}
                    </button>
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
          ) : (
            <ol class="turns" aria-label="Conversation">
              {talk.turns.map(turn => (
                <TurnView
                  key={turn.id}
                  turn={turn}
                  explain={async request => requestDryRun(await takeKey(), request)}
                />
              ))}
            </ol>
          )}
          <Composer isAnswering={talk.isAnswering} onAsk={ask} onStop={talk.stop} />
        </div>
        <Options choices={choices} models={models.data?.data ?? []} onChange={setChoices} />
      </div>
      {code !== null && <RequestCode request={code} onClose={() => setCode(null)} />}
    </Page>
  )
}

function requestOf({ model, enhances, usesWeb, isSmooth }: Choices) {
  const [name = autoModel, strategy] = model.startsWith(`${autoModel}/`) ? model.split('/') : [model]
  return {
    model: name,
    ...(strategy === undefined ? {} : { strategy }),
    enhance_prompt: enhances,
    web: usesWeb ? 'auto' : 'off',
    stream_mode: isSmooth ? 'buffered' : 'realtime',
  } as const
}

/** The last request of the conversation, or an example before the first, with the present settings. */
function codeOf(choices: Choices, messages: readonly ChatMessage[] | undefined): CodeRequest {
  const { model, strategy, enhance_prompt, web } = requestOf(choices)
  const example: ChatMessage[] = [{ role: 'user', content: ideas[0] ?? '' }]
  if (choices.system !== '') example.unshift({ role: 'system', content: choices.system })
  return {
    origin: location.origin,
    model,
    headers: {
      ...(strategy === undefined ? {} : { 'X-Gateway-Strategy': strategy }),
      ...(enhance_prompt ? { 'X-Gateway-Enhance': 'true' } : {}),
      ...(web === 'off' ? { 'X-Gateway-Web': 'off' } : {}),
    },
    messages: messages ?? example,
  }
}

type ComposerProps = {
  readonly isAnswering: boolean
  readonly onAsk: (question: string) => Promise<void>
  readonly onStop: () => void
}

function Composer({ isAnswering, onAsk, onStop }: ComposerProps) {
  const [text, setText] = useState('')
  const field = useRef<HTMLTextAreaElement>(null)
  const send = () => {
    const question = text.trim()
    if (question === '' || isAnswering) return
    setText('')
    void onAsk(question)
    field.current?.focus()
  }
  return (
    <form
      class="composer"
      onSubmit={event => {
        event.preventDefault()
        send()
      }}
    >
      <textarea
        ref={field}
        aria-label="Your message"
        placeholder="Your message"
        rows={2}
        value={text}
        onInput={event => setText(event.currentTarget.value)}
        onKeyDown={event => {
          // While text is being composed, Enter belongs to the input method.
          if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
            event.preventDefault()
            send()
          }
        }}
      />
      {isAnswering ? (
        <button type="button" class="button" onClick={onStop}>
          <Icon name="stop" size={16} /> Stop
        </button>
      ) : (
        <button type="submit" class="button primary" disabled={text.trim() === ''}>
          <Icon name="send" size={16} /> Send
        </button>
      )}
    </form>
  )
}

type OptionsProps = {
  readonly choices: Choices
  readonly models: readonly ShownModel[]
  readonly onChange: (choices: Choices) => void
}

const strategyWords: Readonly<Record<Strategy, string>> = {
  balanced: 'fixed weights',
  quality: 'highest quality',
  cost: 'lowest cost',
  speed: 'lowest latency',
}

function Options({ choices, models, onChange }: OptionsProps) {
  const set = (part: Partial<Choices>) => onChange({ ...choices, ...part })
  const isWide = useMemo(() => matchMedia('(min-width: 1000px)').matches, [])
  const providers = Map.groupBy(
    models.filter(({ status }) => status !== 'retired'),
    ({ provider }) => provider,
  )
  return (
    <Card title="Request settings" class="options">
      <SelectField
        label="Model"
        value={choices.model}
        onChoice={model => set({ model })}
        hint={choices.model === autoModel ? 'The gateway chooses a model for each prompt.' : undefined}
      >
        <optgroup label="Automatic">
          <option value={autoModel}>Automatic</option>
          {strategies.map(strategy => (
            <option key={strategy} value={`${autoModel}/${strategy}`}>
              {humanize(strategy)}: {strategyWords[strategy]}
            </option>
          ))}
        </optgroup>
        {[...providers].map(([provider, ofProvider]) => (
          <optgroup key={provider} label={provider}>
            {ofProvider.map(({ name, display_name }) => (
              <option key={name} value={name}>
                {display_name}
              </option>
            ))}
          </optgroup>
        ))}
      </SelectField>
      <details open={isWide}>
        <summary>Options</summary>
        <div class="stack">
          <Switch
            label="Enhance the prompt"
            hint="Adds detail to short prompts. Free."
            isOn={choices.enhances}
            onSwitch={enhances => set({ enhances })}
          />
          <Switch
            label="Web access"
            hint="Searches and fetches pages when the prompt needs them."
            isOn={choices.usesWeb}
            onSwitch={usesWeb => set({ usesWeb })}
          />
          <Switch
            label="Buffered streaming"
            hint="Sends whole sentences about every 100 ms."
            isOn={choices.isSmooth}
            onSwitch={isSmooth => set({ isSmooth })}
          />
          <div class="field">
            <label>
              System message
              <textarea rows={3} value={choices.system} onInput={event => set({ system: event.currentTarget.value })} />
            </label>
          </div>
          <TextField
            label="API key"
            type="password"
            autocomplete="off"
            placeholder="gw_live_…"
            value={choices.ownKey}
            onText={ownKey => set({ ownKey })}
            hint="Empty: uses a temporary key that expires after 1 hour."
          />
        </div>
      </details>
    </Card>
  )
}
