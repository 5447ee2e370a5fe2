import type { SearchBackEnd } from '../search.ts'
import { fieldOf, resultsIn } from './results.ts'

export const braveBaseUrl = 'https://api.search.brave.com/res/v1'

/** Brave's Web Search API. `baseUrl` as `braveBaseUrl`; an origin alone is taken for one. */
export function brave({ apiKey, baseUrl }: { readonly apiKey: string; readonly baseUrl: string }): SearchBackEnd {
  const base = new URL(baseUrl).pathname === '/' ? new URL('/res/v1', baseUrl).href : baseUrl.replace(/\/+$/, '')
  return {
    id: 'brave',
    toRequest: (query, maximumResults) => ({
      url: `${base}/web/search?${new URLSearchParams({ q: query, count: String(maximumResults), text_decorations: 'false', result_filter: 'web' })}`,
      init: { headers: { accept: 'application/json', 'x-subscription-token': apiKey } },
    }),
    readResults(body) {
      // A search without any match has no `web` at all.
      if (fieldOf(body, 'type') === 'search' && fieldOf(body, 'web') === undefined) return []
      return resultsIn(fieldOf(fieldOf(body, 'web'), 'results'), 'description')
    },
  }
}
