import { type ComponentChildren, h } from 'preact'
import { useId } from 'preact/hooks'
import type { RequestError } from '../state/api-error.ts'

type Shared = {
  readonly label: string
  readonly hint?: ComponentChildren
  /** API field name: an error that names it is shown beside it. */
  readonly param?: string
  readonly failure?: RequestError | null
}

type InputProps = Shared & {
  readonly value: string
  readonly onText: (text: string) => void
  readonly type?: 'text' | 'email' | 'password' | 'search' | 'number' | 'datetime-local'
  readonly name?: string
  readonly autocomplete?: AutoFill
  readonly placeholder?: string
  readonly required?: boolean
  readonly disabled?: boolean
  readonly minLength?: number
  readonly maxLength?: number
  readonly min?: string
  readonly step?: string
}

type CommitProps = Omit<InputProps, 'onText'> & {
  /** Called when the text is complete: on Enter, or when the field loses the focus. */
  readonly onCommit: (text: string) => void
}

/** A field whose text counts only when it is complete, since each change loads data. */
export function CommitField({ label, hint, onCommit, type = 'text', param, failure, ...input }: CommitProps) {
  return (
    <Labelled {...{ label, hint, param, failure }}>
      {ids =>
        h('input', {
          type,
          ...input,
          ...ids,
          onChange: (event: Event & { readonly currentTarget: HTMLInputElement }) =>
            onCommit(event.currentTarget.value.trim()),
        })
      }
    </Labelled>
  )
}

type AutoFill = 'off' | 'one-time-code' | 'username' | 'current-password' | 'new-password' | 'organization'

export function TextField({ label, hint, param, failure, onText, type = 'text', ...input }: InputProps) {
  return (
    <Labelled {...{ label, hint, param, failure }}>
      {ids =>
        // Not JSX, whose types require each kind of input to be written out.
        h('input', {
          type,
          ...input,
          ...ids,
          onInput: (event: InputEvent & { readonly currentTarget: HTMLInputElement }) =>
            onText(event.currentTarget.value),
        })
      }
    </Labelled>
  )
}

type SelectProps = Shared & {
  readonly value: string
  readonly onChoice: (value: string) => void
  readonly children: ComponentChildren
  readonly disabled?: boolean
}

export function SelectField({ label, hint, param, failure, value, onChoice, children, disabled = false }: SelectProps) {
  return (
    <Labelled {...{ label, hint, param, failure }}>
      {ids => (
        <select {...ids} value={value} disabled={disabled} onChange={event => onChoice(event.currentTarget.value)}>
          {children}
        </select>
      )}
    </Labelled>
  )
}

type LabelledProps = {
  readonly label: string
  readonly hint?: ComponentChildren | undefined
  readonly param?: string | undefined
  readonly failure?: RequestError | null | undefined
  readonly children: (ids: {
    readonly id: string
    readonly 'aria-describedby'?: string
    readonly 'aria-invalid'?: 'true'
  }) => ComponentChildren
}

function Labelled({ label, hint, param, failure, children }: LabelledProps) {
  const id = useId()
  const fault = failure != null && param !== undefined && failure.param === param ? failure.message : null
  const described = fault !== null || hint !== undefined
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        ...(described ? { 'aria-describedby': `${id}-about` } : {}),
        ...(fault === null ? {} : { 'aria-invalid': 'true' }),
      })}
      {described && (
        <p id={`${id}-about`} class={fault === null ? 'hint' : 'hint fault'}>
          {fault ?? hint}
        </p>
      )}
    </div>
  )
}

type SwitchProps = {
  readonly label: string
  readonly hint?: string
  readonly isOn: boolean
  readonly onSwitch: (isOn: boolean) => void
  readonly disabled?: boolean
}

export function Switch({ label, hint, isOn, onSwitch, disabled = false }: SwitchProps) {
  const id = useId()
  return (
    <div class="switch">
      <input
        id={id}
        type="checkbox"
        // biome-ignore lint/a11y/useAriaPropsForRole: a checkbox tells whether it is checked
        role="switch"
        checked={isOn}
        disabled={disabled}
        aria-describedby={hint === undefined ? undefined : `${id}-about`}
        onChange={event => onSwitch(event.currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        {hint !== undefined && (
          <p id={`${id}-about`} class="hint">
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}
