import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { saveFile } from '../state/export.ts'
import { type FigureName, figures, showFigure } from '../state/figures.ts'
import { useAction } from '../state/resource.ts'
import { Button, Icon } from './controls.tsx'
import { Sparkline } from './daily-chart.tsx'
import { FailureNotice, PageFailures } from './notice.tsx'

export type PageProps = {
  readonly title: string
  /** Facts and links below the title. */
  readonly about?: ComponentChildren
  /** Explains the page, as a tooltip beside the title. */
  readonly hint?: string | undefined
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

/** A page. Its heading takes the focus when it opens, so that screen readers announce it. */
export function Page({ title, about, hint, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · gateway-ai`
    heading.current?.focus({ preventScroll: true })
    scrollTo(0, 0)
  }, [title])
  return (
    <>
      <header class="page-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {hint !== undefined && (
            <span class="page-hint quiet" title={hint}>
              <Icon name="info" />
              <span class="unseen">{hint}</span>
            </span>
          )}
          {about !== undefined && <p class="about">{about}</p>}
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      <PageFailures />
      {children}
    </>
  )
}

type CardProps = {
  readonly title: string
  readonly about?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
  readonly class?: string
}

/** A section of a page with its own heading. */
export function Card({ title, about, actions, children, class: more = '' }: CardProps) {
  return (
    <section class={`card ${more}`}>
      <header class="card-head">
        <div>
          <h2>{title}</h2>
          {about !== undefined && <p class="about">{about}</p>}
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  )
}

type TileProps = {
  readonly note: ComponentChildren
  /** Change of the value, and what it compares. */
  readonly change?: readonly [change: string, about: string] | undefined
  readonly course?: readonly (number | null)[]
} & (
  | { readonly figure: FigureName; readonly value: number | null }
  | { readonly name: string; readonly value: string; readonly about?: string }
)

/** A figure of the table of figures, or of this page only, with its name. */
export function Tile({ note, change, course, ...of }: TileProps) {
  const value = 'figure' in of ? showFigure(of.figure, of.value) : of.value
  const { label: name, about } = 'figure' in of ? figures[of.figure] : { label: of.name, about: of.about }
  return (
    <div class="tile" title={about}>
      <h2>{name}</h2>
      <p class="figure">
        {value}
        {change !== undefined && <small title={change[1]}>{` ${change[0]}`}</small>}
      </p>
      {course !== undefined && <Sparkline label={`${name} over time`} values={course} />}
      <p class="hint">{note}</p>
    </div>
  )
}

type ExportsProps = {
  readonly of: 'requests' | 'audit'
  readonly query: Readonly<Record<string, string>>
  /** File extensions with their names. */
  readonly formats: Readonly<Record<string, string>>
}

/** Buttons that download what the filters of a page match. */
export function Exports({ of, query, formats }: ExportsProps) {
  const [bytes, setBytes] = useState(0)
  const { run, isBusy, failure } = useAction(async (format: string) => {
    setBytes(0)
    await saveFile(`GET /api/v1/${of}/export`, { ...query, format }, `${of}.${format}`, setBytes)
    showToast('Export downloaded')
  })
  return (
    <>
      {failure !== null && <FailureNotice failure={failure} />}
      {Object.entries(formats).map(([format, name]) => (
        <Button key={format} disabled={isBusy} title="Export what the filters match" onClick={() => void run(format)}>
          <Icon name="download" size={16} /> {isBusy ? `${(bytes / 1_000_000).toFixed(1)} MB` : `Export ${name}`}
        </Button>
      ))}
    </>
  )
}

const said = signal('')
let timer: ReturnType<typeof setTimeout> | undefined

/** Shows a confirmation for some seconds. */
export function showToast(words: string): void {
  clearTimeout(timer)
  said.value = words
  timer = setTimeout(() => {
    said.value = ''
  }, 6_000)
}

/** Container of confirmations, which screen readers announce. */
export function Toast() {
  return (
    <div class="said" role="status">
      {said.value !== '' && <p>{said.value}</p>}
    </div>
  )
}

/** Names with their values; false and null = not shown. */
type Pair = readonly [name: string, value: ComponentChildren]

export function Pairs({
  of: pairs,
  look = '',
}: {
  readonly of: readonly (Pair | false | null)[]
  readonly look?: string
}) {
  return (
    <dl class={`pairs ${look}`}>
      {pairs.map(
        pair =>
          pair && (
            <div key={pair[0]}>
              <dt>{pair[0]}</dt>
              <dd>{pair[1]}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
