import type { ComponentChildren } from 'preact'

type Share = {
  readonly key: string
  readonly name: ComponentChildren
  readonly value: number
  readonly told: string
  /** Link to the requests of the entry. */
  readonly href?: string | undefined
  /** Shown below the entry. */
  readonly more?: string | undefined
}

/** List of entries with bars relative to the largest. */
export function BarList({ label, shares }: { readonly label: string; readonly shares: readonly Share[] }) {
  const most = Math.max(...shares.map(({ value }) => value), Number.MIN_VALUE)
  return (
    <ul class="shares" aria-label={label}>
      {shares.map(({ key, name, value, told, more, href }) => (
        <li key={key}>
          <span class="share-name">{href === undefined ? name : <a href={href}>{name}</a>}</span>
          <span class="share-told">{told}</span>
          <span class="bar" aria-hidden="true">
            <span style={{ width: `${(value / most) * 100}%` }} />
          </span>
          {more !== undefined && <span class="share-more">{more}</span>}
        </li>
      ))}
    </ul>
  )
}
