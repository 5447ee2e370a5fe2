import { FilterBar } from '../parts/filter-bar.tsx'
import { Page } from '../parts/page.tsx'
import { useOwnScope } from '../parts/project-field.tsx'
import { TagBudgets } from '../parts/tag-budgets.tsx'
import { TagUsage } from '../parts/tag-usage.tsx'
import { filtersOf } from '../state/filters.ts'
import { hashRoute } from '../state/hash-route.ts'

export function TagsPage() {
  const filters = filtersOf(hashRoute.value.query)
  return (
    <Page
      title="Tags"
      about={`Labels of requests, from API keys, the header x-gateway-tags, metadata and agent sessions. Usage is of ${useOwnScope() ?? 'the account'}.`}
    >
      <TagBudgets />
      <FilterBar path="tags" filters={filters} />
      <TagUsage filters={filters} />
    </Page>
  )
}
