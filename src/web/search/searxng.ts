import type { SearchBackEnd } from '../search.ts'
import { fieldOf, resultsIn } from './results.ts'

/**
 * Creates the adapter of SearXNG, a meta search engine run by the operator: `GET /search?format=json`, which its
 * settings must allow.
 */
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

/**
 * SearXNG answers 200 if its engines reject or time out; an empty result then does not mean that there are no pages.
 */
function isUnanswered(body: unknown): boolean {
  const unresponsive = fieldOf(body, 'unresponsive_engines')
  return Array.isArray(unresponsive) && unresponsive.length > 0
}
