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
    readResults(body) {
      const results = resultsIn(fieldOf(body, 'results'), 'content')
      return results?.length === 0 && isUnanswered(body) ? null : results
    },
  }
}

/** It answers with 200 when the engines behind it refuse or time out: then finding nothing says nothing about the web. */
function isUnanswered(body: unknown): boolean {
  const unresponsive = fieldOf(body, 'unresponsive_engines')
  return Array.isArray(unresponsive) && unresponsive.length > 0
}
