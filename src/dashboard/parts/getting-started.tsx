import { useState } from 'preact/hooks'
import { isAllowed } from '../../core/accounts/roles.ts'
import { useGateway } from '../state/gateway.ts'
import { hrefTo } from '../state/href.ts'
import { useResource } from '../state/resource.ts'
import { currentAccount, user } from '../state/session.ts'
import { Button } from './button.tsx'
import { FirstRun } from './first-run.tsx'
import { Icon } from './icon.tsx'

type Step = {
  readonly title: string
  readonly about: string
  readonly isDone: boolean
  readonly href: string
}

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

/** Members can do the first two steps; owners and admins all four. */
function FirstSteps({ requests, dismiss }: { readonly requests: number; readonly dismiss: () => void }) {
  const role = user.value?.role
  const leads = role !== undefined && isAllowed(role, 'team.invite')
  const gateway = useGateway()
  const keys = useResource('GET /api/v1/keys')
  const team = useResource('GET /api/v1/team', { when: leads })
  if (gateway === null || keys.data === undefined || (leads && team.data === undefined)) return null
  const people = (team.data?.data.length ?? 0) + (team.data?.invitations.length ?? 0)
  const steps: readonly Step[] = [
    {
      title: 'Create an API key',
      about: 'Programs authenticate with API keys.',
      // The playground revokes its own keys.
      isDone: keys.data.data.some(({ revoked_at }) => revoked_at === null),
      href: hrefTo('keys'),
    },
    {
      title: 'Send your first request',
      about: 'From a terminal, your code or the playground.',
      isDone: requests > 0,
      href: hrefTo('playground'),
    },
    ...(leads
      ? [
          {
            title: 'Add a provider',
            about: 'Outputs are simulated until the operator sets a key such as OPENAI_API_KEY.',
            isDone: !gateway.simulated,
            href: hrefTo('models'),
          },
          {
            title: 'Invite a member',
            about: 'Members share the limits and billing of this account.',
            isDone: people > 1,
            href: hrefTo('team'),
          },
        ]
      : []),
  ]
  const done = steps.filter(({ isDone }) => isDone).length
  return done === steps.length ? null : <StepList steps={steps} done={done} dismiss={dismiss} />
}

type StepListProps = { readonly steps: readonly Step[]; readonly done: number; readonly dismiss: () => void }

function StepList({ steps, done, dismiss }: StepListProps) {
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
        {steps.map(({ title, about, isDone, href }) => (
          <li key={title} class={isDone ? 'done' : ''}>
            <Icon name={isDone ? 'check' : 'chevron'} size={16} />
            <div>
              {isDone ? <s>{title}</s> : <a href={href}>{title}</a>}
              <span class="unseen">{isDone ? ' (done)' : ' (open)'}</span>
              {!isDone && <p class="hint">{about}</p>}
            </div>
          </li>
        ))}
      </ol>
    </section>
  )
}
