/** Keys of providers as rows: of the operator, and own keys of the account; with what their owners do to them. */
import type { ShownProvider, ShownProviderKey } from '../../console/provider-keys/schemas.ts'
import { callApi } from '../state/api.ts'
import { Badge, type Tone } from './notice.tsx'
import { action, removal } from './resource.tsx'

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

export function StateBadge({ of: state }: { readonly of: State }) {
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

/** True outside the operator's account: the operator's keys are not shown there. */
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

export const add = action<ShownProvider, { name: string; key: string; project_id: string; fallback: string }>({
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

export const toLabel = ({ provider, name, place }: ProviderKey) => `${name} of ${provider}${place}`

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

const remove = removal<ProviderKey>({
  verb: 'Remove',
  name: toLabel,
  isFor: ({ id }) => id !== null,
  about: ({ source }) =>
    `No process uses it after 1 s. Without another key, ${source === 'own' ? 'the operator’s key serves, and requests are billed' : 'models of this provider are not offered'}.`,
  remove: ({ id }) => callApi('DELETE /api/v1/provider-keys/:id', { params: { id: id ?? '' } }),
  done: row => `Key ${toLabel(row)} removed`,
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

export const sources = {
  environment: 'from environment',
  file: 'from configuration file',
  stored: 'added here',
  own: 'own key',
} as const

export function toOwnKeys(
  keys: readonly ShownProviderKey[],
  names: ReadonlyMap<string, string>,
): readonly ProviderKey[] {
  const placed = (id: string | null) => (id === null ? '' : ` in project ${names.get(id) ?? id}`)
  const own = keys.filter(({ serves }) => serves !== 'gateway')
  return own.map(key => ({ ...key, source: 'own', place: placed(key.project_id) }))
}

export const toKeys = ({ id, keys }: ShownProvider) =>
  (keys ?? []).map((key): ProviderKey => ({ ...key, provider: id, fallback: null, place: '' }))

export const fallbackColumn = {
  name: 'When it fails',
  from: 'middle',
  show: ({ fallback }: ProviderKey) =>
    fallback === null ? '–' : fallback ? 'The operator’s key serves' : 'The request ends',
} as const

export const providerKeyActions = [test, rotate, changeFallback, remove]
