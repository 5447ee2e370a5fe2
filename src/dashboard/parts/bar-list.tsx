import type { ComponentChildren } from 'preact'

export type Share = {
  readonly key: string
  readonly name: ComponentChildren
  readonly value: number
  readonly told: string
  /** What is worth a line of its own, below. */
  readonly more?: string | undefined
}

/** Things by size, each with a bar as long as its part of the greatest. */
export function BarList({ label, shares }: { readonly label: string; readonly shares: readonly Share[] }) {
  const most = Math.max(...shares.map(({ value }) => value), Number.MIN_VALUE)
  return (
    <ul class="shares" aria-label={label}>
      {shares.map(({ key, name, value, told, more }) => (
        <li key={key}>
          <span class="share-name">{name}</span>
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
