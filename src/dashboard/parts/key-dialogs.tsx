/** Dialogs that change one key, for the list of keys and the page of a key. */
import { useState } from 'preact/hooks'
import type { ShownKey } from '../../console/keys/schemas.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { dateTime, relativeTime } from '../state/format.ts'
import { isKeyValid, otherKeysOf } from '../state/key-lineage.ts'
import { useResource } from '../state/resource.ts'
import type { NewKey } from '../state/routes.ts'
import { Badge } from './badge.tsx'
import { Confirm, FormDialog, ShownOnce } from './dialog.tsx'
import { SelectField } from './field.tsx'
import { ChangeKey } from './key-form.tsx'
import { Notice } from './notice.tsx'
import { showToast } from './toast.tsx'

export type OpenKeyDialog =
  | { readonly kind: 'change' | 'rotate' | 'revoke'; readonly key: ShownKey }
  | { readonly kind: 'shown'; readonly made: NewKey }

type KeyDialogProps = {
  readonly open: OpenKeyDialog
  /** A rotation has created this key. */
  readonly onMade: (key: NewKey) => void
  readonly onChanged: () => void
  readonly onClose: () => void
}

export function KeyDialog({ open, onMade, onChanged, onClose }: KeyDialogProps) {
  switch (open.kind) {
    case 'change':
      return <ChangeKey target={open.key} onChanged={onChanged} onClose={onClose} />
    case 'rotate':
      return <RotateKey target={open.key} onMade={onMade} onClose={onClose} />
    case 'revoke':
      return <RevokeKey target={open.key} onChanged={onChanged} onClose={onClose} />
    case 'shown':
      return <NewKeyShown made={open.made} onClose={onClose} />
  }
}

/** State of a key that is not valid forever. */
export function KeyBadge({ of: key }: { readonly of: Pick<ShownKey, 'revoked_at' | 'expires_at'> }) {
  if (key.revoked_at !== null) return <Badge tone="bad">revoked</Badge>
  if (key.expires_at === null) return null
  return isKeyValid(key) ? (
    <span title={dateTime(key.expires_at)}>
      <Badge tone="warn">expires {relativeTime(key.expires_at)}</Badge>
    </span>
  ) : (
    <Badge>expired</Badge>
  )
}

type OfKeyProps = { readonly target: ShownKey; readonly onChanged: () => void; readonly onClose: () => void }

/** Asks before a revocation, and says which other keys of the lineage keep working. */
function RevokeKey({ target, onChanged, onClose }: OfKeyProps) {
  const { id, name, prefix } = target
  const found = useResource('GET /api/v1/keys/:id', { params: { id } })
  return (
    <Confirm
      title={`Revoke “${name}”?`}
      action="Revoke"
      isDangerous
      // Its effect depends on the lineage.
      isReady={!found.isLoading}
      perform={async () => {
        await callApi('DELETE /api/v1/keys/:id', { params: { id } })
        onChanged()
        showToast(`Key “${name}” revoked`)
      }}
      onClose={onClose}
    >
      <p>
        Requests with <code>{prefix}</code> are rejected within 1 s. This cannot be undone.
      </p>
      {!found.isLoading && found.data !== undefined && otherKeysOf(found.data).map(text => <p key={text}>{text}</p>)}
    </Confirm>
  )
}

type RotateProps = {
  readonly target: ShownKey
  readonly onMade: (key: NewKey) => void
  readonly onClose: () => void
}

const overlaps = { '0': 'Not at all', '3600': 'For an hour', '86400': 'For a day', '604800': 'For seven days' } as const

function RotateKey({ target, onMade, onClose }: RotateProps) {
  const [overlap, setOverlap] = useState('86400')
  const rotating = useAction(async () => {
    const body = { overlap_seconds: Number(overlap) }
    onMade(await callApi('POST /api/v1/keys/:id/rotate', { params: { id: target.id }, body }))
  })
  return (
    <FormDialog title={`Rotate “${target.name}”`} action="Rotate" doing={rotating} onClose={onClose}>
      <p>A new key replaces it and continues its usage history.</p>
      <SelectField
        label="Old key stays valid"
        value={overlap}
        onChoice={setOverlap}
        hint="Long enough to replace it everywhere."
      >
        {Object.entries(overlaps).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </SelectField>
    </FormDialog>
  )
}

function NewKeyShown({ made, onClose }: { readonly made: NewKey; readonly onClose: () => void }) {
  return (
    <ShownOnce title={`Key “${made.name}” created`} text={made.key} what="key" onClose={onClose}>
      <Notice tone="warn" title="Copy the key now">
        It is shown only once: the gateway stores only its hash.
      </Notice>
    </ShownOnce>
  )
}
