import { useState } from 'preact/hooks'
import type { ShownProvider, ShownProviderKey } from '../../console/provider-keys/schemas.ts'
import { Snippet, Tabs } from '../parts/controls.tsx'
import { Badge, type Tone } from '../parts/notice.tsx'
import { useProjects } from '../parts/project-field.tsx'
import { action, ResourceView } from '../parts/resource.tsx'
import { callApi } from '../state/api.ts'
import { exactTime, formatCount, humanize, relativeTime } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'

const everyMs = 15_000

/** A key of the operator, or an own key: only the latter says whether there is a fallback. */
type ProviderKey = Omit<NonNullable<ShownProvider['keys']>[number], 'source'> & {
  readonly source: keyof typeof sources
  readonly provider: string
  readonly fallback: boolean | null
  /** Of an own key of a project: " in project" with its name, which tells it from others of its name; else empty. */
  readonly place: string
}
type State = ShownProvider['state'] | ProviderKey['state']

const states: Readonly<Record<State, readonly [words: string, tone: Tone]>> = {
  not_set: ['Not set', 'plain'],
  unused: ['Not called yet', 'plain'],
  working: ['Working', 'good'],
  rejected: ['Rejected', 'bad'],
  rate_limited: ['Rate limited', 'warn'],
  unreachable: ['Unreachable', 'bad'],
  unreadable: ['Unreadable', 'bad'],
}

function StateBadge({ of: state }: { readonly of: State }) {
  const [words, tone] = states[state]
  return <Badge tone={tone}>{words}</Badge>
}

const keyField = {
  param: 'key',
  label: 'Key',
  type: 'password',
  autocomplete: 'off',
  required: true,
  hint: 'Sealed in the database. It is never shown again.',
} as const

/** Only owners of the operator's account see keys of all accounts. */
const isTenants = ({ keys }: ShownProvider) => keys === null

const projectField = {
  param: 'project_id',
  label: 'Project',
  hint: 'Only its requests use the key, before one of the account.',
  choices: 'projects',
} as const
const fallbackField = {
  param: 'fallback',
  label: 'When it fails',
  hint: 'Requests with an own key are not billed. With the operator’s key they are.',
  choices: [
    ['on', 'Use the operator’s key'],
    ['off', 'End the request'],
  ],
} as const

const add = action<ShownProvider, { name: string; key: string; project_id: string; fallback: string }>({
  text: () => 'Add key',
  label: ({ id }) => `Add key of ${id}`,
  isFor: provider => (isTenants(provider) ? provider.takes_own_keys : !provider.local),
  start: () => ({ name: 'main', key: '', project_id: '', fallback: 'on' }),
  dialog: (provider, { project_id }) => ({
    title: `Add key of ${provider.id}`,
    submit: 'Add key',
    fields: [
      keyField,
      { param: 'name', label: 'Name', required: true, maxLength: 32 },
      ...(provider.takes_own_keys ? [projectField] : []),
      ...(isTenants(provider) || project_id !== '' ? [fallbackField] : []),
    ],
  }),
  perform: async (provider, { name, key, project_id, fallback }) => {
    const { id } = provider
    const isOwn = isTenants(provider) || project_id !== ''
    const own = isOwn ? { project_id: project_id || null, fallback: fallback === 'on' } : null
    await callApi('POST /api/v1/provider-keys', { body: { provider: id, name, key: key.trim(), ...own } })
    return `Key “${name}” of ${id} added. Every process uses it within 1 s.`
  },
})

const setUp = action<ShownProvider>({
  text: () => 'Set up',
  label: ({ id }) => `Set up ${id}`,
  isFor: ({ variable }) => variable !== null,
  perform: async provider => ({ title: `Set up ${provider.id}`, about: <SetUp of={provider} /> }),
})

const toLabel = ({ provider, name, place }: ProviderKey) => `${name} of ${provider}${place}`

const rotate = action<ProviderKey, { key: string }>({
  text: () => 'Replace',
  label: row => `Replace ${toLabel(row)}`,
  isFor: ({ id }) => id !== null,
  start: () => ({ key: '' }),
  dialog: ({ provider, name }) => ({
    title: `Replace “${name}” of ${provider}`,
    submit: 'Replace key',
    about: <p>Requests in progress finish with the old key. Later ones use the new key within 1 s.</p>,
    fields: [keyField],
  }),
  perform: async ({ id, provider, name }, { key }) => {
    await callApi('POST /api/v1/provider-keys/:id/rotate', { params: { id: id ?? '' }, body: { key: key.trim() } })
    return `Key “${name}” of ${provider} replaced`
  },
})

const test = action<ProviderKey>({
  text: () => 'Test',
  label: row => `Test ${toLabel(row)}`,
  isFor: ({ state }) => state !== 'unreadable',
  perform: async ({ id, provider, name, source }) => {
    const body = source === 'environment' ? {} : { key: name }
    const { result, status } = await (id === null
      ? callApi('POST /api/v1/providers/:id/test', { params: { id: provider }, body })
      : callApi('POST /api/v1/provider-keys/:id/test', { params: { id } }))
    return {
      title: `Test of ${provider}`,
      about: (
        <p>
          {testTexts[result]} {status !== null && `The provider answered with HTTP ${status}.`}
        </p>
      ),
    }
  },
})

const testTexts = {
  working: 'The key works: the provider listed its models, which costs nothing.',
  rejected: 'The provider rejects the key.',
  rate_limited: 'The provider accepts no more calls of this key now.',
  unreachable: 'The provider gave no useful answer. Check its address and the network.',
  unsupported: 'This provider has no free call. Send a request to one of its models.',
} as const

const remove = action<ProviderKey>({
  text: () => 'Remove',
  label: row => `Remove ${toLabel(row)}`,
  isFor: ({ id }) => id !== null,
  isDangerous: true,
  dialog: ({ provider, name, source }) => ({
    title: `Remove “${name}” of ${provider}?`,
    submit: 'Remove key',
    about: (
      <p>
        No process uses it after 1 s. Without another key,{' '}
        {source === 'own'
          ? 'the operator’s key serves, and requests are billed.'
          : 'models of this provider are not offered.'}
      </p>
    ),
  }),
  perform: async ({ id, provider, name }) => {
    await callApi('DELETE /api/v1/provider-keys/:id', { params: { id: id ?? '' } })
    return `Key “${name}” of ${provider} removed`
  },
})

const changeFallback = action<ProviderKey>({
  text: ({ fallback }) => (fallback === true ? 'End fallback' : 'Allow fallback'),
  label: row => `${row.fallback === true ? 'End' : 'Allow'} fallback of ${toLabel(row)}`,
  isFor: ({ fallback }) => fallback !== null,
  dialog: ({ provider, name, fallback }) => ({
    title: `${fallback === true ? 'End' : 'Allow'} fallback of “${name}” of ${provider}?`,
    submit: fallback === true ? 'End fallback' : 'Allow fallback',
    about: (
      <p>
        {fallback === true
          ? 'When the key fails, its provider serves no request. Other models still follow the fallback of the request.'
          : 'When the key fails, the operator’s key serves, and the request is billed. All own keys of the provider must allow it.'}
      </p>
    ),
  }),
  perform: async ({ id, provider, name, fallback }) => {
    await callApi('PATCH /api/v1/provider-keys/:id', {
      params: { id: id ?? '' },
      body: { fallback: fallback !== true },
    })
    return `Key “${name}” of ${provider} changed`
  },
})

const sources = {
  environment: 'from environment',
  file: 'from configuration file',
  stored: 'added here',
  own: 'own key',
} as const

function toOwnKeys(keys: readonly ShownProviderKey[], names: ReadonlyMap<string, string>): readonly ProviderKey[] {
  const placed = (id: string | null) => (id === null ? '' : ` in project ${names.get(id) ?? id}`)
  const own = keys.filter(({ serves }) => serves !== 'gateway')
  return own.map(key => ({ ...key, source: 'own', place: placed(key.project_id) }))
}

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
        about: 'As this gateway process saw them since its start.',
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
          actions={[test, rotate, changeFallback, remove]}
        />
      )}
    </ResourceView>
  )
}

const toKeys = ({ id, keys }: ShownProvider) =>
  (keys ?? []).map((key): ProviderKey => ({ ...key, provider: id, fallback: null, place: '' }))

const fallbackColumn = {
  name: 'When it fails',
  from: 'middle',
  show: ({ fallback }: ProviderKey) =>
    fallback === null ? '–' : fallback ? 'The operator’s key serves' : 'The request ends',
} as const

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
