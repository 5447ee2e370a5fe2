/** Forms whose fields are rows of data: their texts, the action that sends them, and errors beside their fields. */

import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { type UiAction, useAction, useResource } from '../state/resource.ts'
import { Button } from './controls.tsx'
import { type InputProps, SelectField, type SelectOption, TextField } from './field.tsx'
import { FailureNotice } from './notice.tsx'
import { ProjectField } from './project-field.tsx'

/** The texts of a form by API field. */
export type Values = Readonly<Record<string, string>>

/** A field of a form as a row: `param` is the API field, and the name of its text. */
export type Field<Param extends string = string> = Omit<InputProps, 'param' | 'failure' | 'value' | 'onText'> & {
  readonly param: Param
  /** A choice of one, or of the ID of a project. */
  readonly choices?: readonly SelectOption[] | 'projects'
  /** A choice of several; the text is a list with commas. */
  readonly checks?: readonly string[]
  /** Texts of other fields that a choice brings. */
  readonly sets?: (choice: string) => Values
  /** The field is below "More". */
  readonly isFolded?: boolean
  /** IDs of models are suggested while the user types. */
  readonly suggest?: 'models'
}

/** The password of the signed-in user. */
export const ownPassword: Field<'password'> = {
  param: 'password',
  label: 'Your password',
  type: 'password',
  name: 'password',
  autocomplete: 'current-password',
  required: true,
}

type Form<V extends Values> = UiAction<[]> & {
  readonly values: V
  readonly set: (change: Partial<V>) => void
}

/** The texts of a form, and the action that sends them. */
export function useForm<V extends Values>(start: V, send: (values: V) => Promise<unknown>): Form<V> {
  const [values, setValues] = useState(start)
  const sending = useAction(async () => void (await send(values)))
  return { ...sending, values, set: change => setValues(now => ({ ...now, ...change })) }
}

export type FieldsProps<V extends Values> = {
  readonly form: Omit<Form<V>, 'clear'>
  readonly fields: readonly Field<keyof V & string>[]
}

type FormFieldsProps<V extends Values> = Pick<FieldsProps<V>, 'fields'> & {
  readonly form: Pick<Form<V>, 'values' | 'set' | 'failure'>
}

export function FormFields<V extends Values>({ form, fields }: FormFieldsProps<V>) {
  const folded = fields.filter(({ isFolded }) => isFolded)
  return (
    <>
      <PlainFields form={form} fields={fields.filter(({ isFolded }) => !isFolded)} />
      {folded.length > 0 && (
        <details open={folded.some(({ param }) => param === form.failure?.param || (form.values[param] ?? '') !== '')}>
          <summary>More</summary>
          <PlainFields form={form} fields={folded} />
        </details>
      )}
    </>
  )
}

function PlainFields<V extends Values>({ form: { values, set, failure }, fields }: FormFieldsProps<V>) {
  return (
    <>
      {fields.map(({ choices, checks, sets, isFolded: _, suggest, ...field }) => {
        const { param } = field
        const value = values[param] ?? ''
        // The name of a field is one of the form's.
        const onText = (text: string) => set({ [param]: text, ...sets?.(text) } as Partial<V>)
        if (checks !== undefined) return <Checks key={param} {...{ label: field.label, checks, value, onText }} />
        const { label, hint, disabled } = field
        const select = { label, hint, disabled, param, failure, value, onChoice: onText }
        if (choices === 'projects') return <ProjectField key={param} {...select} />
        if (choices !== undefined) return <SelectField key={param} {...select} choices={choices} />
        if (suggest !== undefined) return <ModelsField key={param} {...field} {...{ failure, value, onText }} />
        return <TextField key={param} {...field} {...{ failure, value, onText }} />
      })}
    </>
  )
}

/** A list of models with commas; the last one is completed from the catalog. */
function ModelsField(props: InputProps) {
  const models = useResource('GET /api/v1/models').data?.data ?? []
  const id = useId()
  const before = props.value.slice(0, props.value.lastIndexOf(',') + 1)
  return (
    <>
      <TextField {...props} list={id} autocomplete="off" />
      <datalist id={id}>
        {models.map(({ provider, id: model }) => (
          <option key={`${provider}/${model}`} value={`${before}${before === '' ? '' : ' '}${provider}/${model}`} />
        ))}
      </datalist>
    </>
  )
}

type ChecksProps = Pick<InputProps, 'label' | 'value' | 'onText'> & { readonly checks: readonly string[] }

function Checks({ label, checks, value, onText }: ChecksProps) {
  const chosen = value.split(',')
  return (
    <fieldset>
      <legend>{label}</legend>
      {checks.map(name => (
        <label key={name} class="block">
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            onChange={({ currentTarget: { checked } }) =>
              onText(checks.filter(other => (other === name ? checked : chosen.includes(other))).join())
            }
          />{' '}
          {name}
        </label>
      ))}
    </fieldset>
  )
}

type InlineFormProps<V extends Values> = Omit<SubmitProps<V>, 'look'> & {
  readonly look?: string
  /** The user may see the values only. */
  readonly isReadOnly?: boolean
  /** Before the fields. */
  readonly children?: ComponentChildren
  /** Beside the button. */
  readonly tools?: ComponentChildren
}

/** A form as a part of a page. */
export function InlineForm<V extends Values>(props: InlineFormProps<V>) {
  const { form, submit, look = 'primary', isReady, isReadOnly = false, children, tools } = props
  const fields = isReadOnly ? props.fields.map(field => ({ ...field, disabled: true })) : props.fields
  return (
    <form class="narrow" onSubmit={event => submitForm(event, form)}>
      <FormFailure form={form} fields={fields} />
      {children}
      <FormFields form={form} fields={fields} />
      {!isReadOnly && (
        <div class="actions">
          <Submit {...{ form, fields, isReady, look, submit }} />
          {tools}
        </div>
      )}
    </form>
  )
}

/** Every required field has a text. */
const isFilled = ({
  form,
  fields,
}: {
  readonly form: { readonly values: Values }
  readonly fields: readonly Field[]
}) => fields.every(({ param, required }) => required !== true || (form.values[param] ?? '').trim() !== '')

type SubmitProps<V extends Values> = FieldsProps<V> & {
  readonly isReady?: boolean | undefined
  readonly look: string
  /** Text of the button, and the one while it sends. */
  readonly submit: readonly [text: string, busy: string]
}

/** The button of a form, disabled until its required fields have texts, which also keeps Enter from submitting. */
export function Submit<V extends Values>({ form, fields, isReady = true, look, submit }: SubmitProps<V>) {
  const isDisabled = form.isBusy || !isReady || !isFilled({ form, fields })
  return <Button type="submit" look={look} disabled={isDisabled} text={submit[form.isBusy ? 1 : 0]} />
}

export function submitForm(event: Event, form: Pick<Form<Values>, 'run'>): void {
  event.preventDefault()
  void form.run()
}

/** The error of a form, unless it is shown beside a field. */
export function FormFailure<V extends Values>({ form: { failure }, fields }: FieldsProps<V>) {
  if (failure === null || fields.some(({ param }) => param === failure.param)) return null
  return <FailureNotice failure={failure} />
}
