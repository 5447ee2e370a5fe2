import { useState } from 'preact/hooks'
import type { ShownModelInsight } from '../../console/insights/schemas.ts'
import type { ShownModel } from '../../dialects/models/schemas.ts'
import { Button } from '../parts/controls.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { SelectField, TextField } from '../parts/field.tsx'
import { Badge, Empty, Loaded, type Tone } from '../parts/notice.tsx'
import { Card, Page, Pairs } from '../parts/page.tsx'
import { Table } from '../parts/table.tsx'
import {
  compact,
  formatCount,
  formatUsd,
  humanize,
  milliseconds,
  percent,
  relativeTime,
  usdColumn,
} from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import type { ModelHealth } from '../state/routes.ts'

const healthEveryMs = 15_000
/** Tokens of the request by which prices compare: a short prompt with some context, and a paragraph. */
const typical = { input: 1_000, output: 300 } as const

/** US dollars per 1,000 typical requests. */
const typicalPrice = ({ pricing }: ShownModel) =>
  (typical.input * pricing.input_per_mtok + typical.output * pricing.output_per_mtok) / 1_000

export function Models() {
  const models = useResource('GET /api/v1/models')
  const health = useResource('GET /api/v1/models/health', { everyMs: healthEveryMs })
  const learning = useResource('GET /api/v1/insights/learning')
  const [text, setText] = useState('')
  const [capability, setCapability] = useState('')
  const [chosen, setChosen] = useState<ShownModel | null>(null)
  const states = new Map(health.data?.data.map(state => [state.model, state]))
  const own = Map.groupBy(learning.data?.models ?? [], ({ model }) => model)
  const isSimulated = models.data?.data.some(({ simulated }) => simulated) ?? false
  const capabilities = Object.keys(models.data?.data[0]?.capabilities ?? {})
  const wanted = text.trim().toLowerCase()
  return (
    <Page title="Models" about="Available models with prices, health and your own results.">
      <Card
        title="Model catalog"
        about={`Prices are US dollars per million tokens, and per 1,000 requests of ${formatCount(typical.input)} input and ${formatCount(typical.output)} output tokens.${isSimulated ? ' The providers are simulated: providers charge nothing.' : ''}`}
        actions={
          <>
            <SelectField
              label="Capability"
              value={capability}
              onChoice={setCapability}
              choices={[['', 'Any'], ...capabilities.map(name => [name, humanize(name)] as const)]}
            />
            <TextField label="Search" type="search" value={text} onText={setText} placeholder="Name, provider, tier" />
          </>
        }
      >
        <Loaded resource={models} what="models" lines={8}>
          {({ data }) => {
            const found = data.filter(
              model =>
                `${model.name} ${model.display_name} ${model.tier}`.toLowerCase().includes(wanted) &&
                (capability === '' ||
                  Object.entries(model.capabilities).some(([name, has]) => has && name === capability)),
            )
            return found.length === 0 ? (
              <Empty title="No matching models">Change the search or the capability.</Empty>
            ) : (
              <Catalogue models={found} states={states} own={own} onChoose={setChosen} />
            )
          }}
        </Loaded>
      </Card>
      {chosen !== null && (
        <ModelDetail
          model={chosen}
          health={states.get(chosen.name)}
          own={own.get(chosen.name) ?? []}
          onClose={() => setChosen(null)}
        />
      )}
    </Page>
  )
}

type CatalogueProps = {
  readonly models: readonly ShownModel[]
  readonly states: ReadonlyMap<string, ModelHealth>
  readonly own: ReadonlyMap<string, readonly ShownModelInsight[]>
  readonly onChoose: (model: ShownModel) => void
}

const healthOrder = { healthy: 0, degraded: 1, unhealthy: 2 } as const

function Catalogue({ models, states, own, onChoose }: CatalogueProps) {
  const input = usdColumn(models.map(({ pricing }) => pricing.input_per_mtok))
  const output = usdColumn(models.map(({ pricing }) => pricing.output_per_mtok))
  const perThousand = usdColumn(models.map(typicalPrice))
  const health = (model: ShownModel) => {
    const state = states.get(model.name)?.state
    return state === undefined ? null : healthOrder[state]
  }
  return (
    <Table
      caption="Models"
      rows={models}
      rowKey={({ name }) => name}
      rowClass={({ status }) => (status === 'retired' ? 'faded' : '')}
      columns={[
        {
          name: 'Model',
          isHeading: true,
          by: model => model.display_name,
          show: model => (
            <>
              <Button text={model.display_name} look="link" onClick={() => onChoose(model)} />{' '}
              {model.deprecated && <Badge tone="warn">deprecated</Badge>}
              <UnhealthyBadge of={states.get(model.name)} />
              <code class="block quiet">{model.name}</code>
            </>
          ),
        },
        { name: 'Tier', from: 'wide', by: model => model.tier, show: model => humanize(model.tier) },
        {
          name: 'Input price',
          from: 'middle',
          isNumber: true,
          by: model => model.pricing.input_per_mtok,
          show: model => input(model.pricing.input_per_mtok),
        },
        {
          name: 'Output price',
          from: 'middle',
          isNumber: true,
          by: model => model.pricing.output_per_mtok,
          show: model => output(model.pricing.output_per_mtok),
        },
        {
          name: '1,000 requests',
          isNumber: true,
          by: typicalPrice,
          show: model => perThousand(typicalPrice(model)),
        },
        {
          name: 'Context',
          from: 'wide',
          isNumber: true,
          by: model => model.context_window,
          show: model => compact(model.context_window),
        },
        { name: 'Health', from: 'middle', by: health, show: model => <Health of={states.get(model.name)} /> },
        {
          name: 'Your quality',
          from: 'wide',
          isNumber: true,
          show: model =>
            shownMean(
              own.get(model.name),
              ({ quality }) => quality,
              value => value.toFixed(2),
            ),
        },
        {
          name: 'Your latency',
          from: 'wide',
          isNumber: true,
          show: model => shownMean(own.get(model.name), ({ latency_ms }) => latency_ms, milliseconds),
        },
      ]}
    />
  )
}

const healthTones: Readonly<Record<ModelHealth['state'], Tone>> = {
  healthy: 'good',
  degraded: 'warn',
  unhealthy: 'bad',
}

/** For narrow screens without a health column: only shown for unhealthy models. */
function UnhealthyBadge({ of: health }: { readonly of: ModelHealth | undefined }) {
  if (health === undefined || health.state === 'healthy') return null
  return (
    <span class="below-middle">
      <Health of={health} />
    </span>
  )
}

function Health({ of: health }: { readonly of: ModelHealth | undefined }) {
  if (health === undefined) return <span class="quiet">–</span>
  return (
    <span title={health.since === null ? undefined : `since ${relativeTime(health.since)}`}>
      <Badge tone={healthTones[health.state]}>{humanize(health.state)}</Badge>
    </span>
  )
}

/** Returns the mean over query types, weighted by requests. */
function shownMean(
  insights: readonly ShownModelInsight[] = [],
  of: (insight: ShownModelInsight) => number,
  show: (value: number) => string,
): string {
  const requests = insights.reduce((sum, insight) => sum + insight.requests, 0)
  if (requests === 0) return '–'
  return show(insights.reduce((sum, insight) => sum + of(insight) * insight.requests, 0) / requests)
}

type ModelDetailProps = {
  readonly model: ShownModel
  readonly health: ModelHealth | undefined
  readonly own: readonly ShownModelInsight[]
  readonly onClose: () => void
}

/** Returns when a variant of the prices applies: "flex", or "Mon, Tue 01:00-04:00 UTC". */
function formatConditions({ service_tier, hours_utc, days }: ShownModel['pricing']['variants'][number]): string {
  const time = [...(days === null ? [] : [days.map(humanize).join(', ')]), ...(hours_utc ?? [])]
  return [
    ...(service_tier === null ? [] : [service_tier]),
    ...(time.length === 0 ? [] : [`${time.join(' ')} UTC`]),
  ].join(', ')
}

function ModelDetail({ model, health, own, onClose }: ModelDetailProps) {
  const { pricing, capabilities } = model
  const able = Object.entries(capabilities).flatMap(([name, has]) => (has ? [humanize(name)] : []))
  return (
    <Dialog kind="beside" title={model.display_name} onClose={onClose}>
      <p>
        <code>{model.name}</code> <Health of={health} />
      </p>
      {model.deprecated && (
        <p>
          {model.deprecation_date === null ? 'Deprecated.' : `Retires on ${model.deprecation_date}.`}
          {model.successor !== null && ` Successor: ${model.successor}.`}
        </p>
      )}
      <h3>Price per million tokens</h3>
      <Pairs
        of={[
          ['Input', formatUsd(pricing.input_per_mtok)],
          ['Cached input', pricing.cached_input_per_mtok === null ? '–' : formatUsd(pricing.cached_input_per_mtok)],
          ['Output', formatUsd(pricing.output_per_mtok)],
          ...pricing.variants.map(
            variant =>
              [
                formatConditions(variant),
                `${formatUsd(variant.input_per_mtok)} input, ${formatUsd(variant.output_per_mtok)} output`,
              ] as const,
          ),
        ]}
      />
      <h3>Limits and capabilities</h3>
      <Pairs
        of={[
          ['Context', `${formatCount(model.context_window)} tokens`],
          ['Maximum output', `${formatCount(model.max_output_tokens)} tokens`],
          ['Capabilities', able.join(', ')],
        ]}
      />
      <h3>Your requests</h3>
      {own.length === 0 ? (
        <Empty title="No data yet">Results by query type appear after your first requests.</Empty>
      ) : (
        <Table
          caption={`${model.display_name} by query type`}
          rows={own}
          rowKey={({ query_type }) => query_type}
          columns={[
            { name: 'Query type', isHeading: true, show: insight => humanize(insight.query_type) },
            { name: 'Requests', isNumber: true, show: insight => formatCount(insight.requests) },
            { name: 'Quality', isNumber: true, show: insight => percent(insight.quality) },
            { name: 'Latency', isNumber: true, show: insight => milliseconds(insight.latency_ms) },
          ]}
        />
      )}
    </Dialog>
  )
}
