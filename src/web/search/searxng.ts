import type { SearchBackEnd } from '../search.ts'
import { fieldOf, resultsIn } from './results.ts'

/** SearXNG, the operator's own meta search: `GET /search?format=json`, which its settings must allow. */
export function searxng(address: string): SearchBackEnd {
  const base = address.replace(/\/+$/, '').replace(/\/search$/, '')
  return {
    id: 'searxng',
    toRequest: query => ({
      url: `${base}/search?${new URLSearchParams({ q: query, format: 'json', safesearch: '1' })}`,
      init: { headers: { accept: 'application/json' } },
    }),
    readResults: body => resultsIn(fieldOf(body, 'results'), 'content'),
  }
}
