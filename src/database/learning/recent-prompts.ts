/**
 * What was asked lately, in this process's memory alone, under a keyed SHA-256 that means nothing outside of it: what was
 * read in a prompt, and whether the same was asked again soon, as people do whom an answer did not help.
 */

import { lastOfUser, type PromptAnalysis, type PromptAnalyzer } from '../../core/analysis/prompt-analysis.ts'
import type { ChatRequest } from '../../core/chat/chat.ts'
import type { KeyedDigests } from '../../core/text/keyed-digests.ts'
import { createRecentMap } from '../../core/text/recent-map.ts'

export type RecentPrompts = {
  /** What the ask's prompt is, and the name it is known by here. */
  read(accountId: string, ask: ChatRequest): { readonly reading: PromptAnalysis; readonly digest: string }
  /**
   * Notes an answered request (epoch milliseconds), and tells which one it repeats: the same was asked so long after the
   * answer as it takes to read it, and not much longer. Null = none, or one that was itself a repeat: programs ask the same
   * again and again.
   */
  answered(digest: string, request: { readonly id: string; readonly from: number; readonly to: number }): string | null
}

type Answered = { readonly requestId: string; readonly at: number; readonly isRepeat: boolean }

const maximumPrompts = 10_000
const soonestMs = 2_000
const latestMs = 120_000

/** An empty book of what `read` makes of prompts. */
export function createPromptBook(read: PromptAnalyzer, digests: KeyedDigests): RecentPrompts {
  const readings = createRecentMap<PromptAnalysis>(maximumPrompts)
  const asked = createRecentMap<Answered>(maximumPrompts)

  return {
    read(accountId, ask) {
      // The length stands for the conversation before the last message, of which nothing else is read.
      const prompt = lastOfUser(ask.messages)
      const name = prompt === null ? '' : digests.of(prompt)
      const digest = `${name} ${ask.messages.length} ${ask.bodyCharacters} ${accountId}`
      const known = readings.get(digest)
      if (known !== undefined) return { reading: known, digest }
      const reading = read(ask.messages)
      // Addresses are content, and large.
      if (reading.urls.length === 0) readings.set(digest, reading)
      return { reading, digest }
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
