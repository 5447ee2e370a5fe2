/** What the web may add to a request, at most: decided from the caller's own words, before anything is asked of anybody. */

import type { PromptAnalysis, PromptAnalyzer } from '../analysis/prompt-analysis.ts'
import type { ChatRequest, Message } from '../chat/chat.ts'
import { type OmittedSource, type WebPrices, type WebSource, webLimits, withoutFragment } from '../chat/web-sources.ts'

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

/** What was looked up for a request. Costs are integers of 1e-8 USD, of what succeeded: the operator bears the rest. */
export type WebUse = {
  readonly searched: boolean
  readonly sources: readonly WebSource[]
  readonly leftOut: readonly OmittedSource[]
  readonly searchMicrocents: number
  readonly fetchMicrocents: number
}

export const noWeb: WebPlan = { query: null, urls: [], surplus: [], tokens: 0, microcents: 0 }

/** What there is to be had: whether anybody can be asked to search, the prices, and who reads what is wanted. */
export type WebAvailability = { readonly canSearch: boolean; readonly prices: WebPrices; readonly read: PromptAnalyzer }

/** What the caller's words ask of the web. `webOff`: key or account want nothing of it. */
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
  // Turns that only hand a tool's result back were looked up for when the question came.
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

/** A page to be read is current data by itself: a search is wanted where the words around its address want one too. */
function asksForMore(text: string, read: PromptAnalyzer): boolean {
  const turn: Message = { role: 'user', content: [{ type: 'text', text: withoutAddresses(text) }], name: null }
  return read([turn]).needsCurrent
}

const withoutAddresses = (text: string) => text.replace(/https?:\/\/\S+/gi, ' ')

/** What is searched for: the question as it was asked; of a long text its last question, or its beginning. */
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
