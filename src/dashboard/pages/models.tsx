import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ShownModelInsight } from '../../console/insights/schemas.ts'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import type { ShownModel } from '../../dialects/models/schemas.ts'
import { Button } from '../parts/controls.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { SelectField, TextField } from '../parts/field.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { HealthCell, HealthStrip, ModelLatency, ModelMap, typicalPrice } from '../parts/model-pictures.tsx'
import { ModelSwitches } from '../parts/model-switches.tsx'
import { Badge, Empty, Loaded } from '../parts/notice.tsx'
import { Card, Page, Pairs } from '../parts/page.tsx'
import { Table } from '../parts/table.tsx'
import { useUsage } from '../parts/usage.tsx'
import { rangeTitle, toFilters } from '../state/filters.ts'
import { formatCount, formatUsd, humanize, usdColumn } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { useResource } from '../state/resource.ts'
import type { ModelHealth } from '../state/routes.ts'
import { may } from '../state/session.ts'
import { toModelRows } from '../state/usage-series.ts'

const healthEveryMs = 15_000

export function Models() {
  const models = useResource('GET /api/v1/models')
  const health = useResource('GET /api/v1/models/health', { everyMs: healthEveryMs })
  const learning = useResource('GET /api/v1/insights/learning')
  const { range: chosenRange = '' } = toFilters(hashRoute.value.query)
  const filters = { range: chosenRange }
  const { usage: totals } = useUsage(filters, { groupBy: 'model' })
  const { usage: days } = useUsage(filters, { splitBy: 'model' })
  const [text, setText] = useState('')
  const [capability, setCapability] = useState('')
  const [chosen, setChosen] = useState<ShownModel | null>(null)
  const states = new Map(health.data?.data.map(state => [state.model, state]))
  const used = new Map(toModelRows(totals.data).map(row => [row.model, row]))
  const countRequests = (name: string) => used.get(name)?.requests ?? 0
  const own = Map.groupBy(learning.data?.models ?? [], ({ model }) => model)
  const all = models.data?.data ?? []
  const isSimulated = all.some(({ simulated }) => simulated)
  const capabilities = Object.keys(all[0]?.capabilities ?? {})
  const wanted = text.trim().toLowerCase()
  return (
    <Page title="Models">
      <FilterBar path="models" filters={filters} isRangeOnly />
      {all.length > 0 && (
        <div class="columns">
          <ModelMap
            models={all.filter(({ status }) => status !== 'retired')}
            range={rangeTitle(filters)}
            countRequests={countRequests}
            onChoose={setChosen}
          />
          <ModelLatency
            {...{ filters, days }}
            names={all.map(({ name }) => name).filter(name => countRequests(name) > 0)}
          />
        </div>
      )}
      <Card
        title="Model catalog"
        about={isSimulated ? 'The providers are simulated: providers charge nothing.' : undefined}
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
              <Catalogue models={found} {...{ states, used }} days={days.data} onChoose={setChosen} />
            )
          }}
        </Loaded>
      </Card>
      {may('provider_keys.manage') && <ModelSwitches onChange={models.reload} />}
      {chosen !== null && (
        <ModelDetail
          model={chosen}
          health={<HealthCell of={states.get(chosen.name)} isUsed={countRequests(chosen.name) > 0} />}
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
  /** Totals of the account's requests by model, and their course. */
  readonly used: ReadonlyMap<string | null, ReturnType<typeof toModelRows>[number]>
  readonly days: ShownUsage | undefined
  readonly onChoose: (model: ShownModel) => void
}

const healthOrder = { healthy: 0, degraded: 1, unhealthy: 2 } as const

function Catalogue({ models, states, used, days, onChoose }: CatalogueProps) {
  const price = usdColumn(models.map(({ pricing }) => pricing.input_per_mtok))
  const perThousand = usdColumn(models.map(typicalPrice))
  const health = ({ name }: ShownModel) => <HealthCell of={states.get(name)} isUsed={used.has(name)} />
  const rank = ({ name }: ShownModel) => {
    const state = states.get(name)?.state
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
              {rank(model) !== healthOrder.healthy && <span class="below-middle">{health(model)}</span>}
              <code class="block quiet">{model.name}</code>
            </>
          ),
        },
        {
          name: 'Input → output price',
          about: 'US dollars per million tokens',
          from: 'wide',
          isNumber: true,
          by: model => model.pricing.input_per_mtok,
          show: ({ pricing }) => `${price(pricing.input_per_mtok)} → ${price(pricing.output_per_mtok)}`,
        },
        { figure: 'typicalCost', from: 'middle', by: typicalPrice, show: model => perThousand(typicalPrice(model)) },
        { figure: 'quality', from: 'middle', by: model => model.routing.quality },
        { figure: 'speed', from: 'wide', by: model => model.routing.output_tokens_per_second },
        {
          name: 'Health',
          about: 'Attempts of the gateway now, and your requests of the range',
          from: 'middle',
          by: rank,
          show: model => (
            <>
              {health(model)}
              <HealthStrip usage={days} model={model.name} />
            </>
          ),
        },
        { figure: 'requests', from: 'wide', by: ({ name }) => used.get(name)?.requests ?? null },
        { figure: 'latency', from: 'wide', by: ({ name }) => used.get(name)?.latency_p50_ms ?? null },
        { figure: 'slowLatency', by: ({ name }) => used.get(name)?.latency_p95_ms ?? null },
      ]}
    />
  )
}

type ModelDetailProps = {
  readonly model: ShownModel
  readonly health: ComponentChildren
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
        <code>{model.name}</code> {health}
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
          ['Tier', humanize(model.tier)],
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
            { figure: 'requests', by: insight => insight.requests },
            { figure: 'quality', by: insight => insight.quality },
            { figure: 'meanLatency', by: insight => insight.latency_ms },
          ]}
        />
      )}
    </Dialog>
  )
}
