import { computed, signal } from '@preact/signals'
import type { ComponentChildren, ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { RequestError } from '../state/api-error.ts'
import { humanize } from '../state/format.ts'
import type { Resource } from '../state/resource.ts'
import { Button, Icon } from './controls.tsx'

export type Tone = 'plain' | 'good' | 'warn' | 'bad'

/** Colors of a model's health. */
export const healthTones = { healthy: 'good', degraded: 'warn', unhealthy: 'bad' } as const

type NoticeProps = {
  readonly tone?: Tone
  readonly title?: string
  readonly children?: ComponentChildren
  readonly actions?: ComponentChildren
  /** True = announced by screen readers at once. */
  readonly isUrgent?: boolean
}

export function Notice({ tone = 'plain', title, children, actions, isUrgent = false }: NoticeProps) {
  const icon = tone === 'good' ? 'check' : tone === 'plain' ? 'info' : 'warning'
  return (
    <div class={`notice ${tone}`} role={isUrgent ? 'alert' : undefined}>
      <Icon name={icon} />
      <div>
        {title !== undefined && <strong>{title}</strong>}
        {children !== undefined && <div>{children}</div>}
        {actions !== undefined && <div class="actions">{actions}</div>}
      </div>
    </div>
  )
}

/** Shows an API error, with a retry button if that may help. */
export function FailureNotice({ failure, retry }: { readonly failure: RequestError; readonly retry?: () => void }) {
  const wait = failure.retryAfterSeconds
  const title = titles[failure.code] ?? humanize(failure.code)
  return (
    <Notice
      tone="bad"
      isUrgent
      title={title}
      actions={retry !== undefined && <Button text="Retry" look="small" onClick={retry} />}
    >
      {withCode(withoutTitle(failure.message, title))}
      {wait !== null && wait > 1 && ` Retry in ${wait < 120 ? `${wait} s` : `${Math.ceil(wait / 60)} min`}.`}
      {failure.requestId !== null && <small class="mono quiet block">{failure.requestId}</small>}
    </Notice>
  )
}

/** Shows the parts of a message in backticks as code. */
export function withCode(text: string): ComponentChildren {
  return text.split('`').map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))
}

/** Many messages of the API begin with the words of the title. */
function withoutTitle(message: string, title: string): string {
  const rest = message.startsWith(`${title}: `) ? message.slice(title.length + 2) : message
  return rest.charAt(0).toUpperCase() + rest.slice(1)
}

/** Codes that say too little by themselves. */
const titles: Partial<Record<RequestError['code'], string>> = {
  offline: 'Gateway unreachable',
  forbidden: 'Permission denied',
  invalid_request: 'Request failed',
  invalid_credentials: 'Sign-in failed',
  ip_rate_limited: 'Too many attempts',
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children !== undefined && <div>{children}</div>}
    </div>
  )
}

/** Placeholder lines while loading, with a message if it takes long. */
export function Loading({ lines = 3, what }: { readonly lines?: number; readonly what: string }) {
  const [isSlow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 4_000)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div class="loading" role="status">
      <span class="unseen">Loading {what}</span>
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} class="skeleton" aria-hidden="true" />
      ))}
      {isSlow && <p class="quiet">Still loading {what}…</p>}
    </div>
  )
}

type LoadedProps<T> = {
  readonly resource: Resource<T>
  readonly what: string
  readonly lines?: number
  readonly children: (data: T) => ComponentChildren
}

/**
 * Shows loaded data; before that a placeholder. The page shows an error once, whatever it has hit, and older data stays.
 */
export function Loaded<T>({ resource, what, lines, children }: LoadedProps<T>) {
  const { data, failure, reload } = resource
  useEffect(() => (failure === null ? undefined : reportPageFailure({ failure, reload })), [failure])
  if (data !== undefined) return <>{children(data)}</>
  if (failure === null) return <Loading what={what} {...(lines === undefined ? {} : { lines })} />
  return <p class="hint">Could not load {what}.</p>
}

/** The errors of the page, one notice per cause. */
export function PageFailures() {
  return (
    <>
      {pageFailures.value.map(({ failure, reload }) => (
        <FailureNotice
          key={`${failure.code} ${failure.message}`}
          failure={failure}
          // A second try has the same role.
          {...(failure.code === 'forbidden' ? {} : { retry: reload })}
        />
      ))}
    </>
  )
}

export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

type LaterProps = {
  readonly load: () => Promise<ComponentType<{ id: string }>>
  readonly what: string
  /** Of the object that the part shows. */
  readonly id?: string
}

/** A part whose code is loaded when it is first shown, so that the first load stays small. */
export function Later({ load, what, id = '' }: LaterProps) {
  const [state, setState] = useState<{ readonly Found: ComponentType<{ id: string }> } | 'loading' | 'failed'>(
    'loading',
  )
  useEffect(() => {
    load().then(
      Found => setState({ Found }),
      () => setState('failed'),
    )
  }, [])
  if (state === 'loading') return <Loading what={what} />
  if (state !== 'failed') return <state.Found id={id} />
  return (
    <Notice
      tone="bad"
      isUrgent
      title={`Could not load ${what}`}
      actions={
        // Browsers remember a failed import until the page is loaded again.
        <Button text="Reload" look="small" onClick={() => location.reload()} />
      }
    >
      The gateway is unreachable, or it was upgraded since this page was loaded.
    </Notice>
  )
}

type Failed = { readonly failure: RequestError; reload(): void }

/** Errors of what the page loads, gathered so that one cause shows one notice. */
const failures = signal<readonly Failed[]>([])

/** Reports an error until the returned function is called. */
function reportPageFailure(failed: Failed): () => void {
  failures.value = [...failures.peek(), failed]
  return () => {
    failures.value = failures.peek().filter(other => other !== failed)
  }
}

/** The errors of the page, failed per cause. `reload` loads everything again that the cause has hit. */
const pageFailures = computed(() =>
  [...Map.groupBy(failures.value, ({ failure: { code, message } }) => `${code} ${message}`).values()].flatMap(group => {
    const [first] = group
    if (first === undefined) return []
    return [{ failure: first.failure, reload: () => group.map(failed => failed.reload()) }]
  }),
)

globalThis.addEventListener('online', () => {
  for (const { failure, reload } of pageFailures.peek()) if (failure.code === 'offline') reload()
})
