import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'

type ButtonProps = Omit<ButtonHTMLAttributes, 'class' | 'type'> & {
  readonly text?: string
  /** Further classes: `primary`, `small`, `danger-text`, … */
  readonly look?: string
  readonly type?: 'button' | 'submit'
}

/** A button with a text, or with other content. It submits its form only as `submit`. */
export function Button({ text, look = '', type = 'button', children = text, ...others }: ButtonProps) {
  return (
    <button type={type} class={look === 'link' ? look : `button ${look}`} {...others}>
      {children}
    </button>
  )
}

/** Copies `text` and confirms it. Without clipboard access, the text can be selected instead. */
export function Copy({ text, what }: { readonly text: string; readonly what: string }) {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready')
  useEffect(() => {
    if (state === 'ready') return
    const timer = setTimeout(() => setState('ready'), 2_500)
    return () => clearTimeout(timer)
  }, [state])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setState('copied')
    } catch {
      setState('failed')
    }
  }
  return (
    <Button look="small" onClick={() => void copy()}>
      <Icon name={state === 'copied' ? 'check' : 'copy'} size={15} />
      <span aria-live="polite">
        {state === 'copied' ? 'Copied' : state === 'failed' ? 'Copy failed; select the text' : `Copy ${what}`}
      </span>
    </Button>
  )
}

/** Text for copying: selected with one click, wrapped instead of truncated. */
export function Snippet({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <div class="snippet">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>{text}</pre>
      <Copy text={text} what={what} />
    </div>
  )
}

/** The ID of an object with what follows it, and a button to copy it. */
export function CopiedId({ id, children }: { readonly id: string; readonly children?: ComponentChildren }) {
  return (
    <p class="copied-line">
      <span>
        <span class="mono wrap">{id}</span> {children}
      </span>
      <Copy text={id} what="ID" />
    </p>
  )
}

const paths = {
  overview: 'M4 13h6V4H4zm10 7h6V11h-6zM4 20h6v-3H4zM14 4v3h6V4z',
  playground: 'M4 5h16v11H9l-5 4zM8 9h8M8 12h5',
  requests: 'M4 6h16M4 12h16M4 18h10',
  models: 'M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9',
  providers: 'M4 5h16v6H4zM4 13h16v6H4zM8 8h.1M8 16h.1',
  insights: 'M9 18h6M10 21h4M12 3a6 6 0 0 0-4 10.5c.8.8 1 1.5 1 2.5h6c0-1 .2-1.7 1-2.5A6 6 0 0 0 12 3z',
  keys: 'M14.5 9.5a4.5 4.5 0 1 0-4 4.5L12 12.5 13.5 14H15v2h2v2h3v-3l-5.7-5.7',
  tags: 'M4 4h8l8 8-8 8-8-8zM8.5 8.5h.1',
  projects: 'M3 7h7l2 2h9v11H3zM3 7V5h6l2 2',
  team: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c.4-3.5 2.7-5.5 6-5.5s5.6 2 6 5.5M16 4.5a3.5 3.5 0 0 1 0 6.5M17.5 14.8c2 .7 3.2 2.5 3.5 5.2',
  billing: 'M3 6h18v12H3zM3 10h18M7 15h3',
  alerts: 'M6 17V11a6 6 0 0 1 12 0v6l2 1H4zM10 21h4M12 3v2',
  webhooks: 'M7 8l-4 4 4 4M17 8l4 4-4 4M14 5l-4 14',
  audit: 'M6 3h9l4 4v14H6zM9 11h7M9 15h7',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5',
  menu: 'M4 6h16M4 12h16M4 18h16',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  download: 'M12 4v11m-4.5-4.5L12 15l4.5-4.5M5 20h14',
  send: 'M5 12h13m-5.5-5.5L18 12l-5.5 5.5',
  stop: 'M7 7h10v10H7z',
  warning: 'M12 4l9 16H3zM12 10v4M12 17v.2',
  image: 'M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9h.1',
  info: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v5M12 8v.2',
  chevron: 'M9 6l6 6-6 6',
  print: 'M7 9V4h10v5M7 17H4V9h16v8h-3M7 14h10v6H7z',
  stream: 'M3 8c3-3 6-3 9 0s6 3 9 0M3 16c3-3 6-3 9 0s6 3 9 0',
  auto: 'M4 18h5l6-12h5m-3-3 3 3-3 3M4 6h5l1.5 3M13.5 15l1.5 3h5m-3-3 3 3-3 3',
  tools: 'M14.5 6.5a4 4 0 0 1 5-1.5l-3 3 .5 2 2 .5 3-3a4 4 0 0 1-5.5 4.5L9 19.5A2.5 2.5 0 0 1 5.5 16z',
  cached: 'M12 4c5 0 8 1 8 3s-3 3-8 3-8-1-8-3 3-3 8-3zM4 7v10c0 2 3 3 8 3s8-1 8-3V7M4 12c0 2 3 3 8 3s8-1 8-3',
  again: 'M4 12a8 8 0 1 0 3-6.2M7 2v4h4',
  system: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18M12 7l6 -1M12 11h8M12 15h8M12 19h4',
  light:
    'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M19 5l-1.4 1.4M6.4 17.6L5 19',
  dark: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  out: 'M10 4H5v16h5M14 8l4 4-4 4M18 12H9',
} as const

export type IconName = keyof typeof paths

/** Decorative: hidden from screen readers, so text must accompany it. */
export function Icon({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  )
}

export function Logo() {
  return (
    <svg class="mark" width="26" height="26" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M8 16h6m0 0 5-6h5m-10 6 5 6h5" />
    </svg>
  )
}

/** The frame of pages without a session. */
export function Door({
  class: more = '',
  children,
}: {
  readonly class?: string
  readonly children: ComponentChildren
}) {
  return (
    <main class={`door ${more}`}>
      <p class="brand">
        <Logo /> gateway-ai
      </p>
      {children}
    </main>
  )
}

type TabsProps<Key extends string> = {
  readonly label: string
  readonly tabs: Readonly<Partial<Record<Key, string>>>
  readonly current: Key
  readonly onChoice: (key: Key) => void
}

/** A choice of few options: radio buttons in the form of tabs. */
export function Tabs<Key extends string>({ label, tabs, current, onChoice }: TabsProps<Key>) {
  const name = useId()
  return (
    <fieldset class="tabs">
      <legend class="unseen">{label}</legend>
      {(Object.entries(tabs) as [Key, string][]).map(([key, title]) => (
        <label key={key} class={key === current ? 'on' : ''}>
          <input type="radio" name={name} checked={key === current} onChange={() => onChoice(key)} />
          {title}
        </label>
      ))}
    </fieldset>
  )
}
