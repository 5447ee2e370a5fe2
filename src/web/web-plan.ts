/** Plans the maximum web access of a request from the client's text, before any call. */

import type { ChatRequest, Message, QueryType } from '../core/chat/chat.ts'
import {
  type OmittedSource,
  type WebPrices,
  type WebSource,
  webLimits,
  withoutFragment,
} from '../core/chat/web-sources.ts'
import { isCodeType } from '../text/analysis/concepts.ts'
import { extractUrls } from '../text/analysis/extract-urls.ts'
import type { PromptAnalysis, PromptAnalyzer } from '../text/analysis/prompt-analysis.ts'
import { readTurn, type TurnTraits } from '../text/segments/turns.ts'
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
  request: Pick<ChatRequest, 'web' | 'messages'>,
  traits: WebTraits,
  caller: { readonly webOff?: boolean },
  { canSearch, prices, read }: WebAvailability,
): WebPlan {
  const { messages } = request
  const last = messages.at(-1)
  // Web access for a turn with only tool results was done when the question came.
  if (last?.role !== 'user' || request.web === 'off' || caller.webOff === true) return noWeb
  const hasOwn = traits.urls.length > 0
  const mayNeed = canSearch ? messages.length > 1 || traits.needsCurrent : messages.some(mayBeReferredTo)
  if (!hasOwn && !mayNeed) return noWeb
  const text = getText(last)
  const turn = readTurn(text)
  const named = hasOwn ? traits.urls : urlsReferredTo(messages, turn, read)
  // In its conversation a turn without a subject needs nothing; here the subject is searched with it.
  const isAlone = canSearch && messages.length > 1 && !traits.needsCurrent && dependsOnSubject(turn)
  const alone = isAlone ? read([last]) : traits
  const distinct = [...new Map(named.map(url => [withoutFragment(url), url])).values()]
  const urls = distinct.slice(0, webLimits.pages)
  const query = canSearch
    ? chooseQuery(messages, { text, turn, traits: alone, hasOwn, hasPages: urls.length > 0 }, read)
    : null
  if (query === null && urls.length === 0) return noWeb
  return {
    query,
    urls,
    surplus: distinct.slice(webLimits.pages),
    tokens: urls.length * webLimits.pageTokens + (query === null ? 0 : webLimits.resultsTokens),
    microcents: urls.length * prices.fetch + (query === null ? 0 : prices.search),
  }
}

/** Without searches, a turn needs only pages of an earlier message. */
function mayBeReferredTo(message: Message, at: number, { length }: readonly Message[]): boolean {
  if (at === length - 1) return false
  return message.role === 'user' || (message.role === 'system' && message.text.includes('://'))
}

const dependsOnSubject = ({ refers, asksFigure, hasName }: TurnTraits) => !hasName && (refers || asksFigure)

/** Freshness is only read if a search is possible. */
type WebTraits = Pick<PromptAnalysis, 'urls'> & Partial<Pick<PromptAnalysis, 'needsCurrent' | 'needsCurrentScore'>>

type LastTurn = {
  readonly text: string
  readonly turn: TurnTraits
  readonly traits: WebTraits
  readonly hasOwn: boolean
  readonly hasPages: boolean
}

function chooseQuery(messages: readonly Message[], last: LastTurn, read: PromptAnalyzer): string | null {
  const { text, turn, traits, hasOwn, hasPages } = last
  if (hasOwn) return traits.needsCurrent && asksForMore(text, read) ? toSearchQuery(text) : null
  const isExplicit = traits.needsCurrentScore === 1
  if (hasPages && !isExplicit) return null
  if (!traits.needsCurrent && !(turn.continues && turn.subjects > 0)) return null
  if (turn.hasName && !turn.continues) return toSearchQuery(text)
  const subject = subjectBefore(messages)
  if (subject === null) return traits.needsCurrent && canStandFirst(turn, messages) ? toSearchQuery(text) : null
  const before = read([userTurn(subject.query)])
  const isWorld = isAboutWorld(before.queryType, subject.hasName)
  if (!turn.refers && !turn.continues && turn.subjects >= (isWorld ? 1 : 2)) return toSearchQuery(text)
  const whole = joinQueries(subject.query, text)
  if (isExplicit) return whole
  const hasContent = turn.subjects > 0 || turn.asksFigure || turn.refers
  if (!hasContent || whole === null || !(isWorld || subject.hasName)) return null
  if (!traits.needsCurrent) return before.needsCurrent ? whole : null
  return (isWorld && subject.hasName) || read([userTurn(whole)]).needsCurrent ? whole : null
}

/**
 * In code, stories and calculations a figure is part of the work (`how old is he?`), and so it is in a client's own
 * texts and plans, unless they name something.
 */
function isAboutWorld(type: QueryType, hasName: boolean): boolean {
  if (type === 'writing' || type === 'planning') return hasName
  return !isCodeType[type] && type !== 'creative' && type !== 'math'
}

/** As a first turn, `any news?` is a question about the world; `next` and `is it open?` are not. */
function canStandFirst({ hasName, subjects, asksFigure, refers }: TurnTraits, messages: readonly Message[]): boolean {
  const isFirst = earlierTexts(messages, 1).length === 0
  return hasName || (subjects > 0 && (isFirst || !refers)) || (isFirst && asksFigure && !refers)
}

const turnsRead = 8

/**
 * Returns the latest earlier user turn with a subject of its own, as a query; null = none. Outputs are not read: they
 * may repeat the text of a page, which must not choose a query.
 */
function subjectBefore(messages: readonly Message[]): { readonly query: string; readonly hasName: boolean } | null {
  for (const text of earlierTexts(messages, turnsRead)) {
    const query = toSearchQuery(text)
    if (query === null) continue
    const { hasName, subjects, refers } = readTurn(query)
    if (hasName || subjects >= (refers ? 3 : 1)) return { query, hasName }
  }
  return null
}

/** Returns the texts of earlier user turns, the latest first. */
function earlierTexts(messages: readonly Message[], most: number): readonly string[] {
  const texts: string[] = []
  for (let at = messages.length - 2; at >= 0 && texts.length < most; at--) {
    const message = messages[at]
    if (message?.role === 'user') texts.push(getText(message))
  }
  return texts
}

/** The turn stays whole; the subject gets the room that is left. */
function joinQueries(subject: string, text: string): string | null {
  const turn = toSearchQuery(text)
  if (turn === null) return null
  const words = subject
    .split(' ')
    .slice(0, Math.max(0, webLimits.queryWords - turn.split(' ').length))
    .join(' ')
  return `${words.slice(0, Math.max(0, webLimits.queryCharacters - turn.length - 1))} ${turn}`.trim().toWellFormed()
}

/**
 * Returns the URLs of an earlier message that a turn refers to: by a word for a page, or by a pronoun soon after. A
 * pronoun after code means the code. An agent's system text is full of URLs, so more than a request may fetch are no
 * reference.
 */
function urlsReferredTo(messages: readonly Message[], turn: TurnTraits, read: PromptAnalyzer): readonly string[] {
  const { namesPage, refers, edits } = turn
  if (!namesPage && (!refers || edits)) return []
  const texts = earlierTexts(messages, namesPage ? turnsRead : turnsOfPronoun)
  for (const text of texts) {
    const urls = extractUrls(text)
    if (urls.length > 0) return namesPage || !isCodeType[read([userTurn(text)]).queryType] ? urls : []
  }
  if (!namesPage && texts.length > 0) return []
  const urls = messages.flatMap(message => (message.role === 'system' ? extractUrls(message.text) : []))
  return urls.length <= webLimits.pages ? urls : []
}

const turnsOfPronoun = 3

const getText = ({ content }: Extract<Message, { role: 'user' }>) =>
  content.map(part => (part.type === 'text' ? part.text : '')).join('\n')

const userTurn = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }], name: null })

/** A fetched page is current data. A search is also needed only if the text around the URL calls for one. */
function asksForMore(text: string, read: PromptAnalyzer): boolean {
  return read([userTurn(withoutAddresses(text))]).needsCurrent
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
