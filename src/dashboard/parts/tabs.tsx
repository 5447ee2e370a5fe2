import { useId } from 'preact/hooks'

type TabsProps<Key extends string> = {
  readonly label: string
  readonly tabs: readonly { readonly key: Key; readonly title: string }[]
  readonly current: Key
  readonly onChoice: (key: Key) => void
}

/** A choice of few options: radio buttons in the form of tabs. */
export function Tabs<Key extends string>({ label, tabs, current, onChoice }: TabsProps<Key>) {
  const name = useId()
  return (
    <fieldset class="tabs">
      <legend class="unseen">{label}</legend>
      {tabs.map(({ key, title }) => (
        <label key={key} class={key === current ? 'on' : ''}>
          <input type="radio" name={name} checked={key === current} onChange={() => onChoice(key)} />
          {title}
        </label>
      ))}
    </fieldset>
  )
}
