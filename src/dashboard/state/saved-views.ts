/** Named filters of this browser. They contain no data of requests. */
import { signal } from '@preact/signals'
import { type Filters, toFilters } from './filters.ts'

const storageKey = 'gateway-ai.views'
/** More than a list shows at once. */
const mostViews = 50

export const savedViews = signal<Readonly<Record<string, Filters>>>(read())

function read(): Record<string, Filters> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(storageKey) ?? '{}')
    if (typeof kept !== 'object' || kept === null) return {}
    return Object.fromEntries(Object.entries(kept).map(([name, filters]) => [name, toFilters(Object(filters))]))
  } catch {
    // Another program wrote it: the views are lost, the page is not.
    return {}
  }
}

/** Saves the filters under a name, replacing an older view of it; null removes the view. */
export function saveView(name: string, filters: Filters | null): void {
  const { [name]: _, ...others } = savedViews.peek()
  const views = filters === null ? others : { ...others, [name]: filters }
  savedViews.value = Object.fromEntries(Object.entries(views).slice(-mostViews))
  if (Object.keys(savedViews.value).length === 0) localStorage.removeItem(storageKey)
  else localStorage.setItem(storageKey, JSON.stringify(savedViews.value))
}

/** Returns the name of the view with exactly these filters. */
export function findView(filters: Filters): string | null {
  const wanted = toText(filters)
  return Object.entries(savedViews.value).find(([, view]) => toText(view) === wanted)?.[0] ?? null
}

const toText = (filters: Filters) => JSON.stringify(Object.entries(filters).toSorted())
