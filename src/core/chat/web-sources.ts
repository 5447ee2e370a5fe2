/** Web access of a request: size limits, prices, and the codes of omitted sources. */

/**
 * Why a web source is missing from a response. There are only four codes, because more detail would let a client probe
 * internal hosts.
 * - `refused`: never fetched, because of its address, the blocklist, its content, or the number of sources.
 * - `unreachable`: no DNS record, no connection, or an HTTP error.
 * - `too_slow`: timed out.
 * - `unreadable`: too large, an unsupported type, or empty.
 */
export const omissionCodes = ['refused', 'unreachable', 'too_slow', 'unreadable'] as const
export type LeftOutCode = (typeof omissionCodes)[number]

/** `url` null = the search itself. */
export type OmittedSource = { readonly url: string | null; readonly code: LeftOutCode }
export type WebSource = { readonly url: string; readonly title: string }

/** A search result or fetched page, unprocessed. */
export type WebDocument = { readonly url: string; readonly title: string; readonly text: string }

export const webLimits = {
  pages: 3,
  pageCharacters: 8_000,
  /** Input tokens reserved per page and for the results of a search. Longer text is truncated. */
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
 * $0.005 per search is the price of Brave ($5 per 1,000 requests, api-dashboard.search.brave.com, 2026) and about that
 * of Tavily. $0.0005 per page covers our own traffic. Operators can set other prices.
 */
export const webPrices: WebPrices = { search: 500_000, fetch: 50_000 }

/** Returns a URL without its fragment, under which two URLs of one page are equal. */
export function withoutFragment(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null) return url
  parsed.hash = ''
  return parsed.href
}
