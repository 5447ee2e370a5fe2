/**
 * What was found clean lately, so that a conversation that comes back with every turn is screened once. In this process's
 * memory alone and by digest, never by content; forgotten as soon as a blocklist says something else.
 */

import type { Message } from '../core/chat/chat.ts'
import type { PromptDefinition } from '../core/chat/tool-definitions.ts'
import type { CleanOutputs } from '../core/moderation/output-moderator.ts'
import { allowVerdict, type CleanMessages } from '../core/moderation/text-moderator.ts'
import type { Digested, KeyedDigests } from '../core/text/keyed-digests.ts'
import { createRecentMap, type RecentMap } from '../core/text/recent-map.ts'

export type CleanTextCache = CleanMessages & {
  /** The same of answers: each comes back as a message of the next turn. */
  readonly answers: CleanOutputs
  /** Kinds of secrets in a message, as `find` tells them; where there are none, it is not asked again. */
  secretsIn(message: Said, find: (message: Said) => readonly string[]): readonly string[]
}

type Said = Message | PromptDefinition

const maximumMessages = 50_000

/** An empty memory. `listsVersion` changes with what the blocklists say. */
export function createKnown(digests: KeyedDigests, listsVersion: () => number): CleanTextCache {
  let scores: RecentMap<number> = createRecentMap(maximumMessages)
  let version = listsVersion()
  // No list has a say in what a secret is.
  const spotless = createRecentMap<true>(maximumMessages)

  const current = (): RecentMap<number> => {
    if (version !== listsVersion()) {
      scores = createRecentMap(maximumMessages)
      version = listsVersion()
    }
    return scores
  }

  const scoreOf = (message: Digested) => current().get(digests.of(message)) ?? null
  const keep = (message: Digested, score: number) => current().set(digests.of(message), score)

  return {
    scoreOf,
    keep,
    answers(text) {
      const message = turn(text)
      return { isClean: scoreOf(message) !== null, keep: () => keep(message, allowVerdict.score) }
    },
    secretsIn(message, find) {
      const digest = digests.of(message)
      if (spotless.has(digest)) return none
      const kinds = find(message)
      if (kinds.length === 0) spotless.set(digest, true)
      return kinds
    },
  }
}

/** An answer as the caller will send it back. */
function turn(text: string): Message {
  return { role: 'assistant', text, reasoning: null, toolCalls: [], name: null }
}

const none: readonly string[] = []
