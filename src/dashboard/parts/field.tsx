import { type ComponentChildren, h, type InputHTMLAttributes } from 'preact'
import { useId } from 'preact/hooks'
import type { RequestError } from '../state/api-error.ts'

type Shared = {
  readonly label: string
  readonly hint?: ComponentChildren | undefined
  /** API field name: an error that names it is shown beside it. */
  readonly param?: string | undefined
  readonly failure?: RequestError | null | undefined
  readonly disabled?: boolean | undefined
}

export type InputProps = Shared & {
  readonly value: string
  readonly onText: (text: string) => void
  /** The text counts only when it is complete, on Enter or when the field loses the focus, since each change loads data. */
  readonly isWhole?: boolean
  readonly type?: 'text' | 'email' | 'password' | 'search' | 'number' | 'datetime-local'
  /** ID of the element with suggestions. */
  readonly list?: string
  /** Lines of a longer text; absent = one. */
  readonly rows?: number
  readonly autocomplete?: 'off' | 'one-time-code' | 'username' | 'current-password' | 'new-password' | 'organization'
} & Pick<InputHTMLAttributes, 'name' | 'placeholder' | 'required' | 'minLength' | 'maxLength' | 'min' | 'step'>

export function TextField({ label, hint, param, failure, onText, isWhole, type = 'text', ...input }: InputProps) {
  const onEvent = ({ currentTarget: { value } }: Event & { readonly currentTarget: HTMLInputElement }) =>
    onText(isWhole ? value.trim() : value)
  const element: string = input.rows === undefined ? 'input' : 'textarea'
  return (
    <Labelled {...{ label, hint, param, failure }}>
      {/* Not JSX, whose types require each kind of input to be written out. */}
      {ids => h(element, { type, ...input, ...ids, [isWhole ? 'onChange' : 'onInput']: onEvent })}
    </Labelled>
  )
}

export type SelectOption = readonly [value: string, text: string]

export type SelectProps = Shared & {
  readonly value: string
  readonly onChoice: (value: string) => void
  readonly choices?: readonly SelectOption[]
  /** Options before the choices. */
  readonly children?: ComponentChildren
}

export function SelectField({ value, onChoice, choices = [], children, disabled = false, ...shared }: SelectProps) {
  return (
    <Labelled {...shared}>
      {ids => (
        <select {...ids} value={value} disabled={disabled} onChange={event => onChoice(event.currentTarget.value)}>
          {children}
          <Options of={choices} />
        </select>
      )}
    </Labelled>
  )
}

export function Options({ of: choices }: { readonly of: readonly SelectOption[] }) {
  return (
    <>
      {choices.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </>
  )
}

type LabelledProps = Shared & {
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

type SwitchProps = Pick<SelectProps, 'label' | 'hint' | 'disabled'> & {
  readonly isOn: boolean
  readonly onSwitch: (isOn: boolean) => void
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
