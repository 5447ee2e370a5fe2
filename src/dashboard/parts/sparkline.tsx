const height = 56
const step = 4

type DaysStripProps = {
  readonly label: string
  /** One per day, oldest first; null = no data. */
  readonly values: readonly (number | null)[]
  /** Returns true for marked days. */
  readonly isBad: (day: number) => boolean
  /** Opens the requests of a day, by mouse: the chart beside it does so by keyboard. */
  readonly onChoose: (day: number) => void
}

/** A small bar chart without axes. */
export function Sparkline({ label, values, isBad, onChoose }: DaysStripProps) {
  const most = Math.max(...values.map(value => value ?? 0), 1)
  return (
    <figure class="strip">
      <svg viewBox={`0 0 ${values.length * step} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {values.map((value, day) => {
          const tall = value === null ? 1 : Math.max(2, (value / most) * height)
          const tone = value === null ? 'none' : isBad(day) ? 'bad' : 'main'
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions: a shortcut; the chart offers the same by keyboard
            <g key={day} onClick={() => onChoose(day)}>
              <rect class="hit" x={day * step} y={0} width={step} height={height} />
              <rect class={tone} x={day * step} y={height - tall} width={step - 1} height={tall} />
            </g>
          )
        })}
      </svg>
    </figure>
  )
}
