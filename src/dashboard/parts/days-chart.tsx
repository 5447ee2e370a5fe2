import { useState } from 'preact/hooks'
import { dayOf } from '../state/format.ts'

export type Series = {
  readonly name: string
  /** One value a day, lowest part of the bar first. */
  readonly values: readonly number[]
  readonly tone: 'main' | 'bad'
}

type DaysChartProps = {
  readonly title: string
  /** `YYYY-MM-DD` */
  readonly days: readonly string[]
  readonly series: readonly Series[]
  readonly show: (value: number) => string
  readonly axis: (value: number) => string
  /** The axis reaches this far at least. */
  readonly least: number
}

const height = 170
const step = 20
const barWidth = 13

/**
 * A bar a day. Under it stands what the bar pointed at holds: by mouse, or by arrow keys once the chart has the focus. The same
 * figures are a table for who would rather read than look.
 */
export function DaysChart({ title, days, series, show, axis, least }: DaysChartProps) {
  const [chosen, setChosen] = useState<number | null>(null)
  const totals = days.map((_, day) => series.reduce((sum, { values }) => sum + (values[day] ?? 0), 0))
  const top = roundedTop(Math.max(least, ...totals))
  const at = (value: number) => (value / top) * height
  const width = days.length * step

  const move = (event: KeyboardEvent) => {
    const last = days.length - 1
    const to = { ArrowLeft: (chosen ?? last + 1) - 1, ArrowRight: (chosen ?? -1) + 1, Home: 0, End: last }[event.key]
    if (to === undefined) return
    event.preventDefault()
    setChosen(Math.min(last, Math.max(0, to)))
  }
  const told = (day: number) =>
    [
      dayOf(days[day] ?? ''),
      ...series
        .filter(({ tone, values }) => tone === 'main' || (values[day] ?? 0) > 0)
        .map(({ name, values }) => `${show(values[day] ?? 0)} ${name}`),
    ].join(' · ')

  return (
    <figure class="chart">
      <div class="chart-plot">
        <div class="chart-axis" aria-hidden="true">
          <span>{axis(top)}</span>
          <span>{axis(top / 2)}</span>
          <span>0</span>
        </div>
        <div
          class="chart-bars"
          role="slider"
          aria-label={`${title}, day by day`}
          aria-valuemin={1}
          aria-valuemax={days.length}
          aria-valuenow={(chosen ?? days.length - 1) + 1}
          aria-valuetext={told(chosen ?? days.length - 1)}
          tabIndex={0}
          onKeyDown={move}
          onBlur={() => setChosen(null)}
          onMouseLeave={() => setChosen(null)}
          onMouseMove={event => {
            const box = event.currentTarget.getBoundingClientRect()
            const day = Math.floor(((event.clientX - box.left) / box.width) * days.length)
            setChosen(Math.min(days.length - 1, Math.max(0, day)))
          }}
        >
          <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
            {[0, 0.5, 1].map(share => (
              <line
                key={share}
                class="grid"
                x1={0}
                x2={width}
                y1={height - share * height}
                y2={height - share * height}
                vector-effect="non-scaling-stroke"
              />
            ))}
            {chosen !== null && <rect class="chosen" x={chosen * step} y={0} width={step} height={height} />}
            {days.map((day, index) => {
              let below = 0
              return series.map(({ name, tone, values }) => {
                const value = values[index] ?? 0
                if (value === 0) return null
                // A day with anything in it is seen to have something in it.
                const tall = Math.max(1.5, at(value))
                below += tall
                return (
                  <rect
                    key={`${day} ${name}`}
                    class={tone}
                    x={index * step + (step - barWidth) / 2}
                    y={height - below}
                    width={barWidth}
                    height={tall}
                  />
                )
              })
            })}
          </svg>
        </div>
        <div class="chart-days" aria-hidden="true">
          {[0, Math.floor((days.length - 1) / 2), days.length - 1].map(day => (
            <span key={day}>{dayOf(days[day] ?? '')}</span>
          ))}
        </div>
      </div>
      <figcaption>
        {chosen === null ? `${show(totals.reduce((sum, one) => sum + one, 0))} in ${days.length} days` : told(chosen)}
      </figcaption>
      <details class="as-table">
        <summary>As a table</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">Day</th>
              {series.map(({ name }) => (
                <th key={name} scope="col" class="number">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {days.map((day, index) => (
              <tr key={day}>
                <th scope="row">{dayOf(day)}</th>
                {series.map(({ name, values }) => (
                  <td key={name} class="number">
                    {show(values[index] ?? 0)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  )
}

const steps = [1, 2, 3, 4, 6, 8, 10] as const

/** The next number that is round, and whose half is. */
function roundedTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return (steps.find(one => one * power >= value) ?? 10) * power
}
