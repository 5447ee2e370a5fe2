import { useState } from 'preact/hooks'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import type { ShownModel } from '../../dialects/models/schemas.ts'
import { logShare } from '../state/chart-paths.ts'
import { figures, showFigure } from '../state/figures.ts'
import type { Filters } from '../state/filters.ts'
import { formatCount, formatUtcUnit, humanize, relativeTime } from '../state/format.ts'
import type { Resource } from '../state/resource.ts'
import type { ModelHealth } from '../state/routes.ts'
import { listUnits } from '../state/usage-series.ts'
import { DailyChart } from './daily-chart.tsx'
import { SelectField } from './field.tsx'
import { Badge, Empty, healthTones, Loaded, type Tone } from './notice.tsx'
import { Card } from './page.tsx'
import { useUsage } from './usage.tsx'

/** Tokens of the request by which prices compare: a short prompt with some context, and a paragraph. */
const typical = { input: 1_000, output: 300 } as const

/** US dollars per 1,000 typical requests. */
export const typicalPrice = ({ pricing }: ShownModel) =>
  (typical.input * pricing.input_per_mtok + typical.output * pricing.output_per_mtok) / 1_000

type MapProps = {
  readonly models: readonly ShownModel[]
  /** Title of the range of the requests. */
  readonly range: string
  readonly countRequests: (name: string) => number
  readonly onChoose: (model: ShownModel) => void
}

/** Pixels of the widest bubble, and of a model without requests. */
const [widest, narrowest] = [44, 10]

/** Models by cost and quality; the size of a bubble is its requests, its color its speed. The table has the same figures. */
export function ModelMap({ models, range, countRequests, onChoose }: MapProps) {
  const prices = models.map(typicalPrice)
  const qualities = models.map(({ routing }) => routing.quality)
  const speeds = models.map(({ routing }) => routing.output_tokens_per_second)
  const [bottom, top] = [Math.floor(Math.min(...qualities) * 10) / 10, Math.ceil(Math.max(...qualities) * 10) / 10]
  const most = Math.max(1, ...models.map(({ name }) => countRequests(name)))
  return (
    <Card title="Cost, quality and speed" about={`${range}. Size: your requests. Color: more = faster.`}>
      <figure class="model-map" aria-hidden="true">
        <span class="quiet">{figures.quality.label} ↑</span>
        <ul>
          {[top, (top + bottom) / 2, bottom].map(value => (
            <li key={value} class="line" style={{ insetBlockStart: `${((top - value) / (top - bottom)) * 100}%` }}>
              {showFigure('quality', value)}
            </li>
          ))}
          {models
            .toSorted((left, right) => countRequests(right.name) - countRequests(left.name))
            .map((model, at) => {
              const { routing, display_name: name } = model
              const requests = countRequests(model.name)
              const size = narrowest + Math.sqrt(requests / most) * (widest - narrowest)
              const x = logShare(typicalPrice(model), prices) * 100
              const told = [
                name,
                `${showFigure('typicalCost', typicalPrice(model))} per 1,000 requests`,
                `quality ${showFigure('quality', routing.quality)}`,
                showFigure('speed', routing.output_tokens_per_second),
                `${formatCount(requests)} of your requests`,
              ]
              return (
                <li
                  key={model.name}
                  style={{
                    insetInlineStart: `${x}%`,
                    insetBlockStart: `${((top - routing.quality) / (top - bottom)) * 100}%`,
                  }}
                >
                  <button
                    type="button"
                    tabIndex={-1}
                    title={told.join(' · ')}
                    style={{
                      inlineSize: `${size}px`,
                      '--heat': `${Math.round(10 + logShare(routing.output_tokens_per_second, speeds) * 80)}%`,
                    }}
                    onClick={() => onChoose(model)}
                  />
                  {requests > 0 && at < mostNamed && (
                    <span style={{ [x > 60 ? 'insetInlineEnd' : 'insetInlineStart']: `${size / 2 + 3}px` }}>
                      {name}
                    </span>
                  )}
                </li>
              )
            })}
        </ul>
        <div class="chart-days">
          {[0, 0.5, 1].map(share => (
            <span key={share}>{showFigure('typicalCost', priceAt(share, prices))}</span>
          ))}
        </div>
        <span class="quiet end">US dollars per {figures.typicalCost.label} →</span>
      </figure>
    </Card>
  )
}

/** More names would cover each other. */
const mostNamed = 6

/** The reverse of `logShare`. */
function priceAt(share: number, prices: readonly number[]): number {
  const above = prices.filter(price => price > 0)
  const [least, most] = [Math.min(...above), Math.max(...above)]
  return least * (most / least) ** share
}

type LatencyProps = {
  readonly filters: Filters
  /** Usage of all models over the range. */
  readonly days: Resource<ShownUsage>
  readonly names: readonly string[]
}

/** The latency of requests over time, of one model or all: the area from p50 to p95. */
export function ModelLatency({ filters, days, names }: LatencyProps) {
  const [model, setModel] = useState('')
  const { usage: ofModel, linkTo } = useUsage({ ...filters, model }, { when: model !== '' })
  return (
    <Card
      title="Latency"
      about="From p50 to p95, of your requests."
      actions={
        <SelectField
          label="Model"
          value={model}
          onChoice={setModel}
          choices={[['', 'All'], ...names.map(name => [name, name] as const)]}
        />
      }
    >
      <Loaded resource={model === '' ? days : ofModel} what="the latency" lines={6}>
        {found =>
          found.total.completed === 0 ? (
            <Empty title="No completed requests">The latency of your requests appears here.</Empty>
          ) : (
            <DailyChart usage={found} measure="latency" linkTo={linkTo} />
          )
        }
      </Loaded>
    </Card>
  )
}

type HealthProps = {
  readonly of: ModelHealth | undefined
  /** The account sent it requests. */
  readonly isUsed: boolean
}

/**
 * The health of a model with its cause, since when, and the next probe. Attempts of the whole gateway decide it: a model
 * that the account does not use is not called degraded for the failures of others.
 */
export function HealthCell({ of: health, isUsed }: HealthProps) {
  if (health === undefined) return <span class="quiet">–</span>
  const { state, since, cause, retry_at: retryAt } = health
  if (state === 'healthy') return <Badge tone="good">Healthy</Badge>
  const began = since === null ? '' : `, ${relativeTime(since)}`
  const waitMs = retryAt === null ? 0 : Date.parse(retryAt) - Date.now()
  const probe = waitMs <= 0 ? 'next request' : `in ${Math.ceil(waitMs / 1_000)} s`
  const told = `${cause === null ? 'Failed attempts' : humanize(cause)}${began} · probe: ${probe}`
  if (state === 'degraded' && !isUsed)
    return (
      <span title={`The gateway’s other attempts: ${told}`}>
        <Badge>No requests</Badge>
      </span>
    )
  return (
    <>
      <Badge tone={healthTones[state]}>{humanize(state)}</Badge>
      <span class="block hint">{told}</span>
    </>
  )
}

/** Requests of a model per day as a strip: failed ones in color. Only the most expensive models have one. */
export function HealthStrip({ usage, model }: { readonly usage: ShownUsage | undefined; readonly model: string }) {
  const part = usage?.series.find(series => 'model' in series && series.model === model)
  if (usage === undefined || part === undefined) return null
  const days = listUnits(usage)
  const tones = days.map((_, at) => toTone(part.requests[at] ?? 0, part.failed[at] ?? 0))
  const failed = part.failed.reduce((sum, count) => sum + count, 0)
  const label = `${formatCount(failed)} failed or blocked on ${tones.filter(tone => tone !== 'good' && tone !== '').length} of ${days.length} days`
  return (
    <span class="health-strip" role="img" aria-label={label} title={label}>
      {days.map((day, at) => (
        <span key={day} class={tones[at]} title={formatUtcUnit(day)} />
      ))}
    </span>
  )
}

/** A larger share of failed requests is a bad day. */
const badShare = 0.05

function toTone(requests: number, failed: number): '' | Tone {
  if (requests === 0) return ''
  return failed === 0 ? 'good' : failed / requests > badShare ? 'bad' : 'warn'
}
