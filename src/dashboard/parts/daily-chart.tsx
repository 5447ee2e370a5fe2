import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import { barWidth, height, roundedTop, step, toArea, toPath } from '../state/chart-paths.ts'
import { type Filters, toUnitFilter } from '../state/filters.ts'
import { formatUtcUnit, humanize } from '../state/format.ts'
import { listUnits, type Measure, measures, type Series, splitSeries, wholeSeries } from '../state/usage-series.ts'
import { AsTable } from './table.tsx'

type DailyChartProps = {
  readonly usage: ShownUsage
  readonly measure: Measure
  /** A series per part in place of the total. */
  readonly isSplit?: boolean
  /** Explanation of the values. */
  readonly note?: string | undefined
  /** Link to the requests of a series, of a column, or of both. */
  readonly linkTo: (filters: Filters) => string
}

/**
 * Daily chart. Shows the values of the selected day below it, by mouse, or by arrow keys when focused. Dragging, or the
 * arrow keys with Shift, selects several days. The same values are available as a table.
 */
export function DailyChart({ usage, measure, isSplit = false, note, linkTo }: DailyChartProps) {
  const { title, kind, show, axis, least } = measures[measure]
  const days = listUnits(usage)
  const series = isSplit ? splitSeries(usage, measure) : wholeSeries(usage, measure)
  const [chosen, setChosen] = useState<number | null>(null)
  /** Where the selection began; null = it is one day. */
  const [held, setHeld] = useState<number | null>(null)
  const last = days.length - 1
  const highestDay = Math.max(least, ...days.map((_, day) => highest(series, kind, day)))
  const top = kind === 'areas' ? least : roundedTop(highestDay)
  const width = days.length * step

  const perUnit = ({ 10: 'day', 13: 'hour' } as const)[days[0]?.length ?? 10] ?? 'minute'
  // The first and the last hour can be parts of hours.
  const whole = perUnit === 'day' ? `${days.length} days` : 'Whole range'
  const [from, to] = [Math.min(held ?? last, chosen ?? last), Math.max(held ?? 0, chosen ?? 0)]
  const open = () => {
    if (chosen !== null) location.assign(linkTo(toUnitFilter(days[from] ?? '', days[to])))
    leave()
  }
  const leave = () => {
    setChosen(null)
    setHeld(null)
  }

  const move = (event: KeyboardEvent) => {
    if (event.key === 'Enter') return open()
    const next = { ArrowLeft: (chosen ?? last + 1) - 1, ArrowRight: (chosen ?? -1) + 1, Home: 0, End: last }[event.key]
    if (next === undefined) return
    event.preventDefault()
    setHeld(event.shiftKey ? (held ?? chosen) : null)
    setChosen(Math.min(last, Math.max(0, next)))
  }
  const heldBy = ({ values, whole }: Series, day: number | null) => (day === null ? whole : (values[day] ?? null))
  const told = (day: number) =>
    [formatUtcUnit(days[day] ?? ''), ...series.map(line => `${show(heldBy(line, day))} ${line.name}`)].join(' · ')

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
          aria-label={`${title} per ${perUnit}, Enter opens the requests, Shift selects several`}
          aria-valuemin={1}
          aria-valuemax={days.length}
          aria-valuenow={(chosen ?? last) + 1}
          aria-valuetext={told(chosen ?? last)}
          tabIndex={0}
          onKeyDown={move}
          onMouseDown={() => setHeld(chosen)}
          onClick={open}
          onBlur={leave}
          onMouseLeave={leave}
          onMouseMove={event => {
            const box = event.currentTarget.getBoundingClientRect()
            const day = Math.floor(((event.clientX - box.left) / box.width) * days.length)
            setChosen(Math.min(last, Math.max(0, day)))
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
            {chosen !== null && (
              <rect class="chosen" x={from * step} y={0} width={(to - from + 1) * step} height={height} />
            )}
            {kind === 'bars' && <Bars series={series} days={days} top={top} />}
            {kind === 'lines' && <Lines series={series} top={top} isBand={!isSplit} />}
            {kind === 'areas' && <Areas series={series} top={top} />}
          </svg>
        </div>
        <div class="chart-days" aria-hidden="true">
          {[...new Set([0, Math.floor(last / 2), last])].map(day => (
            <span key={day}>{formatUtcUnit(days[day] ?? '')}</span>
          ))}
        </div>
      </div>
      <figcaption>
        <span>
          <strong>{chosen === null ? whole : formatUtcUnit(days[chosen] ?? '')}</strong>
          {note !== undefined && <span class="quiet"> · {note}</span>}
        </span>
        <ul class="legend">
          {series.map(line => (
            <li key={line.name}>
              <span class={`swatch ${line.tone}`} aria-hidden="true" />
              {line.filters === null ? line.name : <a href={linkTo(line.filters)}>{line.name}</a>}{' '}
              {(chosen !== null || line.whole !== null) && (
                <span class="legend-value">{show(heldBy(line, chosen))}</span>
              )}
            </li>
          ))}
        </ul>
      </figcaption>
      <AsTable
        caption={`${title} by ${perUnit}`}
        rows={days.map((_, day) => day).toReversed()}
        rowKey={String}
        columns={[
          {
            name: humanize(perUnit),
            isHeading: true,
            show: day => <a href={linkTo(toUnitFilter(days[day] ?? ''))}>{formatUtcUnit(days[day] ?? '')}</a>,
          },
          ...series.map(line => ({
            name: line.name,
            isNumber: true,
            show: (day: number) => show(heldBy(line, day)),
          })),
        ]}
      />
    </figure>
  )
}

type Drawn = { readonly series: readonly Series[]; readonly top: number }

function Bars({ series, days, top }: Drawn & { readonly days: readonly string[] }) {
  return (
    <>
      {days.map((day, index) => {
        let below = 0
        return series.map(({ name, tone, values }) => {
          const value = values[index] ?? 0
          if (value === 0) return null
          // A day with a small value must remain visible.
          const tall = Math.max(1.5, (value / top) * height)
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
    </>
  )
}

/** With `isBand` two lines are the edges of an area. */
function Lines({ series, top, isBand }: Drawn & { readonly isBand: boolean }) {
  const [lower, upper] = series
  const low = lower?.values.map(value => value ?? 0) ?? []
  return (
    <>
      {isBand && upper !== undefined && <path class="area band" d={toArea(upper.values, low, top)} />}
      {series.map(({ name, tone, values }) => (
        <path key={name} class={tone} d={toPath(values, top)} vector-effect="non-scaling-stroke" />
      ))}
    </>
  )
}

/** Stacked areas, lowest series first. */
function Areas({ series, top }: Drawn) {
  let below: readonly number[] = []
  return (
    <>
      {series.map(({ name, tone, values }) => {
        const lower = below
        const upper = values.map((value, day) => (value === null ? null : value + (lower[day] ?? 0)))
        below = upper.map(value => value ?? 0)
        return <path key={name} class={`area ${tone}`} d={toArea(upper, lower, top)} />
      })}
    </>
  )
}

/** The course of a value without axes, beside its figure. */
export function Sparkline({ label, values }: { readonly label: string; readonly values: Series['values'] }) {
  const top = Math.max(...values.map(value => value ?? 0), Number.MIN_VALUE)
  return (
    <svg
      class="chart spark"
      viewBox={`0 0 ${Math.max(1, values.length) * step} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path class="main" d={toPath(values, top)} vector-effect="non-scaling-stroke" />
    </svg>
  )
}

function highest(series: readonly Series[], kind: 'bars' | 'lines' | 'areas', day: number): number {
  const values = series.map(({ values }) => values[day] ?? 0)
  return kind !== 'lines' ? values.reduce((sum, value) => sum + value, 0) : Math.max(0, ...values)
}

type BarPart = { readonly name: string; readonly tone: string; readonly value: number }

type Share = {
  readonly key: string
  readonly name: ComponentChildren
  readonly value: number
  readonly told: ComponentChildren
  /** The parts of the bar; absent = it has one. Negative parts are last, and cover the end of the others. */
  readonly parts?: readonly BarPart[]
  /** Link to the requests of the entry. */
  readonly href?: string | undefined
  /** Shown below the entry. */
  readonly more?: string | undefined
}

/** Returns the parts of a bar that have a length, largest sum = the length of `value`. */
const getLength = ({ value, parts = [] }: Share) =>
  parts.reduce((sum, part) => sum + Math.max(0, part.value), 0) || value

/** List of entries with bars relative to the largest; with parts, their names are a legend below. */
export function BarList({ label, shares }: { readonly label: string; readonly shares: readonly Share[] }) {
  const most = Math.max(...shares.map(getLength), Number.MIN_VALUE)
  const legend = new Map(shares.flatMap(({ parts = [] }) => parts.map(({ name, tone }) => [name, tone] as const)))
  legend.delete('')
  return (
    <>
      <ul class="shares" aria-label={label}>
        {shares.map(({ key, name, value, told, more, href, parts = [{ name: '', tone: 'main', value }] }) => (
          <li key={key}>
            <span class="share-name">{href === undefined ? name : <a href={href}>{name}</a>}</span>
            <span class="share-told">{told}</span>
            <span class="bar" aria-hidden="true">
              {parts.map((part, at) => (
                <span
                  key={at}
                  class={part.value < 0 ? `${part.tone} minus` : part.tone}
                  style={toLength(part, parts[at - 1], most)}
                />
              ))}
            </span>
            {more !== undefined && <span class="share-more">{more}</span>}
          </li>
        ))}
      </ul>
      {legend.size > 0 && (
        <ul class="legend hint" aria-hidden="true">
          {[...legend].map(([name, tone]) => (
            <li key={name}>
              <span class={`swatch ${tone}`} />
              {name}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

function toLength({ value }: BarPart, before: BarPart | undefined, most: number) {
  const inlineSize = `${(Math.abs(value) / most) * 100}%`
  const covered = Math.min(0, before?.value ?? 0) + value
  return value < 0 ? { inlineSize, marginInlineStart: `${(covered / most) * 100}%` } : { inlineSize }
}
