import type { SearchSettings } from '../config/search.ts'
import type { Config } from '../config.ts'
import { webLimits } from '../core/chat/web-sources.ts'
import type { Clock, Log, Network } from '../core/ports.ts'
import type { Simulator } from '../simulator/simulator.ts'
import type { Moderation } from '../text/moderation/layers/moderation.ts'
import { createPageReader, type PageReaderOptions } from '../web/page-fetcher.ts'
import { createResolver } from '../web/resolve.ts'
import { brave, braveBaseUrl } from '../web/search/brave.ts'
import { searxng } from '../web/search/searxng.ts'
import { tavily, tavilyBaseUrl } from '../web/search/tavily.ts'
import { createSearch, type SearchBackEnd } from '../web/search.ts'
import type { Web } from '../web/web.ts'

/** Network of page fetches, which a test may replace. */
export type PageOptions = Partial<Pick<PageReaderOptions, 'resolve' | 'dial' | 'isListed'>>

/** Opens page fetches and web search. Moderation applies to pages as it does to prompts. */
export function openWeb(
  config: Config,
  parts: {
    readonly pages?: PageOptions
    readonly network: Network
    readonly clock: Clock
    readonly log: Log
    readonly simulator: Simulator | null
    readonly safety: Moderation
  },
): Web {
  const { network, clock, log, simulator, safety, pages } = parts
  const deadlines = config.serviceDeadlines
  const isListed = pages?.isListed ?? safety.isListed
  const simulated = simulator === null ? [] : [searxng(simulator.urls.search)]
  const backEnds = config.web.search.length > 0 ? config.web.search.map(backEndOf) : simulated
  return {
    search: createSearch({ backEnds, fetch: network.fetch, clock, log, isListed, budgetMs: deadlines.searchMs }),
    pages: createPageReader({
      resolve: createResolver(deadlines.nameResolutionMs),
      clock,
      deadlines,
      maximumCharacters: webLimits.pageCharacters,
      ...pages,
      isListed,
    }),
    prices: config.web.prices,
    screenPage: text => safety.screenData(text).verdict === 'allow',
    screen: text => safety.screen(text).verdict === 'allow',
  }
}

function backEndOf(settings: SearchSettings): SearchBackEnd {
  switch (settings.id) {
    case 'searxng':
      return searxng(settings.baseUrl)
    case 'brave':
      return brave({ apiKey: settings.apiKey, baseUrl: settings.baseUrl ?? braveBaseUrl })
    case 'tavily':
      return tavily({ apiKey: settings.apiKey, baseUrl: settings.baseUrl ?? tavilyBaseUrl })
  }
}
