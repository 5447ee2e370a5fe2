import { useState } from 'preact/hooks'
import type { ShownProvider } from '../../console/provider-keys/schemas.ts'
import { Snippet, Tabs } from '../parts/controls.tsx'
import { Badge, type Tone } from '../parts/notice.tsx'
import { action, ResourceView } from '../parts/resource.tsx'
import { callApi } from '../state/api.ts'
import { exactTime, formatCount, humanize, relativeTime } from '../state/format.ts'
import { useResource } from '../state/resource.ts'
import { may } from '../state/session.ts'

const everyMs = 15_000

type ProviderKey = NonNullable<ShownProvider['keys']>[number] & { readonly provider: string }
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

const add = action<ShownProvider, { name: string; key: string }>({
  text: () => 'Add key',
  label: ({ id }) => `Add key of ${id}`,
  isFor: ({ local, keys }) => keys !== null && !local,
  start: () => ({ name: 'main', key: '' }),
  dialog: ({ id }) => ({
    title: `Add key of ${id}`,
    submit: 'Add key',
    fields: [keyField, { param: 'name', label: 'Name', required: true, maxLength: 32 }],
  }),
  perform: async ({ id }, { name, key }) => {
    await callApi('POST /api/v1/provider-keys', { body: { provider: id, name, key: key.trim() } })
    return `Key “${name}” of ${id} added. Every process uses it within 1 s.`
  },
})

const setUp = action<ShownProvider>({
  text: () => 'Set up',
  label: ({ id }) => `Set up ${id}`,
  isFor: ({ variable }) => variable !== null,
  perform: async provider => ({ title: `Set up ${provider.id}`, about: <SetUp of={provider} /> }),
})

const rotate = action<ProviderKey, { key: string }>({
  text: () => 'Replace',
  label: ({ provider, name }) => `Replace ${name} of ${provider}`,
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
  label: ({ provider, name }) => `Test ${name} of ${provider}`,
  isFor: ({ state }) => state !== 'unreadable',
  perform: async ({ provider, name, source }) => {
    const body = source === 'environment' ? {} : { key: name }
    const { result, status } = await callApi('POST /api/v1/providers/:id/test', { params: { id: provider }, body })
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
  label: ({ provider, name }) => `Remove ${name} of ${provider}`,
  isFor: ({ id }) => id !== null,
  isDangerous: true,
  dialog: ({ provider, name }) => ({
    title: `Remove “${name}” of ${provider}?`,
    submit: 'Remove key',
    about: <p>No process uses it after 1 s. Without another key, models of this provider are not offered.</p>,
  }),
  perform: async ({ id, provider, name }) => {
    await callApi('DELETE /api/v1/provider-keys/:id', { params: { id: id ?? '' } })
    return `Key “${name}” of ${provider} removed`
  },
})

const sources = { environment: 'from environment', file: 'from configuration file', stored: 'added here' } as const

/** Every provider with its state, and the keys that owners of the operator's account add. */
export function Providers() {
  const providers = useResource('GET /api/v1/providers', { everyMs })
  const access = providers.data?.stored_keys
  const isOwner = may('provider_keys.manage')
  return (
    <ResourceView
      page={{
        title: 'Providers',
        about: 'As this gateway process saw them since its start. A key serves all accounts.',
      }}
      before={isOwner && access !== undefined && access !== 'allowed' && <p class="hint">{notices[access]}</p>}
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
      actions={access === 'allowed' ? [add, setUp] : [setUp]}
    >
      {access !== undefined && access !== 'not_operator' && (
        <ResourceView
          title="Keys"
          about="A stored key works beside those of the environment."
          what="keys"
          resource={providers}
          rows={({ data }) =>
            data.flatMap(({ id, keys }) => (keys ?? []).map((key): ProviderKey => ({ ...key, provider: id })))
          }
          rowKey={({ provider, source, name }) => `${provider} ${source} ${name}`}
          columns={[
            { name: 'Provider', isHeading: true, show: ({ provider }) => provider },
            {
              name: 'Key',
              show: ({ name, hint, source }) => (
                <>
                  {name} {hint !== '' && <code>…{hint}</code>} <span class="quiet">{sources[source]}</span>
                </>
              ),
            },
            { name: 'State', show: ({ state }) => <StateBadge of={state} /> },
          ]}
          empty={['No keys', 'Add a key of a provider above, or set its variable.']}
          actions={[test, rotate, remove]}
        />
      )}
    </ResourceView>
  )
}

const notices = {
  off: 'Keys come from the environment and the configuration file only (STORED_PROVIDER_KEYS=off).',
  not_operator: 'Owners of the operator’s account add keys here.',
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
