/**
 * Adapters of the search back ends. They parse results leniently, since one malformed entry is no reason to lose the others.
 */
import type { WebDocument } from '../core/chat/web-sources.ts'
import type { SearchBackEnd } from './search.ts'

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
      const results = resultsIn(getField(body, 'results'), 'content')
      return results?.length === 0 && isUnanswered(body) ? null : results
    },
  }
}

/**
 * SearXNG answers 200 if its engines reject or time out; an empty result then does not mean that there are no pages.
 */
function isUnanswered(body: unknown): boolean {
  const unresponsive = getField(body, 'unresponsive_engines')
  return Array.isArray(unresponsive) && unresponsive.length > 0
}

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
      if (getField(body, 'type') === 'search' && getField(body, 'web') === undefined) return []
      return resultsIn(getField(getField(body, 'web'), 'results'), 'description')
    },
  }
}

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
    readResults: body => resultsIn(getField(body, 'results'), 'content'),
  }
}

/** Returns the entries of `list` that have a URL and a text under `textName`; null if it is not a list. */
function resultsIn(list: unknown, textName: 'content' | 'description'): readonly WebDocument[] | null {
  if (!Array.isArray(list)) return null
  return list.flatMap((entry: unknown) => {
    const url = getField(entry, 'url')
    const text = getField(entry, textName)
    const title = getField(entry, 'title')
    if (typeof url !== 'string' || typeof text !== 'string') return []
    return [{ url, title: typeof title === 'string' ? plain(title) : '', text: plain(text) }]
  })
}

/** Returns a field of a value that may not be an object. */
function getField(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  '#39': "'",
  '#x27': "'",
  '#x2F': '/',
}

/** Far more than is quoted: the text of a result may be very long. */
const longestRead = 8_000

/** Removes an engine's emphasis and escapes. */
function plain(text: string): string {
  return text
    .slice(0, longestRead)
    .replace(/<\/?(?:strong|b|em|mark|i)>/gi, '')
    .replace(/&([a-z]{2,4}|#39|#x27|#x2F);/gi, (whole, name: string) => entities[name] ?? whole)
}
