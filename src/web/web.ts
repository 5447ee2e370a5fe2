import type { WebPrices } from '../core/chat/web-sources.ts'
import type { PageFetcher } from './page-fetcher.ts'
import type { Search } from './search.ts'

/** Web access of a request. */
export type Web = {
  readonly search: Search
  readonly pages: PageFetcher
  readonly prices: WebPrices
  /** Returns true if web text may be inserted: it must contain no instructions to the model. */
  readonly screenPage: (text: string) => boolean
  /** Returns true if a rewritten prompt may be sent: it is moderated like a client's. */
  readonly screen: (text: string) => boolean
}
