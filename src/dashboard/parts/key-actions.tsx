/** What can be done to API keys, for the list of keys and the page of a key. */
import type { ShownKey, ShownKeyPage } from '../../console/keys/schemas.ts'
import { strategies } from '../../core/chat/chat.ts'
import { callApi } from '../state/api.ts'
import { dateTime, humanize, relativeTime } from '../state/format.ts'
import { hrefTo } from '../state/href.ts'
import {
  constraintsField,
  isKeyValid,
  limitFields,
  listOtherKeys,
  policyFields,
  toRules,
  toRuleTexts,
} from '../state/keys.ts'
import type { NewKey } from '../state/routes.ts'
import type { ShownResult } from './dialog.tsx'
import type { SelectOption } from './field.tsx'
import { Badge, Notice } from './notice.tsx'
import { action, type RowAction, removal } from './resource.tsx'

type Key = ShownKey | ShownKeyPage

/** State of a key that is not valid forever. */
export function KeyBadge({ of: key }: { readonly of: Pick<ShownKey, 'revoked_at' | 'expires_at'> }) {
  if (key.revoked_at !== null) return <Badge tone="bad">revoked</Badge>
  if (key.expires_at === null) return null
  if (!isKeyValid(key)) return <Badge>expired</Badge>
  return (
    <span title={dateTime(key.expires_at)}>
      <Badge tone="warn">expires {relativeTime(key.expires_at)}</Badge>
    </span>
  )
}

/** Columns of every list of keys. */
export const nameColumn = {
  name: 'Name',
  isHeading: true,
  show: (key: ShownKey) => (
    <>
      <a href={hrefTo(`keys/${key.id}`)}>{key.name}</a> <KeyBadge of={key} />
      <code class="block quiet">{key.prefix}</code>
    </>
  ),
} as const
export const lastUsedColumn = {
  name: 'Last used',
  from: 'middle',
  show: ({ last_used_at: at }: Pick<ShownKey, 'last_used_at'>) => (at === null ? 'Never' : relativeTime(at)),
} as const

const toResult = ({ name, key }: NewKey): ShownResult => ({
  title: `Key “${name}” created`,
  about: (
    <Notice tone="warn" title="Copy the key now">
      It is shown only once: the gateway stores only its hash.
    </Notice>
  ),
  once: { text: key, what: 'key' },
})

const lifetimes: readonly SelectOption[] = [
  ['', 'Never'],
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
]
const dayMs = 86_400_000

/** Returns the expiry of a chosen lifetime; null = never. */
const expiryIn = (days: string) => (days === '' ? null : new Date(Date.now() + Number(days) * dayMs).toISOString())

/** The choice that leaves the expiry unchanged. */
const unchanged = 'unchanged'

/** Creates a key, or changes one, with the same form. `projectId` is the project of a new key at first; empty = none. */
const save = (projectId: string) =>
  action({
    text: (key: Key | null) => (key === null ? 'Create API key' : 'Change'),
    label: key => (key === null ? 'Create API key' : `Change ${key.name}`),
    start: key => ({
      preset: '',
      name: key?.name ?? '',
      project_id: key === null ? projectId : (key.project_id ?? ''),
      expires_at: key === null ? '' : unchanged,
      ...toRuleTexts(key),
    }),
    dialog: (key, { fallback }) => ({
      title: key === null ? 'Create API key' : `Change “${key.name}”`,
      submit: key === null ? 'Create API key' : 'Save',
      fields: [
        ...(key === null ? [presetField] : []),
        {
          param: 'name',
          label: 'Name',
          required: true,
          maxLength: 64,
          ...(key === null ? { hint: 'Describe its purpose. Usage is shown by key name.' } : {}),
        },
        {
          param: 'project_id',
          label: 'Project',
          choices: 'projects',
          hint: 'Its requests count in the limits of the project.',
        },
        { param: 'expires_at', label: 'Expires', choices: [...unchangedExpiry(key), ...lifetimes] },
        ...costFields,
        { param: 'models', label: 'Models', hint: 'openai/gpt-5.5, anthropic/*. Empty: all.', suggest: 'models' },
        ...limitFields.filter(field => !costFields.includes(field)).map(folded),
        folded({ param: 'tags', label: 'Tags', hint: 'team=search, env=prod' }),
        folded(strategyField),
        ...policyFields(fallback, { fallback: asAccount, continue: asAccount, hedge: asAccount }).map(folded),
        folded(constraintsField),
      ],
    }),
    perform: async (key, { name: text, project_id, expires_at, preset: _, ...texts }) => {
      const name = text.trim()
      const body = {
        name,
        ...(expires_at === unchanged ? {} : { expires_at: expiryIn(expires_at) }),
        ...(project_id === (key?.project_id ?? '') ? {} : { project_id: project_id || null }),
        ...toRules(texts),
      }
      if (key === null) return toResult(await callApi('POST /api/v1/keys', { body }))
      await callApi('PATCH /api/v1/keys/:id', { params: { id: key.id }, body })
      return `Key “${name}” changed`
    },
  })

const asAccount = 'As the account'
const strategyField = {
  param: 'strategy',
  label: 'Default strategy',
  hint: 'For requests that name neither a strategy nor a model.',
  choices: [['', 'Balanced (default)'], ...strategies.map(name => [name, humanize(name)] as const)],
} as const

const costFields = limitFields.filter(({ param }) => param.endsWith('_usd'))

/** Rare fields are folded. */
const folded = <F extends object>(field: F) => ({ ...field, isFolded: true })

/** What a key is for, with the values that fit. */
const presets = {
  person: { expires_at: '90', 'limits.monthly_cost_usd': '50' },
  service: { expires_at: '', 'limits.monthly_cost_usd': '' },
  intern: { expires_at: '90', 'limits.monthly_cost_usd': '5' },
} as const

const presetField = {
  param: 'preset',
  label: 'For',
  choices: [
    ['', 'No preset'],
    ['person', 'A person: $50 per month, 90 days'],
    ['service', 'A service: no expiry'],
    ['intern', 'An intern: $5 per month, 90 days'],
  ],
  sets: (name: string) => (name === 'person' || name === 'service' || name === 'intern' ? presets[name] : {}),
} as const

const unchangedExpiry = (key: Key | null): readonly SelectOption[] =>
  key === null ? [] : [[unchanged, key.expires_at === null ? 'Never (unchanged)' : dateTime(key.expires_at)]]

export const keyCreation = (projectId: string): RowAction<null> => save(projectId)

/** An expired key can get a later expiry, unless a rotation replaced it. */
const isChangeable = (key: Key) =>
  key.revoked_at === null && (isKeyValid(key) || !('replaced_by' in key) || key.replaced_by === null)

const overlaps: readonly SelectOption[] = [
  ['0', 'Not at all'],
  ['3600', 'For an hour'],
  ['86400', 'For a day'],
  ['604800', 'For seven days'],
]

/** Changes, rotates and revokes a key. */
export const keyActions: readonly RowAction<Key>[] = [
  { ...save(''), isFor: isChangeable },
  action<Key, { readonly overlap_seconds: string }>({
    text: () => 'Rotate',
    label: ({ name }) => `Rotate ${name}`,
    isFor: key => isKeyValid(key) && !('replaced_by' in key && key.replaced_by !== null),
    start: () => ({ overlap_seconds: '86400' }),
    dialog: ({ name }) => ({
      title: `Rotate “${name}”`,
      submit: 'Rotate',
      about: <p>A new key replaces it and continues its usage history.</p>,
      fields: [
        {
          param: 'overlap_seconds',
          label: 'Old key stays valid',
          choices: overlaps,
          hint: 'Long enough to replace it everywhere.',
        },
      ],
    }),
    perform: async ({ id }, { overlap_seconds }) => {
      const body = { overlap_seconds: Number(overlap_seconds) }
      return toResult(await callApi('POST /api/v1/keys/:id/rotate', { params: { id }, body }))
    },
  }),
  removal<Key>({
    verb: 'Revoke',
    name: ({ name }) => name,
    isFor: isChangeable,
    about: ({ prefix }) => (
      <>
        Requests with <code>{prefix}</code> are rejected within 1 s. This cannot be undone.
      </>
    ),
    load: async ({ id }) =>
      listOtherKeys(await callApi('GET /api/v1/keys/:id', { params: { id } })).map(text => <p key={text}>{text}</p>),
    remove: ({ id }) => callApi('DELETE /api/v1/keys/:id', { params: { id } }),
    done: ({ name }) => `Key “${name}” revoked`,
  }),
]
