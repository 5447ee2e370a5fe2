import { useState } from 'preact/hooks'
import type { ShownKey } from '../../console/keys/schemas.ts'
import { managementScopes } from '../../core/accounts/roles.ts'
import { NothingVisible } from '../parts/account-notices.tsx'
import { Button } from '../parts/controls.tsx'
import { Switch } from '../parts/field.tsx'
import { FilterBar } from '../parts/filter-bar.tsx'
import { keyActions, keyCreation, lastUsedColumn, nameColumn } from '../parts/key-actions.tsx'
import { UsedLimits } from '../parts/meter.tsx'
import { Loaded } from '../parts/notice.tsx'
import { Card } from '../parts/page.tsx'
import { useOwnScope, useProjects } from '../parts/project-field.tsx'
import { action, ResourceView, removal } from '../parts/resource.tsx'
import { Table } from '../parts/table.tsx'
import { usageColumns, useUsage } from '../parts/usage.tsx'
import { callApi } from '../state/api.ts'
import { saveRows } from '../state/export.ts'
import { type Filters, rangeTitle, toFilters } from '../state/filters.ts'
import { formatDate, usdColumn } from '../state/format.ts'
import { hashRoute } from '../state/hash-route.ts'
import { hrefTo } from '../state/href.ts'
import { isKeyValid } from '../state/keys.ts'
import { useResource } from '../state/resource.ts'
import type { ManagementKey } from '../state/routes.ts'
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
        hint: `Keys of ${scope === null ? 'the account' : scope === 'your own keys' ? 'your own' : 'your own and of your projects'}. All share the limits of the account and can have limits of their own.`,
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
        nameColumn,
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
        lastUsedColumn,
        { figure: 'requests', from: 'middle', by: key => key.usage.requests },
        { figure: 'tokens', from: 'wide', by: key => key.usage.total_tokens },
        { figure: 'cost', by: key => key.usage.cost_usd, show: key => usd(key.usage.cost_usd) },
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
  const { usage, range, covered } = useUsage(filters, { groupBy: 'key' })
  const { shortenedTo } = range
  const rows = usage.data?.data.flatMap(row => ('key_id' in row ? [row] : [])) ?? []
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
                by: row => row.key_name,
                show: ({ key_id: id, key_name: name }) =>
                  name === null ? id : <a href={hrefTo(`keys/${id}`)}>{name}</a>,
              },
              ...usageColumns(rows, covered, row => [row.key_name ?? row.key_id, { key: row.key_id }]),
            ]}
            empty={['No requests in this range', 'Choose a longer range, or clear the filters.']}
          />
        )}
      </Loaded>
    </Card>
  )
}

const csvFields = [
  'key_id',
  'key_name',
  'requests',
  'failed',
  'total_tokens',
  'cost_usd',
  'own_key_cost_usd',
  'routing_saved_usd',
  'cache_saved_usd',
  'latency_p95_ms',
] as const

const createManagementKey = action({
  text: (_: null) => 'Create management key',
  start: () => ({ name: '', scopes: 'keys:read', days: '90' }),
  dialog: () => ({
    title: 'Create management key',
    submit: 'Create management key',
    fields: [
      { param: 'name', label: 'Name', required: true, maxLength: 100, placeholder: 'terraform' },
      { param: 'scopes', label: 'Scopes (write includes read)', checks: managementScopes, required: true },
      {
        param: 'days',
        label: 'Expires',
        choices: ['7', '30', '90', '366'].map(days => [days, `in ${days} days`] as const),
      },
    ],
  }),
  perform: async (_, { name, scopes, days }) => {
    const body = { name, scopes: scopes.split(',').filter(scope => scope !== ''), expires_in_days: Number(days) }
    const { key } = await callApi('POST /api/v1/management-keys', { body })
    return {
      title: 'Management key created',
      about: <p>Copy it now: the gateway stores only its digest.</p>,
      once: { text: key, what: 'key' },
    }
  },
})

const revokeManagementKey = removal<ManagementKey>({
  verb: 'Revoke',
  name: ({ name }) => name,
  about: () => 'Programs that use it get 401 within 1 s. This cannot be undone.',
  remove: ({ id }) => callApi('DELETE /api/v1/management-keys/:id', { params: { id } }),
  done: ({ name }) => `Management key “${name}” revoked`,
})

/** Credentials of programs that manage the account. */
function ManagementKeys() {
  return (
    <ResourceView
      title="Management keys"
      about="For programs that create keys, set budgets or read usage. They answer no chat."
      what="management keys"
      resource={useResource('GET /api/v1/management-keys')}
      rows={({ data }) => data}
      rowKey={({ id }) => id}
      columns={[
        { name: 'Name', isHeading: true, show: ({ name }) => name },
        { name: 'Scopes', show: ({ scopes }) => <code>{scopes.join(' ')}</code> },
        lastUsedColumn,
        { name: 'Expires', from: 'middle', show: ({ expires_at: at }) => formatDate(at) },
      ]}
      empty={['No management keys', 'A script needs none for chats: they use API keys.']}
      create={createManagementKey}
      actions={[revokeManagementKey]}
    />
  )
}
