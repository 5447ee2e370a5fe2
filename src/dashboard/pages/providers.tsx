import { useState } from 'preact/hooks'
import type { ShownProvider } from '../../console/provider-keys/schemas.ts'
import { Snippet, Tabs } from '../parts/controls.tsx'
import { ModelSwitches } from '../parts/model-switches.tsx'
import { Badge } from '../parts/notice.tsx'
import { useProjects } from '../parts/project-field.tsx'
import {
  add,
  fallbackColumn,
  providerKeyActions,
  StateBadge,
  sources,
  toKeys,
  toLabel,
  toOwnKeys,
} from '../parts/provider-keys.tsx'
import { action, ResourceView } from '../parts/resource.tsx'
import { exactTime, formatCount, humanize, relativeTime } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'

const everyMs = 15_000

const setUp = action<ShownProvider>({
  text: () => 'Set up',
  label: ({ id }) => `Set up ${id}`,
  isFor: ({ variable }) => variable !== null,
  perform: async provider => ({ title: `Set up ${provider.id}`, about: <SetUp of={provider} /> }),
})

/** Every provider with its state, and the keys that owners add: of the operator's account for all, of others for their own. */
export function Providers() {
  const isOwner = may('provider_keys.manage')
  const listed = useResource('GET /api/v1/providers', { everyMs })
  const stored = useResource('GET /api/v1/provider-keys', { everyMs, when: isOwner })
  const { names } = useProjects()
  const providers = {
    ...listed,
    reload() {
      listed.reload()
      stored.reload()
    },
  }
  const access = listed.data?.stored_keys
  const isOperator = access === 'allowed' || access === 'off'
  const ownKeys = toOwnKeys(stored.data?.data ?? [], names)
  const takesOwn = listed.data?.data.some(provider => provider.takes_own_keys) === true
  const mayAdd = isOwner && (access === 'allowed' || takesOwn)
  return (
    <ResourceView
      page={{
        title: 'Providers',
        hint: 'As this gateway process saw them since its start.',
      }}
      before={isOwner && access !== undefined && !mayAdd && <p class="hint">{notices[access]}</p>}
      title="Providers"
      what="providers"
      resource={providers}
      rows={({ data }) => data}
      rowKey={({ id }) => id}
      columns={[
        {
          name: 'Provider',
          isHeading: true,
          by: ({ id }) => id,
          show: ({ id, simulated }) => (
            <>
              {id} {simulated && <Badge>simulated</Badge>}
            </>
          ),
        },
        { name: 'State', by: ({ state }) => state, show: ({ state }) => <StateBadge of={state} /> },
        { name: 'Models', from: 'middle', isNumber: true, by: ({ models }) => models, show: ({ models }) => models },
        { name: 'Keys', from: 'middle', show: ({ pool }) => formatKeys(pool) },
        { name: 'Last error', from: 'middle', show: ({ last_error: error }) => <LastError of={error} /> },
        { name: 'Remaining limits', from: 'wide', show: ({ pool }) => <Limits of={pool} /> },
      ]}
      empty={['No providers', 'The gateway has no key of a provider.']}
      actions={[...(mayAdd ? [add] : []), ...(isOperator || !mayAdd ? [setUp] : [])]}
    >
      {(isOperator || mayAdd || ownKeys.length > 0) && (
        <ResourceView
          title="Keys"
          about={
            isOperator
              ? 'A stored key works beside those of the environment, for all accounts. A key of a project serves its requests only.'
              : 'Requests use an own key first, and are then not billed: its provider charges you.'
          }
          what="keys"
          resource={providers}
          rows={({ data }) => [...data.flatMap(toKeys), ...ownKeys]}
          rowKey={row => `${row.source} ${toLabel(row)}`}
          columns={[
            { name: 'Provider', isHeading: true, show: ({ provider }) => provider },
            {
              name: 'Key',
              show: ({ name, hint, source, place }) => (
                <>
                  {name} {hint !== '' && <code>…{hint}</code>}{' '}
                  <span class="quiet">
                    {sources[source]}
                    {place}
                  </span>
                </>
              ),
            },
            ...(ownKeys.length === 0 ? [] : [fallbackColumn]),
            { name: 'State', show: ({ state }) => <StateBadge of={state} /> },
          ]}
          empty={['No keys', isOperator ? 'Add a key of a provider above, or set its variable.' : 'Add one above.']}
          actions={providerKeyActions}
        />
      )}
      {isOperator && <ModelSwitches onChange={listed.reload} />}
    </ResourceView>
  )
}

const notices = {
  allowed: '',
  off: 'Keys come from the environment and the configuration file only (STORED_PROVIDER_KEYS=off).',
  not_operator: 'Owners of the operator’s account add keys here. It allows no keys of other accounts.',
} as const

const forms = { shell: 'Shell', dotenv: '.env', compose: 'Compose', helm: 'Helm' } as const

/** Lines that give a provider its key without the dashboard. */
function SetUp({ of: provider }: { readonly of: ShownProvider }) {
  const [form, setForm] = useState<keyof typeof forms>('shell')
  return (
    <div class="stack">
      <p>Set the variable where the gateway starts, and restart it. The key of the example is not real.</p>
      <Tabs label="Form" tabs={forms} current={form} onChoice={setForm} />
      <Snippet text={setUpText(provider, form)} what="lines" />
    </div>
  )
}

function setUpText({ id, variable, base_url_variable: base, local }: ShownProvider, form: keyof typeof forms): string {
  const name = (local ? base : variable) ?? ''
  const value = local ? 'http://127.0.0.1:8080/v1' : 'YOUR_KEY'
  switch (form) {
    case 'shell':
      return `export ${name}='${value}'\nbun run start`
    case 'dotenv':
      return `${name}=${value}`
    case 'compose':
      return `services:\n  gateway:\n    environment:\n      ${name}: ${value}`
    case 'helm':
      return local
        ? `environment:\n  ${name}: ${value}`
        : `# kubectl create secret generic gateway-${id} --from-literal=${name}='${value}'\nsecrets:\n  environment: [gateway-${id}]`
  }
}

function LastError({ of: error }: { readonly of: ShownProvider['last_error'] }) {
  if (error === null) return <span class="quiet">None</span>
  return (
    <>
      {humanize(error.code)}{' '}
      <span class="quiet" title={exactTime(error.at)}>
        {relativeTime(error.at)}
      </span>
    </>
  )
}

function formatKeys(pool: ShownProvider['pool']): string {
  if (pool === null) return '–'
  return pool.rejected_keys === 0 ? formatCount(pool.keys) : `${pool.keys}, of which ${pool.rejected_keys} rejected`
}

type Quota = NonNullable<ShownProvider['pool']>['limits'][number]['requests']

function Limits({ of: pool }: { readonly of: ShownProvider['pool'] }) {
  if (pool === null || pool.limits.length === 0) return <span class="quiet">Not reported</span>
  const shown = (quota: Quota, unit: string) =>
    quota === null ? [] : [`${formatCount(quota.remaining)} of ${formatCount(quota.limit)} ${unit}`]
  return (
    <ul>
      {pool.limits.map(({ model, requests, tokens }) => (
        <li key={model}>
          {model}: {[...shown(requests, 'requests'), ...shown(tokens, 'tokens')].join(', ')}
        </li>
      ))}
    </ul>
  )
}
