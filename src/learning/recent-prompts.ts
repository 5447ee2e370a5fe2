/**
 * Cache of recent prompts under a keyed SHA-256 that is meaningless elsewhere, in this process's memory only: their
 * analysis, and whether the same prompt was soon repeated, as users do if a response did not help.
 */

import type { ChatRequest, Message } from '../core/chat/chat.ts'
import type { KeyedDigests } from '../core/text/keyed-digests.ts'
import { createRecentMap } from '../core/text/recent-map.ts'
import type { createReaders, RequestAnalysis, WantedHeads } from '../text/analysis/prompt-analysis.ts'
import { turnsRead } from '../text/segments/conversation.ts'

export type RecentPrompts = {
  /**
   * Returns the analysis of the request's prompt and its digest. A named model needs no difficulty; only responses of
   * the gateway's own API show it nevertheless. Only a search asks for freshness, and only enhancement for the language.
   */
  read(
    accountId: string,
    request: ChatRequest,
    canSearch: boolean,
  ): { readonly analysis: RequestAnalysis; readonly digest: string }
  /**
   * Records an answered request (epoch milliseconds) and returns the one that it repeats: the same prompt after enough
   * time to read the output, and not much later. Null = none, or one that was itself a repetition, since programs
   * repeat prompts.
   */
  answered(digest: string, request: { readonly id: string; readonly from: number; readonly to: number }): string | null
}

type Answered = { readonly requestId: string; readonly at: number; readonly isRepeat: boolean }

const maximumPrompts = 10_000
const soonestMs = 2_000
const latestMs = 120_000

/** Returns the messages that decide an analysis: the system text, the latest user turns, and the last output. */
function getReadMessages(messages: ChatRequest['messages']): readonly Message[] {
  if (messages.length === 1) return messages
  const turns = messages.filter(({ role }) => role === 'user').slice(-1 - turnsRead)
  const others = [messages.find(({ role }) => role === 'system'), messages.findLast(({ role }) => role === 'assistant')]
  return [...turns, ...others.filter(message => message !== undefined)]
}

function contains({ strongGain, needsCurrent, language }: RequestAnalysis, wanted: WantedHeads): boolean {
  return (
    (strongGain !== undefined || !wanted.difficulty) &&
    (needsCurrent !== undefined || !wanted.freshness) &&
    (language !== undefined || !wanted.language)
  )
}

/** Creates an empty cache for the results of this analyzer. */
export function createAnalysisCache(
  { read }: Pick<ReturnType<typeof createReaders>, 'read'>,
  digests: KeyedDigests,
): RecentPrompts {
  const analyses = createRecentMap<RequestAnalysis>(maximumPrompts)
  const asked = createRecentMap<Answered>(maximumPrompts)

  return {
    read(accountId, request, canSearch) {
      // The length represents the outputs of the conversation; of them only the last one is read.
      const name = getReadMessages(request.messages).map(digests.of).join(' ')
      const digest = `${name} ${request.messages.length} ${request.bodyCharacters} ${accountId}`
      const known = analyses.get(digest)
      const wanted = {
        difficulty: request.model === null || request.dialect === 'native',
        freshness: canSearch && request.web !== 'off',
        language: request.enhance,
      }
      if (known !== undefined && contains(known, wanted)) return { analysis: known, digest }
      // The other heads, which a request before wanted, stay known.
      const analysis = known === undefined ? read(request.messages, wanted) : read(request.messages)
      // URLs are content, and large.
      if (analysis.urls.length === 0) analyses.set(digest, analysis)
      return { analysis, digest }
    },
    answered(digest, { id, from, to }) {
      const before = asked.get(digest)
      const since = before === undefined ? Number.POSITIVE_INFINITY : from - before.at
      const isRepeat = since >= soonestMs && since <= latestMs
      asked.set(digest, { requestId: id, at: to, isRepeat })
      return before !== undefined && isRepeat && !before.isRepeat ? before.requestId : null
    },
  }
}
