/** Plans the maximum web access of a request from the client's text, before any call. */

import type { PromptAnalysis, PromptAnalyzer } from '../analysis/prompt-analysis.ts'
import type { ChatRequest, Message } from '../chat/chat.ts'
import { type OmittedSource, type WebPrices, type WebSource, webLimits, withoutFragment } from '../chat/web-sources.ts'

/** Planned web access of a request and its reservation. */
export type WebPlan = {
  /** Null = no search. */
  readonly query: string | null
  /** URLs to fetch, without duplicates. */
  readonly urls: readonly string[]
  /** URLs beyond the limit per request. */
  readonly surplus: readonly string[]
  /** Maximum input tokens that it adds. */
  readonly tokens: number
  /** Integer of 1e-8 USD. */
  readonly microcents: number
}

/** Web access of a request. Costs are integers of 1e-8 USD for successful calls only; the operator bears the others. */
export type WebUse = {
  readonly searched: boolean
  readonly sources: readonly WebSource[]
  readonly leftOut: readonly OmittedSource[]
  readonly searchMicrocents: number
  readonly fetchMicrocents: number
}

export const noWeb: WebPlan = { query: null, urls: [], surplus: [], tokens: 0, microcents: 0 }

/** Available web access: whether a search provider is configured, the prices, and the prompt analyzer. */
export type WebAvailability = { readonly canSearch: boolean; readonly prices: WebPrices; readonly read: PromptAnalyzer }

/** Plans web access for a conversation. `webOff` = the key or account has it turned off. */
export function planWebAccess(
  ask: Pick<ChatRequest, 'web' | 'messages'>,
  reading: Pick<PromptAnalysis, 'needsCurrent' | 'urls'>,
  caller: { readonly webOff?: boolean },
  { canSearch, prices, read }: WebAvailability,
): WebPlan {
  const maySearch = canSearch && reading.needsCurrent
  if (!maySearch && reading.urls.length === 0) return noWeb
  if (ask.web === 'off' || caller.webOff === true) return noWeb
  const last = ask.messages.at(-1)
  // Web access for a turn with only tool results was done when the question came.
  if (last?.role !== 'user') return noWeb
  const distinct = [...new Map(reading.urls.map(url => [withoutFragment(url), url])).values()]
  const urls = distinct.slice(0, webLimits.pages)
  const text = last.content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
  const query = maySearch && (urls.length === 0 || asksForMore(text, read)) ? toSearchQuery(text) : null
  return {
    query,
    urls,
    surplus: distinct.slice(webLimits.pages),
    tokens: urls.length * webLimits.pageTokens + (query === null ? 0 : webLimits.resultsTokens),
    microcents: urls.length * prices.fetch + (query === null ? 0 : prices.search),
  }
}

/** A fetched page is current data. A search is also needed only if the text around the URL calls for one. */
function asksForMore(text: string, read: PromptAnalyzer): boolean {
  const turn: Message = { role: 'user', content: [{ type: 'text', text: withoutAddresses(text) }], name: null }
  return read([turn]).needsCurrent
}

const withoutAddresses = (text: string) => text.replace(/https?:\/\/\S+/gi, ' ')

/** Returns the search query: the question as written; for a long text its last question, or its beginning. */
export function toSearchQuery(text: string): string | null {
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
