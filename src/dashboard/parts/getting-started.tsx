import { useEffect, useState } from 'preact/hooks'
import { isAllowed } from '../../core/accounts/roles.ts'
import { callApi } from '../state/api.ts'
import { hrefTo } from '../state/href.ts'
import { requestCode } from '../state/request-code.ts'
import { useAction, useGateway, useResource } from '../state/resource.ts'
import { currentAccount, user } from '../state/session.ts'
import { Button, Icon, Snippet } from './controls.tsx'
import { FailureNotice } from './notice.tsx'
import { helloRequest } from './request-code.tsx'

type StartProps = {
  /** The account had no request when the page opened. */
  readonly isNew: boolean
  /** Undefined while loading. */
  readonly requests: number | undefined
  readonly onFirstCall: () => void
}

/** Onboarding: the first-request card of a new account, and the list of first steps until all are done or dismissed. */
export function GettingStarted({ isNew, requests, onFirstCall }: StartProps) {
  const storageKey = `gateway-ai.getting-started.${currentAccount.value?.id ?? ''}`
  const [isDismissed, setDismissed] = useState(() => localStorage.getItem(storageKey) !== null)
  const dismiss = () => {
    localStorage.setItem(storageKey, 'dismissed')
    setDismissed(true)
  }
  return (
    <>
      {isNew && <FirstRun onFirstCall={onFirstCall} />}
      {!isDismissed && requests !== undefined && <FirstSteps requests={requests} dismiss={dismiss} />}
    </>
  )
}

type Step = readonly [title: string, path: string, isDone: boolean]

/** Members can do the first two steps; owners and admins all four. */
function FirstSteps({ requests, dismiss }: { readonly requests: number; readonly dismiss: () => void }) {
  const role = user.value?.role
  const leads = role !== undefined && isAllowed(role, 'team.invite')
  const gateway = useGateway()
  const keys = useResource('GET /api/v1/keys')
  const team = useResource('GET /api/v1/team', { when: leads })
  if (gateway === undefined || keys.data === undefined || (leads && team.data === undefined)) return null
  const people = (team.data?.data.length ?? 0) + (team.data?.invitations.length ?? 0)
  // The playground revokes its own keys.
  const hasKey = keys.data.data.some(({ revoked_at }) => revoked_at === null)
  const ofAll: readonly Step[] = [
    ['Create an API key', 'keys', hasKey],
    ['Send your first request', 'playground', requests > 0],
  ]
  const ofLeads: readonly Step[] = [
    ['Add a provider', 'models', !gateway.simulated],
    ['Invite a member', 'team', people > 1],
  ]
  const steps = leads ? [...ofAll, ...ofLeads] : ofAll
  const done = steps.filter(([, , isDone]) => isDone).length
  if (done === steps.length) return null
  return (
    <section class="card getting-started" aria-labelledby="getting-started">
      <header class="card-head">
        <div>
          <h2 id="getting-started">Getting started</h2>
          <p class="about">
            {done} of {steps.length} steps done
          </p>
        </div>
        <Button text="Dismiss" look="plain small" onClick={dismiss} />
      </header>
      <ol>
        {steps.map(([title, path, isDone]) => (
          <li key={title} class={isDone ? 'done' : ''}>
            <Icon name={isDone ? 'check' : 'chevron'} size={16} />
            <div>
              {isDone ? <s>{title}</s> : <a href={hrefTo(path)}>{title}</a>}
              <span class="unseen">{isDone ? ' (done)' : ' (open)'}</span>
            </div>
          </li>
        ))}
      </ol>
    </section>
  )
}

const askEveryMs = 2_000

/** First-request card: creates a key, shows a working command, and confirms success. */
function FirstRun({ onFirstCall }: { readonly onFirstCall: () => void }) {
  const [key, setKey] = useState<string | null>(null)
  const log = useResource('GET /api/v1/requests', { query: { limit: '1' }, everyMs: askEveryMs })
  const making = useAction(async () => {
    setKey((await callApi('POST /api/v1/keys', { body: { name: 'first steps' } })).key)
  })
  const first = log.data?.data[0]
  const isDone = first !== undefined
  useEffect(() => {
    if (isDone) onFirstCall()
  }, [isDone])
  return (
    <section class={`card first-run ${isDone ? 'done' : ''}`} aria-labelledby="first-run">
      <header class="card-head">
        <div>
          <h2 id="first-run">{isDone ? 'First request succeeded' : 'Make your first request'}</h2>
          <p class="about" role="status">
            {isDone
              ? `${first.model ?? 'The gateway'} answered. This card disappears on your next visit.`
              : 'Run one command with an API key. Use a key you have, or create one here: it is shown only once.'}
          </p>
        </div>
        <span class="lamp" aria-hidden="true">
          <Icon name={isDone ? 'check' : 'chevron'} />
        </span>
      </header>
      {!isDone && (
        <>
          {making.failure !== null && <FailureNotice failure={making.failure} />}
          {key === null ? (
            <div class="actions">
              <Button look="primary" disabled={making.isBusy} onClick={() => void making.run()}>
                <Icon name="keys" size={16} /> {making.isBusy ? 'Creating key…' : 'Create API key and show command'}
              </Button>
              <a class="button" href={hrefTo('playground')}>
                Open the playground
              </a>
            </div>
          ) : (
            <>
              <Snippet
                text={requestCode(helloRequest(), 'chat_completions', 'curl').replace('$GATEWAY_KEY', key)}
                what="command"
              />
              <p class="hint">Run the command in a terminal. This card updates when the request succeeds.</p>
            </>
          )}
        </>
      )}
    </section>
  )
}
