/**
 * Web search behind one port: the configured back ends are called in order until one answers, within one time budget.
 * Results are converted to one format, without duplicates, up to a maximum.
 */
import { type OmittedSource, type WebDocument, webLimits, withoutFragment } from '../core/chat/web-sources.ts'
import { type DataPolicy, type Demand, findBreach } from '../core/policy/constraints.ts'
import type { Clock, Log, Network } from '../core/ports.ts'

type SearchRequest = { readonly url: string; readonly init: RequestInit }

/** Wire format of one back end. Pure: it neither fetches nor waits. */
export type SearchBackEnd = {
  readonly id: 'searxng' | 'brave' | 'tavily'
  toRequest(query: string, maximumResults: number): SearchRequest
  /** Returns the results of a successful body; null if the body is invalid or no search took place. */
  readResults(body: unknown): readonly WebDocument[] | null
}

export type Search = {
  /** Returns true if a search back end is configured that the constraints of a request allow. */
  isThere(demands: readonly Demand[] | undefined): boolean
  /** Calls only back ends that the constraints allow. Rejects only if `signal` aborts. An empty result is valid. */
  find(
    query: string,
    signal: AbortSignal,
    demands: readonly Demand[] | undefined,
  ): Promise<readonly WebDocument[] | OmittedSource>
}

type SearchOptions = {
  /** Read at each search. */
  readonly backEnds: readonly SearchBackEnd[]
  /** Guarantees of the back ends. Read at each search. */
  readonly policy: DataPolicy
  readonly fetch: Network['fetch']
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  readonly log: Pick<Log, 'warn'>
  readonly isListed: (url: string) => boolean
  /** Time of all back ends together, in milliseconds. */
  readonly budgetMs: number
}

const maximumBodyBytes = 1 << 20

/** Creates a search over the back ends in their order. */
export function createSearch(options: SearchOptions): Search {
  const { fetch, clock, log, isListed, budgetMs } = options
  const findAllowed = (demands: readonly Demand[] = []) => {
    const { backEnds, policy } = options
    return backEnds.filter(({ id }) => findBreach(demands, { names: [id], policy }) === null)
  }
  return {
    isThere: demands => findAllowed(demands).length > 0,
    async find(query, signal, demands) {
      const backEnds = findAllowed(demands)
      const deadline = clock.monotonic() + budgetMs
      let isLate = false
      for (const [index, backEnd] of backEnds.entries()) {
        const leftMs = deadline - clock.monotonic()
        // Half of the remaining time, so that the next back end has a chance.
        const allowedMs = Math.floor(index < backEnds.length - 1 ? leftMs / 2 : leftMs)
        if (allowedMs <= 0) break
        const late = new AbortController()
        const cancel = clock.after(allowedMs, () => late.abort())
        try {
          const found = await send(fetch, backEnd, query, AbortSignal.any([signal, late.signal]))
          return chosen(found, isListed)
        } catch (cause) {
          signal.throwIfAborted()
          isLate = late.signal.aborted
          log.warn('search_failed', { back_end: backEnd.id, detail: isLate ? 'too slow' : getDetail(cause) })
        } finally {
          cancel()
        }
      }
      return { url: null, code: isLate ? 'too_slow' : 'unreachable' }
    },
  }
}

async function send(
  fetch: SearchOptions['fetch'],
  backEnd: SearchBackEnd,
  query: string,
  signal: AbortSignal,
): Promise<readonly WebDocument[]> {
  const { url, init } = backEnd.toRequest(query, webLimits.results)
  const response = await fetch(url, { ...init, redirect: 'error', signal })
  try {
    if (!response.ok) throw new Unusable(`answered with ${response.status}`)
    const found = backEnd.readResults(JSON.parse(await boundedText(response)))
    if (found === null) throw new Unusable('no search took place')
    return found
  } finally {
    // An unread body would keep the connection busy.
    await response.body?.cancel().catch(() => {})
  }
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const piece of response.body ?? []) {
    bytes += piece.length
    if (bytes > maximumBodyBytes) throw new Unusable('response too large')
    text += decoder.decode(piece, { stream: true })
  }
  return text + decoder.decode()
}

/** Returns pages that are not on a blocklist, without duplicates, and with text. */
function chosen(found: readonly WebDocument[], isListed: (url: string) => boolean): readonly WebDocument[] {
  const distinct = new Map<string, WebDocument>()
  for (const finding of found) {
    const url = URL.parse(finding.url)
    if (url === null || !['http:', 'https:'].includes(url.protocol) || finding.text.trim() === '') continue
    if (url.href.length > longestAddress || isListed(url.href)) continue
    const key = samePage(url.href)
    if (!distinct.has(key)) distinct.set(key, { ...finding, url: url.href })
  }
  return [...distinct.values()].slice(0, webLimits.results)
}

/** URLs are quoted completely, so a long one would displace the text. */
const longestAddress = 500
const tracking = /^(?:utm_\w+|gclid|fbclid|msclkid|ref|ref_src)$/i

/** Returns one spelling for the URLs under which engines list the same page. */
function samePage(address: string): string {
  const url = new URL(withoutFragment(address))
  for (const name of [...url.searchParams.keys()]) if (tracking.test(name)) url.searchParams.delete(name)
  return `${url.hostname.replace(/^www\./, '')}${url.pathname.replace(/\/$/, '')}${url.search}`
}

/** Returns our own text only: a client library's error repeats the URL, which contains the query. */
function getDetail(cause: unknown): string {
  if (cause instanceof Unusable) return cause.message
  return cause instanceof SyntaxError ? 'response is not JSON' : 'no response'
}

class Unusable extends Error {}

/**
 * Adapters of the search back ends. They parse results leniently, since one malformed entry is no reason to lose the others.
 */

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
