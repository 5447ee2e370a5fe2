import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { useAction } from '../state/action.ts'
import { Icon } from './icon.tsx'
import { FailureNotice } from './notice.tsx'

type DialogProps = {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  /** `beside`: beside the page, over its whole height. */
  readonly kind?: 'middle' | 'beside'
}

/** The browser's own modal dialog: it holds the focus, closes on Escape, and gives the focus back. */
export function Dialog({ title, onClose, children, kind = 'middle' }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const element = dialog.current
    const before = document.activeElement
    element?.showModal()
    return () => {
      element?.close()
      if (before instanceof HTMLElement) before.focus()
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

type ConfirmProps = {
  readonly title: string
  readonly children: ComponentChildren
  readonly action: string
  readonly isDangerous?: boolean
  readonly isReady?: boolean
  readonly perform: () => Promise<void>
  readonly onClose: () => void
}

/** Asks before something is done; closes once it is. */
export function Confirm({ title, children, action, isDangerous, isReady = true, perform, onClose }: ConfirmProps) {
  const doing = useAction(async () => {
    await perform()
    onClose()
  })
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={event => {
          event.preventDefault()
          if (isReady) void doing.run()
        }}
      >
        {children}
        {doing.failure !== null && <FailureNotice failure={doing.failure} />}
        <div class="actions end">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            class={isDangerous ? 'button danger' : 'button primary'}
            disabled={!isReady || doing.isBusy}
          >
            {doing.isBusy ? 'One moment…' : action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
