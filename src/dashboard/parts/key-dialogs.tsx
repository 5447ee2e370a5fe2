/** Dialogs that change one key, for the list of keys and the page of a key. */
import { useState } from 'preact/hooks'
import type { ShownKey } from '../../routes/keys/schemas.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { dateTime, relativeTime } from '../state/format.ts'
import { isKeyValid, otherKeysOf } from '../state/key-lineage.ts'
import { keyRuleParams, rulesOfTexts, textsOfRules } from '../state/key-rule-texts.ts'
import { useResource } from '../state/resource.ts'
import type { NewKey } from '../state/routes.ts'
import { Badge } from './badge.tsx'
import { Snippet } from './copy.tsx'
import { Confirm, Dialog, FormDialog } from './dialog.tsx'
import { SelectField, TextField } from './field.tsx'
import { KeyRoutingFields, routingOfTexts, routingTextsOf } from './key-routing.tsx'
import { KeyRuleFields } from './key-rules.tsx'
import { Notice } from './notice.tsx'
import { ProjectField } from './project-field.tsx'
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

const lifetimes = { '': 'Never', '7': 'In 7 days', '30': 'In 30 days', '90': 'In 90 days', '365': 'In a year' } as const
const dayMs = 86_400_000

export const lifetimeOptions = Object.entries(lifetimes).map(([value, text]) => (
  <option key={value} value={value}>
    {text}
  </option>
))

/** Returns the expiry of a chosen lifetime; null = never. */
export const expiryIn = (days: string) =>
  days === '' ? null : new Date(Date.now() + Number(days) * dayMs).toISOString()

type OfKeyProps = { readonly target: ShownKey; readonly onChanged: () => void; readonly onClose: () => void }

/** API fields whose errors the dialogs show beside them. */
export const keyParams = ['name', 'project_id', 'expires_at', ...keyRuleParams]

/** The choice that leaves the expiry as it is. */
const unchanged = 'unchanged'

function ChangeKey({ target, onChanged, onClose }: OfKeyProps) {
  const [name, setName] = useState(target.name)
  const [days, setDays] = useState<string>(unchanged)
  const [rules, setRules] = useState(textsOfRules(target))
  const [routing, setRouting] = useState(routingTextsOf(target))
  const [project, setProject] = useState(target.project_id)
  const changing = useAction(async () => {
    const body = {
      name: name.trim(),
      ...(days === unchanged ? {} : { expires_at: expiryIn(days) }),
      ...(project === target.project_id ? {} : { project_id: project }),
      ...rulesOfTexts(rules),
      ...routingOfTexts(routing),
    }
    await callApi('PATCH /api/v1/keys/:id', { params: { id: target.id }, body })
    onClose()
    onChanged()
    showToast(`Key “${name.trim()}” changed`)
  })
  return (
    <FormDialog
      title={`Change “${target.name}”`}
      action="Save"
      isReady={name.trim() !== ''}
      doing={changing}
      fields={keyParams}
      onClose={onClose}
    >
      <TextField
        label="Name"
        required
        maxLength={64}
        value={name}
        onText={setName}
        param="name"
        failure={changing.failure}
      />
      <ProjectField value={project} onChoice={setProject} failure={changing.failure} />
      <SelectField label="Expires" value={days} onChoice={setDays} param="expires_at" failure={changing.failure}>
        <option value={unchanged}>
          {target.expires_at === null ? 'Never (unchanged)' : dateTime(target.expires_at)}
        </option>
        {lifetimeOptions}
      </SelectField>
      <KeyRuleFields texts={rules} onTexts={setRules} failure={changing.failure} />
      <KeyRoutingFields texts={routing} onTexts={setRouting} />
    </FormDialog>
  )
}

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
    <Dialog title={`Key “${made.name}” created`} onClose={onClose}>
      <Notice tone="warn" title="Copy the key now">
        It is shown only once: the gateway stores only its hash.
      </Notice>
      <Snippet text={made.key} what="key" />
      <div class="actions end">
        <button type="button" class="button primary" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  )
}
