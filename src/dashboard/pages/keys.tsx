import { useState } from 'preact/hooks'
import type { ShownKey } from '../../console/keys/schemas.ts'
import { NothingVisible } from '../parts/account-notices.tsx'
import { Button } from '../parts/controls.tsx'
import { Switch } from '../parts/field.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { KeyBadge, keyActions, keyCreation } from '../parts/key-actions.tsx'
import { ManagementKeys } from '../parts/management-keys.tsx'
import { UsedLimits } from '../parts/meter.tsx'
import { Loaded } from '../parts/notice.tsx'
import { Card } from '../parts/page.tsx'
import { useIsThroughProjects, useOwnScope, useProjects } from '../parts/project-field.tsx'
import { ResourceView } from '../parts/resource.tsx'
import { Table } from '../parts/table.tsx'
import { saveRows } from '../state/export.ts'
import {
  coveredFilters,
  type Filters,
  failedOnly,
  hrefToLog,
  rangeTitle,
  toFilters,
  usageQuery,
} from '../state/filters.ts'
import { compact, formatCount, formatDate, milliseconds, percent, relativeTime, usdColumn } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { isKeyValid } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'

export function Keys() {
  const keys = useResource('GET /api/v1/keys', { everyMs: 5_000 })
  const [showsEnded, setShowsEnded] = useState(false)
  const filters = toFilters(hashRoute.value.query)
  const { names, open, mayManage } = useProjects()
  const scope = useOwnScope()
  const isShown = (key: ShownKey) =>
    (filters.project_id === undefined || key.project_id === filters.project_id) && (showsEnded || isKeyValid(key))
  const all = keys.data?.data ?? []
  const usd = usdColumn(all.filter(isShown).map(({ usage }) => usage.cost_usd))
  return (
    <ResourceView
      page={{
        title: 'Keys',
        about: `${scope === null ? 'All keys of the account' : scope === 'your own keys' ? 'Your keys' : 'Your keys and projects'}. All keys share the limits of the account and can have limits of their own.`,
      }}
      before={<NothingVisible />}
      title={showsEnded ? 'All keys' : 'Active keys'}
      controls={<Switch label="Show revoked and expired" isOn={showsEnded} onSwitch={setShowsEnded} />}
      caption="API keys"
      what="keys"
      resource={keys}
      rows={({ data }) => data.filter(isShown)}
      rowKey={({ id }) => id}
      rowClass={key => (isKeyValid(key) ? '' : 'faded')}
      columns={[
        {
          name: 'Name',
          isHeading: true,
          show: key => (
            <>
              <a href={hrefTo(`keys/${key.id}`)}>{key.name}</a> <KeyBadge of={key} />
              <code class="block quiet">{key.prefix}</code>
            </>
          ),
        },
        ...(names.size === 0
          ? []
          : [
              {
                name: 'Project',
                from: 'middle',
                show: ({ project_id: id }: ShownKey) => (id === null ? '' : (names.get(id) ?? id)),
              } as const,
            ]),
        { name: 'Created', from: 'wide', show: key => formatDate(key.created_at) },
        {
          name: 'Last used',
          from: 'middle',
          show: key => (key.last_used_at === null ? 'Never' : relativeTime(key.last_used_at)),
        },
        { name: 'Requests', from: 'middle', isNumber: true, show: key => formatCount(key.usage.requests) },
        { name: 'Tokens', from: 'wide', isNumber: true, show: key => compact(key.usage.total_tokens) },
        { name: 'Cost', isNumber: true, show: key => usd(key.usage.cost_usd) },
        {
          name: 'Limits',
          from: 'middle',
          show: ({ limits, used, models }) => <UsedLimits limits={limits} used={used} models={models} />,
        },
      ]}
      empty={[all.length > 0 ? 'No active keys' : 'No keys yet', 'Programs use API keys to authenticate.']}
      create={
        (may('keys.own') || open.length > 0) && keyCreation(open.find(({ id }) => id === filters.project_id)?.id ?? '')
      }
      actions={keyActions.map(action => ({ ...action, isFor: (key: ShownKey) => isKeyValid(key) && mayManage(key) }))}
    >
      <FilterBar path="keys" filters={filters} />
      <KeyUsageCard filters={filters} />
      {may('management_keys.manage') && <ManagementKeys />}
    </ResourceView>
  )
}

/** Usage of each key over the range of the page. A rotated key counts with the key that it replaced. */
function KeyUsageCard({ filters }: { readonly filters: Filters }) {
  const range = usageQuery(filters, { isThroughProjects: useIsThroughProjects() })
  const { query, shortenedTo } = range
  const covered = coveredFilters(filters, range)
  const usage = useResource('GET /api/v1/usage', { query: { ...query, group_by: 'key' } })
  const rows = usage.data?.data.flatMap(row => ('key_id' in row ? [row] : [])) ?? []
  const usd = usdColumn(rows.map(({ cost_usd }) => cost_usd))
  return (
    <Card
      title="Usage by key"
      about={`${rangeTitle(filters)}${shortenedTo === null ? '' : `; these filters cover its last ${shortenedTo} days`}`}
      actions={
        rows.length > 0 && (
          <Button
            text="Export CSV"
            look="small"
            onClick={() => saveRows('keys.csv', rows, csvFields, { key_name: 'name' })}
          />
        )
      }
    >
      <Loaded resource={usage} what="usage by key">
        {() => (
          <Table
            caption="Usage by key"
            rows={rows}
            rowKey={({ key_id }) => key_id}
            columns={[
              {
                name: 'Key',
                isHeading: true,
                show: row => <a href={hrefToLog(covered, { key: row.key_id })}>{row.key_name ?? row.key_id}</a>,
              },
              { name: 'Requests', isNumber: true, show: row => formatCount(row.requests) },
              {
                name: 'Failed or blocked',
                from: 'middle',
                isNumber: true,
                show: row =>
                  row.failed === 0 ? (
                    '0'
                  ) : (
                    <a href={hrefToLog(covered, { key: row.key_id, ...failedOnly })}>
                      {formatCount(row.failed)} ({percent(row.failed / row.requests, 1)})
                    </a>
                  ),
              },
              { name: 'Tokens', from: 'wide', isNumber: true, show: row => compact(row.total_tokens) },
              { name: 'p95 latency', from: 'wide', isNumber: true, show: row => milliseconds(row.latency_p95_ms) },
              { name: 'Cost', isNumber: true, show: row => usd(row.cost_usd) },
            ]}
            empty={['No requests in this range', 'Choose a longer range, or clear the filters.']}
          />
        )}
      </Loaded>
    </Card>
  )
}

const csvFields = ['key_id', 'key_name', 'requests', 'failed', 'total_tokens', 'cost_usd', 'latency_p95_ms'] as const
