/**
 * Web search behind one port: the back ends that are configured, asked one after another until one answers, all within one
 * budget of time. What comes back is made one shape, each page once, so many at most.
 */
import { type OmittedSource, type WebDocument, webLimits, withoutFragment } from '../core/chat/web-sources.ts'

export type SearchRequest = { readonly url: string; readonly init: RequestInit }

/** One back end's wire format. Pure: it neither fetches nor waits. */
export type SearchBackEnd = {
  readonly id: 'searxng' | 'brave' | 'tavily'
  toRequest(query: string, maximumResults: number): SearchRequest
  /** The results that a successful body holds; null where it is no such body, or where nobody searched. */
  readResults(body: unknown): readonly WebDocument[] | null
}

export type Search = {
  /** Whether there is anybody to ask. */
  readonly isThere: boolean
  /** Never rejects but when `signal` aborts. No results is an answer too. */
  find(query: string, signal: AbortSignal): Promise<readonly WebDocument[] | OmittedSource>
}

export type SearchOptions = {
  readonly backEnds: readonly SearchBackEnd[]
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly clock: { monotonic(): number }
  readonly log: { warn(event: string, fields: Readonly<Record<string, string>>): void }
  readonly isListed: (url: string) => boolean
}

export const searchBudgetMs = 2_500
const maximumBodyBytes = 1 << 20

/** A search over the back ends in their order. */
export function createSearch({ backEnds, fetch, clock, log, isListed }: SearchOptions): Search {
  return {
    isThere: backEnds.length > 0,
    async find(query, signal) {
      const deadline = clock.monotonic() + searchBudgetMs
      let isLate = false
      for (const [index, backEnd] of backEnds.entries()) {
        const leftMs = deadline - clock.monotonic()
        // Half of what is left, so that the next one has a chance too.
        const allowedMs = Math.floor(index < backEnds.length - 1 ? leftMs / 2 : leftMs)
        if (allowedMs <= 0) break
        const late = AbortSignal.timeout(allowedMs)
        try {
          const found = await ask(fetch, backEnd, query, AbortSignal.any([signal, late]))
          return chosen(found, isListed)
        } catch (cause) {
          signal.throwIfAborted()
          isLate = late.aborted
          log.warn('search_failed', { back_end: backEnd.id, detail: isLate ? 'too slow' : detailOf(cause) })
        }
      }
      return { url: null, code: isLate ? 'too_slow' : 'unreachable' }
    },
  }
}

async function ask(
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
    if (found === null) throw new Unusable('answered without a search')
    return found
  } finally {
    // Unread, it would keep the connection at work.
    await response.body?.cancel().catch(() => {})
  }
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const piece of response.body ?? []) {
    bytes += piece.length
    if (bytes > maximumBodyBytes) throw new Unusable('answered with too much')
    text += decoder.decode(piece, { stream: true })
  }
  return text + decoder.decode()
}

/** Pages of the web that nobody lists, each once, with something to read. */
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

/** An address is quoted whole, and is not to crowd out what it is the address of. */
const longestAddress = 500
const tracking = /^(?:utm_\w+|gclid|fbclid|msclkid|ref|ref_src)$/i

/** One spelling for the addresses under which engines list one page. */
function samePage(address: string): string {
  const url = new URL(withoutFragment(address))
  for (const name of [...url.searchParams.keys()]) if (tracking.test(name)) url.searchParams.delete(name)
  return `${url.hostname.replace(/^www\./, '')}${url.pathname.replace(/\/$/, '')}${url.search}`
}

/** Our own words only: a client's error repeats the address, and the address is the question. */
function detailOf(cause: unknown): string {
  if (cause instanceof Unusable) return cause.message
  return cause instanceof SyntaxError ? 'answered with no JSON' : 'no answer'
}

class Unusable extends Error {}
