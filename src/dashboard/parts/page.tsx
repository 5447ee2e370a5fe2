import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { PageFailures } from './notice.tsx'

type PageProps = {
  readonly title: string
  readonly about?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

/** A page. Its heading takes the focus when it opens, so that screen readers announce it. */
export function Page({ title, about, actions, children }: PageProps) {
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
