import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { type UiAction, useAction } from '../state/action.ts'
import { Icon } from './icon.tsx'
import { FailureNotice } from './notice.tsx'

type DialogProps = {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  /** `beside` = next to the page, full height. */
  readonly kind?: 'middle' | 'beside'
}

/** The browser's modal dialog: keeps the focus, closes on Escape, and restores the focus. */
export function Dialog({ title, onClose, children, kind = 'middle' }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  const latest = useRef(onClose)
  latest.current = onClose
  useEffect(() => {
    const element = dialog.current
    const before = document.activeElement
    element?.showModal()
    // The browser focuses the first control, which is the close button.
    element?.querySelector<HTMLElement>('form :is(input, select, textarea)')?.focus()
    const leave = kind === 'beside' ? closeOnBack(() => latest.current()) : () => {}
    return () => {
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
        onClose()
      }}
      onMouseDown={event => {
        if (event.target === dialog.current) onClose()
      }}
    >
      <div class="dialog-body">
        <header class="card-head">
          <h2 id={titleId}>{title}</h2>
          <button type="button" class="button plain square" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
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
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={isDangerous ? 'button danger' : 'button primary'} disabled={!isReady || isBusy}>
            {isBusy ? 'Loading…' : action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
