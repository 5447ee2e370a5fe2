/** What the web may add to a request, at most: decided from the caller's own words, before anything is asked of anybody. */
import type { Ask, Message } from './chat.ts'
import type { Reader, Reading } from './classify.ts'

/**
 * Why something of the web is missing from an answer. Four words and no more, since who names an address could otherwise
 * read from them what stands behind it.
 * - `refused`: never fetched: the address, the blocklist, what the page says, or too many of them.
 * - `unreachable`: no such name, no connection, or no success.
 * - `too_slow`: not there in time.
 * - `unreadable`: too large, of another type, or nothing to read.
 */
export const leftOutCodes = ['refused', 'unreachable', 'too_slow', 'unreadable'] as const
export type LeftOutCode = (typeof leftOutCodes)[number]

/** `url` null = the search. */
export type LeftOut = { readonly url: string | null; readonly code: LeftOutCode }
export type WebSource = { readonly url: string; readonly title: string }

/** Something found or fetched, as it came. */
export type Finding = { readonly url: string; readonly title: string; readonly text: string }

export const webLimits = {
  pages: 3,
  pageCharacters: 8_000,
  /** Input tokens reserved for a page, and for the results of a search: what would be more is cut shorter. */
  pageTokens: 5_000,
  results: 6,
  resultCharacters: 500,
  resultsTokens: 2_500,
  titleCharacters: 160,
  queryCharacters: 380,
  queryWords: 48,
} as const

/** Integers of 1e-8 USD. */
export type WebPrices = { readonly search: number; readonly fetch: number }

/**
 * $0.005 a search, what Brave asks ($5 per 1,000 requests, api-dashboard.search.brave.com, 2026) and Tavily about does;
 * $0.0005 a page, our own traffic and work. An operator may set others.
 */
export const webPrices: WebPrices = { search: 500_000, fetch: 50_000 }

/** What a request may take from the web, and what has to be reserved for it. */
export type WebPlan = {
  /** Null = no search. */
  readonly query: string | null
  /** To be fetched, each once. */
  readonly urls: readonly string[]
  /** Beyond what one request may have. */
  readonly surplus: readonly string[]
  /** Input tokens that it adds at most. */
  readonly tokens: number
  /** Integer of 1e-8 USD. */
  readonly microcents: number
}

export const noWeb: WebPlan = { query: null, urls: [], surplus: [], tokens: 0, microcents: 0 }

/** What there is to be had: whether anybody can be asked to search, the prices, and who reads what is wanted. */
export type WebOffer = { readonly canSearch: boolean; readonly prices: WebPrices; readonly read: Reader }

/** What the caller's words ask of the web. `webOff`: key or account want nothing of it. */
export function planWeb(
  ask: Pick<Ask, 'web' | 'messages'>,
  reading: Pick<Reading, 'needsCurrent' | 'urls'>,
  caller: { readonly webOff?: boolean },
  { canSearch, prices, read }: WebOffer,
): WebPlan {
  const maySearch = canSearch && reading.needsCurrent
  if (!maySearch && reading.urls.length === 0) return noWeb
  if (ask.web === 'off' || caller.webOff === true) return noWeb
  const last = ask.messages.at(-1)
  // Turns that only hand a tool's result back were looked up for when the question came.
  if (last?.role !== 'user') return noWeb
  const distinct = [...new Map(reading.urls.map(url => [withoutFragment(url), url])).values()]
  const urls = distinct.slice(0, webLimits.pages)
  const text = last.content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
  const query = maySearch && (urls.length === 0 || asksForMore(text, read)) ? queryOf(text) : null
  return {
    query,
    urls,
    surplus: distinct.slice(webLimits.pages),
    tokens: urls.length * webLimits.pageTokens + (query === null ? 0 : webLimits.resultsTokens),
    microcents: urls.length * prices.fetch + (query === null ? 0 : prices.search),
  }
}

/** A page to be read is current data by itself: a search is wanted where the words around its address want one too. */
function asksForMore(text: string, read: Reader): boolean {
  const turn: Message = { role: 'user', content: [{ type: 'text', text: withoutAddresses(text) }], name: null }
  return read([turn]).needsCurrent
}

const withoutAddresses = (text: string) => text.replace(/https?:\/\/\S+/gi, ' ')

/** An address as two of them are the same page. */
export function withoutFragment(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null) return url
  parsed.hash = ''
  return parsed.href
}

/** What is searched for: the question as it was asked; of a long text its last question, or its beginning. */
export function queryOf(text: string): string | null {
  const plain = withoutAddresses(text.slice(0, longestSearched).replace(/```[\s\S]*?(?:```|$)/g, ' '))
    .replace(/\s+/g, ' ')
    .trim()
  if (plain === '') return null
  const chosen = isShort(plain)
    ? plain
    : (plain
        .split(sentenceEnds)
        .findLast(sentence => /[?？]$/.test(sentence))
        ?.trim() ?? plain)
  return chosen.split(' ').slice(0, webLimits.queryWords).join(' ').slice(0, webLimits.queryCharacters).toWellFormed()
}

const longestSearched = 8_000
const sentenceEnds = /(?<=[.!?。！？])/

function isShort(text: string): boolean {
  return text.length <= webLimits.queryCharacters && text.split(' ').length <= webLimits.queryWords
}
