import { isAllowed } from '../../core/accounts/roles.ts'
import { FilterBar } from '../parts/filter-bar.tsx'
import { Page } from '../parts/page.tsx'
import { TagBudgets } from '../parts/tag-budgets.tsx'
import { TagUsage } from '../parts/tag-usage.tsx'
import { filtersOf } from '../state/filters.ts'
import { hashRoute } from '../state/hash-route.ts'
import { user } from '../state/session.ts'

export function TagsPage() {
  const filters = filtersOf(hashRoute.value.query)
  const seesAll = isAllowed(user.value?.role ?? 'viewer', 'usage.all')
  return (
    <Page
      title="Tags"
      about={`Labels of requests, from API keys, the header x-gateway-tags, metadata and agent sessions. Usage is ${seesAll ? 'of the account' : 'of your own keys'}.`}
    >
      <TagBudgets />
      <FilterBar path="tags" filters={filters} />
      <TagUsage filters={filters} />
    </Page>
  )
}
