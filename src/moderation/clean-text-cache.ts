/**
 * Cache of recently moderated clean texts, so that a conversation that returns with every turn is checked once. In this
 * process's memory and keyed by digest, without content; cleared when a blocklist changes.
 */

import type { Message, PromptDefinition } from '../core/chat/chat.ts'
import type { CleanOutputs } from '../core/moderation/output-moderator.ts'
import { allowVerdict, type CleanMessages } from '../core/moderation/text-moderator.ts'
import type { Digested, KeyedDigests } from '../core/text/keyed-digests.ts'
import { createRecentMap, type RecentMap } from '../core/text/recent-map.ts'

export type CleanTextCache = CleanMessages & {
  /** The same for outputs, which return as messages of the next turn. */
  readonly answers: CleanOutputs
  /** Returns the kinds of secrets in a message, from `find`. Messages without secrets are not searched again. */
  secretsIn(message: Said, find: (message: Said) => readonly string[]): readonly string[]
}

type Said = Message | PromptDefinition

const maximumMessages = 50_000

/** Creates an empty cache. `listsVersion` changes with the blocklists. */
export function createKnown(digests: KeyedDigests, listsVersion: () => number): CleanTextCache {
  let scores: RecentMap<number> = createRecentMap(maximumMessages)
  let version = listsVersion()
  // Blocklists do not affect secrets, so this cache has no version.
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

/** Returns an output as the message that the client will send back. */
function turn(text: string): Message {
  return { role: 'assistant', text, reasoning: null, toolCalls: [], name: null }
}

const none: readonly string[] = []
