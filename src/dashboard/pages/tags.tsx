import type { ShownTag } from '../../http/schemas.ts'
import { FilterBar } from '../parts/filter-bar.tsx'
import { UsedLimits } from '../parts/meter.tsx'
import { useOwnScope } from '../parts/project-field.tsx'
import { action, ResourceView } from '../parts/resource.tsx'
import { TagUsage } from '../parts/tag-usage.tsx'
import { callApi } from '../state/api.ts'
import { toFilters } from '../state/filters.ts'
import { hashRoute } from '../state/hash-route.ts'
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
  dialog: (tag, { name, value, ...limits }) => ({
    title: tag === null ? 'Set budget' : `Change the budget of “${toTitle(tag)}”`,
    submit: tag === null ? 'Set budget' : 'Save',
    isReady: name.trim() !== '' && value.trim() !== '' && Object.values(limits).some(text => text !== ''),
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

const remove = action<ShownTag>({
  text: () => 'Remove',
  label: tag => `Remove the budget of ${toTitle(tag)}`,
  isDangerous: true,
  dialog: tag => ({
    title: `Remove the budget of “${toTitle(tag)}”?`,
    submit: 'Remove',
    about: <p>Requests with this tag are then limited only by the account and their key. Their usage stays.</p>,
  }),
  perform: async ({ name, value }) => {
    await callApi('PUT /api/v1/tags', { body: { name, value, limits: null } })
    return 'Budget removed'
  },
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
        about: `Labels of requests, from API keys, the header x-gateway-tags, metadata and agent sessions. Usage is of ${useOwnScope() ?? 'the account'}.`,
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
        { name: 'Used', show: tag => <UsedLimits {...tag} /> },
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
