/**
 * Web search behind one port: the configured back ends are called in order until one answers, within one time budget.
 * Results are converted to one format, without duplicates, up to a maximum.
 */

import { type OmittedSource, type WebDocument, webLimits, withoutFragment } from '../core/chat/web-sources.ts'
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
  /** True if a search back end is configured. */
  readonly isThere: boolean
  /** Rejects only if `signal` aborts. An empty result is valid. */
  find(query: string, signal: AbortSignal): Promise<readonly WebDocument[] | OmittedSource>
}

type SearchOptions = {
  /** Read at each search. */
  readonly backEnds: readonly SearchBackEnd[]
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
  return {
    get isThere() {
      return options.backEnds.length > 0
    },
    async find(query, signal) {
      const { backEnds } = options
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
