import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Button, Icon, Snippet } from './controls.tsx'

type DialogProps = {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  /** `beside` = next to the page, full height. `kept` = only its own buttons close it, because it shows a text once. */
  readonly kind?: 'middle' | 'beside' | 'kept'
}

/** The browser's modal dialog: keeps the focus, closes on Escape unless it is kept, and restores the focus. */
export function Dialog({ title, onClose, children, kind = 'middle' }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  const latest = useRef(onClose)
  latest.current = onClose
  const isKept = kind === 'kept'
  useEffect(() => {
    const element = dialog.current
    const before = document.activeElement
    element?.showModal()
    // The browser focuses the first control, which is the close button.
    element?.querySelector<HTMLElement>('form :is(input, select, textarea)')?.focus()
    const leave = kind === 'beside' ? closeOnBack(() => latest.current()) : () => {}
    if (kind === 'kept') addEventListener('keydown', ignoreEscape, true)
    return () => {
      removeEventListener('keydown', ignoreEscape, true)
      element?.close()
      if (before instanceof HTMLElement) before.focus()
      leave()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class={kind}
      aria-labelledby={titleId}
      onCancel={event => {
        event.preventDefault()
        if (!isKept) onClose()
      }}
      onMouseDown={event => {
        if (!isKept && event.target === dialog.current) onClose()
      }}
    >
      <div class="dialog-body">
        <header class="card-head">
          <h2 id={titleId}>{title}</h2>
          {!isKept && (
            <Button look="plain square" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </Button>
          )}
        </header>
        {children}
      </div>
    </dialog>
  )
}

/** A browser closes a dialog at the second Escape, whatever its `cancel` event says. */
function ignoreEscape(event: KeyboardEvent): void {
  if (event.key === 'Escape') event.preventDefault()
}

export type ShownResult = {
  readonly title: string
  readonly about: ComponentChildren
  /** Text that the gateway cannot show again, and its name, such as "key"; absent = nothing to copy. */
  readonly once?: { readonly text: string; readonly what: string }
}

/** Shows the result of an action until it is read. */
export function ResultDialog({ title, about, once, onClose }: ShownResult & { readonly onClose: () => void }) {
  return (
    <Dialog kind={once === undefined ? 'middle' : 'kept'} title={title} onClose={onClose}>
      {about}
      {once !== undefined && <Snippet {...once} />}
      <div class="actions end">
        <Button text="Done" look="primary" onClick={onClose} />
      </div>
    </Dialog>
  )
}

/**
 * Adds a history entry, so that the browser's Back closes the drawer and stays on the page. Returns a function that
 * removes the entry, unless Back or a link has already left it.
 */
function closeOnBack(close: () => void): () => void {
  const drawer = crypto.randomUUID()
  history.pushState({ drawer }, '')
  addEventListener('popstate', close)
  return () => {
    removeEventListener('popstate', close)
    if (history.state?.drawer === drawer) history.back()
  }
}
