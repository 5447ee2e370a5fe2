import type { WebPrices } from '../core/chat/web-sources.ts'
import type { PageFetcher } from './page-fetcher.ts'
import type { Search } from './search.ts'

/** The web, as a request may use it. */
export type Web = {
  readonly search: Search
  readonly pages: PageFetcher
  readonly prices: WebPrices
  /** Whether text from the web may be put before a model: no page may give it orders. */
  readonly screenPage: (text: string) => boolean
  /** Whether a rewritten prompt may be sent: what no caller may say, no rewriter may either. */
  readonly screen: (text: string) => boolean
}
