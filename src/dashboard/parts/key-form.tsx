/** Dialogs that create and change an API key: the same form. */
import { useState } from 'preact/hooks'
import type { ShownKey } from '../../console/keys/schemas.ts'
import { useAction } from '../state/action.ts'
import { callApi } from '../state/api.ts'
import { dateTime } from '../state/format.ts'
import { keyRuleParams, rulesOfTexts, textsOfRules } from '../state/key-rule-texts.ts'
import type { NewKey } from '../state/routes.ts'
import { FormDialog } from './dialog.tsx'
import { SelectField, TextField } from './field.tsx'
import { KeyRoutingFields, routingOfTexts, routingTextsOf } from './key-routing.tsx'
import { KeyRuleFields } from './key-rules.tsx'
import { ProjectField } from './project-field.tsx'
import { showToast } from './toast.tsx'

const lifetimes = { '': 'Never', '7': 'In 7 days', '30': 'In 30 days', '90': 'In 90 days', '365': 'In a year' } as const
const dayMs = 86_400_000

const lifetimeOptions = Object.entries(lifetimes).map(([value, text]) => (
  <option key={value} value={value}>
    {text}
  </option>
))

/** Returns the expiry of a chosen lifetime; null = never. */
const expiryIn = (days: string) => (days === '' ? null : new Date(Date.now() + Number(days) * dayMs).toISOString())

/** API fields whose errors the form shows beside them. */
const keyParams = ['name', 'project_id', 'expires_at', ...keyRuleParams]

/** The choice that leaves the expiry as it is. */
const unchanged = 'unchanged'

type CreateProps = {
  /** The project that is chosen at first. */
  readonly inProject: string | null
  readonly onMade: (key: NewKey) => void
  readonly onClose: () => void
}

export function CreateKey({ inProject, onMade, onClose }: CreateProps) {
  return (
    <KeyForm
      title="Create API key"
      action="Create API key"
      target={null}
      inProject={inProject}
      send={async ({ name, project, expiry = null, rules }) => {
        const body = { name, expires_at: expiry, project_id: project, ...rules }
        onMade(await callApi('POST /api/v1/keys', { body }))
      }}
      onClose={onClose}
    />
  )
}

type ChangeProps = { readonly target: ShownKey; readonly onChanged: () => void; readonly onClose: () => void }

export function ChangeKey({ target, onChanged, onClose }: ChangeProps) {
  return (
    <KeyForm
      title={`Change “${target.name}”`}
      action="Save"
      target={target}
      inProject={target.project_id}
      send={async ({ name, project, expiry, rules }) => {
        const body = {
          name,
          ...(expiry === undefined ? {} : { expires_at: expiry }),
          ...(project === target.project_id ? {} : { project_id: project }),
          ...rules,
        }
        await callApi('PATCH /api/v1/keys/:id', { params: { id: target.id }, body })
        onClose()
        onChanged()
        showToast(`Key “${name}” changed`)
      }}
      onClose={onClose}
    />
  )
}

type KeyFormProps = {
  readonly title: string
  readonly action: string
  /** The key to change; null = a new key. */
  readonly target: ShownKey | null
  readonly inProject: string | null
  readonly send: (given: {
    readonly name: string
    readonly project: string | null
    /** Undefined = unchanged, null = never. */
    readonly expiry: string | null | undefined
    readonly rules: ReturnType<typeof rulesOfTexts> & ReturnType<typeof routingOfTexts>
  }) => Promise<void>
  readonly onClose: () => void
}

function KeyForm({ title, action, target, inProject, send, onClose }: KeyFormProps) {
  const [name, setName] = useState(target?.name ?? '')
  const [days, setDays] = useState<string>(target === null ? '' : unchanged)
  const [rules, setRules] = useState(textsOfRules(target))
  const [routing, setRouting] = useState(routingTextsOf(target))
  const [project, setProject] = useState(inProject)
  const sending = useAction(() =>
    send({
      name: name.trim(),
      project,
      expiry: days === unchanged ? undefined : expiryIn(days),
      rules: { ...rulesOfTexts(rules), ...routingOfTexts(routing) },
    }),
  )
  const { failure } = sending
  return (
    <FormDialog
      title={title}
      action={action}
      isReady={name.trim() !== ''}
      doing={sending}
      fields={keyParams}
      onClose={onClose}
    >
      <TextField
        label="Name"
        required
        maxLength={64}
        {...(target === null ? { hint: 'Describe its purpose. Usage is shown by key name.' } : {})}
        value={name}
        onText={setName}
        param="name"
        failure={failure}
      />
      <ProjectField value={project} onChoice={setProject} failure={failure} />
      <SelectField label="Expires" value={days} onChoice={setDays} param="expires_at" failure={failure}>
        {target !== null && (
          <option value={unchanged}>
            {target.expires_at === null ? 'Never (unchanged)' : dateTime(target.expires_at)}
          </option>
        )}
        {lifetimeOptions}
      </SelectField>
      <KeyRuleFields texts={rules} onTexts={setRules} failure={failure} />
      <KeyRoutingFields texts={routing} onTexts={setRouting} />
    </FormDialog>
  )
}
