import type { SearchBackEnd } from '../search.ts'
import { fieldOf, resultsIn } from './results.ts'

export const tavilyBaseUrl = 'https://api.tavily.com'

/** Creates the adapter of Tavily's `POST /search` at basic depth: one credit, and the fastest. */
export function tavily({ apiKey, baseUrl }: { readonly apiKey: string; readonly baseUrl: string }): SearchBackEnd {
  return {
    id: 'tavily',
    toRequest: (query, maximumResults) => ({
      url: `${baseUrl.replace(/\/+$/, '')}/search`,
      init: {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ query, max_results: maximumResults, search_depth: 'basic', include_answer: false }),
      },
    }),
    readResults: body => resultsIn(fieldOf(body, 'results'), 'content'),
  }
}
