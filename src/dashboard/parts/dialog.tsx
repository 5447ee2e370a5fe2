import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { type UiAction, useAction } from '../state/action.ts'
import { Button } from './button.tsx'
import { Snippet } from './copy.tsx'
import { Icon } from './icon.tsx'
import { FailureNotice } from './notice.tsx'

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

type ShownOnceProps = {
  readonly title: string
  readonly children: ComponentChildren
  readonly text: string
  /** Name of the text, such as "key". */
  readonly what: string
  readonly onClose: () => void
}

/** Shows a text that the gateway cannot show again. */
export function ShownOnce({ title, children, text, what, onClose }: ShownOnceProps) {
  return (
    <Dialog kind="kept" title={title} onClose={onClose}>
      {children}
      <Snippet text={text} what={what} />
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

type ConfirmProps = {
  readonly title: string
  readonly children: ComponentChildren
  readonly action: string
  readonly isDangerous?: boolean
  readonly isReady?: boolean
  readonly perform: () => Promise<void>
  readonly onClose: () => void
}

/** Asks for confirmation; closes after the action. */
export function Confirm({ perform, onClose, ...shown }: ConfirmProps) {
  const doing = useAction(async () => {
    await perform()
    onClose()
  })
  return <FormDialog {...shown} doing={doing} onClose={onClose} />
}

type FormDialogProps = Omit<ConfirmProps, 'perform'> & {
  readonly doing: UiAction<[]>
  /** API field names: an error that names one of them is shown beside it. */
  readonly fields?: readonly string[]
}

/** A form in a dialog for an action that may fail. */
export function FormDialog({
  title,
  children,
  action,
  isDangerous,
  isReady = true,
  doing: { run, isBusy, failure },
  fields = [],
  onClose,
}: FormDialogProps) {
  const isBeside = failure?.param != null && fields.includes(failure.param)
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={event => {
          event.preventDefault()
          if (isReady) void run()
        }}
      >
        {children}
        {failure !== null && !isBeside && <FailureNotice failure={failure} />}
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button
            text={isBusy ? 'Loading…' : action}
            type="submit"
            look={isDangerous ? 'danger' : 'primary'}
            disabled={!isReady || isBusy}
          />
        </div>
      </form>
    </Dialog>
  )
}
