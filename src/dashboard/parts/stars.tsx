import { useId } from 'preact/hooks'

const scale = [1, 2, 3, 4, 5] as const

type StarsProps = {
  readonly given: number | null
  readonly onRate: (stars: number) => void
  readonly disabled?: boolean
}

/** One to five stars as radio buttons. */
export function Stars({ given, onRate, disabled = false }: StarsProps) {
  const name = useId()
  return (
    <fieldset class="stars" disabled={disabled}>
      <legend class="unseen">Rate this response</legend>
      {scale.map(stars => (
        <label key={stars} class={given !== null && stars <= given ? 'lit' : ''}>
          <input type="radio" name={name} checked={given === stars} onChange={() => onRate(stars)} />
          <span class="unseen">{stars === 1 ? '1 star' : `${stars} stars`}</span>
          <svg width="20" height="20" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
            <path d="M12 3.5l2.6 5.4 5.9.8-4.3 4.1 1 5.9L12 16.9l-5.2 2.8 1-5.9L3.5 9.7l5.9-.8z" />
          </svg>
        </label>
      ))}
    </fieldset>
  )
}
