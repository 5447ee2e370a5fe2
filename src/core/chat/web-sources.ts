/** What the web gives a request: its measures, its prices, and what is said of what it did not give. */

/**
 * Why something of the web is missing from an answer. Four words and no more, since who names an address could otherwise
 * read from them what stands behind it.
 * - `refused`: never fetched: the address, the blocklist, what the page says, or too many of them.
 * - `unreachable`: no such name, no connection, or no success.
 * - `too_slow`: not there in time.
 * - `unreadable`: too large, of another type, or nothing to read.
 */
export const omissionCodes = ['refused', 'unreachable', 'too_slow', 'unreadable'] as const
export type LeftOutCode = (typeof omissionCodes)[number]

/** `url` null = the search. */
export type OmittedSource = { readonly url: string | null; readonly code: LeftOutCode }
export type WebSource = { readonly url: string; readonly title: string }

/** Something found or fetched, as it came. */
export type WebDocument = { readonly url: string; readonly title: string; readonly text: string }

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

/** An address as two of them are the same page. */
export function withoutFragment(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null) return url
  parsed.hash = ''
  return parsed.href
}
