import { useState } from 'preact/hooks'
import type { ShownUsage } from '../../console/usage/schemas.ts'
import type { ShownTag } from '../../http/schemas.ts'
import { Button } from '../parts/controls.tsx'
import { SelectField } from '../parts/field.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { BurnDown, UsedLimits } from '../parts/meter.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { Card } from '../parts/page.tsx'
import { useOwnScope } from '../parts/project-field.tsx'
import { action, ResourceView, removal } from '../parts/resource.tsx'
import { Table } from '../parts/table.tsx'
import { UsageChart, usageColumns, useUsage } from '../parts/usage.tsx'
import { callApi } from '../state/api.ts'
import { saveRows } from '../state/export.ts'
import { coveredFilters, type Filters, rangeTitle, toFilters } from '../state/filters.ts'
import { formatCount } from '../state/format.ts'
import { hashRoute, replaceHashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { limitFields, toLimits, toLimitTexts } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'

const toTitle = ({ name, value }: Pick<ShownTag, 'name' | 'value'>) => `${name}=${value}`

/** Sets the budget of any tag, or changes one. */
const save = action({
  text: (tag: ShownTag | null) => (tag === null ? 'Set budget' : 'Change'),
  label: tag => (tag === null ? 'Set budget' : `Change the budget of ${toTitle(tag)}`),
  start: tag => ({ name: tag?.name ?? '', value: tag?.value ?? '', ...toLimitTexts(tag?.limits ?? null) }),
  dialog: (tag, { name: _, value: _value, ...limits }) => ({
    title: tag === null ? 'Set budget' : `Change the budget of “${toTitle(tag)}”`,
    submit: tag === null ? 'Set budget' : 'Save',
    isReady: Object.values(limits).some(text => text !== ''),
    about: <p class="hint">An empty field is no limit. At least one limit is required.</p>,
    fields: [...(tag === null ? tagFields : []), ...limitFields],
  }),
  perform: async (tag, { name, value, ...limits }) => {
    const body = { name: name.trim(), value: value.trim(), limits: toLimits(limits) }
    await callApi('PUT /api/v1/tags', { body })
    return tag === null ? 'Budget set' : 'Budget changed'
  },
})

const tagFields = [
  { param: 'name', label: 'Tag name', required: true, maxLength: 32, placeholder: 'team' },
  {
    param: 'value',
    label: 'Tag value',
    required: true,
    maxLength: 64,
    placeholder: 'search',
    hint: 'The budget replaces a present one of the same tag.',
  },
] as const

const remove = removal<ShownTag>({
  verb: 'Remove',
  name: tag => `the budget of ${toTitle(tag)}`,
  about: () => 'Requests with this tag are then limited only by the account and their key. Their usage stays.',
  remove: ({ name, value }) => callApi('PUT /api/v1/tags', { body: { name, value, limits: null } }),
  done: () => 'Budget removed',
})

/** The budgets of the account, and usage by tag. Every role sees the budgets; admins and owners change them. */
export function TagsPage() {
  const filters = toFilters(hashRoute.value.query)
  const tags = useResource('GET /api/v1/tags', { everyMs: 10_000 })
  const mayChange = may('account.change')
  return (
    <ResourceView
      page={{
        title: 'Tags',
        hint: `Labels of requests, from API keys, the header x-gateway-tags, metadata and agent sessions. Usage is of ${useOwnScope() ?? 'the account'}.`,
      }}
      title="Budgets"
      about="Each limits all requests of the account with the tag. Used: this UTC day and month, of the whole account."
      what="the budgets"
      resource={tags}
      rows={({ data }) => data}
      rowKey={tag => toTitle(tag)}
      columns={[
        {
          name: 'Tag',
          isHeading: true,
          show: tag => (
            <a class="break" href={hrefTo('tags', { tag: toTitle(tag) })}>
              {toTitle(tag)}
            </a>
          ),
        },
        {
          name: 'Used',
          show: tag => (
            <>
              <UsedLimits {...tag} />
              {filters.tag === toTitle(tag) && (
                <BurnDown limit={tag.limits?.monthly_cost_usd} of={{ tag: toTitle(tag) }} />
              )}
            </>
          ),
        },
      ]}
      empty={[
        'No budgets',
        mayChange
          ? 'Set a budget to limit the requests with a tag.'
          : 'An admin or owner of the account can set a budget for a tag.',
      ]}
      create={mayChange && save}
      actions={mayChange ? [save, remove] : []}
    >
      <FilterBar path="tags" filters={filters} />
      <TagUsage filters={filters} />
    </ResourceView>
  )
}

type TagRow = Extract<ShownUsage['data'][number], { tag: string }>
const toTagRows = (usage: ShownUsage | undefined): TagRow[] =>
  usage?.data.flatMap(row => ('tag' in row ? [row] : [])) ?? []
const toTagName = (tag: string) => tag.split('=')[0] ?? tag

/** Usage by tag over the range of the page: a chart of one tag name or tag, and a table of all tags. */
function TagUsage({ filters }: { readonly filters: Filters }) {
  const { tag, ...untagged } = filters
  const { usage: all, range } = useUsage(untagged, { groupBy: 'tag' })
  const { usage: chosen } = useUsage(filters, { groupBy: 'tag', when: tag !== undefined })
  const { shortenedTo } = range
  const names = [...new Set(toTagRows(all.data).map(row => toTagName(row.tag)))]
  const charted = tag ?? names[0]
  return (
    <>
      {shortenedTo !== null && (
        <p class="hint">With these filters the totals cover the last {shortenedTo} days of the range.</p>
      )}
      {charted !== undefined && (
        <UsageChart
          key={charted}
          filters={{ ...filters, tag: charted }}
          first={['cost', charted.includes('=') ? 'model' : 'tag']}
          title={charted.includes('=') ? charted : `${charted}, by value`}
          empty="Choose a longer range or another tag."
        />
      )}
      <Card
        title="Usage by tag"
        about={`${rangeTitle(filters)}, by cost. A request counts in each of its tags.`}
        actions={
          <SelectField
            label="Tag name"
            value={tag ?? ''}
            onChoice={name => replaceHashRoute('tags', { ...filters, tag: name })}
            choices={[
              ['', 'All'],
              ...[...new Set([...names, ...(tag === undefined ? [] : [tag])])].map(name => [name, name] as const),
            ]}
          />
        }
      >
        <Loaded resource={tag === undefined ? all : chosen} what="the usage">
          {usage => (
            <UsageTable
              usage={usage}
              filters={filters}
              covered={coveredFilters(filters, range)}
              whole={tag === undefined || tag.includes('=') ? undefined : all.data}
            />
          )}
        </Loaded>
      </Card>
    </>
  )
}

/** More rows are shown on request: each session of an agent is a tag. */
const firstRows = 100

type UsageTableProps = {
  readonly usage: ShownUsage
  readonly filters: Filters
  /** Filters of the requests that the usage covers, for the links to the log. */
  readonly covered: Filters
  /** Totals with and without the tag; undefined = no line for requests without it. */
  readonly whole: ShownUsage | undefined
}

type Shown = Pick<TagRow, (typeof sums)[number] | 'latency_p95_ms'> & {
  readonly tag: string | null
}

function UsageTable({ usage, filters, covered, whole }: UsageTableProps) {
  const [showsAll, setShowsAll] = useState(false)
  const tags = toTagRows(usage)
  const untagged = whole === undefined ? null : subtractTotals(whole.total, usage.total)
  if (tags.length === 0)
    return (
      <Empty title="No requests with tags in this range">
        Add tags to an API key, or send the header <code>x-gateway-tags: team=search</code>.
      </Empty>
    )
  const rows: Shown[] = [
    ...(showsAll ? tags : tags.slice(0, firstRows)),
    ...(untagged === null || untagged.requests === 0 ? [] : [{ ...untagged, tag: null }]),
  ]
  const all: Shown[] = [...tags, ...(untagged === null ? [] : [{ ...untagged, tag: '' }])]
  return (
    <>
      <Table
        caption="Usage by tag"
        rows={rows}
        rowKey={row => row.tag ?? ''}
        columns={[
          {
            name: 'Tag',
            isHeading: true,
            by: row => row.tag,
            show: ({ tag }) =>
              tag === null ? (
                <span class="quiet">Without this tag</span>
              ) : (
                <a class="break" href={hrefTo('tags', { ...filters, tag })}>
                  {tag}
                </a>
              ),
          },
          ...usageColumns(rows, covered, ({ tag }) => (tag === null ? null : [tag, { tag }])),
        ]}
      />
      <div class="actions">
        {tags.length > firstRows && !showsAll && (
          <Button look="small" onClick={() => setShowsAll(true)}>
            Show all {formatCount(tags.length)}
          </Button>
        )}
        <Button text="Export CSV" look="small" onClick={() => saveRows('tags.csv', all, csvFields)} />
      </div>
    </>
  )
}

/** Differences of sums; money is exact to 1e-8 USD. */
function subtractTotals(whole: ShownUsage['total'], part: ShownUsage['total']): Omit<Shown, 'tag'> {
  return {
    ...(Object.fromEntries(sums.map(name => [name, Math.round((whole[name] - part[name]) * 1e8) / 1e8])) as Record<
      (typeof sums)[number],
      number
    >),
    // Percentiles have no difference.
    latency_p95_ms: null,
  }
}

const sums = [
  'requests',
  'failed',
  'total_tokens',
  'cost_usd',
  'own_key_cost_usd',
  'routing_saved_usd',
  'cache_saved_usd',
] as const
const csvFields = ['tag', ...sums] as const
