import type { SearchBackEnd } from '../search.ts'
import { fieldOf, resultsIn } from './results.ts'

export const braveBaseUrl = 'https://api.search.brave.com/res/v1'

/** Creates the adapter of Brave's Web Search API. `baseUrl` as in `braveBaseUrl`; an origin only is accepted too. */
export function brave({ apiKey, baseUrl }: { readonly apiKey: string; readonly baseUrl: string }): SearchBackEnd {
  const base = new URL(baseUrl).pathname === '/' ? new URL('/res/v1', baseUrl).href : baseUrl.replace(/\/+$/, '')
  return {
    id: 'brave',
    toRequest: (query, maximumResults) => ({
      url: `${base}/web/search?${new URLSearchParams({ q: query, count: String(maximumResults), text_decorations: 'false', result_filter: 'web' })}`,
      init: { headers: { accept: 'application/json', 'x-subscription-token': apiKey } },
    }),
    readResults(body) {
      // A search without any match has no `web` field.
      if (fieldOf(body, 'type') === 'search' && fieldOf(body, 'web') === undefined) return []
      return resultsIn(fieldOf(fieldOf(body, 'web'), 'results'), 'description')
    },
  }
}
