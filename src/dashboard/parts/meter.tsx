import { percent } from '../state/format.ts'

type MeterProps = {
  readonly label: string
  readonly used: number
  readonly limit: number
  readonly show: (value: number) => string
  readonly note?: string
}

/** Used part of a limit. Color and text change at 80% and 100%. */
export function MeterBar({ label, used, limit, show, note }: MeterProps) {
  const part = limit <= 0 ? 1 : used / limit
  const share = Math.min(1, part)
  const state = share >= 1 ? 'full' : share >= 0.8 ? 'near' : 'calm'
  return (
    <div class={`meter ${state}`}>
      <div class="meter-head">
        <span>{label}</span>
        <span class="quiet">{percent(part)} used</span>
      </div>
      <p class="figure">
        {show(used)} <small>of {show(limit)}</small>
      </p>
      {/* biome-ignore lint/a11y/useSemanticElements: browsers draw `<meter>` each in their own way */}
      <div
        class="bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        aria-valuetext={`${show(used)} of ${show(limit)}`}
      >
        <div style={{ width: `${share * 100}%` }} />
      </div>
      {note !== undefined && <p class="hint">{note}</p>}
    </div>
  )
}
