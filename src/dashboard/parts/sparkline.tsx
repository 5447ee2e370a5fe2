const height = 56
const step = 4

type DaysStripProps = {
  readonly label: string
  /** One a day, oldest first; null = nothing happened. */
  readonly values: readonly (number | null)[]
  /** Which of them are marked. */
  readonly isBad: (day: number) => boolean
}

/** Days one beside the other, as tall as their value: a glance, where the chart is a look. */
export function Sparkline({ label, values, isBad }: DaysStripProps) {
  const most = Math.max(...values.map(value => value ?? 0), 1)
  return (
    <figure class="strip">
      <svg viewBox={`0 0 ${values.length * step} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {values.map((value, day) => {
          const tall = value === null ? 1 : Math.max(2, (value / most) * height)
          const tone = value === null ? 'none' : isBad(day) ? 'bad' : 'main'
          return <rect key={day} class={tone} x={day * step} y={height - tall} width={step - 1} height={tall} />
        })}
      </svg>
    </figure>
  )
}
